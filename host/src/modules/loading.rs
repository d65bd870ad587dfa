//! Getting one revision: from the registry through the compiler to a module that can serve.

use std::sync::Arc;

use keyrail_broker::Broker;
use keyrail_ordering::{GroupName, Revision};
use keyrail_runtime::{Manifest, Module, Runtime};

use crate::hash::sha256_hex;

/// Why a revision cannot serve on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LoadFailure {
    pub(super) why: String,
    /// It may be otherwise the next time: the broker was away.
    pub(super) may_pass: bool,
}

/// Loads a revision. Whatever it declares, it must be what was deployed.
pub(super) async fn load(
    runtime: &Arc<Runtime>,
    broker: &dyn Broker,
    group: &GroupName,
    revision: &Revision,
) -> Result<Arc<Module>, LoadFailure> {
    let final_failure = |why: String| LoadFailure { why, may_pass: false };
    let away = |error: keyrail_broker::Error| LoadFailure { why: error.to_string(), may_pass: true };
    let hash = &revision.content_hash;
    let bytes = broker.module(hash).await.map_err(away)?.ok_or_else(|| LoadFailure {
        why: format!("the module {hash} is not in the registry; deploy it again"),
        may_pass: true,
    })?;
    if sha256_hex(&bytes) != *hash {
        return Err(final_failure(format!("the module {hash} was changed in the registry; deploy it again")));
    }
    let manifest = Manifest::parse(&revision.manifest);
    let manifest = manifest.map_err(|problems| final_failure(format!("its manifest is refused: {problems}")))?;
    let module = runtime.load_bytes(&revision.label(), bytes.to_vec(), &manifest).await;
    let module = module.map_err(|error| final_failure(error.to_string()))?;
    if module.metadata().name != *group {
        let name = &module.metadata().name;
        return Err(final_failure(format!("the module declares the handler {name}, and was deployed as {group}")));
    }
    Ok(module)
}
