//! One run from its first line to its last: load, loop, save (SPEC 7.3, 7.6, 7.7).

use futures_util::FutureExt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Inner;
use super::event::{Emitter, Event};
use super::result::{Limit, RunResult};
use super::run::Plan;
use super::state::{End, State, Unanswered};
use super::turns::{self, Cx, check_messages, millis};
use super::wire;
use crate::clock::{later, positive};
use crate::error::{Error, ErrorCode, Result};
use crate::json::Json;
use crate::log::LogLevel;
use crate::metrics::MetricEvent;
use crate::store::{IdGuard, Transcript};
use crate::style::Style;
use crate::toolkit::Toolkit;

/// How long a store may take to save when the time of the run is up, or nearly: the turns that are done had effects.
const SAVE_GRACE: Duration = Duration::from_secs(2);

/// The same for a run that somebody ended, and who waits for that.
const CANCELLED_SAVE_GRACE: Duration = Duration::from_secs(1);

/// Runs a plan and tells the metric sink how it ended.
pub(super) async fn run(plan: Plan, emitter: Emitter) -> Result<RunResult> {
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
    // The tools' tokens end with the turns: also when the deadline drops them, also when their future is dropped.
    let cancel = plan.cancel.child_token();
    let tools = cancel.clone().drop_guard();
    let limits = Limits::new(&plan, emitter, options.timeout);

    let loaded = limits.hold(load(&client, &plan)).await?.transpose()?;
    // Without it time was up while another run had the conversation.
    let in_time = loaded.is_some();
    let (memory, history) = loaded.unwrap_or_default();
    let model = plan.model.as_ref().unwrap_or(&options.model);
    let messages = opening(options.style, &plan, history)?;
    if in_time && messages.is_empty() {
        return Err(Error::argument(
            "prompt",
            "must not be empty without a history",
        ));
    }
    let mut state = State::new(options.style, messages, model.clone());
    let unsaved = Unsaved::new(memory, &mut state);

    let cx = Cx {
        inner: &client,
        toolkit: plan.toolkit.as_ref(),
        emitter,
        cancel: &cancel,
        model,
        system: plan.system_prompt.as_deref(),
        max_turns: plan.max_turns.unwrap_or(options.max_turns),
    };
    let ended = match in_time {
        true => limits.hold(turns::turns(&cx, unsaved.state)).await,
        false => Ok(None),
    };
    drop(tools);
    let memory = unsaved.take();
    let sealed = state.close_turn(Unanswered::Interrupted);
    progress.read(&state);
    sealed?;
    let mut ended = ended.and_then(|ended| ended.unwrap_or(Ok(End::Limit(Limit::Timeout))));

    if let Some(memory) = memory
        && state.turns > 0
    {
        let saved = limits.save(memory.save(state.messages.clone())).await;
        // Whoever ends the run while it is being saved is told that, whatever became of it.
        if let Some(error) = limits.ended().now_or_never() {
            ended = Err(error);
        }
        match (&ended, saved) {
            (_, Ok(())) => {}
            (Ok(_), Err(lost)) => return Err(lost),
            (Err(_), Err(lost)) => client.lost(plan.conversation.as_deref(), &lost),
        }
    }
    Ok(state.into_result(ended?, plan.conversation))
}

fn check(plan: &Plan) -> Result<()> {
    if plan.toolkit.as_ref().is_some_and(Toolkit::is_closed) {
        return Err(crate::toolkit::closed());
    }
    if plan.max_turns == Some(0) {
        return Err(Error::argument("maxTurns", "must be at least 1"));
    }
    positive(plan.timeout, |why| Error::argument("timeoutMs", why))?;
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
    toolkit: Option<&'a Toolkit>,
    reader: &'a Emitter,
    deadline: Option<Instant>,
}

impl<'a> Limits<'a> {
    fn new(plan: &'a Plan, reader: &'a Emitter, timeout: Option<Duration>) -> Self {
        let timeout = plan.timeout.or(timeout);
        Limits {
            cancel: &plan.cancel,
            closed: &plan.client.closed,
            toolkit: plan.toolkit.as_ref(),
            reader,
            // A timeout beyond the end of the clock is none.
            deadline: timeout.and_then(|t| Instant::now().checked_add(t)),
        }
    }

