//! Patterns: JSON that a result must equal, with a few marked places where it may be looser.

use serde_json::{Map, Value};

use crate::text::{canonical, shorten};

/// A compiled pattern; `conformance/README.md` lists the forms.
#[derive(Debug, Clone, PartialEq)]
pub enum Pattern {
    /// Equal to this scalar.
    Exact(Value),
    /// A list of exactly these elements.
    List(Vec<Pattern>),
    /// An object of exactly these keys, or at least these when `rest` is set.
    Object {
        /// Pattern of each key.
        fields: Vec<(String, Pattern)>,
        /// Allows further keys.
        rest: bool,
    },
    /// All of these hold.
    All(Vec<Test>),
    /// There is no value at this place.
    Absent,
}

/// One `$` condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// A value of this kind.
    Any(Kind),
    /// A text that contains these.
    Contains(Vec<String>),
    /// A value whose text (or canonical JSON) contains none of these.
    Excludes(Vec<String>),
    /// A text equal byte for byte.
    Bytes(String),
    /// A text that parses as JSON of this pattern.
    Json(Box<Pattern>),
    /// A list, text (in bytes) or object of this length.
    Length(usize),
    /// A list with at least one element for each of these.
    Includes(Vec<Pattern>),
}

/// The kinds of JSON values `$any` can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    String,
    Number,
    Boolean,
    Object,
    Array,
}

/// Where a value is not what the pattern says.
#[derive(Debug, Clone, PartialEq)]
pub struct Mismatch {
    /// Path from the root, such as `$.tools[0].name`.
    pub path: String,
    /// What had to be there.
    pub expected: String,
    /// What was there.
    pub actual: String,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}: expected {}, got {}",
            self.path, self.expected, self.actual
        )
    }
}

const CONDITIONS: &[&str] = &[
    "$any",
    "$contains",
    "$excludes",
    "$bytes",
    "$json",
    "$length",
    "$includes",
];

impl Pattern {
    /// Reads a pattern; the error says what no pattern can look like.
    pub fn parse(value: &Value) -> Result<Self, String> {
        match value {
            Value::Array(items) => items
                .iter()
                .map(Self::parse)
                .collect::<Result<_, _>>()
                .map(Self::List),
            Value::Object(map) => Self::parse_object(map),
            scalar => Ok(Self::Exact(scalar.clone())),
        }
    }

    fn parse_object(map: &Map<String, Value>) -> Result<Self, String> {
        if map.get("$absent") == Some(&Value::Bool(true)) && map.len() == 1 {
            return Ok(Self::Absent);
        }
        let conditions = map
            .keys()
            .filter(|key| CONDITIONS.contains(&key.as_str()))
            .count();
        if conditions > 0 {
            if conditions < map.len() {
                return Err("conditions and ordinary keys in one object".into());
            }
            return map
                .iter()
                .map(|(key, value)| Test::parse(key, value))
                .collect::<Result<_, _>>()
                .map(Self::All);
        }
        let mut rest = false;
        let mut fields = Vec::new();
        for (key, value) in map {
            if key == "$rest" {
                rest = value.as_bool().ok_or("$rest is true or false")?;
            } else {
                fields.push((
                    key.clone(),
                    Self::parse(value).map_err(|text| format!("{key}: {text}"))?,
                ));
            }
        }
        Ok(Self::Object { fields, rest })
    }

    /// Compares; `None` is a place without a value.
    pub fn check(&self, value: Option<&Value>) -> Result<(), Mismatch> {
        self.check_at("$", value)
    }

    fn check_at(&self, path: &str, value: Option<&Value>) -> Result<(), Mismatch> {
        let mismatch = |expected: String| {
            let actual =
                value.map_or_else(|| "nothing".to_owned(), |value| shorten(&canonical(value)));
            Err(Mismatch {
                path: path.to_owned(),
                expected,
                actual,
            })
        };
        match (self, value) {
            (Self::Absent, None) => Ok(()),
            (Self::Absent, Some(_)) => mismatch("nothing".into()),
            (Self::Exact(wanted), Some(found)) if wanted == found => Ok(()),
            (Self::Exact(wanted), _) => mismatch(canonical(wanted)),
            (Self::List(items), Some(Value::Array(found))) => {
                for (index, item) in items.iter().enumerate() {
                    item.check_at(&format!("{path}[{index}]"), found.get(index))?;
                }
                match found.get(items.len()) {
                    Some(extra) => Err(Mismatch {
                        path: format!("{path}[{}]", items.len()),
                        expected: "the end of the list".into(),
                        actual: shorten(&canonical(extra)),
                    }),
                    None => Ok(()),
                }
            }
            (Self::List(items), _) => mismatch(format!("a list of {}", items.len())),
            (Self::Object { fields, rest }, Some(Value::Object(found))) => {
                for (key, pattern) in fields {
                    pattern.check_at(&format!("{path}.{key}"), found.get(key))?;
                }
                let extra = found
                    .iter()
                    .find(|(key, _)| !rest && !fields.iter().any(|(known, _)| known == *key));
                match extra {
                    Some((key, value)) => Err(Mismatch {
                        path: format!("{path}.{key}"),
                        expected: "no such key".into(),
                        actual: shorten(&canonical(value)),
                    }),
                    None => Ok(()),
                }
            }
            (Self::Object { .. }, _) => mismatch("an object".into()),
            (Self::All(tests), Some(found)) => {
                tests.iter().try_for_each(|test| test.check_at(path, found))
            }
            (Self::All(tests), None) => mismatch(
                tests
                    .iter()
                    .map(Test::describe)
                    .collect::<Vec<_>>()
                    .join(" and "),
            ),
        }
    }
}

