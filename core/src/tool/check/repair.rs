//! Objects and lists that a model wrote as text (SPEC 4.4).
//!
//! Only where the schema wants an object or a list and no text; the text must be one whole value of that kind. Everything
//! else stays as it was written, number text and key order included.

use indexmap::IndexMap;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::Arguments;
use super::cost::target;

/// References that are followed from one schema to the next.
const MAX_REFERENCES: usize = 8;

/// The arguments with such texts replaced; `None` when there are none.
pub(super) fn repaired(schema: &Value, arguments: &Arguments) -> Option<Arguments> {
    let text = Repair { root: schema }.repaired(schema, arguments.raw().get())?;
    Arguments::from_text(&text).ok()
}

struct Repair<'a> {
    root: &'a Value,
}

impl Repair<'_> {
    /// The text of a value with what stands in it replaced; `None` when nothing was. Ends with the value, which is not
    /// nested deeper than a reader takes.
    fn repaired(&self, schema: &Value, text: &str) -> Option<String> {
        let schema = self.followed(schema)?;
        match text.as_bytes().first()? {
            b'{' => self.object(schema, text),
            b'[' => self.list(schema, text),
            b'"' => self.text(schema, text),
            _ => None,
        }
    }

    fn object(&self, schema: &Value, text: &str) -> Option<String> {
        let properties = self.member(schema, "properties")?;
        let members: IndexMap<String, &RawValue> = serde_json::from_str(text).ok()?;
        let mut changed = false;
        let mut whole = String::with_capacity(text.len());
        for (name, value) in &members {
            let new = properties
                .get(name)
                .and_then(|schema| self.repaired(schema, value.get()));
            changed |= new.is_some();
            whole.push(if whole.is_empty() { '{' } else { ',' });
            whole.push_str(&serde_json::to_string(name).ok()?);
            whole.push(':');
            whole.push_str(new.as_deref().unwrap_or(value.get()));
        }
        whole.push('}');
        changed.then_some(whole)
    }

    fn list(&self, schema: &Value, text: &str) -> Option<String> {
        let schema = self.member(schema, "items")?;
        let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
        let mut changed = false;
        let mut whole = String::with_capacity(text.len());
        for value in items {
            let new = self.repaired(schema, value.get());
            changed |= new.is_some();
            whole.push(if whole.is_empty() { '[' } else { ',' });
            whole.push_str(new.as_deref().unwrap_or(value.get()));
        }
        whole.push(']');
        changed.then_some(whole)
    }

    fn text(&self, schema: &Value, text: &str) -> Option<String> {
        let kinds = self.kinds(schema, MAX_REFERENCES)?;
        let text: String = serde_json::from_str(text).ok()?;
        let text = text.trim();
        let fits = !kinds.text
            && match text.as_bytes().first()? {
                b'{' => kinds.object,
                b'[' => kinds.list,
                _ => false,
            };
        if !fits {
            return None;
        }
        // Read whole, because a value that is kept as text may be one that no tool can read.
        serde_json::from_str::<Value>(text).ok()?;
        Some(
            self.repaired(schema, text)
                .unwrap_or_else(|| text.to_owned()),
        )
    }

    /// A keyword of the schema, or of the only one of its alternatives that has it.
    fn member<'s>(&'s self, schema: &'s Value, keyword: &str) -> Option<&'s Value> {
        if let Some(found) = schema.get(keyword) {
            return Some(found);
        }
        let mut found = alternatives(schema)
            .filter_map(|schema| self.followed(schema)?.get(keyword))
            .fuse();
        match (found.next(), found.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }

    fn followed<'s>(&'s self, mut schema: &'s Value) -> Option<&'s Value> {
        for _ in 0..MAX_REFERENCES {
            match schema.get("$ref") {
                None => return Some(schema),
                Some(reference) => schema = target(self.root, reference)?,
            }
        }
        None
    }

    /// What the schema takes; `None` when it does not say.
    fn kinds(&self, schema: &Value, depth: usize) -> Option<Kinds> {
        let schema = self.followed(schema)?;
        let mut kinds = Kinds::default();
        match schema.get("type") {
            Some(Value::String(name)) => kinds.add(name),
            Some(Value::Array(names)) => names
                .iter()
                .filter_map(Value::as_str)
                .for_each(|name| kinds.add(name)),
            _ if depth == 0 => return None,
            _ => {
                let mut any = false;
                for schema in alternatives(schema) {
                    any = true;
                    let these = self.kinds(schema, depth - 1)?;
                    kinds.text |= these.text;
                    kinds.object |= these.object;
                    kinds.list |= these.list;
                }
                if !any {
                    return None;
                }
            }
        }
        Some(kinds)
    }
}

/// Kinds of values that a text could stand for, and text itself.
#[derive(Default)]
struct Kinds {
    text: bool,
    object: bool,
    list: bool,
}

impl Kinds {
    fn add(&mut self, name: &str) {
        match name {
            "string" => self.text = true,
            "object" => self.object = true,
            "array" => self.list = true,
            _ => {}
        }
    }
}

fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    ["anyOf", "oneOf"]
        .into_iter()
        .filter_map(|keyword| schema.get(keyword)?.as_array())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The arguments with what can be replaced, or the word that nothing was.
    fn mended(schema: Value, text: &str) -> String {
        let arguments = Arguments::from_text(text).unwrap();
        repaired(&schema, &arguments).map_or("unchanged".to_owned(), |a| a.raw().get().to_owned())
    }

    #[test]
    fn what_is_not_replaced_keeps_its_text() {
        let schema = json!({"properties": {"o": {"type": "object"}, "n": {}}});
        assert_eq!(
            mended(
                schema,
                r#"{"n": [1.50, 12345678901234567890123], "o": " {\"z\": 1e2, \"a\": 1.0} "}"#
            ),
            r#"{"n":[1.50, 12345678901234567890123],"o":{"z": 1e2, "a": 1.0}}"#
        );
    }

    #[test]
    fn where_text_is_allowed_or_nothing_is_said_it_stays() {
        for schema in [
            json!({"type": "string"}),
            json!({"type": ["object", "string"]}),
            json!({"anyOf": [{"type": "object"}, {"type": "string"}]}),
            json!({"anyOf": [{"type": "object"}, {}]}),
            json!({"enum": [{}]}),
            json!({}),
            json!(true),
            json!({"type": "array"}),
            json!({"$ref": "#/properties/q"}),
        ] {
            let schema = json!({"properties": {"q": schema}});
            assert_eq!(mended(schema, r#"{"q":"{}"}"#), "unchanged");
        }
    }

    #[test]
    fn what_is_not_one_whole_value_stays() {
        for text in [r#"{\"a\":"#, "{} {}", "", "null", "[1]", r#"{\"a\":1e999}"#] {
            let schema = json!({"properties": {"q": {"type": "object"}}});
            assert_eq!(mended(schema, &format!(r#"{{"q":"{text}"}}"#)), "unchanged");
        }
    }

    #[test]
    fn values_in_values_are_found_through_references_and_alternatives() {
        let schema = json!({
            "properties": {"q": {"anyOf": [{"$ref": "#/$defs/list"}, {"type": "null"}]}},
            "$defs": {"list": {"type": "array", "items": {"type": ["object", "null"]}}},
        });
        assert_eq!(
            mended(schema.clone(), r#"{"q":["{}",null,{}]}"#),
            r#"{"q":[{},null,{}]}"#
        );
        assert_eq!(mended(schema, r#"{"q":"[\"{}\"]"}"#), r#"{"q":[{}]}"#);
    }
}
