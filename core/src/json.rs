//! JSON that only passes through: the text is kept, so key order and number text survive.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::sync::Arc;

use crate::error::{Error, ErrorCode, Result};

/// A JSON value as its text. Cloning is cheap; serialising writes the text as it stands.
pub type Json = Arc<RawValue>;

/// Deepest nesting accepted from outside. serde_json's own limit, named here because it is part of the contract.
pub const MAX_DEPTH: usize = 127;

/// The text of a serialisable value as [`Json`].
pub fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<Json> {
    serde_json::value::to_raw_value(value)
        .map(Into::into)
        .map_err(|e| {
            Error::new(ErrorCode::Internal, "a value could not be written as JSON").because_of(&e)
        })
}

/// Text that must be one JSON value, kept as it stands.
pub fn parse(text: &str) -> Result<Json, serde_json::Error> {
    serde_json::from_str::<Box<RawValue>>(text).map(Into::into)
}

/// Reads a typed value; an error names the path to what was wrong.
pub fn decode<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|e| {
        let path = e.path().to_string();
        let error = Error::new(
            ErrorCode::InvalidArgument,
            in_words_of_json(&without_text(&without_place(e.inner()))),
        );
        if path == "." { error } else { error.at(path) }
    })?;
    reader
        .end()
        .map_err(|e| Error::new(ErrorCode::InvalidArgument, e.to_string()))?;
    Ok(value)
}

/// A reader's message without line and column: they count in JSON that a binding wrote, which no user has seen.
fn without_place(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    message
        .strip_suffix(&place)
        .map_or(message.clone(), str::to_owned)
}

/// A reader's message with the kinds that JSON has; the reader knows those of Rust.
fn in_words_of_json(message: &str) -> String {
    let Some((found, expected)) = message.split_once(", expected ") else {
        return message.to_owned();
    };
    let expected = match expected {
        "u8" => "an integer from 0 to 255",
        "u16" => "an integer from 0 to 65535",
        "u32" => "an integer from 0 to 4294967295",
        "u64" | "usize" => "an integer from 0 to 18446744073709551615",
        "i8" | "i16" | "i32" | "i64" | "isize" => "an integer",
        "f32" | "f64" => "a number",
        "a map" => "an object",
        "a sequence" => "a list",
        "unit" => "null",
        other if other.starts_with("struct ") => "an object",
        other => other,
    };
    let found = match found.strip_prefix("invalid type: ") {
        Some("map") => "invalid type: object",
        Some("sequence") => "invalid type: list",
        Some("unit value") => "invalid type: null",
        _ => found,
    };
    format!("{found}, expected {expected}")
}

/// A reader's message without the text that it quotes: a header in the wrong place is still a secret.
fn without_text(message: &str) -> String {
    let quoted = message.split_once("string \"").and_then(|(before, rest)| {
        rest.rsplit_once("\", expected ")
            .map(|(_, after)| (before, after))
    });
    match quoted {
        Some((before, after)) => format!("{before}string, expected {after}"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[derive(Debug, serde::Deserialize)]
    struct Options {
        #[serde(rename = "headers")]
        _headers: BTreeMap<String, String>,
    }

    #[test]
    fn an_error_names_the_place_and_does_not_quote_the_text() {
        let text = r#"{"headers":"Bearer sk-1\", expected x"}"#;
        let error = decode::<Options>(text).unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid_argument: headers: invalid type: string, expected an object"
        );
    }

    #[test]
    fn an_error_speaks_of_the_kinds_of_json() {
        #[derive(Debug, serde::Deserialize)]
        #[expect(dead_code, reason = "only the reading matters")]
        struct Kinds {
            turns: Option<u32>,
            share: Option<f64>,
            list: Option<Vec<u8>>,
            inner: Option<Options>,
        }
        for (text, message) in [
            (
                r#"{"turns":-1}"#,
                "turns: invalid value: integer `-1`, expected an integer from 0 to 4294967295",
            ),
            (
                r#"{"turns":[]}"#,
                "turns: invalid type: list, expected an integer from 0 to 4294967295",
            ),
            (
                r#"{"share":{}}"#,
                "share: invalid type: object, expected a number",
            ),
            (
                r#"{"list":true}"#,
                "list: invalid type: boolean `true`, expected a list",
            ),
            (
                r#"{"inner":7}"#,
                "inner: invalid type: integer `7`, expected an object",
            ),
        ] {
            let error = decode::<Kinds>(text).unwrap_err();
            assert_eq!(error.to_string(), format!("invalid_argument: {message}"));
        }
    }
}
