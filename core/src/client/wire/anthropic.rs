//! Messages: answers in one piece, tool results, and what streams share with them.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

use super::openai::block_or_description;
use super::parts::text_block;
use super::text::{text_of, text_or_empty};
use super::{Answer, Call, CallIds, CallResult, Finish, read, replayed};
use crate::client::options::Options;
use crate::client::provider_error::{self, Failure, malformed};
use crate::client::result::Usage;
use crate::error::Result;
use crate::json::{self, Json};
use crate::style::Style;
use crate::tool::Arguments;

/// A message of ours.
#[derive(Serialize)]
pub(super) struct Message<'a, C: Serialize + ?Sized> {
    pub role: &'a str,
    pub content: &'a C,
}

/// What we read of a content block.
#[derive(Deserialize)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    pub text: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

impl<'a> Block<'a> {
    pub(super) fn kind(&self) -> Option<Cow<'a, str>> {
        self.kind.map(text_of)
    }
}

#[derive(Deserialize)]
struct Reply<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    stop_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// Reads an answer that came in one piece.
pub(super) fn read_answer(
    options: &Options,
    text: &str,
    ids: &mut CallIds,
) -> Result<Answer, Failure> {
    let broken = |e: serde_json::Error| {
        malformed(
            Style::Anthropic,
            format!("the answer is not a message: {e}"),
        )
    };
    let reply: Reply<'_> = serde_json::from_str(text).map_err(broken)?;
    let kind = reply.kind.map(text_of);
    if reply.error.is_some() || kind.as_deref() == Some("error") {
        return Err(provider_error::from_object(options, text));
    }
    let Some(blocks) = reply.content else {
        return Err(malformed(Style::Anthropic, "the answer has no content"));
    };
    let blocks = blocks
        .into_iter()
        .map(|raw| raw.to_owned().into())
        .collect();
    let mut counts = Counts::default();
    if let Some(usage) = reply.usage {
        counts.take(usage);
    }
    let stop = reply.stop_reason.map(text_of);
    answer(blocks, stop.as_deref(), counts, ids).map_err(Failure::fatal)
}

/// An answer out of its complete blocks. Blocks are replayed as they came, the unknown ones too; only what the endpoint
/// itself would refuse is left out or repaired: blank text, a call without an id, an input that is not an object.
pub(super) fn answer(
    blocks: Vec<Json>,
    stop: Option<&str>,
    counts: Counts,
    ids: &mut CallIds,
) -> Result<Answer> {
    let mut text = String::new();
    let mut reasoning = String::new();
    let mut calls: Vec<Call> = Vec::new();
    let mut kept: Vec<Json> = Vec::with_capacity(blocks.len());
    let mut call_blocks: Vec<usize> = Vec::new();
    for raw in blocks {
        let block: Block<'_> = read(raw.get())?;
        match block.kind().as_deref() {
            Some("text") => {
                let piece = block.text.map(text_of).unwrap_or_default();
                if piece.trim().is_empty() {
                    continue;
                }
                text.push_str(&piece);
            }
            Some("thinking") => {
                reasoning.push_str(&block.thinking.map(text_of).unwrap_or_default());
            }
            Some("tool_use") => {
                call_blocks.push(kept.len());
                calls.push(Call {
                    id: text_or_empty(block.id),
                    name: text_or_empty(block.name),
                    args: match block.input {
                        Some(input) => Arguments::from_json(input.to_owned().into()),
                        None => Ok(Arguments::empty()),
                    },
                });
            }
            _ => {}
        }
        kept.push(raw);
    }
    ids.complete(calls.iter_mut().map(|call| &mut call.id));
    for (at, call) in call_blocks.into_iter().zip(&calls) {
        kept[at] = call_block(&kept[at], call)?;
    }
    let message = match kept.is_empty() {
        true => None,
        false => Some(json::to_json(&Message {
            role: "assistant",
            content: &kept,
        })?),
    };
    Ok(Answer {
        whole: None,
        message,
        refusal: (stop == Some("refusal")).then(|| text.clone()),
        text,
        reasoning,
        calls,
        finish: match stop {
            Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
            Some("pause_turn") => Finish::Pause,
            _ => Finish::Stop,
        },
        usage: counts.usage(),
    })
}

/// The block of a call as it came, unless its id or its input has to be repaired.
fn call_block(raw: &Json, call: &Call) -> Result<Json> {
    let block: Block<'_> = read(raw.get())?;
    let sound = block.id.is_some_and(|id| text_of(id) == call.id)
        && block
            .input
            .is_some_and(|input| input.get().starts_with('{'));
    if sound {
        return Ok(raw.clone());
    }
    let mut entries: indexmap::IndexMap<String, Json> = read(raw.get())?;
    entries.insert("id".to_owned(), json::to_json(&call.id)?);
    entries.insert("input".to_owned(), read(replayed(&call.args))?);
    json::to_json(&entries)
}

