//! What stands still, what is paused, who is there, what was done.

use keyrail_broker::ReadySource;
use keyrail_ordering::{Catalog, CategoryName, Key, Member};

use super::super::inspect::following;
use super::super::{Cursor, Page, Service};
use super::views::{AuditView, HaltedRow, PausedView, WhoAndWhy, timestamp};
use super::{OperationError, find};

impl Service {
    /// Partitions that stand still, one page: of all, of those that read a category, of a group.
    pub async fn halted(
        &self,
        category: Option<&str>,
        group: Option<&str>,
        cursor: Cursor,
        limit: usize,
    ) -> Result<Page<HaltedRow>, OperationError> {
        let (catalog, _) = self.broker.catalog().await?;
        let category = category.map(|name| find::category(&catalog, name)).transpose()?;
        let group = group.map(|name| find::group(&catalog, name)).transpose()?;
        let groups = catalog.handlers.keys().filter(|name| group.as_ref().is_none_or(|group| group == *name));
        let sources = groups.flat_map(|group| ReadySource::of_handler(&catalog, group));
        let reads = |source: &ReadySource, wanted: &CategoryName| match source {
            ReadySource::Category { category, .. } => category == wanted,
            ReadySource::ProcessManager { group } => categories(&catalog, group).contains(&wanted),
            ReadySource::Shared { .. } => false,
        };
        let halts = |source: &ReadySource| !matches!(source, ReadySource::Shared { .. });
        let sources: Vec<_> = sources
            .filter(|source| halts(source) && category.as_ref().is_none_or(|wanted| reads(source, wanted)))
            .collect();
        let Some(source) = sources.get(cursor.source) else { return Ok(Page { rows: vec![], next: None }) };
        let (rows, next) = self.broker.halted(source, cursor.at, limit).await?;
        let rows = rows.into_iter().map(|(partition, record)| HaltedRow::new(partition, record)).collect();
        Ok(Page { rows, next: following(cursor, next, sources.len()) })
    }

    /// Pauses a category or one key of it. False if it was paused already.
    pub async fn pause(&self, category: &str, key: Option<&str>, by: &WhoAndWhy) -> Result<bool, OperationError> {
        let (category, key) = self.place(category, key).await?;
        Ok(self.broker.pause(&category, key.as_ref(), &by.checked()?).await?)
    }

    /// Ends such a pause. False if there was none.
    pub async fn resume(&self, category: &str, key: Option<&str>, by: &WhoAndWhy) -> Result<bool, OperationError> {
        let (category, key) = self.place(category, key).await?;
        Ok(self.broker.resume(&category, key.as_ref(), &by.checked()?).await?)
    }

    /// What is paused, of all categories.
    pub async fn paused(&self) -> Result<Vec<PausedView>, OperationError> {
        let (catalog, _) = self.broker.catalog().await?;
        let mut paused = vec![];
        for category in catalog.categories.keys() {
            paused.extend(self.broker.paused(category).await?.into_iter().map(PausedView::from));
        }
        Ok(paused)
    }

    /// Who is there.
    pub async fn members(&self) -> Result<Vec<Member>, OperationError> {
        let mut members = self.broker.members().await?;
        members.sort_by(|a, b| a.owner.cmp(&b.owner));
        Ok(members)
    }

    /// The last actions, newest first, one page.
    pub async fn audit(&self, cursor: Cursor, limit: usize) -> Result<Page<AuditView>, OperationError> {
        let (rows, next) = self.broker.audit(cursor.at, limit).await?;
        let next = next.map(|at| Cursor { source: 0, at }.to_string());
        Ok(Page { rows: rows.into_iter().map(AuditView::from).collect(), next })
    }

    async fn place(&self, category: &str, key: Option<&str>) -> Result<(CategoryName, Option<Key>), OperationError> {
        let (catalog, _) = self.broker.catalog().await?;
        find::place(&catalog, category, key)
    }
}

fn categories<'a>(catalog: &'a Catalog, group: &keyrail_ordering::GroupName) -> Vec<&'a CategoryName> {
    catalog.handlers.get(group).map(|handler| handler.metadata.categories()).unwrap_or_default()
}

impl From<keyrail_broker::AuditRow> for AuditView {
    fn from(row: keyrail_broker::AuditRow) -> Self {
        Self {
            at: timestamp(row.at_ms),
            action: row.action,
            target: row.target,
            entry: row.entry,
            who: row.by.who,
            reason: row.by.reason,
        }
    }
}
