//! The two dialects (SPEC 7.2, 7.5): addresses, headers, bodies, and how an answer is read. Nothing here waits.

pub(crate) mod anthropic;
mod assemble_anthropic;
mod assemble_openai;
mod body;
mod call_deltas;
pub(crate) mod openai;
mod parts;
mod translate;

pub(crate) use body::{Request, SystemPrompt, body};
pub(crate) use translate::translate;

use url::Url;

use super::event::Event;
use super::key;
use super::options::Options;
use super::provider_error::{Failure, malformed};
use super::result::Usage;
use crate::error::{Error, ErrorCode, Result};
use crate::json::{self, Json};
use crate::style::Style;
use crate::tool::{Arguments, BadArguments, ContentPart, ToolResult};

/// Version of the Messages protocol we speak.
const ANTHROPIC_VERSION: &str = "2023-06-01";

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
    /// What `afterLLM` sees.
    pub response: Json,
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

/// Makes ids for calls that came without one; unique within a conversation because each call adds at least one message.
#[derive(Debug)]
pub(crate) struct CallIds(usize);

impl CallIds {
    pub(crate) fn after(messages: usize) -> Self {
        CallIds(messages)
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

/// Reads `baseUrl`.
pub(crate) fn base_url(text: &str) -> Result<Url> {
    let refuse = |why: &str| Error::config("baseUrl", why);
    let mut url = Url::parse(text.trim()).map_err(|e| refuse(&format!("is not a URL: {e}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refuse("must be http or https"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(refuse("names no host"));
    }
    url.set_fragment(None);
    Ok(url)
}

/// Where requests go. A query of the base stays.
pub(crate) fn endpoint(style: Style, base: &Url) -> String {
    let path = base.path().trim_end_matches('/');
    let tail = match style {
        Style::OpenAi => "/chat/completions",
        Style::Anthropic if path.ends_with("/v1") => "/messages",
        Style::Anthropic => "/v1/messages",
    };
    let path = format!("{path}{tail}");
    let mut url = base.clone();
    url.set_path(&path);
    url.into()
}

/// The headers of every request: ours, each replaced in its place by the caller's of the same name, then the rest of the
/// caller's. A caller that brings credentials of its own gets none from us.
pub(crate) fn headers(
    style: Style,
    key: Option<&str>,
    own: &[(String, String)],
) -> Result<Vec<(String, String)>> {
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    let brings = |name: &str| own.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
    if let Some(key) = key
        && !brings("authorization")
        && !brings("x-api-key")
    {
        let (name, value) = key::header(style, key);
        check_header("apiKey", &name, &value)?;
        headers.push((name, value));
    }
    if style == Style::Anthropic {
        headers.push(("anthropic-version".to_owned(), ANTHROPIC_VERSION.to_owned()));
    }
    for (name, value) in own {
        check_header(&format!("headers.{name}"), name, value)?;
        let name = name.to_ascii_lowercase();
        match headers.iter_mut().find(|(n, _)| *n == name) {
            Some(header) => header.1.clone_from(value),
            None => headers.push((name, value.clone())),
        }
    }
    Ok(headers)
}

fn check_header(path: &str, name: &str, value: &str) -> Result<()> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(Error::config(path, "is not a header name"));
    }
    if value.bytes().any(|b| (b < 0x20 && b != b'\t') || b == 0x7F) {
        return Err(Error::config(path, "the value has control characters"));
    }
    Ok(())
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
    match options.style {
        Style::OpenAi => openai::read_answer(options, text, ids),
        Style::Anthropic => anthropic::read_answer(options, text, ids),
    }
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
        match self {
            Assembler::OpenAi(assembler) => assembler.take(options, name, data, out),
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
fn streamed(message: Option<&Json>) -> Result<Json> {
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
            format!("a message is not what the protocol promises: {e}"),
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

    fn at(style: Style, base: &str) -> String {
        endpoint(style, &base_url(base).unwrap())
    }

    #[test]
    fn only_a_trailing_v1_counts_for_anthropic() {
        for (base, url) in [
            ("https://h.test", "https://h.test/v1/messages"),
            ("https://h.test/", "https://h.test/v1/messages"),
            ("https://h.test/v1", "https://h.test/v1/messages"),
            ("https://h.test/v1/", "https://h.test/v1/messages"),
            (
                "https://h.test/anthropic",
                "https://h.test/anthropic/v1/messages",
            ),
            (
                "https://h.test/anthropic/v1",
                "https://h.test/anthropic/v1/messages",
            ),
            (
                "https://h.test/v1/acct/gw",
                "https://h.test/v1/acct/gw/v1/messages",
            ),
        ] {
            assert_eq!(at(Style::Anthropic, base), url);
        }
    }

    #[test]
    fn openai_adds_no_version_and_keeps_the_query() {
        assert_eq!(
            at(Style::OpenAi, "https://h.test/api/paas/v4/"),
            "https://h.test/api/paas/v4/chat/completions"
        );
        assert_eq!(
            at(Style::OpenAi, "https://h.test/openai?api-version=1"),
            "https://h.test/openai/chat/completions?api-version=1"
        );
    }

    #[test]
    fn a_base_that_is_not_http_is_refused() {
        for base in ["ftp://h.test", "h.test", "", "file:///tmp"] {
            assert_eq!(
                base_url(base).unwrap_err().record().path.as_deref(),
                Some("baseUrl")
            );
        }
    }

    fn sent(style: Style, own: &[(&str, &str)]) -> Vec<(String, String)> {
        let own: Vec<_> = own
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect();
        headers(style, Some("K"), &own).unwrap()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect()
    }

    #[test]
    fn headers_of_each_style() {
        assert_eq!(
            sent(Style::OpenAi, &[("X-Title", "t")]),
            pairs(&[
                ("content-type", "application/json"),
                ("authorization", "Bearer K"),
                ("x-title", "t"),
            ])
        );
        assert_eq!(
            sent(Style::Anthropic, &[("anthropic-version", "2099-01-01")]),
            pairs(&[
                ("content-type", "application/json"),
                ("x-api-key", "K"),
                ("anthropic-version", "2099-01-01"),
            ])
        );
    }

    #[test]
    fn credentials_of_the_caller_replace_ours() {
        assert_eq!(
            sent(Style::Anthropic, &[("Authorization", "Bearer mine")]),
            pairs(&[
                ("content-type", "application/json"),
                ("anthropic-version", "2023-06-01"),
                ("authorization", "Bearer mine"),
            ])
        );
    }

    #[test]
    fn a_header_with_control_characters_is_refused_without_its_value() {
        let own = pairs(&[("x-a", "secret\r\nx-evil: 1")]);
        let error = headers(Style::OpenAi, None, &own).unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid_config: headers.x-a: the value has control characters"
        );
    }
}
