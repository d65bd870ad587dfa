//! What operators do, by either way.

use keyrail_broker::HeadAction;
use keyrail_ordering::Member;

use super::{Access, AccessError, PAGE_MAX, parsed};
use crate::service::{
    AuditView, DeadLetterView, HaltedRow, HeadView, Page, PausedView, RecordFrom, Recording, WhoAndWhy,
};

impl Access {
    /// What a handler has on a key, to be tried elsewhere.
    pub async fn recording(
        &self,
        place: (&str, &str, Option<&str>),
        from: RecordFrom,
        limit: usize,
    ) -> Result<Recording, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.recording(place, from, limit).await?),
            Self::Host(client) => client.recording(place, from, limit).await,
        }
    }

    /// The heads of a key: one for each group that has not settled everything, or of the named group.
    pub async fn heads(&self, category: &str, key: &str, group: Option<&str>) -> Result<Vec<HeadView>, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.heads(category, key, group).await?),
            Self::Host(client) => client.heads(category, key, group).await,
        }
    }

    /// Does this with the head of (category, key, group), if `expect` names it.
    pub async fn act_on_head(
        &self,
        head: (&str, &str, &str),
        action: HeadAction,
        expect: &str,
        by: &WhoAndWhy,
    ) -> Result<(), AccessError> {
        match self {
            Self::Direct(service) => Ok(service.act_on_head(head, action, expect, by).await?),
            Self::Host(client) => client.act_on_head(head, action, expect, by).await,
        }
    }

    /// One page of partitions that stand still.
    pub async fn halted(
        &self,
        category: Option<&str>,
        group: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<Page<HaltedRow>, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.halted(category, group, parsed(cursor)?, PAGE_MAX).await?),
            Self::Host(client) => client.halted(category, group, cursor).await,
        }
    }

    /// One page of dead letters.
    pub async fn dead_letters(
        &self,
        category: Option<&str>,
        key: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<Page<DeadLetterView>, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.dead_letters(category, key, parsed(cursor)?, PAGE_MAX).await?),
            Self::Host(client) => client.dead_letters(category, key, cursor).await,
        }
    }

    /// One dead letter.
    pub async fn dead_letter(
        &self,
        category: &str,
        key: Option<&str>,
        id: &str,
    ) -> Result<DeadLetterView, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.dead_letter(category, key, id).await?),
            Self::Host(client) => client.dead_letter(category, key, id).await,
        }
    }

    /// Publishes the dead letter (category, key, id) again. Answers with its entry.
    pub async fn redrive(&self, letter: (&str, Option<&str>, &str), by: &WhoAndWhy) -> Result<String, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.redrive(letter, by).await?.to_string()),
            Self::Host(client) => client.redrive(letter, by).await,
        }
    }

    /// Drops the dead letter (category, key, id) for good.
    pub async fn purge(&self, letter: (&str, Option<&str>, &str), by: &WhoAndWhy) -> Result<(), AccessError> {
        match self {
            Self::Direct(service) => Ok(service.purge(letter, by).await?),
            Self::Host(client) => client.purge(letter, by).await,
        }
    }

    /// Pauses a category or a key of it. False if it was paused already.
    pub async fn pause(&self, category: &str, key: Option<&str>, by: &WhoAndWhy) -> Result<bool, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.pause(category, key, by).await?),
            Self::Host(client) => client.pause(category, key, by).await,
        }
    }

    /// Ends such a pause. False if there was none.
    pub async fn resume(&self, category: &str, key: Option<&str>, by: &WhoAndWhy) -> Result<bool, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.resume(category, key, by).await?),
            Self::Host(client) => client.resume(category, key, by).await,
        }
    }

    /// What is paused.
    pub async fn paused(&self) -> Result<Vec<PausedView>, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.paused().await?),
            Self::Host(client) => client.paused().await,
        }
    }

    /// Who is there, by owner.
    pub async fn members(&self) -> Result<Vec<Member>, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.members().await?),
            Self::Host(client) => client.members().await,
        }
    }

    /// One page of the last actions, newest first.
    pub async fn audit(&self, cursor: Option<&str>, limit: usize) -> Result<Page<AuditView>, AccessError> {
        match self {
            Self::Direct(service) => Ok(service.audit(parsed(cursor)?, limit.clamp(1, PAGE_MAX)).await?),
            Self::Host(client) => client.audit(cursor, limit).await,
        }
    }
}
