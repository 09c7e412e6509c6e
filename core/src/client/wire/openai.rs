//! Chat Completions: answers in one piece, tool results, and what streams share with them.

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

use super::content::content;
use super::text::{text_of, text_or_empty};
use super::{Answer, Call, CallIds, CallResult, Finish, parts, read};
use crate::client::options::Options;
use crate::client::provider_error::{self, Failure, malformed};
use crate::client::result::Usage;
use crate::error::Result;
use crate::json::{self, Json};
use crate::style::Style;
use crate::tool::{Arguments, ContentPart};

#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default, deserialize_with = "given")]
    role: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ToolCall<'a>>>,
}

/// A call as an assistant message holds it.
#[derive(Deserialize)]
pub(super) struct ToolCall<'a> {
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    pub function: Option<Function<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub name: Option<&'a RawValue>,
    #[serde(borrow)]
    pub arguments: Option<&'a RawValue>,
}

/// A value that is there, be it null.
fn given<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads an answer that came in one piece. Only the first choice counts.
pub(super) fn read_answer(
    options: &Options,
    text: &str,
    ids: &mut CallIds,
) -> Result<Answer, Failure> {
    let broken = |e: serde_json::Error| {
        malformed(
            Style::OpenAi,
            format!("the answer is not a chat completion: {e}"),
        )
    };
    let completion: Completion<'_> = serde_json::from_str(text).map_err(broken)?;
    if completion.error.is_some() {
        return Err(provider_error::from_object(options, text));
    }
    let choice = completion.choices.into_iter().flatten().next();
    let Some((choice, raw)) = choice.and_then(|choice| choice.message.map(|m| (choice, m))) else {
        return Err(malformed(Style::OpenAi, "the answer has no choices"));
    };
    let message: Message<'_> = serde_json::from_str(raw.get()).map_err(broken)?;
    let content = message.content.map(content).unwrap_or_default();
    let mut calls: Vec<Call> = message.tool_calls.iter().flatten().map(call).collect();
    ids.complete(calls.iter_mut().map(|call| &mut call.id));
    let refusal = message.refusal.map(text_of).filter(|text| !text.is_empty());
    let thought = message.reasoning_content.or(message.reasoning).map(text_of);
    let replay = replay(raw, &message, &calls).map_err(Failure::fatal)?;
    Ok(Answer {
        message: Some(replay),
        text: content.text,
        reasoning: thought.map_or(content.reasoning, Cow::into_owned),
        calls,
        finish: finish(choice.finish_reason.map(text_of).as_deref()),
        refusal: refusal.map(Cow::into_owned),
        usage: completion.usage.and_then(usage),
        whole: None,
    })
}

fn call(raw: &ToolCall<'_>) -> Call {
    let function = raw.function.as_ref();
    Call {
        id: text_or_empty(raw.id),
        name: text_or_empty(function.and_then(|f| f.name)),
        // Some servers send the object itself instead of its text.
        args: Arguments::from_text(&text_or_empty(function.and_then(|f| f.arguments))),
    }
}

/// The message as it came. What a server would refuse to take back is repaired, and nothing else: `content` missing, an id
/// missing or used twice, arguments that are not the text of an object.
fn replay(raw: &RawValue, message: &Message<'_>, calls: &[Call]) -> Result<Json> {
    let given = message.tool_calls.as_deref().unwrap_or_default();
    let sound = given
        .iter()
        .zip(calls)
        .all(|(raw, call)| as_protocol(raw, call));
    if sound && message.role.is_some() && message.content.is_some() {
        return Ok(raw.to_owned().into());
    }
    let mut entries: IndexMap<String, Json> = read(raw.get())?;
    for (key, value) in [("role", "\"assistant\""), ("content", "null")] {
        if !entries.contains_key(key) {
            entries.insert(key.to_owned(), read(value)?);
        }
    }
    if !sound {
        let list = entries.get("tool_calls").cloned();
        let list: Vec<Json> = list.map_or(Ok(Vec::new()), |list| read(list.get()))?;
        let repaired: Vec<Json> = list
            .iter()
            .zip(calls)
            .map(|(raw, call)| repaired(raw, call))
            .collect::<Result<_>>()?;
        entries.insert("tool_calls".to_owned(), json::to_json(&repaired)?);
    }
    json::to_json(&entries)
}

/// Whether a call can go back as it came.
fn as_protocol(raw: &ToolCall<'_>, call: &Call) -> bool {
    let arguments = raw.function.as_ref().and_then(|f| f.arguments);
    let object_text = arguments.is_some_and(|arguments| {
        let text = arguments.get();
        // Nearly all begin so; only the others have to be decoded once more.
        text.starts_with("\"{")
            || text.starts_with('"') && text_of(arguments).trim_start().starts_with('{')
    });
    raw.kind.is_some()
        && call.args.is_ok()
        && object_text
        && raw.id.is_some_and(|id| text_of(id) == call.id)
}

