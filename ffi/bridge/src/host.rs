//! What the host supplies: a closed list of kinds of calls, and the calls that wait for an answer.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

use crate::event;
use crate::queue::Queue;
use toolspan::aside::aside;
use toolspan::log::Logger;
use toolspan::{Error, ErrorCode, LogLevel};

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $answered:literal;)+) => {
        /// What the library may ask of the host. A new hook is a new kind, never a new function in every language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum HostCallKind { $($(#[doc = $doc])+ $variant,)+ }

        impl HostCallKind {
            /// Every kind.
            pub const ALL: &'static [HostCallKind] = &[$(HostCallKind::$variant),+];

            /// The kind's name in an event.
            pub const fn as_str(self) -> &'static str {
                match self { $(HostCallKind::$variant => $name),+ }
            }

            /// Whether the library waits for [`crate::Engine::respond`]. The others carry `call` 0.
            pub const fn answered(self) -> bool {
                match self { $(HostCallKind::$variant => $answered),+ }
            }

            /// Payload and answer, for documentation.
            pub const fn describe(self) -> &'static str {
                match self { $(HostCallKind::$variant => concat!($($doc),+)),+ }
            }
        }
    };
}

kinds! {
    /// A native tool. `{name, args, callId?, timeoutMs?}`; ok `{"result": ToolResult}` or `{"value": JSON}`
    /// (text is the output, anything else its compact JSON).
    ToolExecute = "tool.execute", true;
    /// SPEC 7.4. `{messages, tools, model, turn}`; ok null or `{messages?, tools?, model?}`.
    BeforeLlm = "hook.beforeLLM", true;
    /// SPEC 7.4. `{response, model, turn}`; ok null.
    AfterLlm = "hook.afterLLM", true;
    /// SPEC 7.4. `{name, args, id, turn, hints?}`; ok null, `{"result": ToolResult}` or `{"args": {...}}`.
    BeforeTool = "hook.beforeTool", true;
    /// SPEC 7.4. `{name, args, result, id, turn}`; ok null or `{"result": ToolResult}`.
    AfterTool = "hook.afterTool", true;
    /// SPEC 7.2. `{body}`; ok null or the whole body, sent as it is written.
    BodyTransform = "bodyTransform", true;
    /// SPEC 7.6. `{error, attempt, retryable}`; ok null, `"retry"` or `"fail"`.
    OnError = "onError", true;
    /// SPEC 7.7. `{id}`; ok null, a transcript or a list of messages.
    StoreGet = "store.get", true;
    /// SPEC 7.7. `{id, transcript}`; ok null.
    StoreSave = "store.save", true;
    /// Sends a request to the model. `{method, url, headers: [[name, value]], body}`;
    /// ok `{status, headers, body}`, or `{status, headers, stream: N}` when the body is to be read piece by piece.
    HttpSend = "http.send", true;
    /// The next piece of a body. `{stream}`; ok `{data: base64}` or `{end: true}`.
    HttpRead = "http.read", true;
    /// Nobody reads the body any more. `{stream}`.
    HttpClose = "http.close", false;
    /// A metric event (SPEC 10).
    Metric = "metric", false;
    /// A log record (SPEC 10).
    Log = "log", false;
}

impl HostCallKind {
    pub(crate) fn named(name: &str) -> Option<Self> {
        HostCallKind::ALL
            .iter()
            .copied()
            .find(|kind| kind.as_str() == name)
    }
}

/// The kinds one host answers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kinds(u32);

impl Kinds {
    /// # Errors
    /// `invalid_argument` for a name that is not a kind.
    pub(crate) fn of(names: &[String]) -> Result<Self, Error> {
        let mut kinds = Kinds::default();
        for (index, name) in names.iter().enumerate() {
            let kind = HostCallKind::named(name).ok_or_else(|| {
                Error::argument(
                    format!("hostCalls[{index}]"),
                    format!("{name:?} is not a kind of host call"),
                )
            })?;
            kinds.0 |= 1 << kind as u32;
        }
        Ok(kinds)
    }

