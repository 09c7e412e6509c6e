//! Arguments of a call as models and hosts really send them (SPEC 4.4).

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::{self, Json};

/// The arguments of one call: the text of a JSON object. Key order and number text are those of the sender.
#[derive(Clone, Debug)]
pub struct Arguments(Json);

/// Why text could not be taken as arguments. Its display is what the model reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "The arguments are not valid JSON ({reason}). Call the tool again with one complete JSON object."
)]
pub struct BadArguments {
    reason: String,
}

impl From<serde_json::Error> for BadArguments {
    fn from(error: serde_json::Error) -> Self {
        BadArguments {
            reason: error.to_string(),
        }
    }
}

impl Arguments {
    /// No arguments, `{}`.
    pub fn empty() -> Self {
        Arguments::object(String::from("{}"))
    }

    /// Takes what a model wrote in an argument string. Empty text is `{}`; a string that holds JSON is decoded once more; a
    /// value that is not an object becomes `{"value": X}`.
    pub fn from_text(text: &str) -> Result<Self, BadArguments> {
        if text.trim().is_empty() {
            return Ok(Arguments::empty());
        }
        json::parse(text)
            .and_then(|value| Arguments::unwrap(value, 2).readable())
            .map_err(BadArguments::from)
    }

    /// Takes a JSON value: a string as in [`Arguments::from_text`], null as `{}`, anything else as there.
    pub fn from_json(value: Json) -> Result<Self, BadArguments> {
        match string_of(&value) {
            Some(text) => Arguments::from_text(&text),
            None => Ok(Arguments::unwrap(value, 0).readable()?),
        }
    }

    /// Kept text may be nested deeper, or hold a number larger, than any reader takes. A tool would find no arguments in it.
    fn readable(self) -> Result<Self, serde_json::Error> {
        self.parse::<Value>().map(|_| self)
    }

    /// Peels off up to `layers` layers of encoding.
    fn unwrap(value: Json, layers: u8) -> Self {
        if value.get().starts_with('{') {
            return Arguments(value);
        }
        if value.get() == "null" {
            return Arguments::empty();
        }
        if layers > 0
            && let Some(text) = string_of(&value)
        {
            if text.trim().is_empty() {
                return Arguments::empty();
            }
            // A string that merely looks like a number or a word is a value; only structures were encoded twice.
            if let Ok(inner) = json::parse(&text)
                && inner.get().starts_with(['{', '[', '"'])
            {
                return Arguments::unwrap(inner, layers - 1);
            }
        }
        Arguments::object(format!("{{\"value\":{}}}", value.get()))
    }

    /// Text that this file wrote, or put braces around.
    fn object(text: String) -> Self {
        Arguments(
            RawValue::from_string(text)
                .unwrap_or_else(|_| RawValue::NULL.to_owned())
                .into(),
        )
    }

    /// The object's text.
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    /// The object's text, shared.
    pub fn json(&self) -> &Json {
        &self.0
    }

    /// The object as a value.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.0.get()).unwrap_or_else(|_| Value::Object(serde_json::Map::new()))
    }

    /// The object as a type of the caller.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0.get())
    }
}

impl serde::Serialize for Arguments {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl From<serde_json::Map<String, Value>> for Arguments {
    fn from(map: serde_json::Map<String, Value>) -> Self {
        json::to_json(&map).map_or_else(|_| Arguments::empty(), Arguments)
    }
}

/// The text inside, when the value is a JSON string.
fn string_of(value: &RawValue) -> Option<String> {
    value
        .get()
        .starts_with('"')
        .then(|| serde_json::from_str(value.get()).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> String {
        Arguments::from_text(text).map_or_else(|e| e.to_string(), |a| a.raw().get().to_owned())
    }

    #[test]
    fn every_shape_that_providers_send_reaches_the_tool() {
        assert_eq!(taken(r#"{"query":"x"}"#), r#"{"query":"x"}"#);
        assert_eq!(taken(r#""{\"query\":\"x\"}""#), r#"{"query":"x"}"#);
        assert_eq!(
            taken(r#""\"{\\\"query\\\":\\\"x\\\"}\"""#),
            r#"{"query":"x"}"#
        );
        assert_eq!(taken("[1, 2]"), r#"{"value":[1, 2]}"#);
        assert_eq!(taken(r#""[1,2]""#), r#"{"value":[1,2]}"#);
        assert_eq!(taken(r#""scalar""#), r#"{"value":"scalar"}"#);
        assert_eq!(taken("1.50"), r#"{"value":1.50}"#);
        assert_eq!(taken(" "), "{}");
        assert_eq!(taken("null"), "{}");
    }

    #[test]
    fn number_text_and_key_order_survive() {
        let text = r#"{"z":1e2,"a":12345678901234567890123}"#;
        assert_eq!(taken(text), text);
    }

    #[test]
    fn what_no_tool_could_read_is_refused_instead_of_read_as_nothing() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        assert_eq!(
            taken(&deep),
            "The arguments are not valid JSON (recursion limit exceeded at line 1 column 132). \
             Call the tool again with one complete JSON object."
        );
        let large = json::parse(r#"{"n":1e999}"#).unwrap();
        assert_eq!(
            Arguments::from_json(large).unwrap_err().to_string(),
            "The arguments are not valid JSON (number out of range at line 1 column 10). \
             Call the tool again with one complete JSON object."
        );
    }

    #[test]
    fn text_that_is_not_json_is_refused_with_the_reason() {
        let refused = Arguments::from_text("{\"a\": ").unwrap_err();
        assert_eq!(
            refused.to_string(),
            "The arguments are not valid JSON (EOF while parsing a value at line 1 column 6). \
             Call the tool again with one complete JSON object."
        );
    }
}
