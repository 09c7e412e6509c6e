//! The stream of Messages, put together again block by block.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::anthropic::{Counts, answer};
use super::text::{text_of, text_or_empty};
use super::{Answer, CallIds, Flow};
use crate::client::event::Event;
use crate::client::options::Options;
use crate::client::provider_error::{self, Failure, malformed};
use crate::error::Result;
use crate::json::{self, Json};
use crate::style::Style;
use crate::tool::Arguments;

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    index: Option<u64>,
    #[serde(borrow)]
    message: Option<Started<'a>>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Started<'a> {
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    #[serde(borrow)]
    signature: Option<&'a RawValue>,
    #[serde(borrow)]
    partial_json: Option<&'a RawValue>,
    #[serde(borrow)]
    citation: Option<&'a RawValue>,
    #[serde(borrow)]
    stop_reason: Option<&'a RawValue>,
}

/// What has arrived so far.
#[derive(Default)]
pub(crate) struct Assembler {
    /// In order of arrival, with the index that the stream gives. A block that starts at the index of another is one of its own.
    blocks: Vec<(u64, Block)>,
    stop_reason: Option<String>,
    counts: Counts,
}

/// A block as it started, and what was added to it since.
#[derive(Default)]
struct Block {
    entries: IndexMap<String, Json>,
    text: String,
    thinking: String,
    signature: Option<String>,
    input: String,
    citations: Vec<Json>,
}

impl Assembler {
    pub(super) fn take(
        &mut self,
        options: &Options,
        data: &str,
        out: &mut Vec<Event>,
    ) -> Result<Flow, Failure> {
        let broken = |e: serde_json::Error| {
            malformed(
                Style::Anthropic,
                format!("the stream has an event that is not one of this protocol: {e}"),
            )
        };
        let frame: Frame<'_> = serde_json::from_str(data).map_err(broken)?;
        // Proxies write the error of another protocol, without a type.
        if frame.error.is_some() {
            return Err(provider_error::from_object(options, data));
        }
        let index = frame.index.unwrap_or(0);
        match frame.kind.map(text_of).as_deref() {
            Some("message_start") => {
                if let Some(usage) = frame.message.and_then(|message| message.usage) {
                    self.counts.take(usage);
                }
            }
            Some("content_block_start") => {
                if let Some(raw) = frame.content_block {
                    let block = Block::start(raw).map_err(broken)?;
                    block.show(out);
                    self.blocks.push((index, block));
                }
            }
            Some("content_block_delta") => {
                if let Some(delta) = &frame.delta {
                    self.block(index).add(delta, out);
                }
            }
            Some("message_delta") => {
                if let Some(reason) = frame.delta.and_then(|delta| delta.stop_reason) {
                    self.stop_reason = Some(text_of(reason).into_owned());
                }
                if let Some(usage) = frame.usage {
                    self.counts.take(usage);
                }
            }
            Some("message_stop") => return Ok(Flow::End),
            Some("error") => return Err(provider_error::from_object(options, data)),
            // `ping`, `content_block_stop`, and what the protocol may grow.
            _ => {}
        }
        Ok(Flow::More)
    }

    /// The block that an index means now, a new one where none has started.
    fn block(&mut self, index: u64) -> &mut Block {
        let started = self.blocks.iter().rposition(|(at, _)| *at == index);
        let place = started.unwrap_or(self.blocks.len());
        if started.is_none() {
            self.blocks.push((index, Block::default()));
        }
        &mut self.blocks[place].1
    }

    pub(super) fn answer(mut self, ids: &mut CallIds) -> Result<Answer> {
        self.blocks.sort_by_key(|(index, _)| *index);
        let mut blocks = Vec::with_capacity(self.blocks.len());
        for (_, mut block) in self.blocks {
            let stray = block.stray_text()?;
            if !block.entries.is_empty() {
                blocks.push(block.finish()?);
            }
            blocks.extend(stray);
        }
        answer(blocks, self.stop_reason.as_deref(), self.counts, ids)
    }
}

impl Block {
    fn start(raw: &RawValue) -> Result<Self, serde_json::Error> {
        let entries: IndexMap<String, Json> = serde_json::from_str(raw.get())?;
        let text = |key: &str| entries.get(key).map(|raw| text_of(raw).into_owned());
        Ok(Block {
            text: text("text").unwrap_or_default(),
            thinking: text("thinking").unwrap_or_default(),
            signature: text("signature"),
            entries,
            ..Block::default()
        })
    }

