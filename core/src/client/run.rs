//! What a run is asked to do, before it starts: prompt, options, and whether its events are wanted (SPEC 7.3, 7.5, 7.7).

use futures_util::future::BoxFuture;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

use super::Inner;
use super::event::Emitter;
use super::result::RunResult;
use super::session::run;
use super::stream::EventStream;
use crate::error::Result;
use crate::json::Json;
use crate::tool::ContentPart;
use crate::toolkit::Toolkit;

/// What the user says: text, or content parts. Empty parts are left out; an empty prompt continues the history as it is.
#[derive(Clone, Debug)]
pub struct Prompt(pub(super) Vec<ContentPart>);

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        vec![ContentPart::Text { text }].into()
    }
}

impl From<Vec<ContentPart>> for Prompt {
    fn from(parts: Vec<ContentPart>) -> Self {
        let blank =
            |part: &ContentPart| matches!(part, ContentPart::Text { text } if text.is_empty());
        Prompt(parts.into_iter().filter(|part| !blank(part)).collect())
    }
}

/// Everything a run needs.
pub(super) struct Plan {
    pub client: Arc<Inner>,
    pub prompt: Prompt,
    pub toolkit: Option<Toolkit>,
    pub history: Vec<Json>,
    pub conversation: Option<String>,
    pub system_prompt: Option<String>,
    pub model: Option<String>,
    pub max_turns: Option<u32>,
    pub timeout: Option<Duration>,
    pub cancel: CancellationToken,
}

impl Plan {
    fn new(client: Arc<Inner>, prompt: Prompt) -> Self {
        Plan {
            client,
            prompt,
            toolkit: None,
            history: Vec::new(),
            conversation: None,
            system_prompt: None,
            model: None,
            max_turns: None,
            timeout: None,
            cancel: CancellationToken::new(),
        }
    }
}

macro_rules! run_options {
    ($run:ident) => {
        impl $run {
            pub(super) fn new(client: Arc<Inner>, prompt: Prompt) -> Self {
                $run(Plan::new(client, prompt))
            }

            /// The tools. Default: none.
            pub fn toolkit(mut self, toolkit: &Toolkit) -> Self {
                self.0.toolkit = Some(toolkit.clone());
                self
            }

            /// Messages before the prompt, in the dialect of the client, sent as they are. Not together with `id`.
            pub fn history(mut self, messages: Vec<Json>) -> Self {
                self.0.history = messages;
                self
            }

            /// The conversation to load first and to save at the end (SPEC 7.7).
            pub fn id(mut self, id: impl Into<String>) -> Self {
                self.0.conversation = Some(id.into());
                self
            }

            /// Replaces the client's system prompt for this run.
            pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
                self.0.system_prompt = Some(text.into());
                self
            }

            /// Replaces the client's model for this run.
            pub fn model(mut self, model: impl Into<String>) -> Self {
                self.0.model = Some(model.into());
                self
            }

            /// Replaces the client's `maxTurns` for this run.
            pub fn max_turns(mut self, turns: u32) -> Self {
                self.0.max_turns = Some(turns);
                self
            }

            /// Replaces the client's `timeoutMs` for this run.
            pub fn timeout(mut self, timeout: Duration) -> Self {
                self.0.timeout = Some(timeout);
                self
            }

            /// Cancels the run: it ends with `cancelled`, its requests are dropped and its tools are told to stop. Finished
            /// turns of a conversation are saved first (SPEC 7.7).
            pub fn cancel(mut self, token: CancellationToken) -> Self {
                self.0.cancel = token;
                self
            }
        }
    };
}

/// A run that is about to start: await it. Dropping the future ends the run and everything it started; finished turns of a
/// conversation are then saved in the background, and the next run on its id waits for that.
#[must_use = "await the run"]
pub struct Run(Plan);

run_options!(Run);

impl IntoFuture for Run {
    type Output = Result<RunResult>;
    type IntoFuture = BoxFuture<'static, Result<RunResult>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(run(self.0, Emitter::default()))
    }
}

/// A run that is about to be seen event by event.
#[must_use = "call start()"]
pub struct StreamRun(Plan);

run_options!(StreamRun);

impl StreamRun {
    /// Starts the run on the current tokio runtime.
    pub fn start(self) -> EventStream {
        EventStream::start(move |emitter| run(self.0, emitter))
    }

    /// The run and its events apart, for a caller that drives the run in a task of its own: nothing happens while the
    /// future is not polled, a failure is the future's result and not an event, and dropping either of the two ends the run.
    pub fn split(self) -> (BoxFuture<'static, Result<RunResult>>, EventStream) {
        EventStream::split(move |emitter| run(self.0, emitter))
    }
}
