//! The native half of the Node binding: the waist's verbs as one class, strings in and strings out.
//!
//! Nothing here knows what an operation means. The JavaScript in `lib/` chooses operation numbers, keeps the promises,
//! and runs the program's functions; this file only carries text across, and wakes the event loop when the engine has
//! events. No thread of the engine ever runs JavaScript.

use napi::bindgen_prelude::{AsyncTask, Function};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Error, Result, Status, Task};
use napi_derive::napi;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use toolspan_bridge::Engine as Bridge;

/// Events handed over by one call of [`Engine::poll`]; more wait for the next one.
const BATCH: usize = 256;

/// How long the end of an environment (a worker, or the process) waits for connections and children to end.
const TEARDOWN: Duration = Duration::from_millis(500);

/// Wakes the event loop, weakly: it does not keep the process alive. Its queue holds one call, so a burst of events is
/// one turn of the loop, and a call that finds the queue full has nothing to add.
type Wake = ThreadsafeFunction<(), (), (), Status, false, true, 1>;

/// Version of the operations, events and functions that this library was built with.
#[napi(catch_unwind)]
pub fn abi_version() -> u32 {
    toolspan_bridge::ABI_VERSION
}

/// Hash of the manifest that this library was built with, 16 hexadecimal digits.
#[napi(catch_unwind)]
pub fn schema_hash() -> String {
    format!("{:016x}", toolspan_bridge::schema_hash())
}

/// One engine of one JavaScript environment.
#[napi]
pub struct Engine {
    bridge: Arc<Bridge>,
}

#[napi]
impl Engine {
    /// Starts an engine. `options` is the JSON of its options; `wake` is called on the event loop when [`Engine::poll`] has
    /// something, and must not throw. A wrong option throws the JSON of an error record.
    #[napi(constructor, catch_unwind)]
    pub fn new(env: Env, options: String, wake: Function<'_, (), ()>) -> Result<Self> {
        let wake: Wake = wake
            .build_threadsafe_function()
            .callee_handled::<false>()
            .weak::<true>()
            .max_queue_size::<1>()
            .build()?;
        let bridge = Arc::new(Bridge::new(&options).map_err(record)?);
        bridge.set_wake(Some(Box::new(move || {
            wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
        })));
        // Runs while the environment still exists. After it nothing calls into the environment, and its children are gone.
        let last = Arc::downgrade(&bridge);
        env.add_env_cleanup_hook(last, |last| {
            if let Some(bridge) = last.upgrade() {
                bridge.set_wake(None);
                // A panic here would end the process; whatever it was, the engine is gone afterwards.
                drop(catch_unwind(AssertUnwindSafe(|| bridge.close(TEARDOWN))));
            }
        })?;
        Ok(Engine { bridge })
    }

    /// Runs a short operation at once and returns the JSON of its result. A failure throws the JSON of an error record.
    #[napi(catch_unwind)]
    pub fn call(&self, request: String) -> Result<String> {
        self.bridge.call(&request).map_err(record)
    }

    /// Starts an operation under a number of the caller's choice. It ends with exactly one terminal event.
    #[napi(catch_unwind)]
    pub fn submit(&self, op: i64, request: String) -> Result<()> {
        self.bridge.submit(number(op)?, &request).map_err(record)
    }

    /// The next events, as the JSON of a list, or null when there are none. Never waits.
    #[napi(catch_unwind)]
    pub fn poll(&self) -> Option<String> {
        self.bridge.poll(Duration::ZERO, BATCH)
    }

    /// Answers a host call.
    #[napi(catch_unwind)]
    pub fn respond(&self, call: i64, reply: String) -> Result<()> {
        self.bridge.respond(number(call)?, &reply).map_err(record)
    }

    /// Cancels an operation; before, during and after it, as often as wanted.
    #[napi(catch_unwind)]
    pub fn cancel(&self, op: i64) -> Result<()> {
        self.bridge.cancel(number(op)?);
        Ok(())
    }

    /// Ends everything, on a thread of the pool, and says whether it all ended within `timeout_ms`.
    #[napi(catch_unwind)]
    pub fn close(&self, timeout_ms: u32) -> AsyncTask<Close> {
        AsyncTask::new(Close {
            bridge: self.bridge.clone(),
            timeout: Duration::from_millis(timeout_ms.into()),
        })
    }
}

/// [`Engine::close`], which may wait and therefore must not run on the event loop.
pub struct Close {
    bridge: Arc<Bridge>,
    timeout: Duration,
}

impl Task for Close {
    type Output = bool;
    type JsValue = bool;

    fn compute(&mut self) -> Result<bool> {
        Ok(self.bridge.close(self.timeout))
    }

    fn resolve(&mut self, _: Env, ended: bool) -> Result<bool> {
        Ok(ended)
    }
}

/// An error record as the message of a JavaScript error; `lib/errors.js` makes the real one of it.
fn record(json: String) -> Error {
    Error::new(Status::GenericFailure, json)
}

/// JavaScript counts in doubles; our numbers are positive and far below 2^53.
fn number(value: i64) -> Result<u64> {
    u64::try_from(value).map_err(|_| Error::new(Status::InvalidArg, "a number is negative"))
}
