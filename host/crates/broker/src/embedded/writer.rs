//! The one place that writes: a thread, or whoever calls.
//!
//! To the thread operations come over a bounded channel. It runs all that wait, up to `batch_max`, in one transaction,
//! commits it durably once, and then answers all: one disk flush serves every partition that moved meanwhile. Without a
//! thread each caller runs its own operation in its own transaction.
//!
//! Invariants: an operation makes all its checks before its first write, so one that is refused changes nothing. Nothing is
//! answered before it is durable. If the store fails, the whole batch is undone and every operation of it answers
//! [`Error::Unavailable`]. If the thread is gone, every call does.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use redb::Durability;

use tokio::sync::{mpsc, oneshot};
use tracing::error;

use super::records::storage;
use super::settings::Writing;
use super::tables::{Memory, Tables};
use super::{Shared, Store};
use crate::{AcquireError, Bell, Error, FencedError, OperateError};

/// What an operation works on.
pub(super) struct Batch<'a, 'txn> {
    pub(super) shared: &'a Shared,
    pub(super) tables: &'a mut Tables<'txn>,
    pub(super) memory: &'a mut Memory,
    /// Rung once the batch is durable.
    pub(super) bells: &'a mut Vec<Bell>,
    /// Whether the operation under way has written.
    wrote: bool,
}

impl Batch<'_, '_> {
    /// To be said before the first write: without it the transaction is dropped. From here on the operation must not fail:
    /// if it does, the whole batch is undone.
    pub(super) fn writes(&mut self) {
        self.wrote = true;
    }
}

/// Whether an answer says that the store failed, so that the batch must be undone.
pub(super) trait StoreFailure {
    fn is_store_failure(&self) -> bool;
}