    /// What the start itself already says.
    fn show(&self, out: &mut Vec<Event>) {
        if !self.thinking.is_empty() {
            out.push(Event::Reasoning {
                delta: self.thinking.clone(),
            });
        }
        if !self.text.is_empty() {
            out.push(Event::Text {
                delta: self.text.clone(),
            });
        }
    }

    fn add(&mut self, delta: &Delta<'_>, out: &mut Vec<Event>) {
        match delta.kind.map(text_of).as_deref() {
            Some("text_delta") => {
                let delta = text_or_empty(delta.text);
                // A delta without a start is a text block all the same.
                if self.entries.is_empty()
                    && let Ok(kind) = json::parse("\"text\"")
                {
                    self.entries.insert("type".to_owned(), kind);
                }
                self.text.push_str(&delta);
                if !delta.is_empty() {
                    out.push(Event::Text { delta });
                }
            }
            Some("thinking_delta") => {
                let delta = text_or_empty(delta.thinking);
                self.thinking.push_str(&delta);
                if !delta.is_empty() {
                    out.push(Event::Reasoning { delta });
                }
            }
            Some("signature_delta") => {
                let signature = self.signature.get_or_insert_default();
                signature.push_str(&text_or_empty(delta.signature));
            }
            Some("input_json_delta") => self.input.push_str(&text_or_empty(delta.partial_json)),
            Some("citations_delta") => {
                let citation = delta.citation.map(|raw| raw.to_owned().into());
                self.citations.extend(citation);
            }
            _ => {}
        }
    }

    fn kind(&self) -> Option<String> {
        let kind = self.entries.get("type")?;
        Some(text_of(kind).into_owned())
    }

    /// Text that was sent for a block of another kind, as the block it should have had: a reader has seen it.
    fn stray_text(&mut self) -> Result<Option<Json>> {
        if self.text.is_empty() || self.kind().as_deref() == Some("text") {
            return Ok(None);
        }
        #[derive(serde::Serialize)]
        struct Text {
            r#type: &'static str,
            text: String,
        }
        let text = std::mem::take(&mut self.text);
        let r#type = "text";
        json::to_json(&Text { r#type, text }).map(Some)
    }

    /// The block as a non-streaming answer would have had it: keys in the order of the start, values complete.
    fn finish(mut self) -> Result<Json> {
        match self.kind().as_deref() {
            Some("text") => self.set("text", &self.text.clone())?,
            Some("thinking") => {
                self.set("thinking", &self.thinking.clone())?;
                if let Some(signature) = self.signature.take() {
                    self.set("signature", &signature)?;
                }
            }
            _ => {}
        }
        if !self.input.trim().is_empty() {
            // Text that is no JSON stays text, so that the call is refused with the reason instead of executed without
            // arguments; the replay gets an object.
            match Arguments::from_text(&self.input) {
                Ok(arguments) => self.set("input", arguments.json())?,
                Err(_) => self.set("input", &self.input.clone())?,
            }
        }
        if !self.citations.is_empty() {
            let citations = std::mem::take(&mut self.citations);
            self.set("citations", &citations)?;
        }
        json::to_json(&self.entries)
    }

    fn set<T: serde::Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<()> {
        self.entries.insert(key.to_owned(), json::to_json(value)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assemble(frames: &[&str]) -> Answer {
        let mut assembler = Assembler::default();
        let options = crate::client::options::tests::options(Style::Anthropic);
        let mut out = Vec::new();
        for frame in frames {
            assembler.take(&options, frame, &mut out).unwrap();
        }
        assembler.answer(&mut CallIds::after(&[])).unwrap()
    }

    #[test]
    fn blocks_are_put_together_as_a_whole_answer_would_have_them() {
        let answer = assemble(&[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"add","input":{}}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\": 1"}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":".50}"}}"#,
            r#"{"type":"content_block_start","index":3,"content_block":{"type":"mystery","x":[1]}}"#,
        ]);
        assert_eq!(
            answer.message.unwrap().get(),
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"tool_use","id":"t1","name":"add","input":{"a": 1.50}},{"type":"mystery","x":[1]}]}"#
        );
    }

    #[test]
    fn a_thinking_block_without_a_signature_gets_none() {
        let answer = assemble(&[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"plan"}}"#,
        ]);
        assert_eq!(
            answer.message.unwrap().get(),
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"plan"}]}"#
        );
    }

    #[test]
    fn an_input_that_is_cut_is_refused_and_replayed_as_an_object() {
        let answer = assemble(&[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"w","input":{}}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\": "}}"#,
        ]);
        assert!(answer.calls[0].args.is_err());
        assert_eq!(
            answer.message.unwrap().get(),
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"w","input":{}}]}"#
        );
    }
}
