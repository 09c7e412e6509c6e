//! The stream of Chat Completions, put together again.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::call_deltas::{CallDelta, Calls, PartialCall};
use super::content::{Parts, content};
use super::openai::{finish, usage};
use super::text::text_of;
use super::{Answer, Call, CallIds, Flow, replayed};
use crate::client::event::Event;
use crate::client::options::Options;
use crate::client::provider_error::{self, Failure, malformed};
use crate::client::result::Usage;
use crate::error::Result;
use crate::json::{self, Json};
use crate::style::Style;
use crate::tool::Arguments;

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_details: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<Vec<CallDelta<'a>>>,
}

/// What has arrived so far.
#[derive(Default)]
pub(crate) struct Assembler {
    text: String,
    parts: Parts,
    refusal: String,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    reasoning_details: Vec<Json>,
    calls: Calls,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    answered: bool,
}

impl Assembler {
    /// Whether the model said that it is done. Some servers close the stream then, without `[DONE]`.
    pub(super) fn finished(&self) -> bool {
        self.finish_reason.is_some()
    }

    pub(super) fn take(
        &mut self,
        options: &Options,
        data: &str,
        out: &mut Vec<Event>,
    ) -> Result<Flow, Failure> {
        if data.trim_end() == "[DONE]" {
            return Ok(Flow::End);
        }
        let chunk: Chunk<'_> = serde_json::from_str(data).map_err(|e| {
            malformed(
                Style::OpenAi,
                format!("the stream has an event that is not a completion chunk: {e}"),
            )
        })?;
        if chunk.error.is_some() {
            return Err(provider_error::from_object(options, data));
        }
        // A running total, so the last one counts.
        if let Some(usage) = chunk.usage.and_then(usage) {
            self.usage = Some(usage);
        }
        for choice in chunk.choices.into_iter().flatten() {
            if choice.index.unwrap_or(0) == 0 {
                self.choice(choice, out);
            }
        }
        Ok(Flow::More)
    }

    fn choice(&mut self, choice: Choice<'_>, out: &mut Vec<Event>) {
        self.answered = true;
        if let Some(reason) = choice.finish_reason {
            self.finish_reason = Some(text_of(reason).into_owned());
        }
        let Some(delta) = choice.delta else { return };
        self.reason(&delta, out);
        if let Some(raw) = delta.content {
            let piece = content(raw);
            self.parts.take(raw, &self.text);
            if !piece.reasoning.is_empty() {
                out.push(Event::Reasoning {
                    delta: piece.reasoning,
                });
            }
            if !piece.text.is_empty() {
                self.text.push_str(&piece.text);
                out.push(Event::Text { delta: piece.text });
            }
        }
        if let Some(refusal) = delta.refusal {
            self.refusal.push_str(&text_of(refusal));
        }
        for call in delta.tool_calls.iter().flatten() {
            self.calls.take(call);
        }
    }

    /// Some servers send the same thought under two names; a reader gets it once, the replay both.
    fn reason(&mut self, delta: &Delta<'_>, out: &mut Vec<Event>) {
        let mut shown = false;
        for (piece, kept) in [
            (delta.reasoning_content, &mut self.reasoning_content),
            (delta.reasoning, &mut self.reasoning),
        ] {
            let Some(piece) = piece else { continue };
            let text = text_of(piece);
            kept.get_or_insert_default().push_str(&text);
            if !shown && !text.is_empty() {
                shown = true;
                out.push(Event::Reasoning {
                    delta: text.into_owned(),
                });
            }
        }
        if let Some(details) = delta.reasoning_details
            && let Ok(details) = serde_json::from_str::<Vec<Json>>(details.get())
        {
            self.reasoning_details.extend(details);
        }
    }

    pub(super) fn answer(self, options: &Options, ids: &mut CallIds) -> Result<Answer, Failure> {
        if !self.answered {
            return Err(malformed(options.style, "the stream has no choices"));
        }
        self.assemble(ids).map_err(Failure::fatal)
    }

    fn assemble(self, ids: &mut CallIds) -> Result<Answer> {
        let mut partial = self.calls.finish();
        ids.complete(partial.iter_mut().map(|call| &mut call.id));
        let calls: Vec<Call> = partial
            .iter()
            .map(|call| Call {
                id: call.id.clone(),
                name: call.name.clone(),
                args: Arguments::from_text(&call.arguments),
            })
            .collect();
        let refusal = (!self.refusal.is_empty()).then_some(self.refusal);
        let message = json::to_json(&AssistantMessage {
            role: "assistant",
            content: if self.parts.is_empty() {
                json::to_json(&(!self.text.is_empty() || calls.is_empty()).then_some(&self.text))?
            } else {
                json::to_json(&self.parts)?
            },
            refusal: refusal.as_deref(),
            reasoning_content: self.reasoning_content.as_deref(),
            reasoning: self.reasoning.as_deref(),
            reasoning_details: &self.reasoning_details,
            tool_calls: &tool_calls(&partial, &calls),
        })?;
        let reasoning = self.reasoning_content.or(self.reasoning);
        Ok(Answer {
            whole: None,
            message: Some(message),
            text: self.text,
            reasoning: reasoning.unwrap_or_else(|| self.parts.thoughts()),
            calls,
            finish: finish(self.finish_reason.as_deref()),
            refusal,
            usage: self.usage,
        })
    }
}

/// The assistant turn as a non-streaming answer would have had it.
#[derive(Serialize)]
struct AssistantMessage<'a> {
    role: &'static str,
    content: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<&'a str>,
    #[serde(skip_serializing_if = "<[Json]>::is_empty")]
    reasoning_details: &'a [Json],
    #[serde(skip_serializing_if = "<[ToolCall<'_>]>::is_empty")]
    tool_calls: &'a [ToolCall<'a>],
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a Json>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

fn tool_calls<'a>(partial: &'a [PartialCall], calls: &'a [Call]) -> Vec<ToolCall<'a>> {
    partial
        .iter()
        .zip(calls)
        .map(|(partial, call)| ToolCall {
            id: &call.id,
            r#type: "function",
            function: Function {
                name: &call.name,
                arguments: replayed(&call.args),
            },
            extra_content: partial.extra_content.as_ref(),
        })
        .collect()
}
