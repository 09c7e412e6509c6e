//! The loop between the model and the tools (SPEC 7.3).

use bytes::Bytes;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Inner;
use super::event::{Emitter, Event};
use super::exchange::exchange;
use super::hooks::{AfterLlm, BeforeLlm};
use super::result::Limit;
use super::state::{End, State, Unanswered};
use super::tools::{self, Declared};
use super::wire::{self, Answer, Finish, Request};
use crate::error::{Error, Result};
use crate::json::Json;
use crate::metrics::{LlmStatus, MetricEvent};
use crate::toolkit::Toolkit;

/// What one run works with.
pub(super) struct Cx<'a> {
    pub inner: &'a Inner,
    pub toolkit: Option<&'a Toolkit>,
    pub emitter: &'a Emitter,
    /// Cancelled when the run ends, however it ends.
    pub cancel: &'a CancellationToken,
    pub model: &'a str,
    /// The system prompt of this run alone.
    pub system: Option<&'a str>,
    pub max_turns: u32,
}

impl Inner {
    /// Counts an event and hands it to the sink.
    pub(super) fn metric(&self, event: MetricEvent) {
        self.metrics.record(&event);
        if let Some(sink) = &self.options.on_metric {
            sink(event);
        }
    }
}

/// Whole milliseconds since then.
pub(super) fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Turns until the model answers or a limit is reached. Dropping the future at any point leaves the state in order.
pub(super) async fn turns(cx: &Cx<'_>, state: &mut State) -> Result<End> {
    for turn in 1..=cx.max_turns {
        // A token tells its children first: tools may have ended of a cancel that the run has not seen yet.
        if cx.cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        let prepared = prepare(cx, state, turn).await?;
        let answer = ask_model(cx, state, prepared.body).await?;
        if let Some(hook) = &cx.inner.options.hooks.after_llm {
            let response = match &answer.whole {
                Some(whole) => whole.clone(),
                None => wire::streamed(answer.message.as_ref())?,
            };
            let seen = hook.call(AfterLlm {
                response,
                model: state.model.clone(),
                turn,
            });
            seen.await?;
        }
        let (finish, usage) = (answer.finish, answer.usage);
        let calls = state.answered(answer);
        if let Some(usage) = usage {
            cx.emitter.emit(|| Event::Usage { usage }).await?;
        }
        match finish {
            // The last call may be cut anywhere, and nothing tells whether it was.
            Finish::Length => {
                state.close_turn(Unanswered::NotExecuted)?;
                return Ok(End::Limit(Limit::MaxTokens));
            }
            Finish::Pause if calls.is_empty() => continue,
            // The calls decide, not the reason: servers give any reason beside calls, and announce calls without any.
            _ if calls.is_empty() => return Ok(End::Done),
            _ => {}
        }
        tools::execute(cx, state, &prepared.declared, &calls).await?;
        state.close_turn(Unanswered::Interrupted)?;
    }
    Ok(End::Limit(Limit::MaxTurns))
}

struct Prepared {
    declared: Arc<Declared>,
    body: Bytes,
}

/// Base body, `beforeLLM`, `requestParams`, `bodyTransform`, in this order (SPEC 7.2).
async fn prepare(cx: &Cx<'_>, state: &mut State, turn: u32) -> Result<Prepared> {
    let options = &cx.inner.options;
    if let Some(toolkit) = cx.toolkit {
        toolkit.settle().await?;
    }
    let declared = Declared::of(cx.inner, cx.toolkit)?;
    let mut tools = declared.joined.clone();
    let mut model = cx.model.to_owned();
    if let Some(hook) = &options.hooks.before_llm {
        let change = hook.call(BeforeLlm {
            messages: state.messages.clone(),
            tools: declared.list.clone(),
            model: model.clone(),
            turn,
        });
        let change = change.await?;
        if let Some(messages) = change.messages {
            check_messages("hooks.beforeLLM.messages", &messages)?;
            state.messages = messages;
        }
        if let Some(list) = change.tools {
            tools = tools::join(&list)?;
        }
        model = change.model.unwrap_or(model);
    }
    let body = wire::body(&Request {
        style: options.style,
        model: &model,
        system: wire::SystemPrompt {
            of_run: cx.system,
            of_client: options.system_prompt.as_deref(),
        },
        messages: &state.messages,
        tools,
        streaming: cx.emitter.is_on(),
        params: &options.request_params,
    })?;
    // The caller's own key wins over ours, so it is the model that answers.
    let named = options.request_params.get("model");
    state.model = named
        .and_then(|named| serde_json::from_str(named.get()).ok())
        .unwrap_or(model);
    // A long transcript is a long body: without a transform its text is written once and never copied.
    let body = match &options.body_transform {
        None => Bytes::from(String::from(Box::<str>::from(body))),
        Some(transform) => {
            let body = Json::from(body);
            let body = transform.call(body.clone()).await?.unwrap_or(body);
            Bytes::copy_from_slice(body.get().as_bytes())
        }
    };
    Ok(Prepared { declared, body })
}

async fn ask_model(cx: &Cx<'_>, state: &mut State, body: Bytes) -> Result<Answer> {
    let started = Instant::now();
    let answer = exchange(&cx.inner.options, cx.emitter, body, &mut state.ids).await;
    let (status, usage) = match &answer {
        Ok(answer) => (LlmStatus::Ok, answer.usage.unwrap_or_default()),
        Err(_) => (LlmStatus::Error, Default::default()),
    };
    cx.inner.metric(MetricEvent::Llm {
        model: state.model.clone(),
        status,
        ms: millis(started),
        prompt_tokens: usage.prompt_tokens,
        completion_tokens: usage.completion_tokens,
    });
    answer
}

/// Every message is a JSON object; what is in it is between the caller and the provider.
pub(super) fn check_messages(path: &str, messages: &[Json]) -> Result<()> {
    match messages.iter().position(|m| !m.get().starts_with('{')) {
        Some(index) => Err(Error::argument(
            format!("{path}[{index}]"),
            "must be a message object",
        )),
        None => Ok(()),
    }
}
