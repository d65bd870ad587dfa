//! A small world in memory: events in the order of their submission, one at a time, each with all that follows from it.
//!
//! What an event emits is handled before the next event is submitted: as if each were published once everything before it
//! had been settled. Time stands still but for one second an event, ids are counted, so two runs are equal.
//!
//! Invariant: a key that stands still takes no further event.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use keyrail_ordering::{
    Capabilities, Catalog, EntryId, EntryRef, Event, Generation, GroupName, Lane, PartitionId, PartitionSpec,
    RetryPolicy, Role, StreamId,
};
use keyrail_runtime::Module;

use super::{Case, Emits, Ending, Handled, Http, State, Trial, TrialError, apply};

/// When the first event is recorded: the first second of 2026.
const BEGIN_MS: u64 = 1_767_225_600_000;
/// Events that may follow from one: more are a circle.
const FOLLOWING_MAX: usize = 10_000;

/// Why a rehearsal cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    /// The handlers do not go together.
    #[error("{}", .0.join("; "))]
    Refused(Vec<String>),
    /// Emits that never end.
    #[error("more than {FOLLOWING_MAX} events follow from one: handlers emit to each other without end")]
    Circle,
    /// See there.
    #[error(transparent)]
    Trial(#[from] TrialError),
}

/// One event for one handler, and what came of it.
#[derive(Debug)]
pub struct Happened {
    /// The handler.
    pub handler: GroupName,
    /// Whose state it works on; none in a category that is not partitioned.
    pub partition: Option<PartitionId>,
    /// The event.
    pub event: Arc<Event>,
    /// The handler that emitted it; none if it was submitted.
    pub emitted_by: Option<GroupName>,
    /// What came of it.
    pub handled: Handled,
}

/// See the module.
pub struct Rehearsal {
    catalog: Arc<Catalog>,
    trials: Vec<Trial>,
    partitions: BTreeMap<PartitionId, Memory>,
    next_entries: BTreeMap<StreamId, EntryId>,
    /// Ids of events that were submitted or emitted.
    known: BTreeSet<Arc<str>>,
    epochs: u64,
    recorded: u64,
}

#[derive(Default)]
struct Memory {
    state: Arc<State>,
    stands_still: bool,
}

impl Rehearsal {
    /// A world with these handlers in it, and nothing else.
    pub fn new(modules: &[Arc<Module>], retry: &RetryPolicy) -> Result<Self, RehearsalError> {
        let mut catalog = Catalog::default();
        let mut refused = vec![];
        for module in modules {
            let capabilities = Capabilities { stream_partitioning: true };
            match catalog.register(module.metadata(), module.content_hash(), capabilities) {
                Ok(next) => catalog = next,
                Err(refusals) => {
                    refused.extend(refusals.iter().map(|refusal| format!("{}: {refusal}", module.metadata().name)));
                }
            }
        }
        if !refused.is_empty() {
            return Err(RehearsalError::Refused(refused));
        }
        let catalog = Arc::new(catalog);
        let trial = |module: &Arc<Module>| Trial::new(module.clone(), catalog.clone(), Emits::ToAnywhere, retry);
        Ok(Self {
            trials: modules.iter().map(trial).collect(),
            catalog: catalog.clone(),
            partitions: BTreeMap::new(),
            next_entries: BTreeMap::new(),
            known: BTreeSet::new(),
            epochs: 0,
            recorded: 0,
        })
    }

    /// What the handlers declare.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The state of every key, as it is now.
    pub fn states(&self) -> impl Iterator<Item = (&PartitionId, &State)> {
        self.partitions.iter().map(|(partition, memory)| (partition, &*memory.state))
    }

    /// Submits an event, and handles it and everything that follows from it. Nothing happens to an event whose id was there
    /// before.
    pub async fn submit(&mut self, event: Event, lane: Lane) -> Result<Vec<Happened>, RehearsalError> {
        let mut happened = vec![];
        let mut waiting = VecDeque::from([(event, lane, None)]);
        let mut handled = 0;
        while let Some((event, lane, emitted_by)) = waiting.pop_front() {
            if !self.known.insert(event.id.clone()) {
                continue;
            }
            handled += 1;
            if handled > FOLLOWING_MAX {
                return Err(RehearsalError::Circle);
            }
            let entry = self.append(&event, lane);
            let recorded_at_ms = BEGIN_MS + self.recorded * 1_000;
            self.recorded += 1;
            let event = Arc::new(event);
            for index in 0..self.trials.len() {
                let Some(done) = self.offer(index, &entry, &event, recorded_at_ms, emitted_by.clone()).await? else {
                    continue;
                };
                let emitted = done.handled.emits().iter().map(|outgoing| outgoing.event.clone());
                let declared = emitted.filter(|event| self.catalog.categories.contains_key(&event.category));
                waiting.extend(declared.map(|event| (event, Lane::Primary, Some(done.handler.clone()))));
                happened.push(done);
            }
        }
        Ok(happened)
    }

    /// The entry that the event becomes: a new stream gets the next epoch.
    fn append(&mut self, event: &Event, lane: Lane) -> EntryRef {
        let stream = StreamId { category: event.category.clone(), key: event.key.clone(), lane };
        let next = self.next_entries.entry(stream.clone()).or_insert_with(|| {
            self.epochs += 1;
            EntryId::new(self.epochs, 0)
        });
        let id = *next;
        next.sequence += 1;
        EntryRef { stream, id }
    }

    /// Gives the event to one handler. None if it does not read the category.
    async fn offer(
        &mut self,
        index: usize,
        entry: &EntryRef,
        event: &Arc<Event>,
        recorded_at_ms: u64,
        emitted_by: Option<GroupName>,
    ) -> Result<Option<Happened>, RehearsalError> {
        let trial = &mut self.trials[index];
        let metadata = trial.module().metadata();
        if !metadata.categories().contains(&&event.category) {
            return Ok(None);
        }
        let handler = metadata.name.clone();
        let partition = event.key.clone().map(|key| match metadata.role {
            Role::ProcessManager => PartitionSpec::of_correlation(handler.clone(), metadata.categories(), key).id,
            _ => PartitionId::of_key(handler.clone(), event.category.clone(), key),
        });
        let nothing = Memory::default();
        let memory = partition.as_ref().and_then(|partition| self.partitions.get(partition)).unwrap_or(&nothing);
        let handled = if memory.stands_still {
            Handled::without_a_call(Ending::Behind)
        } else {
            let case = Case {
                partition: partition.as_ref(),
                entry,
                event,
                recorded_at_ms,
                generation: Generation(1),
                attempt: 1,
                state: &memory.state,
                http: Http::Live,
            };
            trial.handle(&case).await?
        };
        if let Some(partition) = &partition {
            let memory = self.partitions.entry(partition.clone()).or_default();
            match &handled.ending {
                Ending::Done(effects) => apply(Arc::make_mut(&mut memory.state), effects),
                Ending::GivenUp(_) => memory.stands_still = true,
                Ending::NotHandled | Ending::Behind => {}
            }
        }
        Ok(Some(Happened { handler, partition, event: event.clone(), emitted_by, handled }))
    }
}
