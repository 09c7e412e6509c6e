//! The client: one endpoint, one model, and the loop between the model and the tools (SPEC 7).
//!
//! What runs where: `session` holds one run from load to save, `turns` is the loop, `exchange` sends one request with its
//! retries, `tools` executes the calls of one answer. `wire` is the only place that knows what a dialect looks like;
//! everything else sees `wire::Answer`. Parsing, assembling and deciding are pure; the edges that wait are in
//! `exchange`, `tools` and `session`.

mod builder;
mod conversation;
mod event;
mod exchange;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
pub mod hooks;
pub mod key;
mod options;
mod provider_error;
mod result;
mod retry;
mod run;
mod session;
mod state;
mod stream;
mod tools;
mod turns;
mod wire;

pub use builder::ClientBuilder;
pub use conversation::Conversation;
pub use event::Event;
pub use options::defaults;
pub use result::{Limit, RunResult, RunStatus, ToolCallRecord, Usage};
pub use run::{Prompt, Run, StreamRun};
pub use stream::EventStream;

use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::store::{ConversationStore, IdLocks};
use crate::style::Style;
use options::Options;
use tools::Declared;

/// One endpoint and one model. Cloning is cheap and gives the same client: connections, conversations and locks are
/// shared.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

pub(crate) struct Inner {
    pub options: Options,
    /// One call at a time on one conversation id.
    pub locks: IdLocks,
    /// Cancelled by `close`.
    pub closed: CancellationToken,
    /// Totals of all runs.
    pub metrics: Metrics,
    /// The declarations of the toolkit seen last, so that a turn does not compile schemas again.
    pub declared: Mutex<Option<Arc<Declared>>>,
}

impl Client {
    /// Starts a client. `base_url` is `http` or `https`; `model` is sent as it stands.
    pub fn builder(
        base_url: impl Into<String>,
        style: Style,
        model: impl Into<String>,
    ) -> ClientBuilder {
        ClientBuilder::new(base_url.into(), style, model.into())
    }

    fn new(options: Options) -> Self {
        Client(Arc::new(Inner {
            options,
            locks: IdLocks::new(),
            closed: CancellationToken::new(),
            metrics: Metrics::new(),
            declared: Mutex::new(None),
        }))
    }

    /// Runs the loop on a prompt. Await it; dropping the future ends the run and everything it started.
    pub fn run(&self, prompt: impl Into<Prompt>) -> Run {
        Run::new(self.0.clone(), prompt.into())
    }

    /// The same run seen event by event; see [`StreamRun::start`].
    pub fn stream(&self, prompt: impl Into<Prompt>) -> StreamRun {
        StreamRun::new(self.0.clone(), prompt.into())
    }

    /// The same run with a memory: with [`Run::id`] the conversation is loaded first and saved at the end (SPEC 7.7).
    pub fn ask(&self, prompt: impl Into<Prompt>) -> Run {
        self.run(prompt)
    }

    /// A conversation under a new id, until [`Conversation::id`] gives it one.
    pub fn conversation(&self) -> Conversation {
        Conversation::new(self.clone())
    }

    /// The very store in use.
    pub fn conversation_store(&self) -> Arc<dyn ConversationStore> {
        self.0.options.store.clone()
    }

    /// Totals of all runs of this client as Prometheus text (SPEC 10).
    pub fn metrics(&self) -> String {
        self.0.metrics.render()
    }

    /// Ends the runs of this client and refuses new ones, all with `closed`. Idempotent. The store stays usable.
    pub fn close(&self) {
        self.0.closed.cancel();
    }

    /// The style of the endpoint.
    pub fn style(&self) -> Style {
        self.0.options.style
    }

    /// The model of runs that name none.
    pub fn model(&self) -> &str {
        &self.0.options.model
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("style", &self.0.options.style)
            .field("model", &self.0.options.model)
            .finish_non_exhaustive()
    }
}
