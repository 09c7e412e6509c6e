//! The names of types, and the many ways to write them.

use serde_json::{Map, Value};

/// The seven types of JSON Schema.
pub const TYPES: [&str; 7] = [
    "null", "boolean", "object", "array", "number", "integer", "string",
];

/// The type somebody meant: any case, and the common names of other languages.
pub fn normal(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    if let Some(known) = TYPES.iter().find(|known| **known == lower) {
        return Some(known);
    }
    Some(match lower.as_str() {
        "str" | "text" => "string",
        "int" | "int32" | "int64" | "long" => "integer",
        "float" | "double" | "decimal" => "number",
        "bool" => "boolean",
        "list" | "tuple" => "array",
        "dict" | "map" | "record" => "object",
        "none" => "null",
        _ => return None,
    })
}

/// The types a schema names, normalised, in order and each once. `None` when it names none, or none that exists.
pub fn of(schema: &Map<String, Value>) -> Option<Vec<&'static str>> {
    let mut found = Vec::new();
    let mut add = |name: &Value| {
        if let Some(known) = name.as_str().and_then(normal)
            && !found.contains(&known)
        {
            found.push(known);
        }
    };
    match schema.get("type")? {
        Value::Array(names) => names.iter().for_each(&mut add),
        name => add(name),
    }
    (!found.is_empty()).then_some(found)
}

/// The type of a value.
pub fn of_value(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether a value of type `value` is one of type `wanted`.
pub fn fits(value: &str, wanted: &str) -> bool {
    value == wanted || (value == "integer" && wanted == "number")
}
