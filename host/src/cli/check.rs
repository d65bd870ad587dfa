//! `keyrail check`: what a component declares and imports, and every reason why it would be refused.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use keyrail::access::{self, Need};
use keyrail::config::Config;
use keyrail::modules::manifest;
use keyrail_ordering::{Catalog, Metadata, Role, SequentialBy};
use keyrail_runtime::{Manifest, Module};
use serde::Serialize;

use super::failure::{Exit, one_line, printed};
use super::load;

/// Show what a handler declares and imports, and every reason why it would be refused
///
/// Nothing is changed. With --broker the handler is checked against what is registered there as well.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  keyrail check itinerary.wasm\n  keyrail check --json itinerary.wasm | jq .reasons\n\n\
    Ends with 5 if it would be refused."
)]
pub(crate) struct Args {
    /// Component
    #[arg(value_name = "FILE.wasm")]
    file: PathBuf,
    /// Manifest with what it may use, and its limits [default: FILE.manifest.toml beside it, if there]
    #[arg(long, value_name = "FILE.toml")]
    grants: Option<PathBuf>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Verdict<'a> {
    file: String,
    accepted: bool,
    /// Every reason why it would be refused.
    reasons: &'a [String],
    content_hash: Option<&'a str>,
    metadata: Option<&'a Metadata>,
    imports: &'a [String],
}

pub(crate) async fn run(args: Args, config: &Config, broker_named: bool) -> Result<Exit> {
    let runtime = load::runtime(config)?;
    let (manifest, mut reasons) = match manifest::read(&args.file, args.grants.as_deref()) {
        Ok((_, manifest)) => (manifest, vec![]),
        Err(why) => (Manifest::default(), vec![why]),
    };
    let loaded = runtime.load(&args.file, &manifest).await;
    reasons.extend(match &loaded {
        Ok(module) => load::refusals(module, &catalog(config, broker_named).await?),
        Err(error) => load::reasons(error),
    });
    let module = loaded.as_ref().ok();
    printed(show(&args, &reasons, module))?;
    Ok(if reasons.is_empty() { Exit::Done } else { Exit::Refused })
}

fn show(args: &Args, reasons: &[String], module: Option<&Arc<Module>>) -> Result<()> {
    let mut out = io::stdout().lock();
    if args.json {
        let verdict = Verdict {
            file: args.file.display().to_string(),
            accepted: reasons.is_empty(),
            reasons,
            content_hash: module.map(|module| module.content_hash()),
            metadata: module.map(|module| module.metadata()),
            imports: module.map(|module| module.imports()).unwrap_or_default(),
        };
        writeln!(out, "{}", serde_json::to_string(&verdict)?)?;
        return Ok(());
    }
    if let Some(module) = module {
        describe(&mut out, module)?;
    }
    for warning in module.map(|module| module.warnings()).unwrap_or_default() {
        writeln!(out, "warning: {}", one_line(warning))?;
    }
    if reasons.is_empty() {
        writeln!(out, "it would be registered")?;
        return Ok(());
    }
    writeln!(out, "{} would be refused:", load::name_of(&args.file))?;
    for reason in reasons {
        writeln!(out, "  - {}", one_line(reason))?;
    }
    Ok(())
}

async fn catalog(config: &Config, broker_named: bool) -> Result<Catalog> {
    if !broker_named {
        return Ok(Catalog::default());
    }
    Ok(access::open(config, Need::Existing).await?.catalog().await?.catalog)
}

fn describe(out: &mut impl Write, module: &Module) -> io::Result<()> {
    let metadata = module.metadata();
    let role = match metadata.role {
        Role::EventHandler => "event handler",
        Role::CommandHandler => "command handler",
        Role::ProcessManager => "process manager",
    };
    writeln!(out, "{} {}, {role}", metadata.name, one_line(&metadata.version))?;
    writeln!(out, "content: sha256 {}", module.content_hash())?;
    match &metadata.sequential_by {
        SequentialBy::Unordered => writeln!(out, "sequential by: nothing of its own")?,
        SequentialBy::Field(field) => writeln!(out, "sequential by: {}", one_line(field))?,
        SequentialBy::Correlation(correlations) => {
            writeln!(out, "sequential by a correlation:")?;
            for correlation in correlations {
                let field = one_line(&correlation.field);
                writeln!(out, "  {}/{} by {field}", correlation.category, correlation.message)?;
            }
        }
    }
    writeln!(out, "handles:")?;
    for message in &metadata.handles {
        let field = |f: &keyrail_ordering::Field| {
            format!("{} ({}{})", one_line(&f.name), f.kind, if f.required { "" } else { ", optional" })
        };
        let fields: Vec<_> = message.fields.iter().map(field).collect();
        writeln!(out, "  {}/{} version {}: {}", message.category, message.name, message.version, fields.join(", "))?;
    }
    if !metadata.options.is_empty() {
        writeln!(out, "options:")?;
        for (name, value) in &metadata.options {
            writeln!(out, "  {} = {}", one_line(name), one_line(value))?;
        }
    }
    writeln!(out, "imports:")?;
    for import in module.imports() {
        writeln!(out, "  {}", one_line(import))?;
    }
    Ok(())
}
