//! Reading components for a command.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, anyhow};
use keyrail::config::Config;
use keyrail::service::Registration;
use keyrail_ordering::{Capabilities, Catalog};
use keyrail_runtime::{LoadError, Manifest, Module, Runtime, Settings, SetupError};

use super::failure::{Refused, Usage};

/// The runtime of this configuration.
pub(crate) fn runtime(config: &Config) -> Result<Arc<Runtime>> {
    let mut settings = Settings::from(&config.runtime);
    // A longer call would be taken for a hanging worker. That the defaults are shorter was checked.
    let longest_ms = config.engine.worker_stall_max_ms.saturating_sub(1);
    settings.ceiling.wall_max_ms = settings.ceiling.wall_max_ms.min(longest_ms);
    settings.ceiling.cpu_max_ms = settings.ceiling.cpu_max_ms.min(longest_ms);
    Runtime::new(settings).map_err(|error| match error {
        SetupError::Setting { .. } => Usage(format!("runtime.{error}")).into(),
        SetupError::CacheDir { .. } => Usage(format!("{error}; see runtime.cache_dir")).into(),
        SetupError::Engine(_) => anyhow!(error),
    })
}

/// Every component, or an error that names each that cannot be loaded.
pub(crate) async fn all(runtime: &Arc<Runtime>, files: &[PathBuf]) -> Result<Vec<Arc<Module>>> {
    let mut modules: Vec<Arc<Module>> = vec![];
    let mut refused = vec![];
    for file in files {
        let manifest = match manifest(file) {
            Ok(manifest) => manifest,
            Err(why) => {
                refused.push(why);
                continue;
            }
        };
        match runtime.load(file, &manifest).await {
            Ok(module) => match refusals(&module, &Catalog::default()) {
                // Refused by itself, whatever is registered: then no broker need be opened, and no file made.
                reasons if !reasons.is_empty() => {
                    refused.push(format!("{} is refused: {}", file.display(), reasons.join("; ")));
                }
                _ => modules.push(module),
            },
            Err(error @ (LoadError::Refused(_) | LoadError::Declaration(_))) => {
                refused.push(format!("{} is refused: {error}", file.display()));
            }
            // The others name the file themselves.
            Err(error) => refused.push(error.to_string()),
        }
    }
    if !refused.is_empty() {
        let refused = refused.join("; ");
        return Err(Refused(refused).into());
    }
    for (index, module) in modules.iter().enumerate() {
        let name = &module.metadata().name;
        if let Some(twin) = modules[..index].iter().position(|other| other.metadata().name == *name) {
            let (one, other) = (files[twin].display(), files[index].display());
            return Err(Refused(format!("{one} and {other} both declare the handler {name}; give one of them")).into());
        }
    }
    Ok(modules)
}

/// The manifest beside a component: `orders.wasm` has `orders.manifest.toml`. Without one nothing is granted.
pub(crate) fn manifest(file: &Path) -> Result<Manifest, String> {
    let path = file.with_extension("manifest.toml");
    match std::fs::read_to_string(&path) {
        Ok(text) => Manifest::parse(&text).map_err(|problems| format!("{} is refused: {problems}", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Manifest::default()),
        Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
    }
}

/// Every reason why a component was not loaded, without the file's name.
pub(crate) fn reasons(error: &LoadError) -> Vec<String> {
    match error {
        LoadError::Declaration(refusals) => refusals.iter().map(ToString::to_string).collect(),
        LoadError::Refused(reasons) => reasons.clone(),
        other => vec![other.to_string()],
    }
}

/// Every reason why this catalog would refuse a component.
pub(crate) fn refusals(module: &Module, catalog: &Catalog) -> Vec<String> {
    let capabilities = Capabilities { stream_partitioning: true };
    match catalog.register(module.metadata(), module.content_hash(), capabilities) {
        Ok(_) => vec![],
        Err(refusals) => refusals.iter().map(ToString::to_string).collect(),
    }
}

/// What is registered of a component.
pub(crate) fn registration(module: &Module) -> Registration {
    Registration { metadata: module.metadata().clone(), content_hash: module.content_hash().into() }
}

/// The file's name for a line of output.
pub(crate) fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}