/// The one user message that carries all results of a turn.
pub(super) fn result_message(results: &[CallResult<'_>]) -> Result<Json> {
    #[derive(Serialize)]
    struct ToolResultBlock<'a> {
        r#type: &'static str,
        tool_use_id: &'a str,
        content: Json,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    }
    let mut blocks = Vec::with_capacity(results.len());
    for CallResult { id, result, .. } in results {
        let content = if result.parts.is_empty() {
            json::to_json(&result.output)?
        } else {
            let mut content = Vec::with_capacity(result.parts.len() + 1);
            if !result.output.is_empty() {
                content.push(text_block(&result.output)?);
            }
            for part in &result.parts {
                content.push(block_or_description(Style::Anthropic, part)?);
            }
            json::to_json(&content)?
        };
        blocks.push(ToolResultBlock {
            r#type: "tool_result",
            tool_use_id: id,
            content,
            is_error: result.is_error,
        });
    }
    json::to_json(&Message {
        role: "user",
        content: &blocks,
    })
}

/// Token counts as they come in; each one is a running total, so the last counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
}

impl Counts {
    pub(super) fn take(&mut self, raw: &RawValue) {
        #[derive(Deserialize)]
        struct Reported {
            input_tokens: Option<u64>,
            output_tokens: Option<u64>,
            cache_read_input_tokens: Option<u64>,
            cache_creation_input_tokens: Option<u64>,
        }
        let Ok(reported) = serde_json::from_str::<Reported>(raw.get()) else {
            return;
        };
        self.input = reported.input_tokens.or(self.input);
        self.output = reported.output_tokens.or(self.output);
        self.cache_read = reported.cache_read_input_tokens.or(self.cache_read);
        self.cache_write = reported.cache_creation_input_tokens.or(self.cache_write);
    }

    fn usage(self) -> Option<Usage> {
        // `input_tokens` leaves the cached ones out.
        let counts = [self.input, self.cache_read, self.cache_write, self.output];
        let reported: Vec<u64> = counts.into_iter().flatten().collect();
        if reported.is_empty() {
            return None;
        }
        let total_tokens = reported.into_iter().fold(0, u64::saturating_add);
        let completion_tokens = self.output.unwrap_or(0);
        Some(Usage {
            prompt_tokens: total_tokens.saturating_sub(completion_tokens),
            completion_tokens,
            total_tokens,
            cache_read_tokens: self.cache_read,
            cache_write_tokens: self.cache_write,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(blocks: &str, stop: &str) -> Answer {
        let blocks: Vec<Json> = serde_json::from_str(blocks).unwrap();
        answer(
            blocks,
            Some(stop),
            Counts::default(),
            &mut CallIds::after(&[]),
        )
        .unwrap()
    }

    #[test]
    fn thinking_signatures_and_unknown_blocks_are_replayed_as_they_came() {
        let blocks = r#"[{"type":"thinking","thinking":"","signature":"c2ln"},{"type":"redacted_thinking","data":"x"},{"type":"new","n":1.50},{"type":"tool_use","id":"t1","name":"now","input":{}}]"#;
        let answer = read(blocks, "tool_use");
        let message = answer.message.unwrap();
        assert_eq!(
            message.get(),
            format!(r#"{{"role":"assistant","content":{blocks}}}"#)
        );
    }

    #[test]
    fn blank_text_is_not_replayed() {
        let answer = read(
            r#"[{"type":"text","text":""},{"type":"tool_use","id":"t1","name":"now","input":{}}]"#,
            "tool_use",
        );
        assert_eq!(
            answer.message.unwrap().get(),
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"now","input":{}}]}"#
        );
    }

    #[test]
    fn a_refusal_without_content_leaves_no_message() {
        let answer = read("[]", "refusal");
        assert!(answer.message.is_none());
        assert_eq!(answer.refusal.as_deref(), Some(""));
    }

    #[test]
    fn input_counts_cached_tokens() {
        let mut counts = Counts::default();
        for usage in [
            r#"{"input_tokens":10,"cache_read_input_tokens":30,"cache_creation_input_tokens":2,"output_tokens":1}"#,
            r#"{"output_tokens":7}"#,
        ] {
            counts.take(serde_json::from_str(usage).unwrap());
        }
        assert_eq!(
            counts.usage(),
            Some(Usage {
                prompt_tokens: 42,
                completion_tokens: 7,
                total_tokens: 49,
                cache_read_tokens: Some(30),
                cache_write_tokens: Some(2),
            })
        );
    }
}
