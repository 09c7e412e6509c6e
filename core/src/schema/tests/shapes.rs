use super::*;

#[test]
fn each_provider_has_its_own_wrapping() {
    let info = tool(json!({"type": "object", "properties": {}}));
    let tools = |provider| compile(provider, &[&info]).tools;
    let schema = json!({"type": "object", "properties": {}});
    assert_eq!(
        tools(Provider::OpenAi),
        [
            json!({"type": "function", "function": {"name": "t", "description": "d", "parameters": schema}})
        ]
    );
    assert_eq!(
        tools(Provider::Anthropic),
        [json!({"name": "t", "description": "d", "input_schema": schema})]
    );
    assert_eq!(
        tools(Provider::Gemini),
        [
            json!({"functionDeclarations": [{"name": "t", "description": "d", "parameters": schema}]})
        ]
    );
}

#[test]
fn without_tools_there_are_no_declarations() {
    for provider in ALL {
        assert_eq!(
            compile(provider, &[]),
            Compiled {
                tools: vec![],
                losses: vec![]
            }
        );
    }
}

#[test]
fn a_plain_schema_passes_as_it_is() {
    let schema = json!({
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "what", "minLength": 1},
            "status": {"type": "string", "enum": ["onTrack", "atRisk"]},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        },
        "required": ["title"],
    });
    for provider in ALL {
        let (out, losses) = compiled(provider, schema.clone());
        assert_eq!(out.to_string(), schema.to_string());
        assert_eq!(losses, [""; 0]);
    }
}

#[test]
fn json_schema_keywords_that_are_accepted_pass_as_they_are() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "n": {"type": "integer", "exclusiveMinimum": 0, "default": 3},
            "k": {"const": "fixed"},
            "u": {"type": "string", "format": "uri"},
            "e": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
            "r": {"$ref": "#/$defs/R"},
            "l": {"type": ["string", "null"]},
        },
        "additionalProperties": false,
        "$defs": {"R": {"type": "object", "properties": {"again": {"$ref": "#/$defs/R"}}}},
        "x-note": {"type": "OBJECT"},
    });
    for provider in JSON_SCHEMA {
        let (out, losses) = compiled(provider, schema.clone());
        assert_eq!(out.to_string(), schema.to_string());
        assert_eq!(losses, [""; 0]);
    }
}
