use super::*;

#[track_caller]
fn becomes(schema: Value, expected: Value, loss: &str) {
    let (out, losses) = property(Provider::Gemini, schema);
    assert_eq!(out, expected);
    assert_eq!(losses, [format!("/properties/x {loss}")]);
}

#[test]
fn what_it_does_not_know_is_said_in_words() {
    becomes(
        json!({"type": "string", "format": "uri", "description": "Where"}),
        json!({"type": "string", "description": "Where Format: uri."}),
        "format described",
    );
    becomes(
        json!({"type": "integer", "default": 3}),
        json!({"type": "integer", "description": "Default: 3."}),
        "default described",
    );
    becomes(
        json!({"type": "number", "multipleOf": 0.5}),
        json!({"type": "number", "description": "A multiple of 0.5."}),
        "multipleOf described",
    );
    becomes(
        json!({"type": "object", "additionalProperties": {"type": "integer"}}),
        json!({"type": "object", "description": "Any further keys, each value: {\"type\":\"integer\"}."}),
        "additionalProperties described",
    );
    becomes(
        json!({"type": "integer", "enum": [1, 2]}),
        json!({"type": "integer", "description": "One of: 1, 2."}),
        "enum described",
    );
    becomes(
        json!({"type": "string", "enum": ["", "a"]}),
        json!({"type": "string", "description": "One of: \"\", \"a\"."}),
        "enum described",
    );
}

#[test]
fn what_means_nothing_to_a_model_is_dropped() {
    becomes(
        json!({"type": "object", "additionalProperties": false}),
        json!({"type": "object"}),
        "additionalProperties dropped",
    );
    becomes(
        json!({"type": "string", "x-order": 1}),
        json!({"type": "string"}),
        "x-order dropped",
    );
    becomes(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"]}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
        "required dropped",
    );
}

#[test]
fn bounds_that_are_left_out_become_the_next_one_or_words() {
    becomes(
        json!({"type": "integer", "exclusiveMinimum": 0}),
        json!({"type": "integer", "minimum": 1}),
        "exclusiveMinimum converted",
    );
    becomes(
        json!({"type": "number", "exclusiveMaximum": 1}),
        json!({"type": "number", "maximum": 1, "description": "Less than 1."}),
        "exclusiveMaximum described",
    );
}

#[test]
fn null_among_the_values_is_nullable() {
    becomes(
        json!({"type": "string", "enum": ["a", null]}),
        json!({"type": "string", "enum": ["a"], "nullable": true}),
        "enum converted",
    );
}

#[test]
fn null_alone_is_said_in_words() {
    becomes(
        json!({"type": "null"}),
        json!({"type": "string", "description": "Always null.", "nullable": true}),
        "type described",
    );
}

#[test]
fn alternatives_stand_alone() {
    let (out, losses) = property(
        Provider::Gemini,
        json!({"type": "object", "description": "who", "properties": {"id": {"type": "string"}, "mail": {"type": "string"}},
            "oneOf": [{"required": ["id"]}, {"required": ["mail"], "description": "by mail"}]}),
    );
    let properties = json!({"id": {"type": "string"}, "mail": {"type": "string"}});
    assert_eq!(
        out,
        json!({"anyOf": [
            {"type": "object", "properties": properties, "required": ["id"], "description": "who"},
            {"type": "object", "properties": properties, "required": ["mail"], "description": "by mail"},
        ]})
    );
    assert_eq!(
        losses,
        [
            "/properties/x oneOf converted",
            "/properties/x oneOf converted"
        ]
    );
}

#[test]
fn alternatives_of_fixed_values_are_one_list() {
    let (out, _) = property(
        Provider::Gemini,
        json!({"description": "which", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}),
    );
    assert_eq!(
        out,
        json!({"type": "string", "description": "which \"a\": A; \"b\": B", "enum": ["a", "b"]})
    );
}

#[test]
fn null_among_alternatives_makes_each_nullable() {
    let (out, _) = property(
        Provider::Gemini,
        json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}),
    );
    assert_eq!(
        out,
        json!({"anyOf": [{"type": "string", "nullable": true}, {"type": "integer", "nullable": true}]})
    );
}

#[test]
fn all_parts_are_one() {
    let (out, _) = compiled(
        Provider::Gemini,
        json!({"type": "object", "properties": {
            "x": {"description": "d", "allOf": [{"$ref": "#/$defs/S"}, {"maxLength": 5}], "nullable": true},
        }, "$defs": {"S": {"type": "string", "maxLength": 9}}}),
    );
    assert_eq!(
        out["properties"]["x"],
        json!({"type": "string", "description": "d", "maxLength": 5, "nullable": true})
    );
}
