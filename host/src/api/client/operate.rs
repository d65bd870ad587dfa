//! What operators do, through the host.

use keyrail_broker::HeadAction;
use keyrail_ordering::Member;
use reqwest::Method;

use super::super::wire::{HeadRequest, HeadsAnswer, MembersAnswer, OperationAnswer, OperationRequest, PausedAnswer};
use super::{Client, given};
use crate::access::AccessError;
use crate::service::{
    AuditView, DeadLetterView, HaltedRow, HeadView, Page, PausedView, RecordFrom, Recording, WhoAndWhy,
};

impl Client {
    /// What a handler has on a key.
    pub async fn recording(
        &self,
        (category, key, group): (&str, &str, Option<&str>),
        from: RecordFrom,
        limit: usize,
    ) -> Result<Recording, AccessError> {
        let from = match from {
            RecordFrom::Head => "head",
            RecordFrom::Start => "start",
        };
        let limit = limit.to_string();
        let query = [("key", Some(key)), ("group", group), ("from", Some(from)), ("limit", Some(limit.as_str()))];
        self.answer(self.at(Method::GET, &["recordings", category], &given(&query))?).await
    }

    /// The heads of a key.
    pub async fn heads(&self, category: &str, key: &str, group: Option<&str>) -> Result<Vec<HeadView>, AccessError> {
        let request = self.at(Method::GET, &["heads", category], &given(&[("key", Some(key)), ("group", group)]))?;
        Ok(self.answer::<HeadsAnswer>(request).await?.heads)
    }

    /// Does something with a head.
    pub async fn act_on_head(
        &self,
        (category, key, group): (&str, &str, &str),
        action: HeadAction,
        expect: &str,
        by: &WhoAndWhy,
    ) -> Result<(), AccessError> {
        let action = match action {
            HeadAction::Retry => "retry",
            HeadAction::Skip => "skip",
            HeadAction::SetAside => "set-aside",
        };
        let body = HeadRequest { key: key.into(), group: group.into(), expect: expect.into(), by: by.clone() };
        let request = self.at(Method::POST, &["heads", category, action], &[])?.json(&body);
        self.answer::<OperationAnswer>(request).await?;
        Ok(())
    }

    /// One page of partitions that stand still.
    pub async fn halted(
        &self,
        category: Option<&str>,
        group: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<Page<HaltedRow>, AccessError> {
        let query = given(&[("category", category), ("group", group), ("cursor", cursor)]);
        self.answer(self.at(Method::GET, &["halted"], &query)?).await
    }

    /// One page of dead letters.
    pub async fn dead_letters(
        &self,
        category: Option<&str>,
        key: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<Page<DeadLetterView>, AccessError> {
        let query = given(&[("category", category), ("key", key), ("cursor", cursor)]);
        self.answer(self.at(Method::GET, &["dead-letters"], &query)?).await
    }

    /// One dead letter.
    pub async fn dead_letter(
        &self,
        category: &str,
        key: Option<&str>,
        id: &str,
    ) -> Result<DeadLetterView, AccessError> {
        self.answer(self.at(Method::GET, &["dead-letters", category, id], &given(&[("key", key)]))?).await
    }

    /// Publishes a dead letter again. Answers with its entry.
    pub async fn redrive(
        &self,
        (category, key, id): (&str, Option<&str>, &str),
        by: &WhoAndWhy,
    ) -> Result<String, AccessError> {
        let answer = self.operation(&["dead-letters", category, id, "redrive"], key, by).await?;
        answer.entry.ok_or_else(|| self.unreadable("it names no entry"))
    }

    /// Drops a dead letter.
    pub async fn purge(
        &self,
        (category, key, id): (&str, Option<&str>, &str),
        by: &WhoAndWhy,
    ) -> Result<(), AccessError> {
        self.operation(&["dead-letters", category, id, "purge"], key, by).await?;
        Ok(())
    }

    /// Pauses a category or a key.
    pub async fn pause(&self, category: &str, key: Option<&str>, by: &WhoAndWhy) -> Result<bool, AccessError> {
        Ok(self.operation(&["categories", category, "pause"], key, by).await?.changed)
    }

    /// Ends such a pause.
    pub async fn resume(&self, category: &str, key: Option<&str>, by: &WhoAndWhy) -> Result<bool, AccessError> {
        Ok(self.operation(&["categories", category, "resume"], key, by).await?.changed)
    }

    /// What is paused.
    pub async fn paused(&self) -> Result<Vec<PausedView>, AccessError> {
        Ok(self.answer::<PausedAnswer>(self.at(Method::GET, &["paused"], &[])?).await?.paused)
    }

    /// Who is there.
    pub async fn members(&self) -> Result<Vec<Member>, AccessError> {
        Ok(self.answer::<MembersAnswer>(self.at(Method::GET, &["members"], &[])?).await?.members)
    }

    /// One page of the last actions.
    pub async fn audit(&self, cursor: Option<&str>, limit: usize) -> Result<Page<AuditView>, AccessError> {
        let limit = limit.to_string();
        let query = given(&[("cursor", cursor), ("limit", Some(&limit))]);
        self.answer(self.at(Method::GET, &["audit"], &query)?).await
    }

    async fn operation(
        &self,
        path: &[&str],
        key: Option<&str>,
        by: &WhoAndWhy,
    ) -> Result<OperationAnswer, AccessError> {
        let body = OperationRequest { key: key.map(String::from), by: by.clone() };
        self.answer(self.at(Method::POST, path, &[])?.json(&body)).await
    }
}
