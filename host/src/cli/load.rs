//! Reading components for a command.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, anyhow};
use keyrail::config::Config;
use keyrail::modules::manifest;
use keyrail::service::Registration;
use keyrail_ordering::{Capabilities, Catalog};
use keyrail_runtime::manifest::HttpGrant;
use keyrail_runtime::{LoadError, Module, Runtime, Settings, SetupError};

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

/// Every component with the manifest beside it, or an error that names each that cannot be loaded.
pub(crate) async fn all(runtime: &Arc<Runtime>, files: &[PathBuf]) -> Result<Vec<Arc<Module>>> {
    let mut modules: Vec<Arc<Module>> = vec![];
    let mut refused = vec![];
    for file in files {
        match one(runtime, file, None).await {
            Ok((module, _)) => modules.push(module),
            Err(why) => refused.push(why),
        }
    }
    if !refused.is_empty() {
        let refused = refused.join("; ");
        return Err(Refused(refused).into());
    }
    check_distinct(&modules, &files.iter().collect::<Vec<_>>())?;
    Ok(modules)
}

/// Refuses two components of one handler.
pub(crate) fn check_distinct(modules: &[Arc<Module>], files: &[&PathBuf]) -> Result<()> {
    for (index, module) in modules.iter().enumerate() {
        let name = &module.metadata().name;
        if let Some(twin) = modules[..index].iter().position(|other| other.metadata().name == *name) {
            let (one, other) = (files[twin].display(), files[index].display());
            return Err(Refused(format!("{one} and {other} both declare the handler {name}; give one of them")).into());
        }
    }
    Ok(())
}

/// One component with the manifest of this file, or with the one beside it; and the manifest's text.
pub(crate) async fn with_grants(
    runtime: &Arc<Runtime>,
    file: &Path,
    grants: Option<&Path>,
) -> Result<(Arc<Module>, String)> {
    Ok(one(runtime, file, grants).await.map_err(Refused)?)
}

/// Refused by itself, whatever is registered: then no broker need be opened, and no file made.
async fn one(runtime: &Arc<Runtime>, file: &Path, grants: Option<&Path>) -> Result<(Arc<Module>, String), String> {
    let (text, manifest) = manifest::read(file, grants)?;
    let module = runtime.load(file, &manifest).await.map_err(|error| match error {
        LoadError::Refused(_) | LoadError::Declaration(_) => format!("{} is refused: {error}", file.display()),
        // The others name the file themselves.
        error => error.to_string(),
    })?;
    match refusals(&module, &Catalog::default()) {
        reasons if reasons.is_empty() => Ok((module, text)),
        reasons => Err(format!("{} is refused: {}", file.display(), reasons.join("; "))),
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

/// The HTTP calls that a handler may make, if it makes any: `GET, POST to api.example.org`.
pub(crate) fn http_granted(module: &Module) -> Option<String> {
    let grant = |grant: &HttpGrant| {
        let methods: Vec<String> = grant.methods.iter().cloned().map(Into::into).collect();
        let hosts: Vec<String> = grant.hosts.iter().map(ToString::to_string).collect();
        format!("{} to {}", methods.join(", "), hosts.join(", "))
    };
    let grants = &module.manifest().grants.http;
    module.external_effects().then(|| grants.iter().map(grant).collect::<Vec<_>>().join("; "))
}

/// The file's name for a line of output.
pub(crate) fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}
