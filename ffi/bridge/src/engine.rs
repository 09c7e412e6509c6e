//! The engine: the one object a binding holds.

use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::task::TaskTracker;

use crate::dispatch::{self, Context, Op};
use crate::event::{self, Outcome};
use crate::fork::Birthplace;
use crate::host::{self, Kinds};
use crate::operation::{self, Completer, LINGER, Operation};
use crate::request::Request;
use crate::shared::Shared;
use toolspan::{Error, ErrorCode, LogLevel};

/// How long an abandoned engine gives its connections to end in an orderly way.
const ABANDON_GRACE: Duration = Duration::from_secs(5);

/// Options of an engine.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EngineOptions {
    /// Kinds of host calls the host answers, see `hostCalls` in the manifest. Kinds that want no answer may be left out.
    #[serde(default)]
    pub host_calls: Vec<String>,
    /// Least level of the log records the host wants. Default: none.
    pub log: Option<LogLevel>,
    /// Worker threads of the engine; more come and go for large texts and files. Default: 1. More pay off where the runs at a
    /// time compute more than one core does.
    #[schemars(range(min = 1, max = 64))]
    pub workers: Option<u32>,
}

/// Operations in, events out. Cloning gives the same engine; all methods may be called from any thread.
///
/// Texts that go in and out are UTF-8 JSON. An `Err` is the text of an error record. Dropping the last clone closes
/// the engine without waiting; in a forked child every method answers `forked` and dropping does nothing.
#[derive(Clone)]
pub struct Engine(Arc<Owner>);

struct Owner {
    birthplace: Birthplace,
    workers: usize,
    shared: Arc<Shared>,
    tasks: TaskTracker,
    handle: OnceLock<Handle>,
    phase: Mutex<Phase>,
    closed: Condvar,
}

enum Phase {
    /// With the runtime, once something needed one.
    Open(Option<Runtime>),
    Closing,
    /// With what [`Engine::close`] returned.
    Closed(bool),
}

impl Engine {
    /// Creates an engine. No thread starts before the first operation that needs one.
    ///
    /// # Errors
    /// `invalid_argument` with the path of the option.
    pub fn new(options_json: &str) -> Result<Self, String> {
        Engine::create(options_json).map_err(|e| event::record(&e))
    }

    fn create(options: &str) -> Result<Self, Error> {
        crate::limits::check(options)?;
        let options: EngineOptions = toolspan::json::decode(options)?;
        let kinds = Kinds::of(&options.host_calls)?;
        let workers = match options.workers {
            None => 1,
            Some(n @ 1..=64) => usize::try_from(n).unwrap_or(1),
            Some(_) => return Err(Error::argument("workers", "use 1 to 64 worker threads")),
        };
        Ok(Engine(Arc::new(Owner {
            birthplace: Birthplace::here(),
            workers,
            shared: Arc::new(Shared::new(kinds, options.log)),
            tasks: TaskTracker::new(),
            handle: OnceLock::new(),
            phase: Mutex::new(Phase::Open(None)),
            closed: Condvar::new(),
        })))
    }

    /// Does one of the operations that need no waiting and returns its result.
    ///
    /// # Errors
    /// The operation's error; `invalid_argument` for an operation that has to be submitted; `closed`; `forked`.
    pub fn call(&self, request: &str) -> Result<String, String> {
        self.call_now(request).map_err(|e| event::record(&e))
    }

    fn call_now(&self, request: &str) -> Result<String, Error> {
        self.0.birthplace.check()?;
        self.0.shared.operations.check_open()?;
        let request = Request::parse(request)?;
        if !request.op.immediate() {
            return Err(Error::argument(
                "op",
                format!("{} takes time; submit it", request.op.as_str()),
            ));
        }
        self.immediate(None, &request)
    }

    fn immediate(
        &self,
        operation: Option<Arc<Operation>>,
        request: &Request<'_>,
    ) -> Result<String, Error> {
        let context = self.context(operation);
        catch_unwind(AssertUnwindSafe(|| {
            dispatch::now(request.op, &context, request.args)
        }))
        .unwrap_or_else(|_| Err(operation::panicked()))
    }

    /// Starts an operation under an id the host has chosen: not 0, and not that of a running operation. Store whatever
    /// waits for the result before this call; the terminal event may be there before it returns.
    ///
    /// # Errors
    /// The operation was not accepted and no event will come: `invalid_argument`, `limit_exceeded`, `closed`, `forked`.
    pub fn submit(&self, op_id: u64, request: &str) -> Result<(), String> {
        self.start(op_id, request).map_err(|e| event::record(&e))
    }

