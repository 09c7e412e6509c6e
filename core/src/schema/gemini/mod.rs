//! Translation into the language of Gemini's `parameters`: a few keywords of OpenAPI 3.0, one type per schema, no
//! references, and an error for the whole request at the first thing it does not know.

mod single;

use serde_json::{Map, Value, json};

use crate::schema::json_schema::make_object;
use crate::schema::merge::{any_of, flatten, fold_alternatives, intersect};
use crate::schema::work::{MAX_DEPTH, Work, describe, plain_object, show};
use crate::schema::{Action, types};
use single::single;

/// The whole schema.
pub fn translate_root(work: &mut Work) -> Map<String, Value> {
    let mut root = work.root.as_object().cloned().unwrap_or_default();
    make_object(work, &mut root);
    // Alternatives may bring conditions that bring alternatives.
    for _ in 0..3 {
        root = flatten(work, root, MAX_DEPTH);
        for keyword in ["anyOf", "oneOf"] {
            fold_alternatives(work, &mut root, keyword);
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf", "enum", "const"] {
        if let Some(value) = root.shift_remove(keyword) {
            work.tell(&format!("Arguments, {keyword}: {}.", show(&value)));
            work.lose(keyword, Action::Described, "not accepted at the root");
        }
    }
    work.following.clear();
    make_object(work, &mut root);
    let mut root = single(work, root, "object", 0);
    if !root.contains_key("properties") {
        root.insert("properties".to_owned(), json!({}));
    }
    root
}

/// One schema at any place but the root.
fn schema(work: &mut Work, value: Value, depth: usize) -> Map<String, Value> {
    match value {
        Value::Object(map) => {
            let followed = work.following.len();
            let translated = object(work, map, depth);
            work.following.truncate(followed);
            translated
        }
        Value::Bool(true) => anything(work, "true accepts anything"),
        Value::String(name) if types::normal(&name).is_some() => {
            work.lose("", Action::Converted, "a type in place of a schema");
            object(
                work,
                Map::from_iter([("type".to_owned(), json!(name))]),
                depth,
            )
        }
        _ => anything(work, "not a schema"),
    }
}

/// Every schema must have a type or alternatives, so "anything" is spelled out.
fn anything(work: &mut Work, why: &str) -> Map<String, Value> {
    work.lose("type", Action::Added, format!("a type is required; {why}"));
    Map::from_iter([("anyOf".to_owned(), any_value())])
}

fn any_value() -> Value {
    json!([
        {"type": "string"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "object"},
        {"type": "array", "items": {"type": "string"}},
    ])
}

fn object(work: &mut Work, map: Map<String, Value>, depth: usize) -> Map<String, Value> {
    if depth >= MAX_DEPTH {
        work.lose("", Action::Cut, "nested deeper than any provider accepts");
        return match types::of(&map).as_deref() {
            Some([one]) if *one != "array" => Map::from_iter([("type".to_owned(), json!(one))]),
            _ => plain_object(),
        };
    }
    let mut map = flatten(work, map, MAX_DEPTH);
    for (keyword, usable) in [
        ("description", Value::is_string as fn(&Value) -> bool),
        ("nullable", Value::is_boolean),
    ] {
        if map.get(keyword).is_some_and(|value| !usable(value)) {
            map.shift_remove(keyword);
            work.lose(
                keyword,
                Action::Dropped,
                "its value is not one that this keyword can have",
            );
        }
    }
    let mut nullable = map.get("nullable").and_then(Value::as_bool);
    for keyword in ["anyOf", "oneOf"] {
        match map.shift_remove(keyword) {
            None => {}
            Some(Value::Array(branches)) => {
                let count = branches.len();
                let mut branches: Vec<Value> = branches
                    .into_iter()
                    .filter(|branch| !is_null(branch))
                    .collect();
                if branches.len() < count {
                    work.lose(keyword, Action::Converted, "null as nullable");
                    nullable = Some(true);
                }
                if branches.is_empty() && count > 0 {
                    map.insert("type".to_owned(), json!("null"));
                }
                if branches.len() > 1 {
                    map.shift_remove("nullable");
                    return alternatives(work, map, keyword, branches, nullable, depth);
                }
                if let Some(Value::Object(only)) = branches.pop() {
                    work.lose(keyword, Action::Merged, "only one alternative");
                    intersect(work, &mut map, only);
                    if let Some(flag) = nullable {
                        map.insert("nullable".to_owned(), json!(flag));
                    }
                    return object(work, map, depth);
                }
            }
            Some(_) => work.lose(keyword, Action::Dropped, "not a list of schemas"),
        }
    }
    typed(work, map, nullable, depth)
}

/// `anyOf` must stand alone, so what stands beside it goes into every alternative.
fn alternatives(
    work: &mut Work,
    beside: Map<String, Value>,
    keyword: &str,
    branches: Vec<Value>,
    nullable: Option<bool>,
    depth: usize,
) -> Map<String, Value> {
    if keyword == "oneOf" {
        work.lose(
            keyword,
            Action::Converted,
            "anyOf, which also allows several at once",
        );
    }
    if let Value::Object(merged) = any_of(branches.iter().collect())
        && !merged.contains_key("anyOf")
    {
        // Alternatives that differ in a fixed value are one list of values.
        work.lose(keyword, Action::Merged, "one enum");
        let (mut merged, mut beside) = (merged, beside);
        lead_with(&mut merged, beside.shift_remove("description"));
        intersect(work, &mut merged, beside);
        if let Some(flag) = nullable {
            merged.insert("nullable".to_owned(), json!(flag));
        }
        return object(work, merged, depth);
    }
    let mut beside = beside;
    let description = beside.shift_remove("description");
    if description.is_some() || !beside.is_empty() {
        work.lose(
            keyword,
            Action::Converted,
            "what stands beside it is part of each alternative",
        );
    }
    let mut translated: Vec<Value> = Vec::new();
    for (index, branch) in branches.into_iter().enumerate() {
        work.at(&[&keyword, &index], |work| {
            let followed = work.following.len();
            let mut branch = match branch {
                Value::Object(branch) => branch,
                other => schema(work, other, depth + 1),
            };
            if !beside.is_empty() {
                branch = flatten(work, branch, MAX_DEPTH);
                if work.pay_for(beside.values()) {
                    intersect(work, &mut branch, beside.clone());
                }
            }
            let mut branch = object(work, branch, depth + 1);
            work.following.truncate(followed);
            // Alternatives of an alternative are alternatives.
            let parts = match branch.shift_remove("anyOf") {
                Some(Value::Array(parts)) => parts,
                _ => vec![Value::Object(branch)],
            };
            for mut part in parts {
                if let (Some(flag), Value::Object(part)) = (nullable, &mut part) {
                    part.entry("nullable").or_insert(json!(flag));
                }
                if !translated.contains(&part) {
                    translated.push(part);
                }
            }
        });
    }
    if let Some(Value::Object(first)) = translated.first_mut() {
        lead_with(first, description);
    }
    // Translated, they may have become alike.
    match any_of(translated.iter().collect()) {
        Value::Object(merged) => merged,
        _ => plain_object(),
    }
}

/// Puts a description before the one a schema has.
fn lead_with(schema: &mut Map<String, Value>, description: Option<Value>) {
    let Some(Value::String(text)) = description else {
        return;
    };
    let own = schema.get("description").and_then(Value::as_str);
    let joined = own.map_or_else(|| text.clone(), |own| format!("{text} {own}"));
    schema.insert("description".to_owned(), joined.into());
}

fn is_null(schema: &Value) -> bool {
    let Some(map) = schema.as_object() else {
        return false;
    };
    types::of(map).is_some_and(|types| types == ["null"])
        || map.get("const") == Some(&Value::Null)
        || map.get("enum") == Some(&json!([null]))
}

/// A schema without alternatives: finds the one type it has, or makes alternatives of several.
fn typed(
    work: &mut Work,
    mut map: Map<String, Value>,
    mut nullable: Option<bool>,
    depth: usize,
) -> Map<String, Value> {
    if let Some(value) = map.shift_remove("const") {
        work.lose("const", Action::Converted, "an enum of one");
        map.insert("enum".to_owned(), json!([value]));
    }
    if let Some(Value::Array(values)) = map.get_mut("enum") {
        let count = values.len();
        values.retain(|value| !value.is_null());
        if values.len() < count {
            nullable = Some(true);
            work.lose("enum", Action::Converted, "null as nullable");
        }
        if values.is_empty() && count > 0 {
            map.insert("type".to_owned(), json!("null"));
        }
    }
    let mut found = match types::of(&map) {
        Some(found) => {
            if map.get("type") != Some(&json!(found[0])) {
                work.lose("type", Action::Converted, "one type, in lower case");
            }
            found
        }
        None => {
            let inferred = inferred(&map);
            work.lose(
                "type",
                Action::Added,
                match inferred.as_slice() {
                    [] => "a type is required; anything is accepted".to_owned(),
                    some => format!(
                        "a type is required; it follows from the rest: {}",
                        some.join(", ")
                    ),
                },
            );
            inferred
        }
    };
    if found.len() > 1 && found.contains(&"null") {
        nullable = Some(true);
        found.retain(|name| *name != "null");
    }
    if found == ["null"] {
        // Not every version has a type for null alone.
        work.lose("type", Action::Described, "always null");
        map.retain(|key, _| matches!(key.as_str(), "title" | "description"));
        describe(&mut map, "Always null.");
        (found, nullable) = (vec!["string"], Some(true));
    }
    match found.as_slice() {
        [] => {
            map.shift_remove("type");
            map.shift_remove("nullable");
            let Value::Array(mut parts) = any_value() else {
                return plain_object();
            };
            for part in &mut parts {
                if let (Some(flag), Value::Object(part)) = (nullable, part) {
                    part.insert("nullable".to_owned(), json!(flag));
                }
            }
            if let (Some(first), Some(text)) = (parts.first_mut(), map.shift_remove("description"))
            {
                first["description"] = text;
            }
            for key in map.keys() {
                work.lose(key, Action::Dropped, "not known to the provider");
            }
            Map::from_iter([("anyOf".to_owned(), Value::Array(parts))])
        }
        [one] => {
            let one = *one;
            let mut out = single(work, map, one, depth);
            if let Some(flag) = nullable {
                out.insert("nullable".to_owned(), json!(flag));
            }
            out
        }
        many => {
            let branches = many.iter().map(|name| {
                let mut branch = map.clone();
                branch.shift_remove("nullable");
                branch.shift_remove("description");
                branch.retain(|key, _| belongs_to(key).is_none_or(|owners| owners.contains(name)));
                branch.insert("type".to_owned(), json!(name));
                if let Some(Value::Array(values)) = branch.get_mut("enum") {
                    values.retain(|value| types::fits(types::of_value(value), name));
                }
                let none_left = branch
                    .get("enum")
                    .is_some_and(|values| values == &json!([]));
                (!none_left).then_some(Value::Object(branch))
            });
            let branches: Vec<Value> = branches.flatten().collect();
            let beside = map
                .get("description")
                .map(|text| ("description".to_owned(), text.clone()));
            let beside = Map::from_iter(beside);
            if work.pay_for(&branches) {
                alternatives(work, beside, "type", branches, nullable, depth)
            } else {
                work.lose("type", Action::Cut, "the schema grows too large");
                plain_object()
            }
        }
    }
}

/// The types that the rest of a schema speaks of.
fn inferred(map: &Map<String, Value>) -> Vec<&'static str> {
    if let Some(Value::Array(values)) = map.get("enum") {
        let mut found = Vec::new();
        for value in values {
            let name = types::of_value(value);
            if !found.contains(&name) {
                found.push(name);
            }
        }
        return found;
    }
    let mut found = Vec::new();
    for name in map.keys().filter_map(|key| belongs_to(key)).flatten() {
        if !found.contains(name) && *name != "integer" {
            found.push(*name);
        }
    }
    found
}

/// The types that a keyword says something about; `None`: all.
fn belongs_to(keyword: &str) -> Option<&'static [&'static str]> {
    Some(match keyword {
        "properties"
        | "required"
        | "additionalProperties"
        | "patternProperties"
        | "propertyNames"
        | "minProperties"
        | "maxProperties"
        | "unevaluatedProperties"
        | "dependentRequired"
        | "dependentSchemas"
        | "dependencies" => &["object"],
        "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" | "contains"
        | "additionalItems" | "unevaluatedItems" | "minContains" | "maxContains" => &["array"],
        "minLength" | "maxLength" | "pattern" | "contentEncoding" | "contentMediaType" => {
            &["string"]
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            &["number", "integer"]
        }
        _ => return None,
    })
}
