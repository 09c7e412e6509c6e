//! Repairs for providers that take JSON Schema, with exceptions of their own.

use serde_json::{Map, Value, json};

use super::merge::{flatten, fold_alternatives};
use super::work::{MAX_DEPTH, Work, find, plain_object, show};
use super::{Action, types};

/// The exceptions of one provider.
#[derive(Clone, Copy)]
pub struct Rules {
    /// Keywords refused at the root besides references and alternatives.
    refused_at_root: &'static [&'static str],
    /// An array must say what its items are.
    items_required: bool,
    /// Names of arguments are restricted to `[A-Za-z0-9_.-]{1,64}`.
    plain_names: bool,
}

impl Rules {
    /// OpenAI: the root "must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level", and
    /// "array schema missing items" is an error.
    pub const OPENAI: Rules = Rules {
        refused_at_root: &["enum", "const", "not"],
        items_required: true,
        plain_names: false,
    };

    /// Anthropic: valid in draft 2020-12, no `oneOf`, `allOf`, `anyOf` at the root, plain names of arguments.
    pub const ANTHROPIC: Rules = Rules {
        refused_at_root: &[],
        items_required: false,
        plain_names: true,
    };
}

/// The whole schema.
pub fn repair_root(work: &mut Work, rules: Rules) -> Map<String, Value> {
    let mut root = work.root.as_object().cloned().unwrap_or_default();
    make_object(work, &mut root);
    root = flatten(work, root, MAX_DEPTH);
    for keyword in ["anyOf", "oneOf"] {
        fold_alternatives(work, &mut root, keyword);
    }
    // What the parts brought along.
    if root.contains_key("allOf") {
        root = flatten(work, root, MAX_DEPTH);
        for keyword in ["anyOf", "oneOf", "allOf"] {
            if let Some(value) = root.shift_remove(keyword) {
                work.tell(&format!("Arguments, {keyword}: {}.", show(&value)));
                work.lose(
                    keyword,
                    Action::Described,
                    "too many alternatives at the root",
                );
            }
        }
    }
    work.following.clear();
    make_object(work, &mut root);
    for keyword in rules.refused_at_root {
        if let Some(value) = root.shift_remove(*keyword) {
            work.tell(&format!("Arguments, {keyword}: {}.", show(&value)));
            work.lose(keyword, Action::Described, "not accepted at the root");
        }
    }
    let mut repair = Repair { work, rules };
    let mut root = repair.object(root, 0);
    if !root.get("properties").is_some_and(Value::is_object) {
        root.insert("properties".to_owned(), json!({}));
    }
    if rules.plain_names {
        set_aside_odd_names(repair.work, &mut root);
    }
    let moved = Value::Object(root);
    let mut root = moved.clone();
    repair.mend_references(&mut root, &moved, 0);
    match root {
        Value::Object(root) => root,
        _ => plain_object(),
    }
}

/// Arguments are an object, whatever the schema says.
pub fn make_object(work: &mut Work, root: &mut Map<String, Value>) {
    let wanted = json!("object");
    if root.shift_remove("nullable") == Some(json!(true)) {
        work.lose("nullable", Action::Dropped, "arguments are an object");
    }
    if root.get("type") == Some(&wanted) {
        return;
    }
    match (root.get("type"), types::of(root)) {
        (None, _) => {}
        (Some(_), Some(types)) if types.contains(&"object") => {
            work.lose("type", Action::Converted, "arguments are an object");
        }
        _ => {
            work.lose(
                "type",
                Action::Replaced,
                "arguments are an object; this schema describes something else",
            );
            *root = Map::new();
        }
    }
    root.shift_insert(0, "type".to_owned(), wanted);
}

/// A provider that takes only plain names would refuse the whole request for one argument.
fn set_aside_odd_names(work: &mut Work, root: &mut Map<String, Value>) {
    let plain = |name: &str| {
        (1..=64).contains(&name.len())
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
    };
    let Some(Value::Object(properties)) = root.get_mut("properties") else {
        return;
    };
    let odd: Vec<String> = properties
        .keys()
        .filter(|name| !plain(name))
        .cloned()
        .collect();
    for name in odd {
        let Some(schema) = properties_mut(root).and_then(|all| all.shift_remove(&name)) else {
            continue;
        };
        if let Some(Value::Array(required)) = root.get_mut("required") {
            required.retain(|entry| entry.as_str() != Some(&name));
        }
        work.tell(&format!(
            "Also takes the argument {}: {}.",
            json!(name),
            show(&schema)
        ));
        work.at(&[&"properties", &name], |work| {
            work.lose(
                "",
                Action::Described,
                "the provider does not accept this name",
            );
        });
    }
}

