//! What a schema costs before it is used. A few lines of JSON can describe a check that takes longer than the universe
//! is old: schemas that refer twice to the next one, down to the depth of the value.

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use std::collections::HashMap;

use crate::json::MAX_DEPTH;

/// Schemas in schemas that are followed for one value. Nobody writes as many; the stack has an end.
const MAX_LEVELS: usize = 256;

/// Schemas that are looked at to find the costs.
const MAX_VISITS: usize = 200_000;

/// What reading a text costs that is no longer than [`TEXT_BYTES`].
const PATTERN: u64 = 1_000;

/// The same for a pattern that looks around or back, and may read the text again and again.
const BACKTRACKING_PATTERN: u64 = 50_000;

/// A longer text counts as one value more for each so many bytes.
const TEXT_BYTES: usize = 1_024;

/// Keywords that hold one schema or a list of them for the value itself. A check may go through them twice: to find out
/// whether they fit, and then why not.
const HERE: &[&str] = &["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];

/// Keywords that hold named schemas for the value itself.
const HERE_NAMED: &[&str] = &["dependentSchemas", "dependencies"];

/// Keywords that hold one schema or a list of them for what is in the value.
const INSIDE: &[&str] = &[
    "additionalProperties",
    "propertyNames",
    "unevaluatedProperties",
    "items",
    "prefixItems",
    "additionalItems",
    "contains",
    "unevaluatedItems",
];

/// Keywords that hold named schemas for what is in the value.
const INSIDE_NAMED: &[&str] = &["properties", "patternProperties"];

/// How many keywords are applied to a value at most, by the depth of the value.
pub(super) struct Costs {
    /// The last holds for all deeper values too, unless it stands at [`Costs::end`].
    by_depth: Vec<u64>,
    /// The first depth that costs more than anybody may pay.
    end: usize,
}

impl Costs {
    /// The costs up to `most`; `None` for a schema that needs anything outside of itself, or never ends.
    pub(super) fn of(schema: &Value, most: u64) -> Option<Costs> {
        let mut by_depth: Vec<u64> = Vec::new();
        let mut walk = Walk {
            root: schema,
            known: HashMap::new(),
            level: 0,
            visits: 0,
            patterns: HashMap::new(),
        };
        for depth in 0..=MAX_DEPTH {
            let cost = walk.cost(schema, depth)?;
            if cost > most || walk.visits > MAX_VISITS {
                return Some(Costs {
                    by_depth,
                    end: depth,
                });
            }
            // Nothing is applied at this depth, so nothing is below it.
            if by_depth.last() == Some(&cost) {
                break;
            }
            by_depth.push(cost);
        }
        Some(Costs {
            by_depth,
            end: usize::MAX,
        })
    }

    /// The cost of each value in one of that depth; `None` when it is too much.
    pub(super) fn at_depth(&self, depth: usize) -> Option<u64> {
        match depth < self.end {
            true => self.by_depth.get(depth).or(self.by_depth.last()).copied(),
            false => None,
        }
    }
}

struct Walk<'a> {
    root: &'a Value,
    /// By the schema's address and the depth that is left; without a cost while it is being found.
    known: HashMap<(*const Value, usize), Option<u64>>,
    level: usize,
    visits: usize,
    patterns: HashMap<&'a str, u64>,
}

impl<'a> Walk<'a> {
    fn cost(&mut self, schema: &'a Value, depth: usize) -> Option<u64> {
        let Value::Object(keywords) = schema else {
            return Some(1);
        };
        let key = (std::ptr::from_ref(schema), depth);
        if let Some(known) = self.known.get(&key) {
            // A schema that is applied to the same value while it is being applied to it never ends.
            return *known;
        }
        if self.level == MAX_LEVELS {
            return None;
        }
        self.visits += 1;
        if self.visits > MAX_VISITS {
            // The caller stops here.
            return Some(u64::MAX);
        }
        self.known.insert(key, None);
        self.level += 1;
        let cost = self.sum(keywords, depth)?;
        self.level -= 1;
        self.known.insert(key, Some(cost));
        Some(cost)
    }

