use super::*;

#[test]
fn names_of_types_are_lowered_at_every_level_but_data_is_not_touched() {
    for provider in JSON_SCHEMA {
        let (out, losses) = compiled(
            provider,
            json!({"type": "OBJECT", "properties": {
                "type": {"type": "STRING", "enum": ["OBJECT"], "default": {"type": "STRING"}},
                "l": {"type": "ARRAY", "items": {"type": "Integer"}},
            }}),
        );
        assert_eq!(
            out,
            json!({"type": "object", "properties": {
                "type": {"type": "string", "enum": ["OBJECT"], "default": {"type": "STRING"}},
                "l": {"type": "array", "items": {"type": "integer"}},
            }})
        );
        assert_eq!(
            losses,
            [
                " type converted",
                "/properties/type type converted",
                "/properties/l type converted",
                "/properties/l/items type converted",
            ]
        );
    }
}

#[test]
fn nullable_is_a_type_in_json_schema_and_stays_nullable_for_gemini() {
    let nullable = json!({"type": "STRING", "nullable": true});
    for provider in JSON_SCHEMA {
        let (out, _) = property(provider, nullable.clone());
        assert_eq!(out, json!({"type": ["string", "null"]}));
    }
    let (out, _) = property(Provider::Gemini, nullable);
    assert_eq!(out, json!({"type": "string", "nullable": true}));
}

#[test]
fn nullable_false_stays_what_it_is() {
    let never_null = json!({"type": "string", "nullable": false});
    for provider in ALL {
        let (out, losses) = property(provider, never_null.clone());
        assert_eq!(out, never_null);
        assert_eq!(losses, [""; 0]);
    }
}

#[test]
fn nullable_beside_an_enum_lets_null_through_the_enum() {
    let (out, _) = property(
        Provider::OpenAi,
        json!({"type": "string", "enum": ["a"], "nullable": true}),
    );
    assert_eq!(
        out,
        json!({"type": ["string", "null"], "enum": ["a", null]})
    );
}

#[test]
fn nullable_beside_a_reference_is_an_alternative() {
    let (out, _) = compiled(
        Provider::Anthropic,
        json!({"type": "object", "$defs": {"A": {"type": "string"}},
               "properties": {"x": {"$ref": "#/$defs/A", "nullable": true, "description": "d"}}}),
    );
    assert_eq!(
        out["properties"]["x"],
        json!({"description": "d", "anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]})
    );
}

#[test]
fn gemini_has_one_type_per_schema() {
    let (out, losses) = compiled(
        Provider::Gemini,
        json!({"type": "object", "properties": {
            "name": {"type": ["string", "null"]},
            "tags": {"type": ["null", "array"], "items": {"type": "string"}},
            "either": {"type": ["string", "integer"], "description": "e", "minLength": 2, "minimum": 1},
            "note": {"anyOf": [{"type": "string"}, {"type": "null", "description": "no value"}]},
        }, "required": ["name"]}),
    );
    assert_eq!(
        out,
        json!({"type": "object", "properties": {
            "name": {"type": "string", "nullable": true},
            "tags": {"type": "array", "items": {"type": "string"}, "nullable": true},
            "either": {"anyOf": [
                {"type": "string", "minLength": 2, "description": "e"},
                {"type": "integer", "minimum": 1},
            ]},
            "note": {"type": "string", "nullable": true},
        }, "required": ["name"]})
    );
    assert_eq!(
        losses,
        [
            "/properties/name type converted",
            "/properties/tags type converted",
            "/properties/either type converted",
            "/properties/either type converted",
            "/properties/note anyOf converted",
            "/properties/note anyOf merged",
        ]
    );
}

#[test]
fn gemini_gets_the_type_that_follows_from_the_rest() {
    let x = |schema| property(Provider::Gemini, schema).0;
    assert_eq!(
        x(json!({"enum": ["a", "b"]})),
        json!({"type": "string", "enum": ["a", "b"]})
    );
    assert_eq!(
        x(json!({"const": "a"})),
        json!({"type": "string", "enum": ["a"]})
    );
    assert_eq!(
        x(json!({"properties": {"y": {"type": "string"}}})),
        json!({"type": "object", "properties": {"y": {"type": "string"}}})
    );
}

#[test]
fn gemini_gets_anything_spelled_out() {
    let any = json!([
        {"type": "string", "description": "value"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"},
        {"type": "array", "items": {"type": "string"}},
    ]);
    let (out, _) = property(Provider::Gemini, json!({"description": "value"}));
    assert_eq!(out, json!({"anyOf": any}));
}

#[test]
fn names_of_types_from_other_languages_are_understood_and_unknown_ones_dropped() {
    let (out, losses) = property(Provider::OpenAi, json!({"type": "dict"}));
    assert_eq!(out, json!({"type": "object"}));
    assert_eq!(losses, ["/properties/x type converted"]);
    let (out, losses) = property(Provider::OpenAi, json!({"type": "any", "description": "d"}));
    assert_eq!(out, json!({"description": "d"}));
    assert_eq!(losses, ["/properties/x type dropped"]);
}
