//! Changing the catalog while others do.

use keyrail_broker::{Broker, Error};
use keyrail_ordering::Catalog;

/// Tries to set a catalog that others set at the same time.
const TRIES_MAX: u32 = 16;

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError<E> {
    /// It may not be made.
    #[error("{0}")]
    Refused(E),
    /// Others change the catalog all the time.
    #[error("the catalog was changed by others {TRIES_MAX} times in a row; try again")]
    Contended,
    /// The broker.
    #[error(transparent)]
    Broker(#[from] Error),
}

/// Sets what `change` makes of the catalog, read anew each time that somebody else was faster. Nothing is written if
/// nothing changes. Answers with the catalog as it was before, and with what `change` answered.
pub async fn change_catalog<T, E>(
    broker: &dyn Broker,
    mut change: impl FnMut(&Catalog) -> Result<(Catalog, T), E>,
) -> Result<(Catalog, T), ChangeError<E>> {
    for _ in 0..TRIES_MAX {
        let (before, version) = broker.catalog().await?;
        let (next, answer) = change(&before).map_err(ChangeError::Refused)?;
        if next == before || broker.set_catalog(&next, version).await?.is_some() {
            return Ok((before, answer));
        }
    }
    Err(ChangeError::Contended)
}
