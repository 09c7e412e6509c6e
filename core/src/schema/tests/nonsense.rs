use super::*;

#[test]
fn a_schema_that_is_true_or_false_is_written_as_an_object() {
    let schema = json!({"type": "object", "properties": {"any": true, "none": false}, "additionalProperties": false});
    for provider in JSON_SCHEMA {
        let (out, losses) = compiled(provider, schema.clone());
        assert_eq!(
            out,
            json!({"type": "object", "properties": {"any": {}, "none": {"not": {}}}, "additionalProperties": false})
        );
        assert_eq!(
            losses,
            ["/properties/any  converted", "/properties/none  converted"]
        );
    }
    let (out, _) = compiled(Provider::Gemini, schema);
    let names: Vec<_> = out["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["any"]);
}

#[test]
fn keywords_with_impossible_values_are_dropped() {
    let (out, losses) = property(
        Provider::Anthropic,
        json!({"type": "string", "minLength": -1, "pattern": 7, "enum": [], "description": null, "anyOf": []}),
    );
    assert_eq!(out, json!({"type": "string"}));
    assert_eq!(
        losses,
        ["minLength", "pattern", "enum", "description", "anyOf"]
            .map(|keyword| format!("/properties/x {keyword} dropped"))
    );
}

#[test]
fn the_dialects_of_old_drafts_are_written_the_new_way() {
    let (out, _) = compiled(
        Provider::Anthropic,
        json!({"type": "object", "properties": {
            "a": {"type": "number", "required": true, "minimum": 0, "exclusiveMinimum": true},
            "b": {"type": "number", "required": false, "maximum": 9, "exclusiveMaximum": false},
        }}),
    );
    assert_eq!(
        out,
        json!({"type": "object", "properties": {
            "a": {"type": "number", "exclusiveMinimum": 0}, "b": {"type": "number", "maximum": 9},
        }, "required": ["a"]})
    );
}

#[test]
fn depth_is_bounded() {
    let mut schema = json!({"type": "string"});
    for _ in 0..5_000 {
        // Not `json!`, which recurses.
        let inner = Map::from_iter([("d".to_owned(), schema)]);
        schema = Value::Object(Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("properties".to_owned(), Value::Object(inner)),
        ]));
    }
    let info = tool(schema);
    for provider in ALL {
        let first = compile(provider, &[&info]);
        assert_eq!(first.losses[0].action, Action::Cut);
        let text = parameters(provider, &first).to_string();
        assert_eq!(text.matches("\"d\"").count(), 32);
    }
    // Dropping a value recurses; take it apart from outside.
    let mut left: Vec<Value> = info.input_schema.into_iter().map(|(_, v)| v).collect();
    while let Some(value) = left.pop() {
        if let Value::Object(map) = value {
            left.extend(map.into_iter().map(|(_, v)| v));
        }
    }
}

#[test]
fn references_that_double_at_each_step_are_bounded() {
    let mut defs = Map::new();
    for n in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        defs.insert(
            format!("d{n}"),
            json!({"type": "object", "properties": {"a": next, "b": next}}),
        );
    }
    defs.insert("d60".into(), json!({"type": "string"}));
    let info =
        tool(json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs}));
    let compiled = compile(Provider::Gemini, &[&info]);
    assert!(
        compiled
            .losses
            .iter()
            .any(|loss| loss.action == Action::Cut)
    );
    assert!(parameters(Provider::Gemini, &compiled).to_string().len() < 10_000_000);
}

#[test]
fn references_that_refer_to_each_other_end() {
    let schema = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
    let (out, _) = compiled(Provider::Gemini, schema);
    assert_eq!(
        out["properties"]["x"],
        json!({"type": "object", "description": "Same form as the enclosing a."})
    );
}

#[test]
fn whatever_comes_in_every_provider_gets_an_object() {
    for nonsense in [
        json!({"type": 7, "properties": "x", "required": {"a": 1}}),
        json!({"type": [], "properties": {"a": null, "b": 3, "c": "string", "d": []}}),
        json!({"anyOf": 3, "oneOf": [], "allOf": [1, true]}),
        json!({"allOf": [{"$ref": "#"}], "anyOf": [{"$ref": "#"}]}),
        json!({"$ref": 1, "items": false, "not": true, "enum": "x"}),
        json!({"properties": {"a": {"anyOf": [{"anyOf": [{"anyOf": [{"type": "null"}]}]}]}}}),
        json!({"properties": {"a": {"type": ["string", "null"], "nullable": true, "enum": [null]}}}),
    ] {
        for provider in ALL {
            let (out, _) = compiled(provider, nonsense.clone());
            assert_eq!(out["type"], "object", "{nonsense}");
            assert!(out["properties"].is_object(), "{nonsense}");
        }
    }
}