fn properties_mut(root: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    root.get_mut("properties")?.as_object_mut()
}

/// What the value of a keyword must be. Providers check schemas against the schema of schemas; one wrong keyword costs
/// the whole request.
enum Shape {
    Schema,
    SchemaOrBool,
    SchemaList,
    SchemaMap,
    Text,
    Number,
    Count,
    Bool,
}

fn shape(keyword: &str) -> Option<Shape> {
    Some(match keyword {
        "not" | "if" | "then" | "else" | "contains" | "propertyNames" | "contentSchema" => {
            Shape::Schema
        }
        "additionalProperties"
        | "unevaluatedProperties"
        | "additionalItems"
        | "unevaluatedItems" => Shape::SchemaOrBool,
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => Shape::SchemaList,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            Shape::SchemaMap
        }
        "title" | "description" | "$comment" | "pattern" | "format" | "$schema" | "$id"
        | "$anchor" | "contentEncoding" | "contentMediaType" => Shape::Text,
        "minimum" | "maximum" | "multipleOf" => Shape::Number,
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => Shape::Count,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => Shape::Bool,
        _ => return None,
    })
}

struct Repair<'a> {
    work: &'a mut Work,
    rules: Rules,
}

impl Repair<'_> {
    fn schema(&mut self, schema: Value, depth: usize) -> Value {
        match schema {
            Value::Object(map) if depth >= MAX_DEPTH => {
                self.work
                    .lose("", Action::Cut, "nested deeper than any provider accepts");
                Value::Object(match types::of(&map).as_deref() {
                    Some([one]) if *one != "array" => {
                        Map::from_iter([("type".to_owned(), json!(one))])
                    }
                    _ => plain_object(),
                })
            }
            Value::Object(map) => Value::Object(self.object(map, depth)),
            Value::Bool(true) => {
                self.work.lose(
                    "",
                    Action::Converted,
                    "true as the schema that allows everything",
                );
                json!({})
            }
            Value::Bool(false) => {
                self.work.lose(
                    "",
                    Action::Converted,
                    "false as the schema that allows nothing",
                );
                json!({"not": {}})
            }
            Value::String(name) if types::normal(&name).is_some() => {
                self.work
                    .lose("", Action::Converted, "a type in place of a schema");
                let map = Map::from_iter([("type".to_owned(), json!(types::normal(&name)))]);
                Value::Object(self.object(map, depth))
            }
            _ => {
                self.work
                    .lose("", Action::Replaced, "not a schema; anything is accepted");
                json!({})
            }
        }
    }

    fn object(&mut self, map: Map<String, Value>, depth: usize) -> Map<String, Value> {
        let mut out = Map::new();
        let mut hoisted = Vec::new();
        for (key, value) in map {
            if key == "properties"
                && let Value::Object(properties) = &value
            {
                let flagged = |(name, schema): (&String, &Value)| {
                    (schema.get("required") == Some(&json!(true))).then(|| name.clone())
                };
                hoisted = properties.iter().filter_map(flagged).collect();
            }
            let kept = self.keyword(&key, value, depth);
            if let Some(value) = kept {
                out.insert(key, value);
            }
        }
        self.exclusive_bounds(&mut out);
        self.tuple(&mut out, depth);
        self.hoist_required(&mut out, hoisted);
        self.nullable(&mut out);
        let is_array = types::of(&out).is_some_and(|types| types.contains(&"array"));
        if self.rules.items_required && is_array && !out.contains_key("items") {
            self.work.lose(
                "items",
                Action::Added,
                "an array must say what its items are; any are accepted",
            );
            out.insert("items".to_owned(), json!({}));
        }
        out
    }

    /// The repaired value of a keyword; `None` drops it.
    fn keyword(&mut self, key: &str, value: Value, depth: usize) -> Option<Value> {
        match key {
            "type" => return self.types(value),
            "required" => return self.required(value),
            "enum" => {
                let usable = value.as_array().is_some_and(|values| !values.is_empty());
                return usable.then_some(value).or_else(|| self.unusable(key));
            }
            "items" => {
                return match value {
                    Value::Array(_) => Some(value),
                    other => Some(self.work.at(&[&key], |work| {
                        Repair {
                            work,
                            rules: self.rules,
                        }
                        .schema(other, depth + 1)
                    })),
                };
            }
            "$ref" => return self.reference(value),
            _ => {}
        }
        let rules = self.rules;
        match (shape(key), value) {
            (None, value) => Some(value),
            (Some(Shape::Schema), value) => Some(self.work.at(&[&key], |work| {
                Repair { work, rules }.schema(value, depth + 1)
            })),
            (Some(Shape::SchemaOrBool), Value::Bool(flag)) => Some(Value::Bool(flag)),
            (Some(Shape::SchemaOrBool), value @ Value::Object(_)) => {
                Some(self.work.at(&[&key], |work| {
                    Repair { work, rules }.schema(value, depth + 1)
                }))
            }
            (Some(Shape::SchemaList), Value::Array(schemas)) if !schemas.is_empty() => {
                let repaired = schemas.into_iter().enumerate().map(|(index, schema)| {
                    self.work.at(&[&key, &index], |work| {
                        Repair { work, rules }.schema(schema, depth + 1)
                    })
                });
                Some(Value::Array(repaired.collect()))
            }
            (Some(Shape::SchemaMap), Value::Object(schemas)) => {
                let repaired = schemas.into_iter().map(|(name, schema)| {
                    let schema = self.work.at(&[&key, &name], |work| {
                        Repair { work, rules }.schema(schema, depth + 1)
                    });
                    (name, schema)
                });
                Some(Value::Object(repaired.collect()))
            }
            (Some(Shape::Text), value @ Value::String(_))
            | (Some(Shape::Number), value @ Value::Number(_))
            | (Some(Shape::Bool), value @ Value::Bool(_)) => Some(value),
            (Some(Shape::Count), value) if value.is_u64() => Some(value),
            (Some(_), _) => self.unusable(key),
        }
    }

    fn unusable(&mut self, key: &str) -> Option<Value> {
        self.work.lose(
            key,
            Action::Dropped,
            "its value is not one that this keyword can have",
        );
        None
    }

    fn types(&mut self, value: Value) -> Option<Value> {
        let found = types::of(&Map::from_iter([("type".to_owned(), value.clone())]));
        let Some(found) = found else {
            self.work
                .lose("type", Action::Dropped, "names no type that exists");
            return None;
        };
        let normal = match (&value, found.as_slice()) {
            (Value::String(_), [one]) => json!(one),
            (_, many) => json!(many),
        };
        if normal != value {
            self.work.lose(
                "type",
                Action::Converted,
                "the name of the type as JSON Schema writes it",
            );
        }
        Some(normal)
    }

    fn required(&mut self, value: Value) -> Option<Value> {
        match value {
            Value::Array(names) => {
                let count = names.len();
                let mut kept: Vec<Value> = Vec::new();
                for name in names {
                    if name.is_string() && !kept.contains(&name) {
                        kept.push(name);
                    }
                }
                if kept.len() < count {
                    self.work
                        .lose("required", Action::Converted, "only names, each once");
                }
                Some(Value::Array(kept))
            }
            // Moved to the object around it.
            Value::Bool(_) => {
                self.work.lose(
                    "required",
                    Action::Converted,
                    "listed by the object around it",
                );
                None
            }
            _ => self.unusable("required"),
        }
    }

    fn hoist_required(&mut self, out: &mut Map<String, Value>, names: Vec<String>) {
        if names.is_empty() {
            return;
        }
        let mut required = match out.shift_remove("required") {
            Some(Value::Array(required)) => required,
            _ => Vec::new(),
        };
        for name in names {
            if !required.contains(&json!(name)) {
                required.push(json!(name));
            }
        }
        out.insert("required".to_owned(), Value::Array(required));
    }

    /// Draft 4 wrote `exclusiveMinimum: true` beside `minimum`.
    fn exclusive_bounds(&mut self, out: &mut Map<String, Value>) {
        for (exclusive, bound) in [
            ("exclusiveMinimum", "minimum"),
            ("exclusiveMaximum", "maximum"),
        ] {
            match out.get(exclusive) {
                None | Some(Value::Number(_)) => {}
                Some(Value::Bool(flag)) => {
                    let limit = out.get(bound).cloned().filter(|_| *flag);
                    self.work
                        .lose(exclusive, Action::Converted, "a number since draft 6");
                    match limit {
                        Some(limit) => {
                            out.shift_remove(bound);
                            out.insert(exclusive.to_owned(), limit);
                        }
                        None => {
                            out.shift_remove(exclusive);
                        }
                    }
                }
                Some(_) => {
                    self.unusable(exclusive);
                    out.shift_remove(exclusive);
                }
            }
        }
    }

    /// Before 2020-12 a list under `items` was a tuple, and `additionalItems` what follows it.
    fn tuple(&mut self, out: &mut Map<String, Value>, depth: usize) {
        let Some(Value::Array(schemas)) = out.get("items") else {
            return;
        };
        let schemas = schemas.clone();
        self.work.lose(
            "items",
            Action::Converted,
            "a list of items is prefixItems since 2020-12",
        );
        let rules = self.rules;
        let repaired: Vec<Value> = schemas
            .into_iter()
            .enumerate()
            .map(|(index, schema)| {
                self.work.at(&[&"items", &index], |work| {
                    Repair { work, rules }.schema(schema, depth + 1)
                })
            })
            .collect();
        out.shift_remove("items");
        if !repaired.is_empty() {
            out.insert("prefixItems".to_owned(), Value::Array(repaired));
        }
        match out.shift_remove("additionalItems") {
            Some(Value::Bool(false)) => {
                out.insert("items".to_owned(), json!({"not": {}}));
            }
            Some(rest @ Value::Object(_)) => {
                out.insert("items".to_owned(), rest);
            }
            _ => {}
        }
    }

    /// `nullable` is OpenAPI's; JSON Schema reads over it. `false` says nothing that its absence does not.
    fn nullable(&mut self, out: &mut Map<String, Value>) {
        if out.get("nullable") != Some(&json!(true)) {
            return;
        }
        out.shift_remove("nullable");
        self.work
            .lose("nullable", Action::Converted, "null as one of the types");
        if let Some(Value::Array(values)) = out.get_mut("enum")
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
        if let Some(value) = out.shift_remove("const") {
            out.insert("enum".to_owned(), json!([value, null]));
        }
        if let Some(mut types) = types::of(out) {
            if !types.contains(&"null") {
                types.push("null");
            }
            out.insert("type".to_owned(), json!(types));
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = out.get_mut(keyword)
                && !branches.iter().any(takes_null)
            {
                branches.push(json!({"type": "null"}));
            }
        }
        for keyword in ["$ref", "allOf"] {
            if let Some(value) = out.shift_remove(keyword) {
                let branches = json!([{keyword: value}, {"type": "null"}]);
                out.insert("anyOf".to_owned(), branches);
            }
        }
    }

    fn reference(&mut self, value: Value) -> Option<Value> {
        match &value {
            // Whether it leads anywhere is seen at the end, when it is known what is where.
            Value::String(_) => Some(value),
            _ => self.unusable("$ref"),
        }
    }

    /// Repairs move things, and a reference into what was moved would make the provider refuse everything. Such a
    /// reference gives way to what it referred to.
    fn mend_references(&mut self, value: &mut Value, whole: &Value, depth: usize) {
        let Value::Object(map) = value else {
            return;
        };
        let followed = self.work.following.len();
        // What is put in its place may be such a reference again.
        while let Some(reference) = dangling(map, whole) {
            map.shift_remove("$ref");
            let target = match self.work.inline(&reference) {
                Some(Value::Object(target)) if depth < MAX_DEPTH => {
                    self.work.lose("$ref", Action::Inlined, reference);
                    self.object(target, depth)
                }
                Some(_) => Map::new(),
                None => plain_object(),
            };
            for (key, value) in target {
                map.entry(key).or_insert(value);
            }
        }
        let rules = self.rules;
        for (key, value) in map.iter_mut() {
            let mut mend = |steps: &[&dyn std::fmt::Display], schema: &mut Value| {
                self.work.at(steps, |work| {
                    Repair { work, rules }.mend_references(schema, whole, depth + 1);
                });
            };
            match (shape(key), value) {
                (Some(Shape::SchemaList), Value::Array(schemas)) => {
                    for (index, schema) in schemas.iter_mut().enumerate() {
                        mend(&[&key, &index], schema);
                    }
                }
                (Some(Shape::SchemaMap), Value::Object(schemas)) => {
                    for (name, schema) in schemas {
                        mend(&[&key, &name], schema);
                    }
                }
                (Some(Shape::Schema | Shape::SchemaOrBool), schema) => mend(&[&key], schema),
                (None, schema) if key == "items" => mend(&[&key], schema),
                _ => {}
            }
        }
        self.work.following.truncate(followed);
    }
}

/// The reference of a schema, when it leads nowhere.
fn dangling(map: &Map<String, Value>, whole: &Value) -> Option<String> {
    let reference = map.get("$ref")?.as_str()?;
    find(whole, reference)
        .is_none()
        .then(|| reference.to_owned())
}

fn takes_null(schema: &Value) -> bool {
    let Some(map) = schema.as_object() else {
        return schema == &json!(true);
    };
    types::of(map).is_some_and(|types| types.contains(&"null"))
        || map.get("const") == Some(&Value::Null)
        || map
            .get("enum")
            .and_then(Value::as_array)
            .is_some_and(|v| v.contains(&Value::Null))
}
