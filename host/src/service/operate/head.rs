//! The head of a partition: what is known of it, and what can be done with it.

use keyrail_broker::{HeadAction, OperateError};

use super::super::{InspectError, Service};
use super::views::{HeadView, WhoAndWhy, head_view};
use super::{EntryName, OperationError, find};

impl Service {
    /// The heads of a key: one for each group that reads the category and has not settled everything, or for the named
    /// group.
    pub async fn heads(&self, category: &str, key: &str, group: Option<&str>) -> Result<Vec<HeadView>, OperationError> {
        let (catalog, _) = self.broker.catalog().await?;
        let mut heads = vec![];
        for partition in find::partitions(&catalog, category, key, group)? {
            if let Some(head) = self.broker.head(&partition).await? {
                heads.push(head_view(&partition.id, &head));
            }
        }
        Ok(heads)
    }

    /// Does this with the head of a group's partition, if `expect` names it.
    pub async fn act_on_head(
        &self,
        (category, key, group): (&str, &str, &str),
        action: HeadAction,
        expect: &str,
        by: &WhoAndWhy,
    ) -> Result<(), OperationError> {
        let (catalog, _) = self.broker.catalog().await?;
        let partition = find::partitions(&catalog, category, key, Some(group))?;
        // A handler that reads a category with keys has one partition a key.
        let Some(partition) = partition.first() else {
            let known = catalog.handlers.keys().map(ToString::to_string).collect();
            return Err(InspectError::UnknownGroup { name: group.into(), known }.into());
        };
        let head = EntryName::find(expect, partition).map_err(|forms| {
            OperationError::Usage(format!("{expect:?} is not an entry of {}; its form is {forms}", partition.id))
        })?;
        let by = by.checked()?;
        let name = |entry: &keyrail_ordering::EntryRef| EntryName::of(entry, &partition.id.scope);
        self.broker.act_on_head(partition, &head, action, &by).await.map_err(|error| match error {
            OperateError::NotHead { named, head: Some(head) } => OperationError::Conflict(format!(
                "{} is not the head of {} any more: {} is; nothing was changed, see keyrail head show {category} {key} \
                 --group {group}",
                name(&named),
                partition.id,
                name(&head)
            )),
            OperateError::NotHead { named, head: None } => OperationError::Conflict(format!(
                "{} is not the head of {}: everything there is settled; nothing was changed",
                name(&named),
                partition.id
            )),
            error => error.into(),
        })
    }
}