    fn sum(&mut self, keywords: &'a Map<String, Value>, depth: usize) -> Option<u64> {
        let mut sum = keywords.len() as u64 + 1;
        for (keyword, value) in keywords {
            let keyword = keyword.as_str();
            let cost = if keyword == "$ref"
                || keyword == "$recursiveRef"
                || keyword == "$dynamicRef"
            {
                self.cost(target(self.root, value)?, depth)?
            } else if HERE.contains(&keyword) {
                self.all(value, depth)?.saturating_mul(2)
            } else if HERE_NAMED.contains(&keyword) {
                self.named(value, depth)?.saturating_mul(2)
            } else if depth > 0 && INSIDE.contains(&keyword) {
                self.all(value, depth - 1)?
            } else if depth > 0 && INSIDE_NAMED.contains(&keyword) {
                let names = match keyword {
                    "patternProperties" => self.patterns(value),
                    _ => 0,
                };
                self.named(value, depth - 1)?.saturating_add(names)
            } else {
                match (keyword, value) {
                    ("pattern", Value::String(pattern)) => self.pattern(pattern),
                    ("enum", Value::Array(values)) => values.len() as u64,
                    // A part with a base of its own: its references mean something else than they seem to.
                    ("$id" | "id", Value::String(_)) if !std::ptr::eq(keywords, self.top()?) => {
                        return None;
                    }
                    _ => 0,
                }
            };
            sum = sum.saturating_add(cost);
        }
        Some(sum)
    }

    fn top(&self) -> Option<&'a Map<String, Value>> {
        self.root.as_object()
    }

    fn all(&mut self, schemas: &'a Value, depth: usize) -> Option<u64> {
        match schemas {
            Value::Array(schemas) => self.total(schemas.iter(), depth),
            schema => self.cost(schema, depth),
        }
    }

    fn named(&mut self, schemas: &'a Value, depth: usize) -> Option<u64> {
        match schemas {
            Value::Object(schemas) => self.total(schemas.values(), depth),
            _ => Some(0),
        }
    }

    fn pattern(&mut self, pattern: &'a str) -> u64 {
        *self.patterns.entry(pattern).or_insert_with(|| {
            // What the linear engine cannot read looks around or back.
            match regex_syntax::parse(pattern) {
                Ok(_) => PATTERN,
                Err(_) => BACKTRACKING_PATTERN,
            }
        })
    }

    fn patterns(&mut self, named: &'a Value) -> u64 {
        let names = named.as_object().into_iter().flat_map(Map::keys);
        names.map(|pattern| self.pattern(pattern)).sum()
    }

    fn total(&mut self, schemas: impl Iterator<Item = &'a Value>, depth: usize) -> Option<u64> {
        let mut sum = 0u64;
        for schema in schemas {
            sum = sum.saturating_add(self.cost(schema, depth)?);
        }
        Some(sum)
    }
}

/// What a reference inside of the schema means: `#`, or `#` and a JSON Pointer.
pub(super) fn target<'a>(root: &'a Value, reference: &Value) -> Option<&'a Value> {
    let pointer = reference.as_str()?.strip_prefix('#')?;
    root.pointer(&percent_decode_str(pointer).decode_utf8().ok()?)
}

/// How large a value is.
pub(super) struct Size {
    pub(super) values: u64,
    pub(super) depth: usize,
}

impl Size {
    pub(super) fn of(value: &Value) -> Size {
        match value {
            Value::Array(items) => Size::around(items.iter().map(Size::of)),
            Value::Object(members) => Size::around(members.iter().map(|(name, value)| {
                let value = Size::of(value);
                Size {
                    values: value.values + of_text(name),
                    ..value
                }
            })),
            Value::String(text) => Size {
                values: 1 + of_text(text),
                depth: 0,
            },
            _ => Size {
                values: 1,
                depth: 0,
            },
        }
    }

