//! Appending events, through the public function `keyrail_publish`.

use async_trait::async_trait;
use keyrail_ordering::{Lane, StreamId};

use super::answer::{Answer, entry_id};
use super::connection::Failure;
use super::decode::encode_headers;
use super::functions::Call;
use super::{RedisBroker, keyspace};
use crate::{Error, Publication, Publish, PublishError, Published};

/// Events, and bytes of data, in one call: it holds the whole server up while it runs.
const BATCH_MAX: usize = 100;
const BATCH_MAX_BYTES: usize = 4 * 1024 * 1024;

type Answers = Vec<Result<Published, PublishError>>;

#[async_trait]
impl Publish for RedisBroker {
    async fn publish(&self, batch: Vec<Publication>) -> Result<Answers, Error> {
        let mut answers = Vec::with_capacity(batch.len());
        let mut rest = batch.as_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(batch_len(rest));
            self.publish_some(now, &mut answers).await?;
            if matches!(answers.last(), Some(Err(_))) {
                break;
            }
            rest = later;
        }
        answers.resize_with(batch.len(), || Err(PublishError::NotTried));
        Ok(answers)
    }
}

impl RedisBroker {
    async fn publish_some(&self, batch: &[Publication], answers: &mut Answers) -> Result<(), Error> {
        let rules = self.rules();
        let mut call = Call::new("keyrail_publish", batch.len());
        for publication in batch {
            let event = &publication.event;
            let id = StreamId { category: event.category.clone(), key: event.key.clone(), lane: publication.lane };
            call.arg(keyspace::stream(&id, &rules));
        }
        for publication in batch {
            let event = &publication.event;
            call.arg(event.category.as_str())
                .arg(event.key.as_ref().map_or("", |key| key.as_str()))
                .arg(publication.key_field.as_deref().unwrap_or_default())
                .arg(if publication.lane == Lane::Backfill { "backfill" } else { "" })
                .arg(publication.dedupe_window_ms)
                .arg(&*event.id)
                .arg(event.name.as_str())
                .arg(event.version)
                .arg(encode_headers(&event.headers))
                .arg(&event.data[..]);
        }
        let answer = match self.call(&call).await {
            Ok(answer) => answer,
            Err(failure) => {
                answers.push(Err(refusal(failure)?));
                return Ok(());
            }
        };
        let mut answer = Answer::of(answer)?;
        for publication in batch {
            if answer.is_empty() {
                break;
            }
            let status = answer.number()?;
            let value = answer.text()?;
            answers.push(match status {
                0 | 1 => {
                    let id =
                        entry_id(&value)?.ok_or_else(|| Error::Corrupt("an entry was published without id".into()))?;
                    Ok(Published { id, duplicate: status == 1 })
                }
                2 => Err(PublishError::Stale {
                    category: publication.event.category.to_string(),
                    expected: publication.key_field.clone(),
                    actual: (!value.is_empty()).then_some(value),
                }),
                _ => Err(PublishError::Refused(value)),
            });
        }
        Ok(())
    }
}

/// A refusal of the whole call, which wrote nothing, is the first event's; anything else may have happened.
fn refusal(failure: Failure) -> Result<PublishError, Error> {
    match Error::from(failure) {
        Error::Refused(why) => Ok(PublishError::Refused(why)),
        other => Err(other),
    }
}

fn batch_len(batch: &[Publication]) -> usize {
    let mut bytes = 0;
    let fits = |publication: &&Publication| {
        bytes += publication.event.data.len();
        bytes <= BATCH_MAX_BYTES
    };
    batch.iter().take(BATCH_MAX).take_while(fits).count().max(1)
}
