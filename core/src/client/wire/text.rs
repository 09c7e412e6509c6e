//! What the values of a message say, read without copying where that is possible.

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// A JSON string's text; the text of any other value as it stands; nothing for null.
pub(super) fn text_of(raw: &RawValue) -> Cow<'_, str> {
    let text = raw.get();
    match text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
        Some(inner) if !inner.contains('\\') => Cow::Borrowed(inner),
        Some(_) => {
            Cow::Owned(serde_json::from_str::<Lossy>(text).map_or_else(|_| String::new(), |t| t.0))
        }
        None if text == "null" => Cow::Borrowed(""),
        None => Cow::Borrowed(text),
    }
}

/// The same, owned; nothing for what is absent.
pub(super) fn text_or_empty(raw: Option<&RawValue>) -> String {
    raw.map(|raw| text_of(raw).into_owned()).unwrap_or_default()
}

/// Whether a value is a list.
pub(super) fn is_list(raw: &RawValue) -> bool {
    raw.get().starts_with('[')
}

/// A string that may hold half a surrogate pair: JavaScript cuts a text between the two and escapes what is left. Each byte
/// of the half becomes U+FFFD, and the rest of the text survives.
struct Lossy(String);

impl<'de> Deserialize<'de> for Lossy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(LossyVisitor)
    }
}

struct LossyVisitor;

impl Visitor<'_> for LossyVisitor {
    type Value = Lossy;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Lossy, E> {
        Ok(Lossy(String::from_utf8_lossy(bytes).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_surrogate_pair_does_not_cost_the_text_around_it() {
        let said = |raw: &str| {
            let raw: &RawValue = serde_json::from_str(raw).unwrap();
            text_of(raw).into_owned()
        };
        assert_eq!(said(r#""a\"\ud83d\ude00""#), "a\"😀");
        assert_eq!(said(r#""hello \ud83d""#), "hello \u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(said(r#""\ude00 there""#), "\u{fffd}\u{fffd}\u{fffd} there");
    }
}