impl StoreFailure for Error {
    fn is_store_failure(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

impl StoreFailure for FencedError {
    fn is_store_failure(&self) -> bool {
        matches!(self, Self::Broker(error) if error.is_store_failure())
    }
}

impl StoreFailure for OperateError {
    fn is_store_failure(&self) -> bool {
        matches!(self, Self::Broker(error) if error.is_store_failure())
    }
}

impl StoreFailure for AcquireError {
    fn is_store_failure(&self) -> bool {
        matches!(self, Self::Broker(error) if error.is_store_failure())
    }
}

trait Operation: Send {
    /// False if the batch must be undone: the store failed, or the operation did after it had written.
    fn run(&mut self, batch: &mut Batch<'_, '_>) -> bool;
    /// After the commit; with a reason if there was none.
    fn answer(self: Box<Self>, failure: Option<&str>);
}

struct Call<F, T, E> {
    work: Option<F>,
    result: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<F, T, E> Operation for Call<F, T, E>
where
    F: FnOnce(&mut Batch<'_, '_>) -> Result<T, E> + Send,
    T: Send,
    E: From<Error> + StoreFailure + Send,
{
    fn run(&mut self, batch: &mut Batch<'_, '_>) -> bool {
        let Some(work) = self.work.take() else { return true };
        let result = work(batch);
        let sound = !matches!(&result, Err(error) if batch.wrote || error.is_store_failure());
        self.result = Some(result);
        sound
    }

    fn answer(self: Box<Self>, failure: Option<&str>) {
        let failed = |why: &str| Err(Error::Unavailable(why.into()).into());
        let result = match (failure, self.result) {
            (None, Some(result)) => result,
            (why, _) => failed(why.unwrap_or("the operation was not run")),
        };
        // Nobody may be waiting any more; then nobody needs to know.
        let _ = self.reply.send(result);
    }
}

/// The way to whoever writes.
pub(super) enum Writer {
    Thread(WriterThread),
    Inline(Box<InlineWriter>),
}

impl Writer {
    pub(super) fn start(shared: Arc<Shared>, memory: Memory) -> io::Result<Self> {
        Ok(match shared.settings.writing {
            Writing::Thread => Self::Thread(WriterThread::start(shared, memory)?),
            Writing::Inline => Self::Inline(Box::new(InlineWriter { shared, memory: Mutex::new(memory) })),
        })
    }

    /// Runs `work` and answers once it is durable.
    pub(super) async fn call<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut Batch<'_, '_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + StoreFailure + Send + 'static,
    {
        match self {
            Self::Thread(thread) => thread.call(work).await,
            Self::Inline(inline) => inline.call(work),
        }
    }
}

fn stopped() -> Error {
    Error::Unavailable("the embedded broker's writer has stopped".into())
}

/// Runs each operation where it is called.
pub(super) struct InlineWriter {
    shared: Arc<Shared>,
    memory: Mutex<Memory>,
}

impl InlineWriter {
    fn call<T, E>(&self, work: impl FnOnce(&mut Batch<'_, '_>) -> Result<T, E>) -> Result<T, E>
    where
        E: From<Error> + StoreFailure,
    {
        // An operation that panicked may have left its memory ahead of the store.
        let mut memory = self.memory.lock().map_err(|_| stopped())?;
        let (mut work, mut result) = (Some(work), None);
        let done = transact(&self.shared, &mut memory, |batch| {
            let Some(work) = work.take() else { return Step::Enough };
            let answer = work(batch);
            let sound = !matches!(&answer, Err(error) if batch.wrote || error.is_store_failure());
            result = Some(answer);
            if sound { Step::Enough } else { Step::Undo }
        });
        match done {
            Ok(bells) => {
                drop(memory);
                for bell in bells {
                    self.shared.ring(bell);
                }
                result.unwrap_or_else(|| Err(stopped().into()))
            }
            Err(error) => {
                error!(%error, "an operation was undone");
                *memory = self.shared.disown_all().and_then(|()| Memory::load(&self.shared.database))?;
                Err(error.into())
            }
        }
    }
}

/// The thread, and the way to it. Dropping it lets the thread finish what was sent and waits for it.
pub(super) struct WriterThread {
    sender: Option<mpsc::Sender<Box<dyn Operation>>>,
    thread: Option<JoinHandle<()>>,
}

impl WriterThread {
    fn start(shared: Arc<Shared>, memory: Memory) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel(shared.settings.queue_max);
        let thread =
            std::thread::Builder::new().name("keyrail-writer".into()).spawn(move || run(&shared, memory, receiver))?;
        Ok(Self { sender: Some(sender), thread: Some(thread) })
    }

    async fn call<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: FnOnce(&mut Batch<'_, '_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + StoreFailure + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let call = Box::new(Call { work: Some(work), result: None, reply });
        let sender = self.sender.as_ref().ok_or_else(stopped)?;
        sender.send(call).await.map_err(|_| stopped())?;
        answer.await.unwrap_or_else(|_| Err(stopped().into()))
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            error!("the embedded broker's writer had panicked");
        }
    }
}

fn run(shared: &Shared, mut memory: Memory, mut receiver: mpsc::Receiver<Box<dyn Operation>>) {
    while let Some(first) = receiver.blocking_recv() {
        let mut done = Vec::with_capacity(shared.settings.batch_max);
        let mut next = Some(first);
        let transacted = transact(shared, &mut memory, |batch| {
            let Some(mut operation) = next.take() else { return Step::Enough };
            let sound = operation.run(batch);
            done.push(operation);
            if !sound {
                return Step::Undo;
            }
            if done.len() < shared.settings.batch_max {
                next = receiver.try_recv().ok();
            }
            if next.is_some() { Step::More } else { Step::Enough }
        });
        match transacted {
            Ok(bells) => {
                for bell in bells {
                    shared.ring(bell);
                }
                for operation in done {
                    operation.answer(None);
                }
            }
            Err(error) => {
                done.extend(next);
                let why = error.to_string();
                error!(error = %why, operations = done.len(), "a batch was undone");
                let reloaded = shared.disown_all().and_then(|()| Memory::load(&shared.database));
                for operation in done {
                    operation.answer(Some(&why));
                }
                match reloaded {
                    Ok(loaded) => memory = loaded,
                    Err(error) => {
                        error!(%error, "the store cannot be read: the writer stops");
                        return;
                    }
                }
            }
        }
    }
}

/// How a transaction goes on after an operation.
enum Step {
    More,
    Enough,
    Undo,
}

/// Runs operations in one transaction, and answers with the bells to ring.
fn transact(
    shared: &Shared,
    memory: &mut Memory,
    mut operate: impl FnMut(&mut Batch<'_, '_>) -> Step,
) -> Result<Vec<Bell>, Error> {
    let (mut bells, mut changed) = (vec![], false);
    let mut txn = shared.database.begin_write().map_err(storage)?;
    if shared.store == Store::Memory {
        // Nothing of it outlives the process, so there is nothing to flush.
        txn.set_durability(Durability::None).map_err(storage)?;
    }
    let mut tables = Tables::open(&txn)?;
    loop {
        let mut batch = Batch { shared, tables: &mut tables, memory, bells: &mut bells, wrote: false };
        let step = operate(&mut batch);
        changed |= batch.wrote;
        match step {
            Step::More => {}
            Step::Enough => break,
            Step::Undo => {
                return Err(Error::Unavailable("an operation of this batch failed in the embedded store".into()));
            }
        }
    }
    if !changed {
        drop(tables);
        txn.abort().map_err(storage)?;
        return Ok(bells);
    }
    memory.counters.write(&mut tables.counters, &mut tables.ready_counts, &mut tables.published_counts)?;
    drop(tables);
    txn.commit().map_err(storage)?;
    Ok(bells)
}
