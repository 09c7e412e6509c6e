//! One run from its first line to its last: load, loop, save (SPEC 7.3, 7.6, 7.7).

use futures_util::future::BoxFuture;
use std::future::{Future, IntoFuture};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

use super::Inner;
use super::event::{Emitter, Event};
use super::result::{Limit, RunResult};
use super::state::{End, State, Unanswered};
use super::stream::EventStream;
use super::turns::{self, Cx, check_messages, millis};
use super::wire;
use crate::error::{Error, ErrorCode, Result};
use crate::json::Json;
use crate::log::LogLevel;
use crate::metrics::MetricEvent;
use crate::store::Transcript;
use crate::style::Style;
use crate::tool::ContentPart;
use crate::toolkit::Toolkit;

/// What the user says: text, or content parts. Empty parts are left out; an empty prompt continues the history as it is.
#[derive(Clone, Debug)]
pub struct Prompt(Vec<ContentPart>);

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
    client: Arc<Inner>,
    prompt: Prompt,
    toolkit: Option<Toolkit>,
    history: Vec<Json>,
    conversation: Option<String>,
    system_prompt: Option<String>,
    model: Option<String>,
    max_turns: Option<u32>,
    timeout: Option<Duration>,
    cancel: CancellationToken,
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

            /// Cancels the run: it ends with `cancelled`, its requests are dropped and its tools are told to stop.
            pub fn cancel(mut self, token: CancellationToken) -> Self {
                self.0.cancel = token;
                self
            }
        }
    };
}

/// A run that is about to start: await it. Dropping the future ends the run and everything it started.
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

/// Runs a plan and tells the metric sink how it ended.
async fn run(plan: Plan, emitter: Emitter) -> Result<RunResult> {
    let started = std::time::Instant::now();
    let client = plan.client.clone();
    let mut progress = Progress {
        model: plan
            .model
            .clone()
            .unwrap_or_else(|| client.options.model.clone()),
        ..Progress::default()
    };
    let result = run_plan(plan, &emitter, &mut progress).await;
    client.metric(MetricEvent::Run {
        model: progress.model,
        turns: progress.turns,
        tool_calls: progress.tool_calls,
        total_tokens: progress.total_tokens,
        ms: millis(started),
        error: result.as_ref().err().map(Error::code),
    });
    let result = result?;
    if emitter.is_on() {
        let result = Box::new(result.clone());
        emitter.emit(|| Event::Done { result }).await?;
    }
    Ok(result)
}

/// What the metric of a run says, also when the run failed.
#[derive(Default)]
struct Progress {
    model: String,
    turns: u32,
    tool_calls: u32,
    total_tokens: u64,
}

impl Progress {
    fn read(&mut self, state: &State) {
        self.model.clone_from(&state.model);
        self.turns = state.turns;
        self.tool_calls = u32::try_from(state.tool_calls()).unwrap_or(u32::MAX);
        self.total_tokens = state.usage.total_tokens;
    }
}

async fn run_plan(plan: Plan, emitter: &Emitter, progress: &mut Progress) -> Result<RunResult> {
    check(&plan)?;
    let client = plan.client.clone();
    let options = &client.options;
    // The tools' tokens end with the run: also when the deadline drops it, also when its future is dropped.
    let cancel = plan.cancel.child_token();
    let _ended = cancel.clone().drop_guard();
    let limits = Limits::new(&plan, options.timeout);

    let loaded = match limits.hold(load(&client, &plan)).await? {
        Some(loaded) => loaded?,
        // Time was up while another call held the conversation.
        None => Loaded::default(),
    };
    let Loaded {
        before,
        messages: history,
        lock: _lock,
    } = loaded;
    let model = plan.model.as_ref().unwrap_or(&options.model);
    let messages = opening(options.style, &plan, history)?;
    let mut state = State::new(options.style, messages, model.clone());

    let cx = Cx {
        inner: &client,
        toolkit: plan.toolkit.as_ref(),
        emitter,
        cancel: &cancel,
        model,
        system: plan.system_prompt.as_deref(),
        max_turns: plan.max_turns.unwrap_or(options.max_turns),
    };
    let ended = limits.hold(turns::turns(&cx, &mut state)).await;
    let sealed = state.close_turn(Unanswered::Interrupted);
    progress.read(&state);
    sealed?;
    // A caller that cancels wants the conversation as it was.
    let ended = ended?.unwrap_or(Ok(End::Limit(Limit::Timeout)));

    if let Some(id) = &plan.conversation {
        match &ended {
            Ok(_) => {
                let save = save(&client, id, before, &state.messages);
                limits.unless_cancelled(save).await??;
            }
            // Finished turns had effects that the model must know of; a run that got no answer leaves nothing.
            Err(error) if state.turns > 0 && error.code() != ErrorCode::Cancelled => {
                let save = save(&client, id, before, &state.messages);
                if let Err(lost) = limits.unless_cancelled(save).await? {
                    options.logger.log(
                        LogLevel::Error,
                        "client",
                        || format!("the unfinished conversation could not be saved: {lost}"),
                        [("conversation", id.as_str().into())],
                    );
                }
            }
            Err(_) => {}
        }
    }
    Ok(state.into_result(ended?, plan.conversation))
}

