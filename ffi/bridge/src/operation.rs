//! One running operation, and the promise that it ends exactly once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

use crate::event::{self, Outcome};
use crate::host;
use crate::queue::Queue;
use toolspan::{Error, ErrorCode, aside};

/// How long the work of a cancelled operation may take to end by itself: a little more than a run takes to save what it has
/// done (SPEC 7.7).
pub(crate) const LINGER: Duration = Duration::from_millis(1500);

tokio::task_local! {
    /// The operation on whose behalf the current task works; host calls carry it.
    static CURRENT: u64;
}

/// The operation the calling task works for; 0 outside of one.
pub(crate) fn current() -> u64 {
    CURRENT.try_with(|op| *op).unwrap_or(0)
}

/// Runs a future on behalf of an operation, in a task of the engine's runtime.
pub(crate) async fn on_behalf_of<F: Future>(op: u64, work: F) -> F::Output {
    CURRENT.scope(op, aside::allow(work)).await
}

/// What is known about a running operation.
pub(crate) struct Operation {
    pub(crate) id: u64,
    /// Cancelled by the host or by the closing engine.
    pub(crate) stop: CancellationToken,
    /// Cancelled after the terminal event was queued.
    pub(crate) ended: CancellationToken,
    /// Whether the work ends by itself, and soon, once `stop` is cancelled, instead of being dropped.
    lingers: AtomicBool,
    /// Whether somebody has taken on to post the terminal event: the operation, or the closing engine.
    claimed: AtomicBool,
}

impl Operation {
    /// The token that tells the operation's work to end. Whoever takes it ends the work by it, within [`LINGER`]; other
    /// work is dropped when the operation is cancelled.
    pub(crate) fn linger(&self) -> CancellationToken {
        self.lingers.store(true, Ordering::Relaxed);
        self.stop.clone()
    }

    pub(crate) fn lingers(&self) -> bool {
        self.lingers.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
struct Running {
    closing: bool,
    operations: HashMap<u64, Arc<Operation>>,
}

/// The running operations of an engine.
pub(crate) struct Operations {
    queue: Arc<Queue>,
    running: Mutex<Running>,
}

impl Operations {
    pub(crate) fn new(queue: Arc<Queue>) -> Self {
        Operations {
            queue,
            running: Mutex::default(),
        }
    }

    /// Accepts an operation. From here on it will end.
    ///
    /// # Errors
    /// `closed`; `invalid_argument` for an id that is 0 or running.
    pub(crate) fn accept(self: &Arc<Self>, id: u64) -> Result<Completer, Error> {
        let mut running = self.lock();
        if running.closing {
            return Err(host::closed());
        }
        if id == 0 || running.operations.contains_key(&id) {
            return Err(Error::new(
                ErrorCode::InvalidArgument,
                format!(
                    "operation id {id} cannot be used: ids are not 0 and not those of running operations"
                ),
            ));
        }
        let operation = Arc::new(Operation {
            id,
            stop: CancellationToken::new(),
            ended: CancellationToken::new(),
            lingers: AtomicBool::new(false),
            claimed: AtomicBool::new(false),
        });
        running.operations.insert(id, operation.clone());
        Ok(Completer {
            operations: self.clone(),
            operation,
        })
    }

    /// # Errors
    /// `closed` once the engine closes.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.closing() {
            Err(host::closed())
        } else {
            Ok(())
        }
    }

    pub(crate) fn closing(&self) -> bool {
        self.lock().closing
    }

    /// Asks one to stop; an id that is not running is nobody's.
    pub(crate) fn cancel(&self, id: u64) {
        let operation = self.lock().operations.get(&id).cloned();
        if let Some(operation) = operation {
            operation.stop.cancel();
        }
    }

    /// Asks all to stop and accepts no more.
    pub(crate) fn stop_all(&self) {
        let all: Vec<_> = {
            let mut running = self.lock();
            running.closing = true;
            running.operations.values().cloned().collect()
        };
        for operation in all {
            operation.stop.cancel();
        }
    }

    /// Ends whatever has not ended by itself.
    pub(crate) fn end_all(&self) {
        let all: Vec<_> = self.lock().operations.values().cloned().collect();
        for operation in all {
            self.end(&operation, Outcome::Failed(host::closed()));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().operations.len()
    }

    /// Posts the terminal event, once. The id is free again before the host can see the event.
    fn end(&self, operation: &Operation, outcome: Outcome) {
        if operation.claimed.swap(true, Ordering::AcqRel) {
            return;
        }
        self.lock().operations.remove(&operation.id);
        self.queue.push(event::terminal(operation.id, &outcome));
        operation.ended.cancel();
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The duty to end one operation. Dropping it without a word ends the operation with `internal_panic`, or with
/// `closed` when that is why.
pub(crate) struct Completer {
    operations: Arc<Operations>,
    pub(crate) operation: Arc<Operation>,
}

impl Completer {
    /// Ends the operation. An operation that the closing engine stopped ends with `closed`.
    pub(crate) fn end(self, outcome: Outcome) {
        let outcome = match outcome {
            Outcome::Cancelled if self.operations.closing() => Outcome::Failed(host::closed()),
            outcome => outcome,
        };
        self.operations.end(&self.operation, outcome);
    }
}

impl Drop for Completer {
    fn drop(&mut self) {
        if self.operation.claimed.load(Ordering::Acquire) {
            return;
        }
        let error = if self.operations.closing() {
            host::closed()
        } else {
            panicked()
        };
        self.operations.end(&self.operation, Outcome::Failed(error));
    }
}

/// What the host reads when this library panicked. The panic's own text stays out: it may quote anything.
pub(crate) fn panicked() -> Error {
    Error::new(
        ErrorCode::InternalPanic,
        "toolspan panicked; this is a defect, please report it with what standard error says",
    )
}
