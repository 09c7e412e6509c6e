//! `content` of an OpenAI-style message: a string, or a list of typed parts.

use serde::Deserialize;
use serde::ser::{Serialize, SerializeSeq, Serializer};
use serde_json::value::RawValue;

use super::text::{is_list, text_of};
use crate::json::Json;

/// What a reader sees of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    pub text: String,
    pub reasoning: String,
}

/// Reads it; a part that we do not know is neither text nor thought.
pub(super) fn content(raw: &RawValue) -> Content {
    if !is_list(raw) {
        return Content {
            text: text_of(raw).into_owned(),
            reasoning: String::new(),
        };
    }
    let mut content = Content::default();
    for part in parts(raw) {
        match part {
            Part::Text(text) => content.text.push_str(&text),
            Part::Thinking(text) => content.reasoning.push_str(&text),
            Part::Other(_) => {}
        }
    }
    content
}

/// `content` of a stream whose server sends it in parts, so that it goes back in parts. Neighbours of one kind are one.
#[derive(Debug, Default)]
pub(super) struct Parts(Vec<Part>);

#[derive(Debug)]
enum Part {
    Text(String),
    Thinking(String),
    /// Goes back as it came.
    Other(Json),
}

impl Parts {
    /// Takes a delta. Until one comes in parts there is nothing to keep: `so_far` is the text before this one.
    pub(super) fn take(&mut self, raw: &RawValue, so_far: &str) {
        if !is_list(raw) {
            if !self.0.is_empty() {
                self.add(Part::Text(text_of(raw).into_owned()));
            }
            return;
        }
        if self.0.is_empty() {
            self.add(Part::Text(so_far.to_owned()));
        }
        for part in parts(raw) {
            self.add(part);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All thoughts as one text.
    pub(super) fn thoughts(&self) -> String {
        let thoughts = self.0.iter().filter_map(|part| match part {
            Part::Thinking(text) => Some(text.as_str()),
            _ => None,
        });
        thoughts.collect()
    }

    fn add(&mut self, part: Part) {
        match (self.0.last_mut(), &part) {
            (_, Part::Text(text) | Part::Thinking(text)) if text.is_empty() => {}
            (Some(Part::Text(last)), Part::Text(text))
            | (Some(Part::Thinking(last)), Part::Thinking(text)) => last.push_str(text),
            _ => self.0.push(part),
        }
    }
}

impl Serialize for Parts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Text<'a> {
            r#type: &'static str,
            text: &'a str,
        }
        #[derive(serde::Serialize)]
        struct Thinking<'a> {
            r#type: &'static str,
            thinking: [Text<'a>; 1],
        }
        let text = |text| Text {
            r#type: "text",
            text,
        };
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for part in &self.0 {
            match part {
                Part::Text(said) => list.serialize_element(&text(said))?,
                Part::Thinking(thought) => list.serialize_element(&Thinking {
                    r#type: "thinking",
                    thinking: [text(thought)],
                })?,
                Part::Other(raw) => list.serialize_element(raw)?,
            }
        }
        list.end()
    }
}

fn parts(raw: &RawValue) -> Vec<Part> {
    #[derive(Deserialize)]
    struct Read<'a> {
        #[serde(borrow, rename = "type")]
        kind: Option<&'a RawValue>,
        #[serde(borrow)]
        text: Option<&'a RawValue>,
        #[serde(borrow)]
        thinking: Option<&'a RawValue>,
    }
    let list: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    let part = |raw: &RawValue| {
        let read: Option<Read<'_>> = serde_json::from_str(raw.get()).ok();
        let read = read.and_then(|read| match read.kind.map(text_of).as_deref()? {
            "text" | "output_text" => Some(Part::Text(text_of(read.text?).into_owned())),
            "thinking" => Some(Part::Thinking(content(read.thinking?).text)),
            _ => None,
        });
        read.unwrap_or_else(|| Part::Other(raw.to_owned().into()))
    };
    list.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn thoughts_and_unknown_parts_are_not_text() {
        let read = content(raw(
            r#"[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"two "},{"type":"odd"},{"type":"text","text":"hours"}]"#,
        ));
        assert_eq!(read.text, "two hours");
        assert_eq!(read.reasoning, "hm");
    }

    #[test]
    fn a_stream_in_parts_goes_back_in_parts() {
        let mut parts = Parts::default();
        for delta in [
            r#"[{"type":"thinking","thinking":[{"type":"text","text":"h"}]}]"#,
            r#"[{"type":"thinking","thinking":[{"type":"text","text":"m"}]}]"#,
            r#"[{"type":"text","text":"An"},{"type":"mystery","x":1.0}]"#,
            r#""swer""#,
        ] {
            parts.take(raw(delta), "");
        }
        assert_eq!(
            serde_json::to_string(&parts).unwrap(),
            r#"[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"An"},{"type":"mystery","x":1.0},{"type":"text","text":"swer"}]"#
        );
        assert_eq!(parts.thoughts(), "hm");
    }

    #[test]
    fn a_stream_of_text_is_not_kept_twice() {
        let mut parts = Parts::default();
        parts.take(raw(r#""a""#), "");
        assert!(parts.is_empty());
    }
}
