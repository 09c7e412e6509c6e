//! The two dialects (SPEC 7.2, 7.5): addresses, headers, bodies, and how an answer is read. Nothing here waits.

mod address;
mod anthropic;
mod arrange;
mod assemble_anthropic;
mod assemble_openai;
mod body;
mod call_deltas;
mod content;
mod openai;
mod parts;
mod text;
mod translate;

pub(crate) use address::{base_url, endpoint, headers};
pub(crate) use body::{Request, SystemPrompt, body};
pub(crate) use translate::translate;

use super::event::Event;
use super::options::Options;
use super::provider_error::{self, Failure, malformed};
use super::result::Usage;
use crate::error::{Error, ErrorCode, Result};
use crate::json::{self, Json};
use crate::style::Style;
use crate::tool::{Arguments, BadArguments, ContentPart, ToolResult};

/// What the model said, in no dialect.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The assistant turn as it goes into the transcript; `None` when there is nothing that a provider would take back.
    pub message: Option<Json>,
    pub text: String,
    pub reasoning: String,
    pub calls: Vec<Call>,
    pub finish: Finish,
    /// Why the model refused, in its words.
    pub refusal: Option<String>,
    /// What the provider reported.
    pub usage: Option<Usage>,
    /// The provider's answer where it came in one piece and `afterLLM` is there to see it.
    pub whole: Option<Json>,
}

/// Why the model stopped, as far as the loop cares. Whether there are calls is decided by the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    Stop,
    /// The output limit cut the answer.
    Length,
    /// The provider paused its own work and wants the same turn back.
    Pause,
}

/// One call the model asks for.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub id: String,
    pub name: String,
    pub args: Result<Arguments, BadArguments>,
}

/// A finished call on its way back to the model.
#[derive(Clone, Debug)]
pub(crate) struct CallResult<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub result: &'a ToolResult,
}

/// Makes ids for calls that came without one, each once in a conversation.
#[derive(Debug)]
pub(crate) struct CallIds(u64);

impl CallIds {
    /// Goes on behind the ids that the transcript may hold already: results of several calls can be one message, so its
    /// length alone does not tell.
    pub(crate) fn after(messages: &[Json]) -> Self {
        let made = messages
            .iter()
            .filter_map(|message| largest_id(message.get()));
        let before = messages.len().saturating_sub(1) as u64;
        CallIds(made.fold(before, u64::max))
    }

    fn make(&mut self) -> String {
        self.0 += 1;
        format!("call_{}", self.0)
    }

    /// Gives every call an id of its own.
    fn complete<'a>(&mut self, ids: impl IntoIterator<Item = &'a mut String>) {
        let mut seen = std::collections::HashSet::new();
        for id in ids {
            while id.is_empty() || !seen.insert(id.clone()) {
                *id = self.make();
            }
        }
    }
}

/// The largest N of `"call_N"` in a message. Ids of others may look like ours; a number no conversation reaches is theirs.
fn largest_id(message: &str) -> Option<u64> {
    let numbers = message.split("\"call_").skip(1).filter_map(|rest| {
        let (number, _) = rest.split_once('"')?;
        number.parse::<u32>().ok()
    });
    numbers.max().map(u64::from)
}

/// The user message of a prompt.
pub(crate) fn user_message(style: Style, prompt: &[ContentPart]) -> Result<Json> {
    #[derive(serde::Serialize)]
    struct User<'a, C: ?Sized> {
        role: &'static str,
        content: &'a C,
    }
    let role = "user";
    if let [ContentPart::Text { text }] = prompt {
        return json::to_json(&User {
            role,
            content: text,
        });
    }
    let mut content = Vec::with_capacity(prompt.len());
    for (index, part) in prompt.iter().enumerate() {
        content.push(parts::block(style, part).map_err(|e| e.at(format!("prompt[{index}]")))?);
    }
    json::to_json(&User {
        role,
        content: &content,
    })
}

