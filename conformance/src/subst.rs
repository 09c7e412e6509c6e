//! What a case leaves open until it runs: addresses of the fixtures, its folder, and what earlier steps gave.

use std::collections::HashMap;

use serde_json::Value;

use crate::text::at_path;

/// The values a case can name.
#[derive(Debug, Default)]
pub struct Scope {
    /// `{mcp, llm, tmp}`: what `${path}` looks into.
    pub places: Value,
    /// What `$name` and `$name.path` stand for.
    pub names: HashMap<String, Value>,
}

impl Scope {
    /// `value` with every reference replaced.
    ///
    /// `${mcp.…}`, `${llm.…}` and `${tmp}` are ours; another `${…}` belongs to the configuration under test and stays.
    /// `$text` stays too unless a step has that name.
    pub fn fill(&self, value: &Value) -> Result<Value, String> {
        match value {
            Value::String(text) => self.fill_text(text),
            Value::Array(items) => items
                .iter()
                .map(|item| self.fill(item))
                .collect::<Result<_, _>>()
                .map(Value::Array),
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| Ok((key.clone(), self.fill(value)?)))
                .collect::<Result<_, String>>()
                .map(Value::Object),
            scalar => Ok(scalar.clone()),
        }
    }

    fn fill_text(&self, text: &str) -> Result<Value, String> {
        if let Some(reference) = text.strip_prefix('$').filter(|rest| !rest.starts_with('{')) {
            let (name, path) = reference
                .split_once('.')
                .map_or((reference, None), |(name, path)| (name, Some(path)));
            if let Some(value) = self.names.get(name) {
                let found = path.map_or(Some(value), |path| at_path(value, path));
                return found
                    .cloned()
                    .ok_or_else(|| format!("{text}: the step gave no such value"));
            }
        }
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, reference, after)) = next_reference(rest) {
            filled.push_str(before);
            if is_ours(reference) {
                let value = at_path(&self.places, reference)
                    .ok_or_else(|| format!("${{{reference}}}: no such fixture"))?;
                match value {
                    Value::String(part) => filled.push_str(part),
                    whole if before.is_empty() && after.is_empty() && filled.is_empty() => {
                        return Ok(whole.clone());
                    }
                    _ => {
                        return Err(format!(
                            "${{{reference}}}: not a text, so it must be the whole string"
                        ));
                    }
                }
            } else {
                filled.push_str(&rest[before.len()..rest.len() - after.len()]);
            }
            rest = after;
        }
        filled.push_str(rest);
        Ok(Value::String(filled))
    }
}

fn next_reference(text: &str) -> Option<(&str, &str, &str)> {
    let (before, tail) = text.split_once("${")?;
    let (reference, after) = tail.split_once('}')?;
    Some((before, reference, after))
}

fn is_ours(reference: &str) -> bool {
    reference == "tmp" || reference.starts_with("mcp.") || reference.starts_with("llm.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn scope() -> Scope {
        Scope {
            places: json!({
                "mcp": {"srv": {"url": "http://127.0.0.1:1/mcp"}, "child": {"command": ["prog", "arg"]}},
                "tmp": "/t"
            }),
            names: HashMap::from([
                ("tk".into(), json!(4)),
                ("r".into(), json!({"messages": [1]})),
            ]),
        }
    }

    #[test]
    fn a_place_inside_a_string_becomes_its_text() {
        let filled = scope()
            .fill(&json!({"url": "${mcp.srv.url}?a=${tmp}/x"}))
            .unwrap();
        assert_eq!(filled, json!({"url": "http://127.0.0.1:1/mcp?a=/t/x"}));
    }

    #[test]
    fn a_place_alone_becomes_its_value() {
        assert_eq!(
            scope().fill(&json!("${mcp.child.command}")),
            Ok(json!(["prog", "arg"]))
        );
    }

    #[test]
    fn a_list_cannot_stand_inside_a_string() {
        assert_eq!(
            scope().fill(&json!("x ${mcp.child.command}")),
            Err("${mcp.child.command}: not a text, so it must be the whole string".into())
        );
    }

    #[test]
    fn variables_of_the_configuration_under_test_stay() {
        assert_eq!(
            scope().fill(&json!("Bearer ${TOKEN:-none}")),
            Ok(json!("Bearer ${TOKEN:-none}"))
        );
    }

    #[test]
    fn an_unknown_fixture_is_an_error() {
        assert_eq!(
            scope().fill(&json!("${mcp.other.url}")),
            Err("${mcp.other.url}: no such fixture".into())
        );
    }

    #[test]
    fn a_name_gives_what_its_step_gave() {
        assert_eq!(
            scope().fill(&json!({"toolkit": "$tk", "history": "$r.messages"})),
            Ok(json!({"toolkit": 4, "history": [1]}))
        );
    }

    #[test]
    fn a_dollar_text_that_names_no_step_stays() {
        assert_eq!(scope().fill(&json!("$5")), Ok(json!("$5")));
    }
}
