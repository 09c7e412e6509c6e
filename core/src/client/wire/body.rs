//! The body of a request: its keys in the order of the contract, its values as text (SPEC 7.2).

use indexmap::IndexMap;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;

use super::arrange::arrange;
use super::openai;
use crate::client::options::defaults;
use crate::error::{Error, ErrorCode, Result};
use crate::json::{self, Json};
use crate::style::Style;

/// What goes into a body.
pub(crate) struct Request<'a> {
    pub style: Style,
    pub model: &'a str,
    pub system: SystemPrompt<'a>,
    pub messages: &'a [Json],
    /// The declarations as one JSON list, or none.
    pub tools: Option<Json>,
    pub streaming: bool,
    /// Merged last, the caller wins.
    pub params: &'a IndexMap<String, Json>,
}

/// The system prompt, which is no part of the transcript.
#[derive(Clone, Copy, Default)]
pub(crate) struct SystemPrompt<'a> {
    /// Always sent, first.
    pub of_run: Option<&'a str>,
    /// Sent unless the transcript begins with one of its own.
    pub of_client: Option<&'a str>,
}

impl<'a> SystemPrompt<'a> {
    fn before(self, messages: &[Json]) -> Option<&'a str> {
        let own = || {
            messages
                .first()
                .is_some_and(|first| openai::is_system(first))
        };
        let prompt = match self.of_run {
            Some(prompt) => Some(prompt),
            None => self.of_client.filter(|_| !own()),
        };
        prompt.filter(|prompt| !prompt.is_empty())
    }
}

/// Keys in order, each once.
struct Body<'a>(Vec<(Cow<'a, str>, Piece<'a>)>);

enum Piece<'a> {
    Text(&'a str),
    Json(Json),
    List(Cow<'a, [Json]>),
}

impl<'a> Body<'a> {
    fn push(&mut self, key: &'a str, value: Piece<'a>) {
        self.0.push((Cow::Borrowed(key), value));
    }

    fn push_json<T: Serialize + ?Sized>(&mut self, key: &'a str, value: &T) -> Result<()> {
        self.push(key, Piece::Json(json::to_json(value)?));
        Ok(())
    }

    fn merge(&mut self, params: &'a IndexMap<String, Json>) {
        for (key, value) in params {
            let value = Piece::Json(value.clone());
            match self.0.iter_mut().find(|(k, _)| k == key) {
                Some(entry) => entry.1 = value,
                None => self.push(key, value),
            }
        }
    }
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            match value {
                Piece::Text(text) => map.serialize_entry(key, text)?,
                Piece::Json(json) => map.serialize_entry(key, json)?,
                Piece::List(list) => map.serialize_entry(key, list)?,
            }
        }
        map.end()
    }
}

/// The body as text, owned by nobody else yet.
pub(crate) fn body(request: &Request<'_>) -> Result<Box<RawValue>> {
    let mut body = Body(Vec::with_capacity(8 + request.params.len()));
    body.push("model", Piece::Text(request.model));
    match request.style {
        Style::OpenAi => {
            let mut messages = openai::with_content(request.messages)?;
            if let Some(prompt) = request.system.before(request.messages) {
                let prompt = openai::system_message(prompt)?;
                messages.to_mut().insert(0, prompt);
            }
            body.push("messages", Piece::List(messages));
            if let Some(tools) = &request.tools {
                body.push("tools", Piece::Json(tools.clone()));
                body.push("tool_choice", Piece::Text("auto"));
            }
            if request.streaming {
                #[derive(serde::Serialize)]
                struct StreamOptions {
                    include_usage: bool,
                }
                body.push_json("stream", &true)?;
                let include_usage = true;
                body.push_json("stream_options", &StreamOptions { include_usage })?;
            }
        }
        Style::Anthropic => {
            let arranged = arrange(request.system.before(request.messages), request.messages)?;
            body.push_json("max_tokens", &defaults::ANTHROPIC_MAX_TOKENS)?;
            if let Some(system) = arranged.system {
                body.push("system", Piece::Json(system));
            }
            body.push("messages", Piece::List(arranged.messages));
            if let Some(tools) = &request.tools {
                body.push("tools", Piece::Json(tools.clone()));
            }
            if request.streaming {
                body.push_json("stream", &true)?;
            }
        }
    }
    body.merge(request.params);
    serde_json::value::to_raw_value(&body)
        .map_err(|e| Error::new(ErrorCode::Internal, "a body could not be written").because_of(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(style: Style, streaming: bool, tools: Option<&str>, params: &[(&str, &str)]) -> String {
        let params = params
            .iter()
            .map(|(k, v)| ((*k).to_owned(), json::parse(v).unwrap()))
            .collect();
        let messages = [json::parse(r#"{"role": "user","content":"hi"}"#).unwrap()];
        let request = Request {
            style,
            model: "m",
            system: SystemPrompt::default(),
            messages: &messages,
            tools: tools.map(|t| json::parse(t).unwrap()),
            streaming,
            params: &params,
        };
        body(&request).unwrap().get().to_owned()
    }

    #[test]
    fn openai_keys_in_order() {
        assert_eq!(
            text(Style::OpenAi, false, None, &[]),
            r#"{"model":"m","messages":[{"role": "user","content":"hi"}]}"#
        );
        assert_eq!(
            text(Style::OpenAi, true, Some(r#"[{"x":1}]"#), &[]),
            r#"{"model":"m","messages":[{"role": "user","content":"hi"}],"tools":[{"x":1}],"tool_choice":"auto","stream":true,"stream_options":{"include_usage":true}}"#
        );
    }

    #[test]
    fn anthropic_keys_in_order() {
        assert_eq!(
            text(Style::Anthropic, true, Some("[{}]"), &[]),
            r#"{"model":"m","max_tokens":4096,"messages":[{"role": "user","content":"hi"}],"tools":[{}],"stream":true}"#
        );
    }

    #[test]
    fn params_replace_in_place_or_follow_in_order() {
        let params = [
            ("top_p", "0.90"),
            ("max_tokens", "7"),
            ("chat_template_kwargs", r#"{"enable_thinking": false}"#),
        ];
        assert_eq!(
            text(Style::Anthropic, false, None, &params),
            r#"{"model":"m","max_tokens":7,"messages":[{"role": "user","content":"hi"}],"top_p":0.90,"chat_template_kwargs":{"enable_thinking": false}}"#
        );
    }
}
