//! Whole streams of either dialect, from bytes to the transcript of the next request (see `crate::fuzzing`).

use indexmap::IndexMap;
use serde_json::Value;
use std::collections::HashSet;

use super::Client;
use super::event::Event;
use super::wire::{
    self, Answer, Assembler, CallIds, CallResult, Flow, Request, SystemPrompt, translate,
};
use crate::error::Result;
use crate::json::{self, Json};
use crate::sse::Decoder;
use crate::style::Style;
use crate::tool::ToolResult;

/// Reads streams as a client of one style does.
pub struct Streams(Client);

impl Streams {
    /// Of this style.
    ///
    /// # Errors
    /// What building a client gives.
    pub fn new(style: Style) -> Result<Self> {
        let client = Client::builder("http://127.0.0.1:9", style, "m");
        Ok(Streams(client.api_key("sk-secret-key").build()?))
    }

    /// Reads a stream. What comes out is what a reader was shown, can be executed, and can be sent back in either dialect.
    pub fn read(&self, stream: &[u8]) {
        let mut shown = Vec::new();
        let mut ids = CallIds::after(&[]);
        let Some(answer) = self.answer(stream, &mut shown, &mut ids) else {
            return;
        };
        let told: String = shown
            .iter()
            .filter_map(|event| match event {
                Event::Text { delta } => Some(delta.as_str()),
                _ => None,
            })
            .collect();
        // Blocks may come in another order than that of their indexes, and blank ones are left out.
        let visible = |text: &str| text.split_whitespace().collect::<String>();
        let (told, text) = (visible(&told), visible(&answer.text));
        assert_eq!(told.len(), text.len(), "a reader was shown another text");
        let known: HashSet<&str> = answer.calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(known.len(), answer.calls.len(), "two calls share an id");
        assert!(!known.contains(""), "a call has no id");
        for call in &answer.calls {
            if let Ok(arguments) = &call.args {
                arguments
                    .parse::<serde_json::Map<String, Value>>()
                    .expect("arguments that are executed are an object");
            }
        }
        self.replay(answer);
    }

    fn answer(&self, stream: &[u8], shown: &mut Vec<Event>, ids: &mut CallIds) -> Option<Answer> {
        let options = &self.0.0.options;
        let mut decoder = Decoder::new(usize::MAX);
        let mut assembler = Assembler::new(options.style);
        decoder.push(stream).ok()?;
        let mut at_end = false;
        loop {
            let event = match at_end {
                false => decoder.next_event(),
                true => decoder.finish(),
            };
            match event.ok()? {
                Some(event) => {
                    let flow = assembler
                        .take(options, &event.name, &event.data, shown)
                        .ok()?;
                    if flow == Flow::End {
                        return assembler.answer(options, ids).ok();
                    }
                }
                None if !at_end => at_end = true,
                None if assembler.may_end() => return assembler.answer(options, ids).ok(),
                None => return None,
            }
        }
    }

    /// The next request, in the dialect of the stream and translated into the other.
    fn replay(&self, answer: Answer) {
        let style = self.0.0.options.style;
        let result = ToolResult::text("done");
        let results: Vec<_> = answer
            .calls
            .iter()
            .map(|call| CallResult {
                id: &call.id,
                name: &call.name,
                result: &result,
            })
            .collect();
        let prompt = json::parse(r#"{"role":"user","content":"hi"}"#).expect("this is JSON");
        let mut messages: Vec<Json> = vec![prompt];
        messages.extend(answer.message);
        if !results.is_empty() {
            messages.extend(wire::result_messages(style, &results).expect("results are written"));
        }
        write(style, &messages);
        let other = match style {
            Style::OpenAi => Style::Anthropic,
            Style::Anthropic => Style::OpenAi,
        };
        write(
            other,
            &translate(&messages, other).expect("an own transcript is translated"),
        );
    }
}

fn write(style: Style, messages: &[Json]) {
    let body = wire::body(&Request {
        style,
        model: "m",
        system: SystemPrompt::default(),
        messages,
        tools: None,
        streaming: true,
        params: &IndexMap::new(),
    });
    let body = body.expect("an own transcript is written");
    serde_json::from_str::<Value>(body.get()).expect("a body is read by any reader");
}
