//! Behaviours: what the host's own functions do in a case, written as data and given to the shim under a number.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What a host function does when it is called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Behaviour {
    /// Returns this value.
    Return(Value),
    /// Returns the JSON it was given.
    Echo(True),
    /// Throws an error of the language's ordinary kind with this message.
    Throw(String),
    /// Does not return until it is cancelled.
    Hang(True),
    /// Returns the body it was given, changed.
    Edit(Edit),
    /// The n-th call does the n-th; the last repeats.
    Sequence(Vec<Behaviour>),
    /// Sends the request with the language's own HTTP client and the header `x-injected: 1`.
    Http(True),
    /// A conversation store in the host's memory.
    Store(True),
}

/// The value `true`; a switch that can only be on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "bool", into = "bool")]
pub struct True;

impl TryFrom<bool> for True {
    type Error = &'static str;

    fn try_from(value: bool) -> Result<Self, Self::Error> {
        if value {
            Ok(Self)
        } else {
            Err("only true says something here")
        }
    }
}

impl From<True> for bool {
    fn from(_: True) -> Self {
        true
    }
}

/// How `edit` changes a request body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Edit {
    /// Top-level keys to set; one that is there keeps its place, a new one goes to the end.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Value>,
    /// Top-level keys to remove.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<String>,
    /// Text to add to the content of the last user message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_to_last_user: Option<String>,
}

/// The kind of host function that stands under an option of this name.
fn kind(option: &str) -> Option<&'static str> {
    Some(match option {
        "handler" => "tool.execute",
        "bodyTransform" => "bodyTransform",
        "beforeLLM" => "beforeLLM",
        "afterLLM" => "afterLLM",
        "beforeTool" => "beforeTool",
        "afterTool" => "afterTool",
        "onError" => "onError",
        "httpClient" => "httpClient",
        "store" => "store",
        "onMetric" => "onMetric",
        _ => return None,
    })
}

/// Replaces every `{"$host": BEHAVIOUR}` in `args` by `{"handler": NUMBER}` (under `handler` by the number itself), the form
/// of the waist, with numbers from `next`, and returns the table for the shim.
pub fn extract(
    args: &mut Value,
    next: &mut impl FnMut() -> u64,
) -> Result<Map<String, Value>, String> {
    let mut handlers = Map::new();
    walk(args, "args", "", next, &mut handlers)?;
    Ok(handlers)
}

/// Says what is wrong with the behaviours in `args`, if anything is.
pub fn check(args: &Value) -> Result<(), String> {
    extract(&mut args.clone(), &mut || 0).map(drop)
}

fn walk(
    value: &mut Value,
    path: &str,
    option: &str,
    next: &mut impl FnMut() -> u64,
    handlers: &mut Map<String, Value>,
) -> Result<(), String> {
    match value {
        Value::Object(map) if map.contains_key("$host") => {
            let kind =
                kind(option).ok_or_else(|| format!("{path}: no host function can stand here"))?;
            if map.len() > 1 {
                return Err(format!("{path}: $host stands alone"));
            }
            let behaviour: Behaviour = serde_json::from_value(map["$host"].take())
                .map_err(|error| format!("{path}: $host: {error}"))?;
            let number = next();
            handlers.insert(
                number.to_string(),
                json!({"kind": kind, "behaviour": behaviour}),
            );
            *value = match option {
                "handler" => number.into(),
                _ => json!({"handler": number}),
            };
            Ok(())
        }
        Value::Object(map) => map.iter_mut().try_for_each(|(key, value)| {
            walk(value, &format!("{path}.{key}"), key, next, handlers)
        }),
        Value::Array(items) => items.iter_mut().enumerate().try_for_each(|(index, value)| {
            walk(value, &format!("{path}[{index}]"), "", next, handlers)
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_behaviour_gets_a_number_and_a_kind() {
        let mut args = json!({"options": {
            "tools": [{"name": "t", "handler": {"$host": {"echo": true}}}],
            "hooks": {"beforeLLM": {"$host": {"return": {"tools": []}}}}
        }});
        let mut number = 6;
        let handlers = extract(&mut args, &mut || {
            number += 1;
            number
        });
        assert_eq!(
            Value::Object(handlers.unwrap()),
            json!({
                "7": {"kind": "tool.execute", "behaviour": {"echo": true}},
                "8": {"kind": "beforeLLM", "behaviour": {"return": {"tools": []}}}
            })
        );
        assert_eq!(
            args,
            json!({"options": {"tools": [{"name": "t", "handler": 7}], "hooks": {"beforeLLM": {"handler": 8}}}})
        );
    }

    #[test]
    fn an_unknown_behaviour_is_refused() {
        let error = check(&json!({"handler": {"$host": {"ecko": true}}})).unwrap_err();
        assert!(
            error.starts_with("args.handler: $host: unknown variant `ecko`"),
            "{error}"
        );
    }

    #[test]
    fn a_host_function_stands_only_where_the_contract_has_one() {
        let error = check(&json!({"options": {"model": {"$host": {"echo": true}}}})).unwrap_err();
        assert_eq!(error, "args.options.model: no host function can stand here");
    }
}
