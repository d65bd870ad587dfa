//! The operator's side of the fake: heads, dead letters and pauses as tests lay them down.

use std::collections::{BTreeMap, VecDeque};

use async_trait::async_trait;
use keyrail_broker::*;
use keyrail_ordering::{
    CategoryName, Content, EntryId, EntryRef, HaltRecord, Key, Member, OwnerId, PartitionId, PartitionSpec,
};

use super::FakeBroker;

/// Rows in a page, whatever is asked for: so that paging is always tested.
const PAGE: usize = 2;
const AT_MS: u64 = 1_700_000_000_000;

#[derive(Default)]
pub(super) struct Desk {
    heads: BTreeMap<PartitionId, VecDeque<Head>>,
    letters: Vec<DeadLetter>,
    paused: Vec<Paused>,
    audit: Vec<AuditRow>,
    members: Vec<Member>,
}

impl FakeBroker {
    /// The unsettled entries of a partition, the head first.
    pub(crate) fn lay_heads(&self, partition: &PartitionId, heads: impl IntoIterator<Item = Head>) {
        self.inner().desk.heads.insert(partition.clone(), heads.into_iter().collect());
    }

    pub(crate) fn lay_letter(&self, letter: DeadLetter) {
        self.inner().desk.letters.push(letter);
    }

    /// How many dead letters there are.
    pub(in crate::service) fn letters_laid_down(&self) -> u64 {
        self.inner().desk.letters.len() as u64
    }

    pub(crate) fn lay_member(&self, member: Member) {
        self.inner().desk.members.push(member);
    }

    /// What was done: action, target, entry, who, why.
    pub(crate) fn done(&self) -> Vec<String> {
        let row = |row: &AuditRow| {
            format!("{} {} {} by {}: {}", row.action, row.target, row.entry, row.by.who, row.by.reason)
        };
        self.inner().desk.audit.iter().map(row).collect()
    }
}

impl Desk {
    fn record(&mut self, action: &str, target: String, entry: String, by: &By) {
        self.audit.push(AuditRow { at_ms: AT_MS, action: action.into(), target, entry, by: by.clone() });
    }

    fn take_letter(
        &mut self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
    ) -> Result<DeadLetter, OperateError> {
        let is = |letter: &DeadLetter| letter.category == *category && letter.key.as_ref() == key && letter.id == id;
        let missing = || OperateError::NoDeadLetter { place: place(category, key), id };
        let index = self.letters.iter().position(is).ok_or_else(missing)?;
        Ok(self.letters.remove(index))
    }
}

fn place(category: &CategoryName, key: Option<&Key>) -> String {
    key.map_or_else(|| category.to_string(), |key| format!("{category}/{key}"))
}

fn page<T: Clone>(rows: &[T], cursor: u64) -> (Vec<T>, Option<u64>) {
    let start = (cursor as usize).min(rows.len());
    let end = (start + PAGE).min(rows.len());
    (rows[start..end].to_vec(), (end < rows.len()).then_some(end as u64))
}

#[async_trait]
impl Members for FakeBroker {
    async fn members(&self) -> Result<Vec<Member>, Error> {
        Ok(self.inner().desk.members.clone())
    }
    async fn leave(&self, owner: &OwnerId) -> Result<(), Error> {
        self.inner().desk.members.retain(|member| member.owner != *owner);
        Ok(())
    }
}

#[async_trait]
impl Operate for FakeBroker {
    async fn head(&self, partition: &PartitionSpec) -> Result<Option<Head>, Error> {
        Ok(self.inner().desk.heads.get(&partition.id).and_then(|heads| heads.front()).cloned())
    }