    fn start(&self, id: u64, text: &str) -> Result<(), Error> {
        self.0.birthplace.check()?;
        let request = Request::parse(text)?;
        let completer = self.0.shared.operations.accept(id)?;
        if request.op.immediate() {
            let outcome = self
                .immediate(Some(completer.operation.clone()), &request)
                .map_or_else(Outcome::Failed, Outcome::Done);
            completer.end(outcome);
            return Ok(());
        }
        let Some(handle) = self.0.runtime()? else {
            completer.end(Outcome::Failed(host::closed()));
            return Ok(());
        };
        let mut context = self.context(Some(completer.operation.clone()));
        if request.op == Op::ClientStream {
            context.stream = Some(self.0.shared.streams.open(completer.operation.clone()));
        }
        let work = dispatch::later(request.op, context, request.args.to_owned());
        self.0.tasks.spawn_on(supervise(completer, work), &handle);
        Ok(())
    }

    fn context(&self, operation: Option<Arc<Operation>>) -> Context {
        Context {
            shared: self.0.shared.clone(),
            operation,
            stream: None,
        }
    }

    /// Collects events: the text of a JSON array of at most `max` events (0: no limit), waiting up to `timeout` for the
    /// first; `[]` when there was none. `None` once the engine is closed and everything was collected, and in a forked child.
    ///
    /// One thread or loop of the host is meant to call this; several may, and each event goes to one of them.
    pub fn poll(&self, timeout: Duration, max: usize) -> Option<String> {
        if self.0.birthplace.forked() {
            return None;
        }
        self.0.shared.queue.poll(timeout, max)
    }

    /// Answers a host call with `{"ok": JSON}` or `{"error": {"message": TEXT, "type": TEXT?}}`.
    ///
    /// # Errors
    /// `not_found` when the call was answered before, was cancelled, or never made. A text that is no reply is
    /// `invalid_argument` or `limit_exceeded` and fails the call.
    pub fn respond(&self, call_id: u64, reply: &str) -> Result<(), String> {
        self.0
            .birthplace
            .check()
            .and_then(|()| self.0.shared.operations.check_open())
            .and_then(|()| self.0.shared.host.respond(call_id, reply))
            .map_err(|e| event::record(&e))
    }

    /// Asks a running operation to stop: its work is dropped, its open host calls are cancelled, and it ends with
    /// `cancelled` unless it ended otherwise first. A run that has something to save may ask the host's store before that
    /// (SPEC 7.7). Idempotent. An id that is not running, be it not yet or no longer,
    /// is ignored; a host that gives up before it submits simply does not submit.
    pub fn cancel(&self, op_id: u64) {
        if !self.0.birthplace.forked() {
            self.0.shared.operations.cancel(op_id);
        }
    }

    /// Ends everything: running operations end with `closed`, open host calls are cancelled, toolkits and clients are
    /// closed. Waits up to `timeout` for all of it and says whether it sufficed; what is left is abandoned. When this
    /// returns, every accepted operation has its terminal event in the queue and nothing is added to it any more.
    ///
    /// Idempotent: a second call waits for the first and returns the same. Not to be called from the wake function.
    pub fn close(&self, timeout: Duration) -> bool {
        self.0.birthplace.forked() || self.0.close(timeout)
    }

    /// Closes without waiting: operations end with `closed` at once, connections have a few seconds to end in an orderly
    /// way in the background. What happens when the last clone is dropped, for a host that cannot drop them all.
    pub fn abandon(&self) {
        if !self.0.birthplace.forked() {
            self.0.abandon();
        }
    }

    /// Sets the function that is called when the queue turns non-empty, or removes it. It is called on any thread,
    /// must not block, and should only make the host's own loop call [`Engine::poll`] until that returns `[]`. A call that is under way when
    /// it is removed still finishes. It is called once more when the engine closes.
    pub fn set_wake(&self, wake: Option<Box<dyn Fn() + Send + Sync>>) {
        if !self.0.birthplace.forked() {
            self.0.shared.queue.set_wake(wake.map(Arc::from));
        }
    }
}

/// Runs the work of one operation to its end: by itself, by cancellation, or by panic.
async fn supervise<F>(completer: Completer, work: F)
where
    F: Future<Output = Result<String, Error>> + Send,
{
    let operation = completer.operation.clone();
    // The work is dropped before the terminal event is queued, so that nothing of it comes after.
    let outcome = operation::on_behalf_of(operation.id, async {
        let mut work = pin!(AssertUnwindSafe(work).catch_unwind());
        tokio::select! {
            biased;
            () = operation.stop.cancelled() => {
                if operation.lingers() {
                    // However it ends now, it was cancelled.
                    let _ = tokio::time::timeout(LINGER, work).await;
                }
                Outcome::Cancelled
            }
            result = &mut work => match result {
                // Work that ends by itself may see the cancel first.
                Ok(Err(error)) if error.code() == ErrorCode::Cancelled && operation.stop.is_cancelled() => {
                    Outcome::Cancelled
                }
                Ok(result) => result.map_or_else(Outcome::Failed, Outcome::Done),
                Err(_) => Outcome::Failed(operation::panicked()),
            },
        }
    })
    .await;
    completer.end(outcome);
}