    /// Waits for the future; `None` when the deadline came first.
    async fn hold<T>(&self, work: impl Future<Output = T>) -> Result<Option<T>> {
        tokio::select! {
            biased;
            error = self.ended() => Err(error),
            done = work => Ok(Some(done)),
            () = until(self.deadline) => Ok(None),
        }
    }

    /// Waits for the store. One that hangs is `timeout`, [`SAVE_GRACE`] behind the deadline or [`CANCELLED_SAVE_GRACE`]
    /// behind the end of the run at the latest.
    async fn save(&self, work: impl Future<Output = Result<()>>) -> Result<()> {
        let grace = later(Instant::now(), SAVE_GRACE);
        let deadline = self.deadline.map(|deadline| deadline.max(grace));
        let cancelled = async {
            self.ended().await;
            tokio::time::sleep(CANCELLED_SAVE_GRACE).await;
        };
        tokio::select! {
            biased;
            saved = work => saved,
            () = cancelled => Err(not_saved_in_time()),
            () = until(deadline) => Err(not_saved_in_time()),
        }
    }

    /// Waits for somebody to end the run.
    async fn ended(&self) -> Error {
        let toolkit_closed = async {
            match self.toolkit {
                Some(toolkit) => toolkit.closed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Error::cancelled(),
            () = self.closed.cancelled() => Error::new(ErrorCode::Closed, "the client is closed"),
            () = toolkit_closed => crate::toolkit::closed(),
            () = self.reader.left() => Error::cancelled(),
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn not_saved_in_time() -> Error {
    Error::new(
        ErrorCode::Timeout,
        "the store did not save the conversation in time",
    )
}

/// A conversation that is being continued. Nobody else has it meanwhile.
struct Memory {
    client: Arc<Inner>,
    id: String,
    /// What the store gave; saving goes back through it.
    before: Option<Transcript>,
    _lock: IdGuard,
}

impl Memory {
    async fn save(self, messages: Vec<Json>) -> Result<()> {
        let options = &self.client.options;
        let transcript = match self.before {
            Some(before) => before.replaced(options.style, messages),
            None => Transcript::first(options.style, messages),
        };
        options.store.save(&self.id, transcript).await
    }
}

/// The conversation and the history a run starts from.
async fn load(client: &Arc<Inner>, plan: &Plan) -> Result<(Option<Memory>, Vec<Json>)> {
    let Some(id) = &plan.conversation else {
        return Ok((None, plan.history.clone()));
    };
    let lock = client.locks.lock(id).await;
    let before = client.options.store.get(id).await?;
    let messages = match &before {
        None => Vec::new(),
        Some(stored) => in_style(stored, client.options.style)?,
    };
    let memory = Memory {
        client: client.clone(),
        id: id.clone(),
        before,
        _lock: lock,
    };
    Ok((Some(memory), messages))
}

/// The turns of a run while they are not saved. Finished turns had effects that the model must know of, so also a run
/// whose future is dropped saves them: in the background, where there is a runtime for that.
struct Unsaved<'a> {
    memory: Option<Memory>,
    state: &'a mut State,
    runtime: Option<Handle>,
}

impl<'a> Unsaved<'a> {
    fn new(memory: Option<Memory>, state: &'a mut State) -> Self {
        Unsaved {
            memory,
            state,
            runtime: Handle::try_current().ok(),
        }
    }

    /// Leaves the saving to the caller.
    fn take(mut self) -> Option<Memory> {
        self.memory.take()
    }
}

impl Drop for Unsaved<'_> {
    fn drop(&mut self) {
        let (Some(memory), Some(runtime)) = (self.memory.take(), &self.runtime) else {
            return;
        };
        if self.state.turns == 0 || self.state.close_turn(Unanswered::Interrupted).is_err() {
            return;
        }
        let (client, id) = (memory.client.clone(), memory.id.clone());
        let save = memory.save(std::mem::take(&mut self.state.messages));
        runtime.spawn(async move {
            let saved = tokio::time::timeout(SAVE_GRACE, save).await;
            if let Err(lost) = saved.unwrap_or_else(|_| Err(not_saved_in_time())) {
                client.lost(Some(&id), &lost);
            }
        });
    }
}

impl Inner {
    /// Says what nobody is left to be told as an error.
    fn lost(&self, conversation: Option<&str>, why: &Error) {
        self.options.logger.log(
            LogLevel::Error,
            "client",
            || format!("the unfinished conversation could not be saved: {why}"),
            [("conversation", conversation.into())],
        );
    }
}

/// The messages of a stored conversation in the dialect of the client.
pub(super) fn in_style(stored: &Transcript, style: Style) -> Result<Vec<Json>> {
    match stored.style {
        Some(other) if other != style => wire::translate(&stored.messages, style),
        _ => Ok(stored.messages.clone()),
    }
}

/// History and prompt. The system prompt belongs to the client and is added on the wire.
fn opening(style: Style, plan: &Plan, mut messages: Vec<Json>) -> Result<Vec<Json>> {
    if !plan.prompt.0.is_empty() {
        messages.push(wire::user_message(style, &plan.prompt.0)?);
    }
    Ok(messages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Client, ClientBuilder};
    use crate::http::{HttpRequest, HttpResponse, HttpTransport};
    use crate::store::ConversationStore;
    use futures_util::{StreamExt, stream};
    use std::future::IntoFuture;

    struct Yes;

    #[async_trait::async_trait]
    impl HttpTransport for Yes {
        async fn send(&self, _: HttpRequest) -> Result<HttpResponse> {
            let body = r#"{"choices":[{"message":{"role":"assistant","content":"yes"}}]}"#;
            Ok(HttpResponse {
                status: 200,
                headers: Vec::new(),
                body: stream::iter([Ok(body.into())]).boxed(),
            })
        }
    }

    /// Takes that long for everything; what it saves is gone.
    struct Slow {
        get: Duration,
        save: Duration,
    }

    #[async_trait::async_trait]
    impl ConversationStore for Slow {
        async fn get(&self, _: &str) -> Result<Option<Transcript>> {
            tokio::time::sleep(self.get).await;
            Ok(None)
        }

        async fn save(&self, _: &str, _: Transcript) -> Result<()> {
            tokio::time::sleep(self.save).await;
            Ok(())
        }
    }

    fn client(get: Duration, save: Duration) -> ClientBuilder {
        Client::builder("http://127.0.0.1:9", Style::OpenAi, "m")
            .http_transport(Arc::new(Yes))
            .store(Arc::new(Slow { get, save }))
    }

    const HOUR: Duration = Duration::from_secs(3600);
    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_store_that_does_not_save_in_time_fails_the_run() {
        let client = client(Duration::ZERO, HOUR).build().unwrap();
        let begun = Instant::now();
        let error = client.ask("hi").id("x").timeout(SECOND).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "timeout: the store did not save the conversation in time"
        );
        assert_eq!(begun.elapsed().as_secs(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_cancels_waits_a_second_for_the_store_at_most() {
        let client = client(Duration::ZERO, HOUR).build().unwrap();
        let cancel = CancellationToken::new();
        let ask = client.ask("hi").id("x").cancel(cancel.clone());
        let ask = tokio::spawn(ask.into_future());
        // Everything but the saving takes no time.
        tokio::time::sleep(SECOND).await;
        cancel.cancel();
        let begun = Instant::now();
        let error = ask.await.unwrap().unwrap_err();
        assert_eq!(error.code(), ErrorCode::Cancelled);
        assert_eq!(begun.elapsed(), CANCELLED_SAVE_GRACE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_may_save_a_little_behind_the_deadline() {
        let client = client(Duration::ZERO, SECOND * 3 / 2).build().unwrap();
        let result = client.ask("hi").id("x").timeout(SECOND).await.unwrap();
        assert_eq!(result.text, "yes");
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_does_not_load_in_time_ends_the_run_like_any_other_delay() {
        let client = client(HOUR, Duration::ZERO).build().unwrap();
        let result = client.ask("hi").id("x").timeout(SECOND).await.unwrap();
        assert_eq!((result.limit, result.turns), (Some(Limit::Timeout), 0));
    }
}
