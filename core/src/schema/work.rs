//! What every step shares: limits, the report, the place we are at, and references.

use serde_json::{Map, Value, json};
use std::fmt::Display;

use super::{Action, Loss};

/// Deepest nesting of schemas in an answer. No provider takes more, and it bounds our own recursion.
pub const MAX_DEPTH: usize = 32;

/// Deepest nesting of JSON that is looked at. Twice [`MAX_DEPTH`] and some, as `properties` is a level of its own.
const MAX_JSON_DEPTH: usize = 100;

/// How much may be copied on top of a plain translation: one unit per JSON value and per 32 bytes of text. References
/// that double at each step would fill the memory otherwise.
const BUDGET: usize = 50_000;

/// Longest piece of text added to a description, bytes.
const MAX_NOTE: usize = 600;

/// The work on one tool.
pub struct Work {
    tool: String,
    /// The schema as it came, less what lies too deep.
    pub root: Value,
    path: Vec<String>,
    losses: Vec<Loss>,
    notes: Vec<String>,
    budget: usize,
    /// References being followed, outermost first.
    pub following: Vec<String>,
}

impl Work {
    /// Takes a copy of the schema.
    pub fn new(tool: &str, schema: &Map<String, Value>) -> Self {
        let mut work = Work {
            tool: tool.to_owned(),
            root: Value::Null,
            path: Vec::new(),
            losses: Vec::new(),
            notes: Vec::new(),
            budget: BUDGET,
            following: Vec::new(),
        };
        let mut cut = false;
        work.root = Value::Object(shallow_enough(schema, MAX_JSON_DEPTH, &mut cut));
        if cut {
            work.lose("", Action::Cut, "nested deeper than any provider accepts");
        }
        work
    }

    /// The report, and what the description of the tool has to say in addition.
    pub fn finish(self) -> (Vec<Loss>, Vec<String>) {
        (self.losses, self.notes)
    }

    /// Says something in the description of the tool, for what concerns its arguments as a whole.
    pub fn tell(&mut self, note: &str) {
        self.notes.push(shorten(note, MAX_NOTE));
    }

    /// Reports a change to a keyword of the schema we are at.
    pub fn lose(&mut self, keyword: &str, action: Action, detail: impl Into<String>) {
        let path = self.path.iter().fold(String::new(), |mut path, token| {
            path.push('/');
            path.push_str(&token.replace('~', "~0").replace('/', "~1"));
            path
        });
        self.losses.push(Loss {
            tool: self.tool.clone(),
            path,
            keyword: keyword.to_owned(),
            action,
            detail: detail.into(),
        });
    }

    /// Does something one or two steps further down.
    pub fn at<R>(&mut self, steps: &[&dyn Display], then: impl FnOnce(&mut Self) -> R) -> R {
        let here = self.path.len();
        self.path.extend(steps.iter().map(ToString::to_string));
        let result = then(self);
        self.path.truncate(here);
        result
    }

    /// Pays for a copy; false when there is nothing left to pay with.
    pub fn pay_for<'a>(&mut self, values: impl IntoIterator<Item = &'a Value>) -> bool {
        let cost: usize = values.into_iter().map(weight).sum::<usize>() + 1;
        let enough = cost <= self.budget;
        self.budget = if enough { self.budget - cost } else { 0 };
        enough
    }

    /// What a reference refers to. Only references into the schema itself are followed; nothing is ever fetched.
    pub fn resolve(&self, reference: &str) -> Option<Value> {
        find(&self.root, reference).cloned()
    }

    /// A copy of what a reference refers to, for use in its place; `None` when there is no such thing, when it is being
    /// followed already, or when there is too much. The loss is reported; the caller puts a plain object there.
    pub fn inline(&mut self, reference: &str) -> Option<Value> {
        if self.following.iter().any(|followed| followed == reference) {
            self.lose(
                "$ref",
                Action::Cut,
                format!("{reference} contains itself; the inner one takes any object"),
            );
            return None;
        }
        let Some(target) = self.resolve(reference) else {
            self.lose(
                "$ref",
                Action::Replaced,
                format!("{reference} refers to nothing; any object is accepted"),
            );
            return None;
        };
        if !self.pay_for([&target]) {
            self.lose(
                "$ref",
                Action::Cut,
                "the schema grows too large; any object is accepted",
            );
            return None;
        }
        self.following.push(reference.to_owned());
        Some(target)
    }
}