fn check(plan: &Plan) -> Result<()> {
    if plan.toolkit.as_ref().is_some_and(Toolkit::is_closed) {
        return Err(Error::new(ErrorCode::Closed, "the toolkit is closed"));
    }
    if plan.max_turns == Some(0) {
        return Err(Error::argument("maxTurns", "must be at least 1"));
    }
    if plan.timeout.is_some_and(|timeout| timeout.is_zero()) {
        return Err(Error::argument("timeoutMs", "must be positive"));
    }
    if plan.model.as_ref().is_some_and(String::is_empty) {
        return Err(Error::argument("model", "must not be empty"));
    }
    if plan.conversation.is_some() && !plan.history.is_empty() {
        return Err(Error::argument(
            "history",
            "a conversation with an id has its own history",
        ));
    }
    check_messages("history", &plan.history)
}

/// What ends a run from outside.
struct Limits<'a> {
    cancel: &'a CancellationToken,
    closed: &'a CancellationToken,
    deadline: Option<tokio::time::Instant>,
}

impl<'a> Limits<'a> {
    fn new(plan: &'a Plan, timeout: Option<Duration>) -> Self {
        let timeout = plan.timeout.or(timeout);
        Limits {
            cancel: &plan.cancel,
            closed: &plan.client.closed,
            // A timeout beyond the end of the clock is none.
            deadline: timeout.and_then(|t| tokio::time::Instant::now().checked_add(t)),
        }
    }

    /// Waits for the future; `None` when the deadline came first.
    async fn hold<T>(&self, work: impl Future<Output = T>) -> Result<Option<T>> {
        let deadline = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            error = self.ended() => Err(error),
            done = work => Ok(Some(done)),
            () = deadline => Ok(None),
        }
    }

    async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        tokio::select! {
            biased;
            error = self.ended() => Err(error),
            done = work => Ok(done),
        }
    }

    /// Waits for somebody to end the run.
    async fn ended(&self) -> Error {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Error::cancelled(),
            () = self.closed.cancelled() => Error::new(ErrorCode::Closed, "the client is closed"),
        }
    }
}

/// What a run starts from.
#[derive(Default)]
struct Loaded {
    /// What the store gave; saving goes back through it.
    before: Option<Transcript>,
    messages: Vec<Json>,
    lock: Option<crate::store::IdGuard>,
}

async fn load(client: &Inner, plan: &Plan) -> Result<Loaded> {
    let Some(id) = &plan.conversation else {
        return Ok(Loaded {
            messages: plan.history.clone(),
            ..Loaded::default()
        });
    };
    let lock = client.locks.lock(id).await;
    let before = client.options.store.get(id).await?;
    let style = client.options.style;
    let messages = match &before {
        None => Vec::new(),
        Some(stored) if stored.style.is_none_or(|stored| stored == style) => {
            stored.messages.clone()
        }
        Some(stored) => wire::translate(&stored.messages, style)?,
    };
    Ok(Loaded {
        before,
        messages,
        lock: Some(lock),
    })
}

async fn save(
    client: &Inner,
    id: &str,
    before: Option<Transcript>,
    messages: &[Json],
) -> Result<()> {
    let style = client.options.style;
    let messages = messages.to_vec();
    let transcript = match before {
        Some(before) => before.replaced(style, messages),
        None => Transcript::new(Some(style), messages),
    };
    client.options.store.save(id, transcript).await
}

/// History and prompt. The system prompt belongs to the client and is added on the wire.
fn opening(style: Style, plan: &Plan, mut messages: Vec<Json>) -> Result<Vec<Json>> {
    if !plan.prompt.0.is_empty() {
        messages.push(wire::user_message(style, &plan.prompt.0)?);
    } else if plan.history.is_empty() && plan.conversation.is_none() {
        return Err(Error::argument(
            "prompt",
            "must not be empty without a history",
        ));
    }
    Ok(messages)
}
