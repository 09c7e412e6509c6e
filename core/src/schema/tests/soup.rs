//! Schemas nobody would write: what holds for every schema holds for these too.

use super::*;

/// A small generator of the same numbers on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len())].clone()
    }
}

fn value(dice: &mut Dice) -> Value {
    dice.pick(&[
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(7),
        json!(-1),
        json!(2.5),
        json!(""),
        json!("a"),
        json!("object"),
        json!([]),
        json!(["a", "b"]),
        json!([1, null, "x"]),
        json!({}),
        json!({"type": "STRING"}),
    ])
}

fn schema(dice: &mut Dice, depth: usize) -> Value {
    if depth == 0 || dice.roll(12) == 0 {
        return value(dice);
    }
    let mut map = Map::new();
    for _ in 0..1 + dice.roll(5) {
        let keyword = dice.pick(&[
            "type",
            "type",
            "type",
            "properties",
            "properties",
            "required",
            "items",
            "prefixItems",
            "anyOf",
            "oneOf",
            "allOf",
            "not",
            "enum",
            "const",
            "nullable",
            "$ref",
            "default",
            "description",
            "format",
            "minimum",
            "exclusiveMinimum",
            "minLength",
            "additionalProperties",
            "pattern",
            "uniqueItems",
            "$defs",
            "x-own",
        ]);
        let inner = match keyword {
            "type" => dice.pick(&[
                json!("string"),
                json!("OBJECT"),
                json!("array"),
                json!("integer"),
                json!(["string", "null"]),
                json!(["object", "array"]),
                json!("null"),
                json!("any"),
                json!("number"),
            ]),
            "properties" | "$defs" => {
                let names = ["a", "b", "odd name"];
                names
                    .iter()
                    .take(1 + dice.roll(3))
                    .map(|name| ((*name).to_owned(), schema(dice, depth - 1)))
                    .collect()
            }
            "items" | "not" | "additionalProperties" => schema(dice, depth - 1),
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                (0..dice.roll(4)).map(|_| schema(dice, depth - 1)).collect()
            }
            "enum" => dice.pick(&[
                json!(["a", "b"]),
                json!([1, 2]),
                json!(["a", null]),
                json!([""]),
                json!([]),
            ]),
            "required" => dice.pick(&[json!(["a"]), json!(["a", "z", "a"]), json!(true)]),
            "$ref" => dice.pick(&[
                json!("#"),
                json!("#/$defs/a"),
                json!("#/properties/a"),
                json!("#/anyOf/0"),
                json!("#/nowhere"),
            ]),
            "nullable" | "uniqueItems" => json!(dice.roll(2) == 0),
            _ => value(dice),
        };
        map.insert(keyword.to_owned(), inner);
    }
    Value::Object(map)
}

#[test]
fn what_holds_for_every_schema_holds_for_nonsense() {
    for seed in 0..1_000 {
        let mut dice = Dice(seed);
        let Value::Object(mut soup) = schema(&mut dice, 4) else {
            continue;
        };
        if dice.roll(2) == 0 {
            soup.insert("type".to_owned(), json!("object"));
        }
        for provider in ALL {
            let (out, _) = compiled(provider, Value::Object(soup.clone()));
            assert_eq!(out["type"], "object", "{seed}");
            assert!(out["properties"].is_object(), "{seed}");
        }
    }
}
