use super::*;

#[test]
fn openai_gets_items_at_every_level() {
    let (out, losses) = compiled(
        Provider::OpenAi,
        json!({"type": "object", "properties": {
            "ids": {"type": "array"}, "grid": {"type": "array", "items": {"type": "array"}},
            "own": {"type": "array", "items": {"type": "string"}},
        }}),
    );
    assert_eq!(
        out["properties"],
        json!({
            "ids": {"type": "array", "items": {}},
            "grid": {"type": "array", "items": {"type": "array", "items": {}}},
            "own": {"type": "array", "items": {"type": "string"}},
        })
    );
    assert_eq!(
        losses,
        [
            "/properties/ids items added",
            "/properties/grid/items items added"
        ]
    );
}

#[test]
fn anthropic_needs_none() {
    let schema = json!({"type": "object", "properties": {"ids": {"type": "array"}}});
    assert_eq!(
        compiled(Provider::Anthropic, schema.clone()),
        (schema, vec![])
    );
}

#[test]
fn gemini_gets_items_that_have_a_type() {
    let (out, losses) = property(
        Provider::Gemini,
        json!({"type": "array", "items": {"type": "array"}}),
    );
    assert_eq!(
        out,
        json!({"type": "array", "items": {"type": "array", "items": {"anyOf": [
            {"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"},
            {"type": "array", "items": {"type": "string"}},
        ]}}})
    );
    assert_eq!(losses, ["/properties/x/items items added"]);
}

#[test]
fn a_tuple_of_old_drafts_is_written_the_new_way() {
    let tuple = json!({"type": "array", "items": [{"type": "NUMBER"}, {"type": "string"}], "additionalItems": false});
    let (out, _) = property(Provider::Anthropic, tuple.clone());
    assert_eq!(
        out,
        json!({"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}], "items": {"not": {}}})
    );
    let (out, _) = property(Provider::Gemini, tuple);
    assert_eq!(
        out,
        json!({"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "string"}]},
            "description": "Items in order: {\"type\":\"NUMBER\"}, {\"type\":\"string\"}."})
    );
}

#[test]
fn an_array_that_is_a_mere_type_name_gets_its_items_too() {
    let (out, losses) = property(Provider::OpenAi, json!({"type": "array", "items": "array"}));
    assert_eq!(
        out,
        json!({"type": "array", "items": {"type": "array", "items": {}}})
    );
    assert_eq!(
        losses,
        [
            "/properties/x/items  converted",
            "/properties/x/items items added"
        ]
    );
}
