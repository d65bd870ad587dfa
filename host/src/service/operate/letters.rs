//! Dead letters: events that were set aside.

use keyrail_ordering::{Catalog, CategoryName, EntryId, Key};

use super::super::inspect::following;
use super::super::{Cursor, Page, Service};
use super::views::{DeadLetterView, WhoAndWhy, dead_letter_view};
use super::{EntryName, OperationError, find};

/// Dead letters in one page, whatever is asked for: each may hold an event of the largest size.
const PAGE_MAX: usize = 50;

impl Service {
    /// Dead letters of a key, of a category, or of all, one page.
    pub async fn dead_letters(
        &self,
        category: Option<&str>,
        key: Option<&str>,
        cursor: Cursor,
        limit: usize,
    ) -> Result<Page<DeadLetterView>, OperationError> {
        let (catalog, _) = self.broker.catalog().await?;
        let places: Vec<(CategoryName, Option<Key>)> = match category {
            Some(category) => vec![find::place(&catalog, category, key)?],
            None if key.is_some() => return Err(OperationError::Usage("a key needs its category".into())),
            None => catalog.categories.keys().map(|category| (category.clone(), None)).collect(),
        };
        let Some((category, key)) = places.get(cursor.source) else { return Ok(Page { rows: vec![], next: None }) };
        let (rows, next) = self.broker.dead_letters(category, key.as_ref(), cursor.at, limit.min(PAGE_MAX)).await?;
        let next = following(cursor, next, places.len());
        Ok(Page { rows: rows.iter().map(|letter| dead_letter_view(&catalog, letter)).collect(), next })
    }

    /// One dead letter.
    pub async fn dead_letter(
        &self,
        category: &str,
        key: Option<&str>,
        id: &str,
    ) -> Result<DeadLetterView, OperationError> {
        let (catalog, _) = self.broker.catalog().await?;
        let (category, key, id) = letter(&catalog, category, key, id)?;
        if let Some(letter) = self.broker.dead_letter(&category, key.as_ref(), id).await? {
            return Ok(dead_letter_view(&catalog, &letter));
        }
        let place = key.map_or_else(|| category.to_string(), |key| format!("{category}/{key}"));
        let text = format!("there is no dead letter {id} in {place}; see keyrail dlq list {category}");
        Err(OperationError::Unknown(text))
    }

    /// Publishes a dead letter again at the end of its stream, for the group that did not handle it. Answers with its
    /// entry there.
    pub async fn redrive(
        &self,
        (category, key, id): (&str, Option<&str>, &str),
        by: &WhoAndWhy,
    ) -> Result<EntryName, OperationError> {
        let (catalog, _) = self.broker.catalog().await?;
        let by = by.checked()?;
        let found = self.dead_letter(category, key, id).await?;
        let (category, key, id) = letter(&catalog, category, key, id)?;
        let entry = self.broker.redrive(&category, key.as_ref(), id, &by).await?;
        let stream = keyrail_ordering::StreamId { category, key, lane: found.lane.into() };
        Ok(EntryName::in_stream(&stream, find::is_process_manager(&catalog, &found.group), entry))
    }

    /// Drops a dead letter for good.
    pub async fn purge(
        &self,
        (category, key, id): (&str, Option<&str>, &str),
        by: &WhoAndWhy,
    ) -> Result<(), OperationError> {
        let (catalog, _) = self.broker.catalog().await?;
        let by = by.checked()?;
        let (category, key, id) = letter(&catalog, category, key, id)?;
        Ok(self.broker.purge(&category, key.as_ref(), id, &by).await?)
    }
}

fn letter(
    catalog: &Catalog,
    category: &str,
    key: Option<&str>,
    id: &str,
) -> Result<(CategoryName, Option<Key>, EntryId), OperationError> {
    let (category, key) = find::place(catalog, category, key)?;
    let partitioned = catalog.categories.get(&category).is_some_and(|entry| entry.key_field.is_some());
    if partitioned && key.is_none() {
        return Err(OperationError::Usage(format!(
            "each key of {category} has dead letters of its own: give the key before the id; see keyrail dlq list {category}"
        )));
    }
    let id = id.parse().map_err(|error| OperationError::Usage(format!("{error}; see keyrail dlq list {category}")))?;
    Ok((category, key, id))
}
