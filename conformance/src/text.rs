//! JSON as text that can be compared and shown.

use serde_json::{Map, Value};

/// Compact JSON with the keys of every object sorted.
pub fn canonical(value: &Value) -> String {
    sorted(value).to_string()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| key.as_str());
            Value::Object(
                entries
                    .into_iter()
                    .map(|(key, value)| (key.clone(), sorted(value)))
                    .collect::<Map<_, _>>(),
            )
        }
        scalar => scalar.clone(),
    }
}

/// The text, or its beginning when it is too long to read in a report.
pub fn shorten(text: &str) -> String {
    const LIMIT: usize = 2000;
    if text.len() <= LIMIT {
        return text.to_owned();
    }
    let end = (0..=LIMIT)
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    format!("{}… ({} bytes)", &text[..end], text.len())
}

/// The value at a path of keys and indices joined by dots.
pub fn at_path<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, part| match value {
        Value::Object(map) => map.get(part),
        Value::Array(items) => part
            .parse::<usize>()
            .ok()
            .and_then(|index| items.get(index)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn canonical_sorts_keys_at_every_depth() {
        assert_eq!(
            canonical(&json!({"b": [{"d": 1, "c": "é"}], "a": null})),
            r#"{"a":null,"b":[{"c":"é","d":1}]}"#
        );
    }

    #[test]
    fn a_path_goes_through_keys_and_indices() {
        let value = json!({"llm": {"main": {"requests": [{"body": "x"}]}}});
        assert_eq!(
            at_path(&value, "llm.main.requests.0.body"),
            Some(&json!("x"))
        );
        assert_eq!(at_path(&value, "llm.main.requests.1.body"), None);
    }
}