impl Test {
    fn parse(key: &str, value: &Value) -> Result<Self, String> {
        match key {
            "$any" => match value.as_str() {
                Some("string") => Ok(Self::Any(Kind::String)),
                Some("number") => Ok(Self::Any(Kind::Number)),
                Some("boolean") => Ok(Self::Any(Kind::Boolean)),
                Some("object") => Ok(Self::Any(Kind::Object)),
                Some("array") => Ok(Self::Any(Kind::Array)),
                _ => Err(format!("$any does not know {value}")),
            },
            "$contains" => texts(key, value).map(Self::Contains),
            "$excludes" => texts(key, value).map(Self::Excludes),
            "$bytes" => value
                .as_str()
                .map(|text| Self::Bytes(text.to_owned()))
                .ok_or("$bytes is a text".into()),
            "$json" => Pattern::parse(value).map(|pattern| Self::Json(Box::new(pattern))),
            "$length" => value
                .as_u64()
                .and_then(|length| usize::try_from(length).ok())
                .map(Self::Length)
                .ok_or("$length is a number".into()),
            "$includes" => match Pattern::parse(value)? {
                Pattern::List(items) => Ok(Self::Includes(items)),
                _ => Err("$includes is a list of patterns".into()),
            },
            other => Err(format!("unknown condition {other}")),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Any(kind) => format!("any {kind:?}").to_lowercase(),
            Self::Contains(texts) => format!("a text with {texts:?}"),
            Self::Excludes(texts) => format!("nothing with {texts:?}"),
            Self::Bytes(text) => format!("the bytes {text:?}"),
            Self::Json(_) => "JSON text".into(),
            Self::Length(length) => format!("length {length}"),
            Self::Includes(items) => format!("a list that includes {items:?}"),
        }
    }

    fn check_at(&self, path: &str, value: &Value) -> Result<(), Mismatch> {
        let mismatch = |expected: String| {
            Err(Mismatch {
                path: path.to_owned(),
                expected,
                actual: shorten(&canonical(value)),
            })
        };
        match self {
            Self::Any(kind) => {
                let right = match kind {
                    Kind::String => value.is_string(),
                    Kind::Number => value.is_number(),
                    Kind::Boolean => value.is_boolean(),
                    Kind::Object => value.is_object(),
                    Kind::Array => value.is_array(),
                };
                if right {
                    Ok(())
                } else {
                    mismatch(self.describe())
                }
            }
            Self::Contains(texts) => match value.as_str() {
                Some(found) => match texts.iter().find(|text| !found.contains(text.as_str())) {
                    Some(missing) => mismatch(format!("a text with {missing:?}")),
                    None => Ok(()),
                },
                None => mismatch(self.describe()),
            },
            Self::Excludes(texts) => {
                let found = value
                    .as_str()
                    .map_or_else(|| canonical(value), str::to_owned);
                match texts.iter().find(|text| found.contains(text.as_str())) {
                    Some(present) => mismatch(format!("nothing with {present:?}")),
                    None => Ok(()),
                }
            }
            Self::Bytes(wanted) => match value.as_str() {
                Some(found) if found == wanted => Ok(()),
                Some(found) => {
                    let at = wanted
                        .bytes()
                        .zip(found.bytes())
                        .take_while(|(a, b)| a == b)
                        .count();
                    Err(Mismatch {
                        path: format!("{path} byte {at}"),
                        expected: wanted.clone(),
                        actual: found.to_owned(),
                    })
                }
                None => mismatch(self.describe()),
            },
            Self::Json(pattern) => {
                let parsed = value
                    .as_str()
                    .and_then(|text| serde_json::from_str::<Value>(text).ok());
                match parsed {
                    Some(parsed) => pattern.check_at(&format!("{path} as JSON"), Some(&parsed)),
                    None => mismatch(self.describe()),
                }
            }
            Self::Length(wanted) => {
                let found = match value {
                    Value::Array(items) => Some(items.len()),
                    Value::Object(map) => Some(map.len()),
                    Value::String(text) => Some(text.len()),
                    _ => None,
                };
                if found == Some(*wanted) {
                    Ok(())
                } else {
                    mismatch(self.describe())
                }
            }
            Self::Includes(items) => {
                let Value::Array(found) = value else {
                    return mismatch(self.describe());
                };
                let missing = items
                    .iter()
                    .find(|item| !found.iter().any(|value| item.check(Some(value)).is_ok()));
                match missing {
                    Some(item) => mismatch(format!("a list that includes {item:?}")),
                    None => Ok(()),
                }
            }
        }
    }
}