/// The messages that carry the results of one turn, in call order.
pub(crate) fn result_messages(style: Style, results: &[CallResult<'_>]) -> Result<Vec<Json>> {
    match style {
        Style::OpenAi => openai::result_messages(results),
        Style::Anthropic => anthropic::result_message(results).map(|message| vec![message]),
    }
}

/// Reads an answer that came in one piece.
pub(crate) fn read_answer(
    options: &Options,
    body: &[u8],
    ids: &mut CallIds,
) -> Result<Answer, Failure> {
    let text = std::str::from_utf8(body)
        .map_err(|_| malformed(options.style, "the answer is not UTF-8"))?;
    let mut answer = match options.style {
        Style::OpenAi => openai::read_answer(options, text, ids),
        Style::Anthropic => anthropic::read_answer(options, text, ids),
    }?;
    if options.hooks.after_llm.is_some() {
        answer.whole =
            Some(json::parse(text).map_err(|e| malformed(options.style, e.to_string()))?);
    }
    Ok(answer)
}

/// Puts the answer together from the events of a stream.
pub(crate) enum Assembler {
    OpenAi(assemble_openai::Assembler),
    Anthropic(assemble_anthropic::Assembler),
}

/// Whether the stream has more to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    More,
    /// The terminal marker was read.
    End,
}

impl Assembler {
    pub(crate) fn new(style: Style) -> Self {
        match style {
            Style::OpenAi => Assembler::OpenAi(Default::default()),
            Style::Anthropic => Assembler::Anthropic(Default::default()),
        }
    }

    /// Takes one event of the wire; what a reader of the run should see is added to `out`.
    pub(crate) fn take(
        &mut self,
        options: &Options,
        name: &str,
        data: &str,
        out: &mut Vec<Event>,
    ) -> Result<Flow, Failure> {
        // Proxies send their keep-alive as data that begins like a comment.
        if data.is_empty() || data.starts_with(':') {
            return Ok(Flow::More);
        }
        if name == "error" {
            return Err(provider_error::from_object(options, data));
        }
        match self {
            Assembler::OpenAi(assembler) => assembler.take(options, data, out),
            Assembler::Anthropic(assembler) => assembler.take(options, data, out),
        }
    }

    /// Whether the end of the bytes may be the end of the answer although no terminal marker came.
    pub(crate) fn may_end(&self) -> bool {
        match self {
            Assembler::OpenAi(assembler) => assembler.finished(),
            Assembler::Anthropic(_) => false,
        }
    }

    pub(crate) fn answer(self, options: &Options, ids: &mut CallIds) -> Result<Answer, Failure> {
        let answer = match self {
            Assembler::OpenAi(assembler) => assembler.answer(options, ids),
            Assembler::Anthropic(assembler) => assembler.answer(ids).map_err(Failure::fatal),
        }?;
        Ok(answer)
    }
}

/// What `afterLLM` sees of a stream.
pub(crate) fn streamed(message: Option<&Json>) -> Result<Json> {
    #[derive(serde::Serialize)]
    struct Streamed<'a> {
        streamed: bool,
        message: Option<&'a Json>,
    }
    json::to_json(&Streamed {
        streamed: true,
        message,
    })
}

/// Reads a part of a message.
fn read<'a, T: serde::Deserialize<'a>>(text: &'a str) -> Result<T> {
    serde_json::from_str(text).map_err(|e| {
        Error::new(
            ErrorCode::InvalidResponse,
            provider_error::short(&format!("a message is not what the protocol promises: {e}")),
        )
    })
}

/// The text of the arguments as it is replayed: always one JSON object, whatever came.
fn replayed(args: &Result<Arguments, BadArguments>) -> &str {
    args.as_ref().map_or("{}", |args| args.raw().get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::options::tests::options;

    #[test]
    fn an_id_is_made_once_in_a_conversation() {
        let transcript: Vec<Json> = [
            r#"{"role":"user","content":"hi"}"#,
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"call_1"},{"type":"tool_use","id":"call_2"},{"type":"tool_use","id":"call_7"}]}"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_18446744073709551615"}]}"#,
        ]
        .map(|message| json::parse(message).unwrap())
        .into();
        let mut ids = ["", "a", "a"].map(str::to_owned);
        CallIds::after(&transcript).complete(&mut ids);
        assert_eq!(ids, ["call_8", "a", "call_9"]);
    }

    #[test]
    fn an_error_event_is_an_error_in_either_style_and_form() {
        for style in [Style::OpenAi, Style::Anthropic] {
            for (name, data) in [
                ("error", r#"{"message":"no"}"#),
                ("", r#"{"error":{"message":"no"}}"#),
            ] {
                let options = options(style);
                let taken = Assembler::new(style).take(&options, name, data, &mut Vec::new());
                let error = taken.unwrap_err().error;
                assert_eq!(error.record().message, "error: no", "{style} {name:?}");
            }
        }
    }
}
