//! Bells: a broadcast within the process. Whoever is too slow loses some and is told so.

use futures::{StreamExt, stream};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::EmbeddedBroker;
use crate::{Bell, Bells, ReadySource};

impl EmbeddedBroker {
    /// Bells of these sources, of the outbox and of the members. Begins with [`Bell::Lost`]: nobody listened before.
    pub(super) fn listen(&self, sources: Vec<ReadySource>) -> Bells {
        let receiver = self.shared.bells.subscribe();
        let heard = stream::unfold((receiver, sources), |(mut receiver, sources)| async move {
            let bell = next(&mut receiver, &sources).await?;
            Some((bell, (receiver, sources)))
        });
        stream::once(async { Bell::Lost }).chain(heard).boxed()
    }
}

async fn next(receiver: &mut Receiver<Bell>, sources: &[ReadySource]) -> Option<Bell> {
    loop {
        match receiver.recv().await {
            Ok(Bell::Ready { source, .. } | Bell::Look { source }) if !sources.contains(&source) => {}
            Ok(bell) => return Some(bell),
            Err(RecvError::Lagged(_)) => return Some(Bell::Lost),
            Err(RecvError::Closed) => return None,
        }
    }
}