fn texts(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let list = match value {
        Value::String(text) => return Ok(vec![text.clone()]),
        Value::Array(items) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned))
            .collect(),
        _ => None,
    };
    list.ok_or_else(|| format!("{key} is a text or a list of texts"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn mismatch(pattern: Value, value: Value) -> String {
        Pattern::parse(&pattern)
            .unwrap()
            .check(Some(&value))
            .unwrap_err()
            .to_string()
    }

    fn matches(pattern: Value, value: Value) {
        assert_eq!(
            Pattern::parse(&pattern).unwrap().check(Some(&value)),
            Ok(())
        );
    }

    #[test]
    fn an_extra_key_is_a_mismatch() {
        assert_eq!(
            mismatch(json!({"a": 1}), json!({"a": 1, "b": 2})),
            "$.b: expected no such key, got 2"
        );
    }

    #[test]
    fn rest_allows_further_keys_of_that_object_only() {
        matches(json!({"a": 1, "$rest": true}), json!({"a": 1, "b": 2}));
        assert_eq!(
            mismatch(json!({"a": {}, "$rest": true}), json!({"a": {"x": 1}})),
            "$.a.x: expected no such key, got 1"
        );
    }

    #[test]
    fn a_longer_list_is_a_mismatch() {
        assert_eq!(
            mismatch(json!([1]), json!([1, 2])),
            "$[1]: expected the end of the list, got 2"
        );
    }

    #[test]
    fn a_shorter_list_is_a_mismatch() {
        assert_eq!(
            mismatch(json!([1, 2]), json!([1])),
            "$[1]: expected 2, got nothing"
        );
    }

    #[test]
    fn absent_and_null_differ() {
        assert_eq!(
            mismatch(json!({"a": {"$absent": true}}), json!({"a": null})),
            "$.a: expected nothing, got null"
        );
        assert_eq!(
            mismatch(json!({"a": null}), json!({})),
            "$.a: expected null, got nothing"
        );
        matches(json!({"a": {"$absent": true}}), json!({}));
    }

    #[test]
    fn an_integer_is_not_a_fraction() {
        assert_eq!(mismatch(json!(1), json!(1.0)), "$: expected 1, got 1.0");
    }

    #[test]
    fn bytes_tell_where_they_differ() {
        assert_eq!(
            mismatch(json!({"$bytes": "{\"a\":1}"}), json!("{\"a\": 1}")),
            "$ byte 5: expected {\"a\":1}, got {\"a\": 1}"
        );
    }

    #[test]
    fn text_can_be_parsed_first() {
        matches(json!({"$json": {"a": [1]}}), json!("{ \"a\": [1] }"));
        assert_eq!(
            mismatch(json!({"$json": {}}), json!("{")),
            "$: expected JSON text, got \"{\""
        );
    }

    #[test]
    fn several_conditions_must_all_hold() {
        matches(
            json!({"$contains": ["a", "b"], "$excludes": "secret"}),
            json!("a and b"),
        );
        assert_eq!(
            mismatch(
                json!({"$contains": "a", "$excludes": "secret"}),
                json!("a secret")
            ),
            "$: expected nothing with [\"secret\"], got \"a secret\""
                .replace("[\"secret\"]", "\"secret\"")
        );
    }

    #[test]
    fn includes_finds_elements_in_any_order() {
        matches(
            json!({"$includes": [{"n": 2, "$rest": true}, {"n": 1}]}),
            json!([{"n": 1}, {"n": 2, "x": 0}]),
        );
    }

    #[test]
    fn keys_of_json_schema_are_ordinary_keys() {
        matches(
            json!({"$ref": "#/$defs/A", "$defs": {}}),
            json!({"$ref": "#/$defs/A", "$defs": {}}),
        );
    }

    #[test]
    fn conditions_do_not_mix_with_keys() {
        assert_eq!(
            Pattern::parse(&json!({"$length": 1, "a": 2})),
            Err("conditions and ordinary keys in one object".into())
        );
    }
}
