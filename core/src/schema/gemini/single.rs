//! A schema of one type, keyword by keyword: kept, rewritten, said in words, or dropped.

use serde_json::{Map, Number, Value, json};

use super::{any_value, belongs_to, schema};
use crate::schema::Action;
use crate::schema::merge::any_of;
use crate::schema::work::{Work, describe, show, show_all};

/// A schema of one type.
pub fn single(
    work: &mut Work,
    map: Map<String, Value>,
    kind: &'static str,
    depth: usize,
) -> Map<String, Value> {
    let mut out = Map::from_iter([("type".to_owned(), json!(kind))]);
    let mut notes: Vec<String> = Vec::new();
    for (key, value) in map {
        let key = key.as_str();
        match (key, value) {
            ("type" | "nullable", _) => {}
            ("title" | "description", value @ Value::String(_)) => {
                out.insert(key.to_owned(), value);
            }
            (_, _) if belongs_to(key).is_some_and(|owners| !owners.contains(&kind)) => {
                work.lose(key, Action::Dropped, format!("says nothing about a {kind}"));
            }
            ("enum", Value::Array(values)) => enumeration(work, &mut out, &mut notes, kind, values),
            ("format", Value::String(format)) => {
                let known: &[&str] = match kind {
                    "string" => &["enum", "date-time"],
                    "number" => &["float", "double"],
                    "integer" => &["int32", "int64"],
                    _ => &[],
                };
                if known.contains(&format.as_str()) {
                    out.insert("format".to_owned(), format.into());
                } else {
                    work.lose(
                        "format",
                        Action::Described,
                        "not a format the provider accepts",
                    );
                    notes.push(format!("Format: {format}."));
                }
            }
            ("properties", Value::Object(properties)) => {
                let translated = translate_properties(work, properties, depth);
                out.insert("properties".to_owned(), Value::Object(translated));
            }
            ("required", value @ Value::Array(_)) => {
                out.insert("required".to_owned(), value);
            }
            ("items", value @ (Value::Object(_) | Value::Bool(true))) if value != json!({}) => {
                let items = work.at(&[&"items"], |work| schema(work, value, depth + 1));
                out.insert("items".to_owned(), Value::Object(items));
            }
            ("prefixItems" | "items", Value::Array(schemas)) => {
                work.lose(
                    key,
                    Action::Described,
                    "the place of an item does not decide its type",
                );
                notes.push(format!("Items in order: {}.", show_all(&schemas)));
                if !out.contains_key("items") {
                    let any = any_of(schemas.iter().collect());
                    let items = work.at(&[&key], |work| schema(work, any, depth + 1));
                    out.insert("items".to_owned(), Value::Object(items));
                }
            }
            ("minimum" | "maximum", value @ Value::Number(_)) => {
                out.insert(key.to_owned(), value);
            }
            ("exclusiveMinimum" | "exclusiveMaximum", value) => {
                exclusive(work, &mut out, &mut notes, kind, key, &value);
            }
            ("pattern", value @ Value::String(_)) => {
                out.insert(key.to_owned(), value);
            }
            (
                "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
                | "maxProperties",
                value,
            ) if value.is_u64() => {
                out.insert(key.to_owned(), value);
            }
            ("default", value) => {
                work.lose(key, Action::Described, "not accepted by every version");
                notes.push(format!("Default: {}.", show(&value)));
            }
            ("examples", Value::Array(values)) => {
                work.lose(key, Action::Described, "not known to the provider");
                notes.push(format!("Examples: {}.", show_all(&values)));
            }
            ("example", value) => {
                work.lose(key, Action::Described, "not accepted by every version");
                notes.push(format!("Example: {}.", show(&value)));
            }
            ("uniqueItems", Value::Bool(true)) => {
                work.lose(key, Action::Described, "not known to the provider");
                notes.push("Each item once.".to_owned());
            }
            ("multipleOf", value @ Value::Number(_)) => {
                work.lose(key, Action::Described, "not known to the provider");
                notes.push(format!("A multiple of {value}."));
            }
            ("additionalProperties", value @ Value::Object(_)) if value != json!({}) => {
                work.lose(key, Action::Described, "not known to the provider");
                notes.push(format!("Any further keys, each value: {}.", show(&value)));
            }
            (
                "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames"
                | "patternProperties"
                | "dependentRequired"
                | "dependentSchemas"
                | "dependencies"
                | "unevaluatedProperties"
                | "contentMediaType"
                | "contentEncoding",
                value,
            ) => {
                work.lose(key, Action::Described, "not known to the provider");
                notes.push(format!("{key}: {}.", show(&value)));
            }
            _ => work.lose(key, Action::Dropped, "not known to the provider"),
        }
    }
    if kind == "array" && !out.contains_key("items") {
        work.lose(
            "items",
            Action::Added,
            "an array must say what its items are; any are accepted",
        );
        out.insert("items".to_owned(), json!({"anyOf": any_value()}));
    }
    only_known_required(work, &mut out);
    for note in notes {
        describe(&mut out, &note);
    }
    out
}