impl Owner {
    /// The runtime, started if need be; `None` when the engine closes this moment.
    fn runtime(&self) -> Result<Option<Handle>, Error> {
        if let Some(handle) = self.handle.get() {
            return Ok(Some(handle.clone()));
        }
        let mut phase = self.phase();
        let Phase::Open(slot) = &mut *phase else {
            return Ok(None);
        };
        if slot.is_none() {
            let runtime = Builder::new_multi_thread()
                .worker_threads(self.workers)
                .thread_name("toolspan")
                .on_thread_start(keep_broken_pipes_quiet)
                .enable_all()
                .build()
                .map_err(|e| {
                    Error::new(
                        ErrorCode::Internal,
                        "the worker threads could not be started",
                    )
                    .because_of(&e)
                })?;
            *slot = Some(runtime);
        }
        Ok(slot
            .as_ref()
            .map(|runtime| self.handle.get_or_init(|| runtime.handle().clone()).clone()))
    }

    fn close(&self, timeout: Duration) -> bool {
        let deadline = Instant::now().checked_add(timeout);
        let runtime = {
            let mut phase = self.phase();
            match std::mem::replace(&mut *phase, Phase::Closing) {
                Phase::Open(runtime) => runtime,
                other => {
                    *phase = other;
                    return self.wait_closed(phase, deadline);
                }
            }
        };
        let in_time = self.shut_down(runtime, timeout);
        *self.phase() = Phase::Closed(in_time);
        self.closed.notify_all();
        in_time
    }

    /// Waits for the close of another thread.
    fn wait_closed(&self, mut phase: MutexGuard<'_, Phase>, deadline: Option<Instant>) -> bool {
        loop {
            if let Phase::Closed(in_time) = *phase {
                return in_time;
            }
            let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            phase = match left {
                None => self
                    .closed
                    .wait(phase)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return false,
                Some(left) => {
                    self.closed
                        .wait_timeout(phase, left)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
        }
    }

    fn shut_down(&self, runtime: Option<Runtime>, timeout: Duration) -> bool {
        let shared = &self.shared;
        shared.operations.stop_all();
        shared.host.close();
        let in_time = runtime.as_ref().is_none_or(|runtime| {
            let (done, wait) = mpsc::sync_channel(1);
            runtime.spawn(end_orderly(shared.clone(), self.tasks.clone(), done));
            wait.recv_timeout(timeout).is_ok()
        });
        shared.operations.end_all();
        shared.queue.close();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
        shared.abandon();
        in_time
    }

    fn abandon(&self) {
        let runtime = {
            let mut phase = self.phase();
            match std::mem::replace(&mut *phase, Phase::Closed(false)) {
                Phase::Open(runtime) => runtime,
                other => {
                    *phase = other;
                    return;
                }
            }
        };
        self.closed.notify_all();
        self.shared.operations.stop_all();
        self.shared.host.close();
        self.shared.operations.end_all();
        self.shared.queue.close();
        let Some(runtime) = runtime else { return };
        let (done, wait) = mpsc::sync_channel(1);
        runtime.spawn(end_orderly(self.shared.clone(), self.tasks.clone(), done));
        let reaper = std::thread::Builder::new().name("toolspan-end".to_owned());
        let spawned = reaper.spawn(move || {
            // Whether it ended in time or not, nobody is left to hear it.
            let _ = wait.recv_timeout(ABANDON_GRACE);
            runtime.shutdown_background();
        });
        // Without a thread the closure is gone and the runtime with it; only a host that is out of threads sees this.
        drop(spawned);
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writing to a child that has ended is an error of the call and nothing more. A host that is not written in Rust has SIGPIPE at its
/// default, which ends the process, or passes it on to that; so the threads that write do not receive it. Children start with no
/// signal blocked: the standard library sees to it.
fn keep_broken_pipes_quiet() {
    #[cfg(unix)]
    {
        use nix::sys::signal::{SigSet, Signal};
        // Fails for a number that is no signal.
        let _ = SigSet::from(Signal::SIGPIPE).thread_block();
    }
}

/// Waits for the operations, then closes what they left open.
async fn end_orderly(shared: Arc<Shared>, tasks: TaskTracker, done: mpsc::SyncSender<()>) {
    tasks.close();
    tasks.wait().await;
    shared.close_objects().await;
    // The closing thread may have given up waiting.
    let _ = done.send(());
}

impl Drop for Owner {
    fn drop(&mut self) {
        if self.birthplace.forked() {
            // The parent's child processes and threads are none of ours: forget everything, unlocked and untouched.
            std::mem::forget(self.shared.clone());
            let phase = self.phase.get_mut().unwrap_or_else(PoisonError::into_inner);
            if let Phase::Open(Some(runtime)) = std::mem::replace(phase, Phase::Closing) {
                std::mem::forget(runtime);
            }
            return;
        }
        self.abandon();
    }
}