fn repaired(raw: &Json, call: &Call) -> Result<Json> {
    let mut entries: IndexMap<String, Json> = read(raw.get())?;
    let mut function: IndexMap<String, Json> = match entries.get("function") {
        Some(function) if function.get().starts_with('{') => read(function.get())?,
        _ => IndexMap::new(),
    };
    function.insert("name".to_owned(), json::to_json(&call.name)?);
    let arguments = super::replayed(&call.args);
    function.insert("arguments".to_owned(), json::to_json(arguments)?);
    entries.insert("id".to_owned(), json::to_json(&call.id)?);
    if !entries.contains_key("type") {
        entries.insert("type".to_owned(), read("\"function\"")?);
    }
    entries.insert("function".to_owned(), json::to_json(&function)?);
    json::to_json(&entries)
}

/// One `tool` message per result, then the content that such a message cannot carry, in one user message.
pub(super) fn result_messages(results: &[CallResult<'_>]) -> Result<Vec<Json>> {
    #[derive(Serialize)]
    struct ToolMessage<'a> {
        role: &'static str,
        tool_call_id: &'a str,
        content: &'a str,
    }
    let mut messages = Vec::with_capacity(results.len() + 1);
    let mut moved = Vec::new();
    for CallResult { id, name, result } in results {
        messages.push(json::to_json(&ToolMessage {
            role: "tool",
            tool_call_id: id,
            content: &result.output,
        })?);
        if !result.parts.is_empty() {
            moved.push(parts::text_block(&format!(
                "Output of tool {name} ({id}):"
            ))?);
            for part in &result.parts {
                moved.push(block_or_description(Style::OpenAi, part)?);
            }
        }
    }
    if !moved.is_empty() {
        #[derive(Serialize)]
        struct UserMessage {
            role: &'static str,
            content: Vec<Json>,
        }
        messages.push(json::to_json(&UserMessage {
            role: "user",
            content: moved,
        })?);
    }
    Ok(messages)
}

/// A tool does not know the dialect, so what cannot be sent is named instead of failing the run.
pub(super) fn block_or_description(style: Style, part: &ContentPart) -> Result<Json> {
    parts::block(style, part).or_else(|_| parts::text_block(&format!("[{}]", part.describe())))
}

pub(super) fn finish(reason: Option<&str>) -> Finish {
    match reason {
        Some("length" | "max_tokens") => Finish::Length,
        _ => Finish::Stop,
    }
}

/// The messages with a text in each turn of calls: some endpoints refuse null there, some a missing key, none an empty text.
/// A transcript that needs nothing is not copied.
pub(super) fn with_content(messages: &[Json]) -> Result<Cow<'_, [Json]>> {
    #[derive(Deserialize)]
    struct Peek<'a> {
        #[serde(borrow)]
        content: Option<&'a RawValue>,
        #[serde(borrow)]
        tool_calls: Option<&'a RawValue>,
    }
    let mut arranged = Cow::Borrowed(messages);
    for (index, message) in messages.iter().enumerate() {
        // Most messages have none, and a look is cheaper than reading.
        if !message.get().contains("\"tool_calls\"") {
            continue;
        }
        let peek: Peek<'_> = read(message.get())?;
        if peek.content.is_none() && peek.tool_calls.is_some() {
            let mut entries: IndexMap<String, &RawValue> = read(message.get())?;
            entries.insert("content".to_owned(), read("\"\"")?);
            arranged.to_mut()[index] = json::to_json(&entries)?;
        }
    }
    Ok(arranged)
}

/// Reads a usage object; what is missing or odd counts as not reported.
pub(super) fn usage(raw: &RawValue) -> Option<Usage> {
    #[derive(Deserialize)]
    struct Reported {
        prompt_tokens: Option<u64>,
        completion_tokens: Option<u64>,
        total_tokens: Option<u64>,
        prompt_tokens_details: Option<Details>,
        /// DeepSeek's name for the same.
        prompt_cache_hit_tokens: Option<u64>,
    }
    #[derive(Deserialize)]
    struct Details {
        cached_tokens: Option<u64>,
    }
    let reported: Reported = serde_json::from_str(raw.get()).ok()?;
    let prompt_tokens = reported.prompt_tokens.unwrap_or(0);
    let completion_tokens = reported.completion_tokens.unwrap_or(0);
    let details = reported.prompt_tokens_details;
    Some(Usage {
        prompt_tokens,
        completion_tokens,
        total_tokens: reported
            .total_tokens
            .unwrap_or(prompt_tokens.saturating_add(completion_tokens)),
        cache_read_tokens: details
            .and_then(|details| details.cached_tokens)
            .or(reported.prompt_cache_hit_tokens),
        cache_write_tokens: None,
    })
}

/// Whether messages of this role are system prompts.
pub(super) fn is_system_role(role: &str) -> bool {
    matches!(role, "system" | "developer")
}

/// Whether a message is the system prompt.
pub(crate) fn is_system(message: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Peek<'a> {
        #[serde(borrow)]
        role: Option<&'a RawValue>,
    }
    serde_json::from_str::<Peek<'_>>(message.get())
        .ok()
        .and_then(|peek| peek.role.map(text_of))
        .is_some_and(|role| is_system_role(&role))
}

/// The system prompt as the first message.
pub(crate) fn system_message(text: &str) -> Result<Json> {
    #[derive(Serialize)]
    struct System<'a> {
        role: &'static str,
        content: &'a str,
    }
    json::to_json(&System {
        role: "system",
        content: text,
    })
}