    fn around(inner: impl Iterator<Item = Size>) -> Size {
        inner.fold(
            Size {
                values: 1,
                depth: 1,
            },
            |size, inner| Size {
                values: size.values + inner.values,
                depth: size.depth.max(inner.depth + 1),
            },
        )
    }
}

fn of_text(text: &str) -> u64 {
    (text.len() / TEXT_BYTES) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const MOST: u64 = 1_000_000;

    #[test]
    fn a_schema_costs_more_the_deeper_the_value_until_there_is_nothing_left_to_apply() {
        let schema = json!({"type": "object", "properties": {"a": {"items": {"type": "integer"}}}});
        let costs = Costs::of(&schema, MOST).unwrap();
        let at = |depth| costs.at_depth(depth).unwrap();
        assert_eq!((at(0), at(1), at(2)), (3, 5, 7));
        assert_eq!(at(100), at(2));
    }

    #[test]
    fn a_recursive_schema_is_paid_for_as_deep_as_the_value_is() {
        let schema = json!({"anyOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]});
        let costs = Costs::of(&schema, MOST).unwrap();
        assert!(costs.at_depth(5).is_some());
        assert!(costs.at_depth(60).is_none());
    }

    #[test]
    fn what_never_ends_or_lies_outside_has_no_cost() {
        let chain: Map<String, Value> = (0..1000)
            .map(|n| {
                (
                    format!("a{n}"),
                    json!({"$ref": format!("#/$defs/a{}", n + 1)}),
                )
            })
            .chain([("a1000".to_owned(), json!({}))])
            .collect();
        for schema in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"not": {"$ref": "#/allOf/0"}}]}),
            json!({"properties": {"a": {"$ref": "https://example.invalid/a"}}}),
            json!({"properties": {"a": {"$ref": "#/$defs/missing"}}}),
            json!({"properties": {"a": {"$id": "other", "$ref": "#"}}}),
            json!({"$ref": "#/$defs/a0", "$defs": chain}),
        ] {
            assert!(Costs::of(&schema, MOST).is_none(), "{schema}");
        }
    }

    #[test]
    fn the_time_to_find_the_costs_is_bounded() {
        let wide: Map<String, Value> = (0..MAX_VISITS / 2)
            .map(|n| (format!("p{n}"), json!({})))
            .chain([("next".to_owned(), json!({"$ref": "#"}))])
            .collect();
        let costs = Costs::of(&json!({"properties": wide}), u64::MAX).unwrap();
        assert!(costs.at_depth(1).is_some());
        assert!(costs.at_depth(3).is_none());
    }

    #[test]
    fn patterns_are_paid_for_one_by_one_and_more_when_they_look_around() {
        let at = |schema| Costs::of(&schema, MOST).unwrap().at_depth(1).unwrap();
        assert_eq!(at(json!({"pattern": "^a+$"})), 2 + PATTERN);
        assert_eq!(
            at(json!({"pattern": "^(?=.*a)b"})),
            2 + BACKTRACKING_PATTERN
        );
        assert_eq!(
            at(json!({"patternProperties": {"a": true, "b": true}})),
            2 + 2 * PATTERN + 2
        );
    }

    #[test]
    fn a_long_text_counts_as_several_values() {
        let text = "a".repeat(10 * TEXT_BYTES);
        assert_eq!(Size::of(&json!({"a": text})).values, 12);
        assert_eq!(Size::of(&json!({text: 1})).values, 12);
    }

    #[test]
    fn a_pointer_may_be_escaped() {
        let root = json!({"$defs": {"a/b [c]": true}});
        let found = target(&root, &json!("#/$defs/a~1b%20%5Bc%5D"));
        assert_eq!(found, Some(&json!(true)));
    }

    #[test]
    fn a_value_is_as_deep_as_its_deepest_part() {
        let size = Size::of(&json!({"a": [1, {"b": []}], "c": 1}));
        assert_eq!((size.values, size.depth), (6, 4));
    }
}
