//! Translation into the language of Gemini's `parameters`: a few keywords of OpenAPI 3.0, one type per schema, no
//! references, and an error for the whole request at the first thing it does not know.

use serde_json::{Map, Number, Value, json};

use super::json_schema::make_object;
use super::merge::{any_of, flatten, fold_alternatives, intersect};
use super::work::{MAX_DEPTH, Work, describe, plain_object, show, show_all};
use super::{Action, types};

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
        let mut merged = merged;
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
    if let (Some(Value::String(text)), Some(Value::Object(first))) =
        (description, translated.first_mut())
    {
        let own = first.get("description").and_then(Value::as_str);
        let joined = own.map_or_else(|| text.clone(), |own| format!("{text} {own}"));
        first.insert("description".to_owned(), joined.into());
    }
    match (translated.len(), translated.pop()) {
        (1, Some(Value::Object(only))) => only,
        (_, Some(last)) => {
            translated.push(last);
            Map::from_iter([("anyOf".to_owned(), Value::Array(translated))])
        }
        (_, None) => plain_object(),
    }
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

/// A schema of one type.
fn single(
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
            (_, value) if belongs_to(key).is_some_and(|owners| !owners.contains(&kind)) => {
                let _ = value;
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
