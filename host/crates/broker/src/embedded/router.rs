//! Routing: oldest records first, all in one step, so that any number of routers keep the order of commits.

use async_trait::async_trait;
use keyrail_ordering::Lane;
use redb::ReadableTableMetadata;

use super::EmbeddedBroker;
use super::publish::append;
use super::records::{outbox, storage};
use super::writer::Batch;
use crate::{Error, Routed, Router};

#[async_trait]
impl Router for EmbeddedBroker {
    async fn route(&self, max: usize, dedupe_window_ms: u64) -> Result<Routed, Error> {
        self.writer.call(move |batch| route(batch, max, dedupe_window_ms)).await
    }
}

fn route(batch: &mut Batch<'_, '_>, max: usize, dedupe_window_ms: u64) -> Result<Routed, Error> {
    let records = outbox::oldest(&batch.tables.outbox, max)?;
    let mut routed = Routed::default();
    for (number, record) in records {
        batch.writes();
        match record {
            Ok(outgoing) => {
                let event = &outgoing.event;
                let key_field = outgoing.key_field.as_deref();
                match append(batch, event, key_field, Lane::Primary, dedupe_window_ms)? {
                    Ok(_) => routed.published += 1,
                    Err(refusal) => {
                        let reason = format!("{} event {}: {refusal}", event.category, event.id);
                        outbox::abandon(&mut batch.tables.abandoned, number, &outgoing, &reason)?;
                        routed.abandoned.push(reason);
                    }
                }
            }
            Err(error) => {
                outbox::abandon_unread(&batch.tables.outbox, &mut batch.tables.abandoned, number)?;
                routed.abandoned.push(format!("outbox record {number}: {error}"));
            }
        }
        batch.tables.outbox.remove(number).map_err(storage)?;
    }
    routed.more = !batch.tables.outbox.is_empty().map_err(storage)?;
    Ok(routed)
}
