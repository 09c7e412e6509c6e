//! One run from its first line to its last: load, loop, save (SPEC 7.3, 7.6, 7.7).

use std::future::Future;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Inner;
use super::event::{Emitter, Event};
use super::result::{Limit, RunResult};
use super::run::Plan;
use super::state::{End, State, Unanswered};
use super::turns::{self, Cx, check_messages, millis};
use super::wire;
use crate::clock::later;
use crate::error::{Error, ErrorCode, Result};
use crate::json::Json;
use crate::log::LogLevel;
use crate::metrics::MetricEvent;
use crate::store::Transcript;
use crate::style::Style;
use crate::toolkit::Toolkit;

/// How long a store may take to save when the time of the run is up, or nearly: the turns that are done had effects.
const SAVE_GRACE: Duration = Duration::from_secs(2);

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
    // The tools' tokens end with the run: also when the deadline drops it, also when its future is dropped.
    let cancel = plan.cancel.child_token();
    let _ended = cancel.clone().drop_guard();
    let limits = Limits::new(&plan, options.timeout);

    let loaded = limits.hold(load(&client, &plan)).await?.transpose()?;
    // Without it time was up while another run had the conversation.
    let in_time = loaded.is_some();
    let Loaded {
        before,
        messages: history,
        lock: _lock,
    } = loaded.unwrap_or_default();
    let model = plan.model.as_ref().unwrap_or(&options.model);
    let messages = opening(options.style, &plan, history)?;
    if in_time && messages.is_empty() {
        return Err(Error::argument(
            "prompt",
            "must not be empty without a history",
        ));
    }
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
    let ended = match in_time {
        true => limits.hold(turns::turns(&cx, &mut state)).await,
        false => Ok(None),
    };
    let sealed = state.close_turn(Unanswered::Interrupted);
    progress.read(&state);
    sealed?;
    // Somebody who cancels wants the conversation as it was, so nothing is saved.
    let ended = ended?.unwrap_or(Ok(End::Limit(Limit::Timeout)));

    // Finished turns had effects that the model must know of, also when the next one failed. A run that got no answer at
    // all leaves nothing.
    if let Some(id) = &plan.conversation
        && state.turns > 0
    {
        let save = save(&client, id, before, &state.messages);
        match (&ended, limits.save(save).await?) {
            (_, Ok(())) => {}
            (Ok(_), Err(lost)) => return Err(lost),
            (Err(_), Err(lost)) => options.logger.log(
                LogLevel::Error,
                "client",
                || format!("the unfinished conversation could not be saved: {lost}"),
                [("conversation", id.as_str().into())],
            ),
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
    toolkit: Option<&'a Toolkit>,
    deadline: Option<Instant>,
}

impl<'a> Limits<'a> {
    fn new(plan: &'a Plan, timeout: Option<Duration>) -> Self {
        let timeout = plan.timeout.or(timeout);
        Limits {
            cancel: &plan.cancel,
            closed: &plan.client.closed,
            toolkit: plan.toolkit.as_ref(),
            // A timeout beyond the end of the clock is none.
            deadline: timeout.and_then(|t| Instant::now().checked_add(t)),
        }
    }

    /// Waits for the future; `None` when the deadline came first.
    async fn hold<T>(&self, work: impl Future<Output = T>) -> Result<Option<T>> {
        self.until(self.deadline, work).await
    }

    /// Waits for the store. One that hangs is `timeout`, [`SAVE_GRACE`] behind the deadline at the latest.
    async fn save(&self, work: impl Future<Output = Result<()>>) -> Result<Result<()>> {
        let grace = later(Instant::now(), SAVE_GRACE);
        let deadline = self.deadline.map(|deadline| deadline.max(grace));
        let saved = self.until(deadline, work).await?;
        Ok(saved.unwrap_or_else(|| {
            Err(Error::new(
                ErrorCode::Timeout,
                "the store did not save the conversation in time",
            ))
        }))
    }

    async fn until<T>(
        &self,
        deadline: Option<Instant>,
        work: impl Future<Output = T>,
    ) -> Result<Option<T>> {
        let deadline = async {
            match deadline {
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
    let messages = match &before {
        None => Vec::new(),
        Some(stored) => in_style(stored, client.options.style)?,
    };
    Ok(Loaded {
        before,
        messages,
        lock: Some(lock),
    })
}

/// The messages of a stored conversation in the dialect of the client.
pub(super) fn in_style(stored: &Transcript, style: Style) -> Result<Vec<Json>> {
    match stored.style {
        Some(other) if other != style => wire::translate(&stored.messages, style),
        _ => Ok(stored.messages.clone()),
    }
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
        None => Transcript::first(style, messages),
    };
    client.options.store.save(id, transcript).await
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
    use std::sync::Arc;

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
