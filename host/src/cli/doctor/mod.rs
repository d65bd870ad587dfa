//! `keyrail doctor`: every check of a start, with its outcome and what to change.

mod checks;
mod fleet;
mod http;

use std::io::{self, Write};

use anyhow::Result;
use keyrail::config::{BrokerAddress, Config, ConfigError};
use keyrail_broker::{Check, CheckOutcome};
use serde::Serialize;

use super::failure::{Exit, one_line, printed};
use super::text;

/// Check everything that a host checks at its start, and how things stand; say what to change
///
/// Changes nothing.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail doctor\n  keyrail doctor --broker redis://10.0.0.5\n  \
    keyrail doctor --json | jq 'select(.outcome != \"ok\")'\n\nEnds with 4 if a check failed.")]
pub(crate) struct Args {
    /// Print one JSON object a check
    #[arg(long)]
    json: bool,
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Ok,
    Warning,
    Failed,
}

#[derive(Debug, Serialize)]
struct Finding {
    check: String,
    outcome: Outcome,
    /// What was found.
    found: String,
    /// What to change, or to type next.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Finding {
    fn ok(check: &str, found: impl Into<String>) -> Self {
        Self { check: check.into(), outcome: Outcome::Ok, found: found.into(), remedy: None }
    }

    fn warning(check: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check: check.into(), outcome: Outcome::Warning, found: found.into(), remedy: Some(remedy.into()) }
    }

    fn failed(check: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check: check.into(), outcome: Outcome::Failed, found: found.into(), remedy: Some(remedy.into()) }
    }
}

/// A broker's own checks say what to change in the same sentence.
impl From<Check> for Finding {
    fn from(check: Check) -> Self {
        let outcome = match check.outcome {
            CheckOutcome::Passed => Outcome::Ok,
            CheckOutcome::Warned => Outcome::Warning,
            CheckOutcome::Failed => Outcome::Failed,
        };
        Self { check: check.name.into(), outcome, found: check.says, remedy: None }
    }
}

pub(crate) async fn run(args: Args, config: &Config, origins: &[String]) -> Result<Exit> {
    let mut findings = vec![Finding::ok("configuration", format!("loads; {}", layers(origins)))];
    // Of the host that would run here; another has settings of its own.
    if !matches!(config.broker, BrokerAddress::Host(_)) {
        findings.extend(http::all(&config.http));
    }
    findings.extend(checks::all(config).await);
    finish(&args, &findings)
}

/// When the configuration itself does not load.
pub(crate) fn misconfigured(args: &Args, error: &ConfigError, origins: &[String]) -> Result<Exit> {
    let remedy = "change what the error names; the other checks need a configuration that loads";
    finish(args, &[Finding::failed("configuration", format!("{error}; {}", layers(origins)), remedy)])
}

fn layers(origins: &[String]) -> String {
    if origins.is_empty() { "all defaults".into() } else { format!("defaults, then {}", origins.join(", ")) }
}

fn finish(args: &Args, findings: &[Finding]) -> Result<Exit> {
    printed(print(args, findings))?;
    let failed = findings.iter().any(|finding| finding.outcome == Outcome::Failed);
    Ok(if failed { Exit::Broker } else { Exit::Done })
}

fn print(args: &Args, findings: &[Finding]) -> Result<()> {
    let mut out = io::stdout().lock();
    if args.json {
        for finding in findings {
            writeln!(out, "{}", serde_json::to_string(finding)?)?;
        }
        return Ok(());
    }
    let width = findings.iter().map(|finding| finding.check.chars().count()).max().unwrap_or(0);
    for finding in findings {
        let word = match finding.outcome {
            Outcome::Ok => "ok",
            Outcome::Warning => "warning",
            Outcome::Failed => "FAILED",
        };
        writeln!(out, "{word:<8} {:<width$}  {}", finding.check, text::typed(&one_line(&finding.found)))?;
        if let Some(remedy) = &finding.remedy {
            writeln!(out, "{:<8} {:<width$}  → {}", "", "", text::typed(&one_line(remedy)))?;
        }
    }
    let number = |outcome| findings.iter().filter(|finding| finding.outcome == outcome).count();
    let (failed, warnings) = (number(Outcome::Failed), number(Outcome::Warning));
    writeln!(out, "\n{} checks: {failed} failed, {warnings} to look at", findings.len())?;
    Ok(())
}