    async fn act_on_head(
        &self,
        partition: &PartitionSpec,
        named: &EntryRef,
        action: HeadAction,
        by: &By,
    ) -> Result<(), OperateError> {
        let desk = &mut self.inner().desk;
        let heads = desk.heads.entry(partition.id.clone()).or_default();
        let head = heads.front().map(|head| head.entry.at.clone());
        if head.as_ref() != Some(named) {
            return Err(OperateError::NotHead { named: named.clone(), head });
        }
        let name = match action {
            HeadAction::Retry => "retry",
            HeadAction::Skip => "skip",
            HeadAction::SetAside => "set-aside",
        };
        if action == HeadAction::Retry {
            if let Some(head) = heads.front_mut() {
                (head.halted, head.attempts) = (None, None);
            }
        } else if let Some(head) = heads.pop_front()
            && action == HeadAction::SetAside
            && let Content::Event(event) = &head.entry.content
        {
            let id = EntryId::new(1, desk.letters.len() as u64);
            desk.letters.push(DeadLetter {
                id,
                category: event.category.clone(),
                key: event.key.clone(),
                group: partition.id.group.clone(),
                origin: named.clone(),
                event_id: event.id.to_string(),
                name: event.name.to_string(),
                version: event.version,
                headers: event.headers.clone(),
                data: event.data.clone(),
                attempts: head.halted.as_ref().map_or(0, |halted| halted.attempts),
                error: head.halted.map(|halted| halted.error).unwrap_or_default(),
                by: by.clone(),
                at_ms: AT_MS,
            });
        }
        desk.record(name, partition.id.to_string(), named.to_string(), by);
        Ok(())
    }

    async fn halted(&self, source: &ReadySource, cursor: u64, _: usize) -> Rows<(PartitionId, HaltRecord)> {
        use keyrail_ordering::Scope;
        let is_of = |id: &PartitionId| match (source, &id.scope) {
            (ReadySource::Category { group, category }, Scope::Key { category: of, .. }) => {
                *group == id.group && category == of
            }
            (ReadySource::ProcessManager { group }, Scope::Correlation { .. }) => *group == id.group,
            _ => false,
        };
        let inner = self.inner();
        let partitions = inner.desk.heads.iter().filter(|(id, _)| is_of(id));
        let halted: Vec<_> =
            partitions.filter_map(|(id, heads)| Some((id.clone(), heads.front()?.halted.clone()?))).collect();
        Ok(page(&halted, cursor))
    }

    async fn pause(&self, category: &CategoryName, key: Option<&Key>, by: &By) -> Result<bool, Error> {
        let desk = &mut self.inner().desk;
        if desk.paused.iter().any(|paused| paused.category == *category && paused.key.as_ref() == key) {
            return Ok(false);
        }
        desk.paused.push(Paused { category: category.clone(), key: key.cloned(), by: by.clone(), at_ms: AT_MS });
        desk.record("pause", place(category, key), String::new(), by);
        Ok(true)
    }

    async fn resume(&self, category: &CategoryName, key: Option<&Key>, by: &By) -> Result<bool, Error> {
        let desk = &mut self.inner().desk;
        let before = desk.paused.len();
        desk.paused.retain(|paused| paused.category != *category || paused.key.as_ref() != key);
        let changed = desk.paused.len() < before;
        if changed {
            desk.record("resume", place(category, key), String::new(), by);
        }
        Ok(changed)
    }

    async fn paused(&self, category: &CategoryName) -> Result<Vec<Paused>, Error> {
        Ok(self.inner().desk.paused.iter().filter(|paused| paused.category == *category).cloned().collect())
    }

    async fn dead_letters(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        cursor: u64,
        _: usize,
    ) -> Rows<DeadLetter> {
        let is = |letter: &&DeadLetter| letter.category == *category && (key.is_none() || letter.key.as_ref() == key);
        let letters: Vec<_> = self.inner().desk.letters.iter().filter(is).cloned().collect();
        Ok(page(&letters, cursor))
    }

    async fn dead_letter(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
    ) -> Result<Option<DeadLetter>, Error> {
        let is = |letter: &&DeadLetter| letter.category == *category && letter.key.as_ref() == key && letter.id == id;
        Ok(self.inner().desk.letters.iter().find(is).cloned())
    }

    async fn redrive(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
        by: &By,
    ) -> Result<EntryId, OperateError> {
        let desk = &mut self.inner().desk;
        desk.take_letter(category, key, id)?;
        desk.record("redrive", place(category, key), id.to_string(), by);
        Ok(EntryId::new(9, 9))
    }

    async fn purge(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
        by: &By,
    ) -> Result<(), OperateError> {
        let desk = &mut self.inner().desk;
        desk.take_letter(category, key, id)?;
        desk.record("purge", place(category, key), id.to_string(), by);
        Ok(())
    }

    async fn record(&self, action: &str, target: &str, by: &By) -> Result<(), Error> {
        self.inner().desk.record(action, target.into(), String::new(), by);
        Ok(())
    }

    async fn audit(&self, cursor: u64, _: usize) -> Rows<AuditRow> {
        let newest_first: Vec<_> = self.inner().desk.audit.iter().rev().cloned().collect();
        Ok(page(&newest_first, cursor))
    }
}
