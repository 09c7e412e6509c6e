//! The stored form of a conversation (SPEC 7.7).

use schemars::JsonSchema;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};
use std::fmt;

use crate::error::{Error, ErrorCode, Result};
use crate::json::Json;
use crate::style::Style;

/// The messages of a conversation and the dialect they are in.
///
/// The JSON form is the envelope `{"version": 1, "style": ..., "messages": [...]}`; a bare list of messages is read too
/// and has no style, which means that of the client. Each message is kept as its text, byte for byte.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// Dialect of the messages; `None` means that of the client that reads them.
    pub style: Option<Style>,
    /// The messages, oldest first, each a JSON object.
    pub messages: Vec<Json>,
    /// What the store knows about the state this was read from; `None` for one that was not read from a store.
    pub(super) revision: Option<Revision>,
}

/// A mark of the stored state that a transcript was read from. Only the store that made it can read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revision(pub(super) State);

/// What was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Nothing,
    /// Something with this digest.
    Digest([u8; 32]),
}

impl Transcript {
    /// Version of the envelope that this library writes, and the newest that it reads.
    pub const VERSION: u64 = 1;

    /// A transcript that was not read from a store; saving it overwrites.
    pub fn new(style: Option<Style>, messages: Vec<Json>) -> Self {
        Transcript {
            style,
            messages,
            revision: None,
        }
    }

    /// The beginning of a conversation that the store did not have. Saving it can notice that somebody else has begun it
    /// meanwhile.
    pub fn first(style: Style, messages: Vec<Json>) -> Self {
        Transcript {
            style: Some(style),
            messages,
            revision: Some(Revision(State::Nothing)),
        }
    }

    /// The same conversation with other content. Keeps the mark of the stored state, so that saving the result can
    /// notice that somebody else has written meanwhile.
    #[must_use]
    pub fn replaced(self, style: Style, messages: Vec<Json>) -> Self {
        Transcript {
            style: Some(style),
            messages,
            revision: self.revision,
        }
    }

    /// Reads the envelope or a bare list. The error (`store_failed`) says where the text is wrong and never quotes it,
    /// because a conversation is private.
    pub fn from_json(text: &str) -> Result<Self> {
        let failed = |message| Error::new(ErrorCode::StoreFailed, message).retryable(false);
        let envelope: Envelope = serde_json::from_str(text).map_err(|e| {
            failed(if e.is_eof() {
                "the stored conversation is cut off".to_owned()
            } else {
                let (line, column) = (e.line(), e.column());
                format!(
                    "the stored conversation is not a transcript (line {line}, column {column})"
                )
            })
        })?;
        envelope.check().map_err(failed)
    }

    /// The envelope as compact JSON text.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|e| {
            Error::new(ErrorCode::Internal, "a transcript could not be written").because_of(&e)
        })
    }
}

/// Two transcripts are equal when a reader cannot tell them apart.
impl PartialEq for Transcript {
    fn eq(&self, other: &Self) -> bool {
        let ours = self.messages.iter().map(|m| m.get());
        let theirs = other.messages.iter().map(|m| m.get());
        self.style == other.style && ours.eq(theirs)
    }
}

impl Serialize for Transcript {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let keys = 2 + usize::from(self.style.is_some());
        let mut envelope = serializer.serialize_struct("Transcript", keys)?;
        envelope.serialize_field("version", &Transcript::VERSION)?;
        if let Some(style) = self.style {
            envelope.serialize_field("style", &style)?;
        }
        envelope.serialize_field("messages", &self.messages)?;
        envelope.end()
    }
}

impl<'de> Deserialize<'de> for Transcript {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Envelope::deserialize(deserializer)?
            .check()
            .map_err(de::Error::custom)
    }
}

/// The stored form before anybody has looked at the version.
struct Envelope {
    version: Option<u64>,
    style: Option<Style>,
    messages: Option<Vec<Json>>,
}

impl Envelope {
    /// The transcript, or what is wrong, without content.
    fn check(self) -> Result<Transcript, String> {
        match self.version {
            Some(Transcript::VERSION) => {}
            Some(other) => {
                return Err(format!(
                    "the stored conversation has version {other}; this library reads version {}",
                    Transcript::VERSION
                ));
            }
            None => return Err("the stored conversation has no version".to_owned()),
        }
        let Some(messages) = self.messages else {
            return Err("the stored conversation has no messages".to_owned());
        };
        match messages.iter().position(|m| !m.get().starts_with('{')) {
            Some(at) => Err(format!(
                "message {at} of the stored conversation is not an object"
            )),
            None => Ok(Transcript::new(self.style, messages)),
        }
    }
}