    /// Checks that the host answers this kind, which the option at `path` needs. Kinds that want no answer always pass.
    ///
    /// # Errors
    /// `invalid_argument` at the path.
    pub(crate) fn require(self, kind: HostCallKind, path: &str) -> Result<(), Error> {
        if !kind.answered() || self.0 & 1 << kind as u32 != 0 {
            return Ok(());
        }
        Err(Error::argument(
            path,
            format!(
                "this host does not answer {} calls; name the kind in the engine's hostCalls",
                kind.as_str()
            ),
        ))
    }
}

/// What [`crate::Engine::respond`] takes: exactly one of the two.
#[derive(Clone, Debug)]
pub enum Reply {
    /// `{"ok": JSON}`
    Ok(Box<RawValue>),
    /// `{"error": {"message": TEXT, "type": TEXT?}}`: the host's function failed.
    Error {
        /// What a person reads.
        message: String,
        /// The class of the host's exception; goes to the log only.
        class: Option<String>,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplyText {
    #[serde(default, deserialize_with = "present")]
    ok: Option<Box<RawValue>>,
    error: Option<HostFailure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostFailure {
    message: String,
    #[serde(rename = "type")]
    class: Option<String>,
}

/// Null is an answer, not an absent one.
fn present<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(reader).map(Some)
}

impl Reply {
    fn parse(text: &str) -> Result<Self, Error> {
        crate::limits::check(text)?;
        let reply: ReplyText = toolspan::json::decode(text)?;
        match (reply.ok, reply.error) {
            (Some(value), None) => Ok(Reply::Ok(value)),
            (None, Some(failure)) => Ok(Reply::Error {
                message: failure.message,
                class: failure.class,
            }),
            _ => Err(Error::new(
                ErrorCode::InvalidArgument,
                "a reply has either ok or error",
            )),
        }
    }
}

struct Waiting {
    op: u64,
    kind: HostCallKind,
    answer: oneshot::Sender<Result<Reply, Error>>,
}

#[derive(Default)]
struct Calls {
    last: u64,
    waiting: HashMap<u64, Waiting>,
    /// After the close: calls that will never be answered. Their operations are being stopped; an answer, even a
    /// refusal, could make one of them end well instead.
    orphans: Vec<oneshot::Sender<Result<Reply, Error>>>,
    closed: bool,
}

/// The host, as the library's tasks see it.
pub(crate) struct Host {
    pub(crate) kinds: Kinds,
    queue: Arc<Queue>,
    logger: Logger,
    calls: Mutex<Calls>,
}

impl Host {
    pub(crate) fn new(kinds: Kinds, queue: Arc<Queue>, logger: Logger) -> Self {
        Host {
            kinds,
            queue,
            logger,
            calls: Mutex::default(),
        }
    }

    /// Asks the host and waits. Dropping the future tells the host that nobody waits any more.
    ///
    /// # Errors
    /// `host_failed` with the number of the call when the function failed or its answer has the wrong shape.
    pub(crate) async fn ask<P: Serialize, R: DeserializeOwned>(
        &self,
        op: u64,
        kind: HostCallKind,
        handler: u64,
        payload: &P,
    ) -> Result<R, Error> {
        let payload = event::json(payload)?;
        let Some((call, answer)) = self.register(op, kind) else {
            return gone(kind).await;
        };
        let pending = Pending {
            host: self,
            call,
            op,
        };
        self.queue
            .push(event::host_call(call, op, kind.as_str(), handler, &payload));
        let reply = answer.await.unwrap_or_else(|_| Err(closed()));
        drop(pending);
        match reply? {
            Reply::Ok(value) => {
                let read = || toolspan::json::decode(value.get());
                aside(value.get().len(), read).map_err(|e| {
                    Error::new(
                        ErrorCode::HostFailed,
                        format!("the answer to {} has the wrong shape", kind.as_str()),
                    )
                    .host_call(call)
                    .because(&e)
                })
            }
            Reply::Error { message, class } => {
                self.logger.log(
                    LogLevel::Debug,
                    "bridge",
                    || format!("a host function failed in {}", kind.as_str()),
                    [("call", call.into()), ("type", class.into())],
                );
                Err(Error::new(ErrorCode::HostFailed, message).host_call(call))
            }
        }
    }

    /// Tells the host something that wants no answer. Metrics may be dropped when the host does not collect.
    pub(crate) fn tell<P: Serialize>(
        &self,
        op: u64,
        kind: HostCallKind,
        handler: u64,
        payload: &P,
    ) {
        let Ok(payload) = event::json(payload) else {
            return;
        };
        let event = event::host_call(0, op, kind.as_str(), handler, &payload);
        match kind {
            HostCallKind::Metric | HostCallKind::Log => self.queue.notify(event),
            _ => self.queue.push(event),
        }
    }

    /// Takes an answer. A text that is no reply fails the call as well, so that nobody waits for a second try.
    ///
    /// # Errors
    /// `not_found` when nobody waits for this call (any more); `invalid_argument` or `limit_exceeded` for the text.
    pub(crate) fn respond(&self, call: u64, reply: &str) -> Result<(), Error> {
        let reply = Reply::parse(reply);
        let Some(waiting) = self.lock().waiting.remove(&call) else {
            return Err(Error::new(
                ErrorCode::NotFound,
                format!(
                    "nobody waits for host call {call}: it was answered, cancelled, or never made"
                ),
            ));
        };
        let refused = reply.as_ref().err().cloned();
        let answer = reply.map_err(|e| {
            // Only a limit speaks for itself: other reasons may quote the answer.
            let why = match e.code() {
                ErrorCode::LimitExceeded => format!(": {}", e.record().message),
                _ => String::new(),
            };
            let message = format!("the answer of the host could not be read{why}");
            Error::new(ErrorCode::HostFailed, message)
                .host_call(call)
                .because(&e)
        });
        // The asking future may be gone this very moment; then there is nobody to tell.
        drop(waiting.answer.send(answer));
        refused.map_or(Ok(()), Err)
    }

    /// Cancels every waiting call and makes no more. The operations behind them have been told to stop.
    pub(crate) fn close(&self) {
        let mut calls = self.lock();
        calls.closed = true;
        let waiting: Vec<(u64, Waiting)> = calls.waiting.drain().collect();
        let mut cancelled = Vec::with_capacity(waiting.len());
        for (call, waiting) in waiting {
            cancelled.push((call, waiting.op));
            match waiting.kind {
                // The sender is dropped, which is an answer.
                HostCallKind::StoreSave => {}
                _ => calls.orphans.push(waiting.answer),
            }
        }
        drop(calls);
        for (call, op) in cancelled {
            self.queue.push(event::host_call_cancelled(call, op));
        }
    }

    /// A number and the place where its answer will be; neither once the host is gone.
    fn register(
        &self,
        op: u64,
        kind: HostCallKind,
    ) -> Option<(u64, oneshot::Receiver<Result<Reply, Error>>)> {
        let (answer, receiver) = oneshot::channel();
        let mut calls = self.lock();
        if calls.closed {
            return None;
        }
        calls.last += 1;
        let call = calls.last;
        calls.waiting.insert(call, Waiting { op, kind, answer });
        Some((call, receiver))
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that waits. Dropped before its answer, it tells the host so.
struct Pending<'a> {
    host: &'a Host,
    call: u64,
    op: u64,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let waited = self.host.lock().waiting.remove(&self.call).is_some();
        if waited {
            self.host
                .queue
                .push(event::host_call_cancelled(self.call, self.op));
        }
    }
}

/// A call that comes after the close. It waits for its operation to be stopped, as those that waited before do; but a run
/// that was stopped and wants to save must not wait for a host that is gone.
async fn gone<R>(kind: HostCallKind) -> Result<R, Error> {
    match kind {
        HostCallKind::StoreSave => Err(closed()),
        _ => std::future::pending().await,
    }
}

pub(crate) fn closed() -> Error {
    Error::new(ErrorCode::Closed, "the engine is closed")
}