fn translate_properties(
    work: &mut Work,
    properties: Map<String, Value>,
    depth: usize,
) -> Map<String, Value> {
    let mut translated = Map::new();
    for (name, value) in properties {
        work.at(&[&"properties", &name], |work| {
            if value == json!(false) {
                work.lose("", Action::Dropped, "must not be given");
                return;
            }
            let value = Value::Object(schema(work, value, depth + 1));
            translated.insert(name.clone(), value);
        });
    }
    translated
}

/// A required name without a property is an error.
fn only_known_required(work: &mut Work, out: &mut Map<String, Value>) {
    let names: Vec<Value> = match out.get("properties") {
        Some(Value::Object(properties)) => properties.keys().map(|name| json!(name)).collect(),
        _ => Vec::new(),
    };
    let Some(Value::Array(required)) = out.get_mut("required") else {
        return;
    };
    let count = required.len();
    let mut kept: Vec<Value> = Vec::new();
    for name in required.drain(..) {
        if names.contains(&name) && !kept.contains(&name) {
            kept.push(name);
        }
    }
    let dropped = kept.len() < count;
    if kept.is_empty() {
        out.shift_remove("required");
    } else {
        *required = kept;
    }
    if dropped {
        work.lose("required", Action::Dropped, "names without a property");
    }
}

/// Values of an enum are texts, and none of them empty; other values are told.
fn enumeration(
    work: &mut Work,
    out: &mut Map<String, Value>,
    notes: &mut Vec<String>,
    kind: &str,
    values: Vec<Value>,
) {
    let usable = kind == "string"
        && !values.is_empty()
        && values
            .iter()
            .all(|value| value.as_str().is_some_and(|text| !text.is_empty()));
    if usable {
        out.insert("enum".to_owned(), Value::Array(values));
        return;
    }
    work.lose(
        "enum",
        Action::Described,
        "only texts that are not empty can be listed",
    );
    if let [only] = values.as_slice() {
        notes.push(format!("Always {}.", show(only)));
    } else if !values.is_empty() {
        notes.push(format!("One of: {}.", show_all(&values)));
    }
}

/// For whole numbers a bound that is left out is the next one.
fn exclusive(
    work: &mut Work,
    out: &mut Map<String, Value>,
    notes: &mut Vec<String>,
    kind: &str,
    key: &str,
    value: &Value,
) {
    let (bound, step, words) = if key == "exclusiveMinimum" {
        ("minimum", 1, "More than")
    } else {
        ("maximum", -1, "Less than")
    };
    match (value, value.as_i64().and_then(|n| n.checked_add(step))) {
        (Value::Number(_), Some(next)) if kind == "integer" => {
            work.lose(key, Action::Converted, format!("{bound}, one further"));
            let closer = out
                .get(bound)
                .and_then(Value::as_i64)
                .is_some_and(|own| if step > 0 { own > next } else { own < next });
            if !closer {
                out.insert(bound.to_owned(), Value::Number(Number::from(next)));
            }
        }
        (Value::Number(limit), _) => {
            work.lose(
                key,
                Action::Described,
                format!("{bound}, which includes the limit itself"),
            );
            notes.push(format!("{words} {limit}."));
            out.entry(bound).or_insert(Value::Number(limit.clone()));
        }
        // Draft 4: a flag beside the bound.
        (Value::Bool(true), _) => {
            work.lose(key, Action::Described, "not known to the provider");
            notes.push(format!("{bound} itself is not allowed."));
        }
        _ => work.lose(key, Action::Dropped, "not known to the provider"),
    }
}