/// Adds a sentence to the description of a schema.
pub fn describe(schema: &mut Map<String, Value>, note: &str) {
    let note = shorten(note, MAX_NOTE);
    let text = match schema.get("description").and_then(Value::as_str) {
        Some(text) if text.contains(note.as_str()) => return,
        Some(text) if !text.trim().is_empty() => format!("{} {note}", text.trim_end()),
        _ => note,
    };
    schema.insert("description".to_owned(), text.into());
}

/// A value as short text for a description.
pub fn show(value: &Value) -> String {
    shorten(&value.to_string(), 300)
}

/// Several values as short text.
pub fn show_all<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    values.into_iter().map(show).collect::<Vec<_>>().join(", ")
}

/// What a reference that cannot be followed becomes.
pub fn plain_object() -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!("object"))])
}

/// Cuts text at a character boundary.
fn shorten(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = (0..=limit).rev().find(|at| text.is_char_boundary(*at));
    format!("{}…", &text[..end.unwrap_or(0)])
}

fn weight(value: &Value) -> usize {
    1 + match value {
        Value::String(text) => text.len() / 32,
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(map) => map.iter().map(|(k, v)| k.len() / 32 + weight(v)).sum(),
        _ => 0,
    }
}

/// A copy without what lies deeper than `depth`, which becomes `{}`: as a schema and as data, that is the least wrong.
fn shallow_enough(map: &Map<String, Value>, depth: usize, cut: &mut bool) -> Map<String, Value> {
    map.iter()
        .map(|(key, value)| (key.clone(), shallow_enough_value(value, depth - 1, cut)))
        .collect()
}

fn shallow_enough_value(value: &Value, depth: usize, cut: &mut bool) -> Value {
    match value {
        Value::Object(_) | Value::Array(_) if depth == 0 => {
            *cut = true;
            json!({})
        }
        Value::Object(map) => Value::Object(shallow_enough(map, depth, cut)),
        Value::Array(items) => items
            .iter()
            .map(|item| shallow_enough_value(item, depth - 1, cut))
            .collect(),
        plain => plain.clone(),
    }
}

/// Follows a reference: `#`, `#/json/pointer`, `#anchor`, each also after the schema's own `$id`.
pub fn find<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let id = root.get("$id").and_then(Value::as_str).unwrap_or_default();
    let local = reference.strip_prefix(id).unwrap_or(reference);
    let fragment = percent_decoded(local.strip_prefix('#')?);
    let found = if fragment.is_empty() || fragment.starts_with('/') {
        root.pointer(&fragment)?
    } else {
        anchored(root, &fragment)?
    };
    matches!(found, Value::Object(_) | Value::Bool(_)).then_some(found)
}

fn anchored<'a>(root: &'a Value, name: &str) -> Option<&'a Value> {
    let mut left = vec![root];
    while let Some(value) = left.pop() {
        match value {
            Value::Object(map) => {
                let anchor = map.get("$anchor").and_then(Value::as_str);
                let id = map.get("$id").and_then(Value::as_str);
                if anchor == Some(name) || id.and_then(|id| id.strip_prefix('#')) == Some(name) {
                    return Some(value);
                }
                left.extend(map.values());
            }
            Value::Array(items) => left.extend(items),
            _ => {}
        }
    }
    None
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let hex = |at: usize| bytes.get(at).and_then(|b| (*b as char).to_digit(16));
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, _, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