/// By hand, because serde's untagged enums read into a buffer that cannot hold raw JSON text.
impl<'de> Deserialize<'de> for Envelope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EnvelopeOrList)
    }
}

struct EnvelopeOrList;

impl<'de> Visitor<'de> for EnvelopeOrList {
    type Value = Envelope;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a transcript: an object with version and messages, or a list of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Envelope, A::Error> {
        let mut messages = Vec::new();
        while let Some(message) = seq.next_element::<Json>()? {
            messages.push(message);
        }
        Ok(Envelope {
            version: Some(Transcript::VERSION),
            style: None,
            messages: Some(messages),
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Envelope, A::Error> {
        let mut envelope = Envelope {
            version: None,
            style: None,
            messages: None,
        };
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "version" => envelope.version = Some(map.next_value()?),
                "style" => envelope.style = map.next_value()?,
                "messages" => envelope.messages = Some(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(envelope)
    }
}

impl JsonSchema for Transcript {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Transcript".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let style = generator.subschema_for::<Style>();
        schemars::json_schema!({
            "description": "The messages of a conversation and the dialect they are in.",
            "type": "object",
            "properties": {
                "version": {"const": Transcript::VERSION},
                "style": style,
                "messages": {"type": "array", "items": {"type": "object"}},
            },
            "required": ["version", "messages"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(transcript: &Transcript) -> Vec<&str> {
        transcript.messages.iter().map(|m| m.get()).collect()
    }

    #[test]
    fn an_envelope_keeps_the_text_of_its_messages() {
        let text = r#"{"version":1,"style":"openai","messages":[{"z":1.0,"a":1e2}]}"#;
        let transcript = Transcript::from_json(text).unwrap();
        assert_eq!(transcript.style, Some(Style::OpenAi));
        assert_eq!(messages(&transcript), [r#"{"z":1.0,"a":1e2}"#]);
        assert_eq!(transcript.to_json().unwrap(), text);
    }

    #[test]
    fn a_bare_list_is_a_transcript_without_a_style() {
        let transcript = Transcript::from_json(r#"[ {"role": "user"} ]"#).unwrap();
        assert_eq!(transcript.style, None);
        assert_eq!(messages(&transcript), [r#"{"role": "user"}"#]);
        assert_eq!(
            transcript.to_json().unwrap(),
            r#"{"version":1,"messages":[{"role": "user"}]}"#
        );
    }

    #[test]
    fn keys_may_come_in_any_order_and_unknown_ones_are_ignored() {
        let text = r#"{"messages":[],"note":{"a":[1]},"style":null,"version":1}"#;
        assert_eq!(
            Transcript::from_json(text).unwrap(),
            Transcript::new(None, vec![])
        );
    }

    #[track_caller]
    fn refused(text: &str, message: &str) {
        let error = Transcript::from_json(text).unwrap_err();
        assert_eq!(error.code(), ErrorCode::StoreFailed);
        assert!(!error.record().retryable);
        assert_eq!(error.record().message, message);
        assert!(error.record().cause.is_empty());
    }

    #[test]
    fn a_version_from_the_future_is_refused_by_number() {
        refused(
            r#"{"version":2,"messages":[]}"#,
            "the stored conversation has version 2; this library reads version 1",
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        refused(
            r#"{"messages":[]}"#,
            "the stored conversation has no version",
        );
        refused(
            r#"{"version":1}"#,
            "the stored conversation has no messages",
        );
        refused(
            r#"[{}, "x"]"#,
            "message 1 of the stored conversation is not an object",
        );
    }

    #[test]
    fn an_error_never_quotes_the_conversation() {
        refused(
            r#"{"version":"hunter2","messages":[]}"#,
            "the stored conversation is not a transcript (line 1, column 20)",
        );
        refused(
            "hunter2",
            "the stored conversation is not a transcript (line 1, column 1)",
        );
        refused(
            r#"{"version":1,"mess"#,
            "the stored conversation is cut off",
        );
    }
}
