use super::*;

fn attach(keyword: &str) -> Value {
    json!({"type": "object", "description": "attach",
    "properties": {"note": {"type": "string"}},
    keyword: [
        {"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]},
        {"type": "object", "properties": {"source_url": {"type": "string"}}, "required": ["source_url"]},
    ]})
}

#[test]
fn alternatives_at_the_root_are_offered_together() {
    for provider in ALL {
        let (out, losses) = compiled(provider, attach("anyOf"));
        assert_eq!(
            out,
            json!({"type": "object",
            "description": "attach",
            "properties": {
                "note": {"type": "string"}, "content": {"type": "string"}, "source_url": {"type": "string"},
            }})
        );
        assert_eq!(losses, [" anyOf merged"]);
        assert_eq!(
            told(provider, attach("anyOf")),
            "\nGive at least one of these sets of arguments: (content); (source_url)."
        );
        assert_eq!(
            told(provider, attach("oneOf")),
            "\nGive exactly one of these sets of arguments: (content); (source_url)."
        );
    }
}

#[test]
fn what_every_alternative_requires_is_required() {
    let schema = json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"], "oneOf": [
        {"properties": {"action": {"const": "create"}, "title": {"type": "string"}}, "required": ["action", "title"]},
        {"properties": {"action": {"const": "delete"}}, "required": ["action"]},
    ]});
    assert_eq!(
        compiled(Provider::OpenAi, schema.clone()).0,
        json!({"type": "object",
            "properties": {
                "id": {"type": "string"}, "action": {"enum": ["create", "delete"]}, "title": {"type": "string"},
            },
            "required": ["id", "action"],
        })
    );
    assert_eq!(
        told(Provider::OpenAi, schema),
        "\nGive exactly one of these sets of arguments: (action=\"create\", title); (action=\"delete\")."
    );
}

#[test]
fn a_property_that_differs_between_alternatives_keeps_both_forms() {
    let (out, _) = compiled(
        Provider::Anthropic,
        json!({"type": "object", "properties": {}, "anyOf": [
            {"properties": {"v": {"type": "string"}}, "required": ["v"]},
            {"properties": {"v": {"type": "array", "items": {"type": "string"}}}, "required": ["v"]},
        ]}),
    );
    assert_eq!(
        out,
        json!({"type": "object", "properties": {
            "v": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        }, "required": ["v"]})
    );
}

#[test]
fn all_parts_at_the_root_are_one() {
    for provider in ALL {
        let (out, losses) = compiled(
            provider,
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "allOf": [
                {"properties": {"b": {"type": "integer"}}, "required": ["b"]},
                {"properties": {"a": {"type": "string", "description": "first"}}},
            ]}),
        );
        assert_eq!(
            out,
            json!({"type": "object", "properties": {
                "a": {"type": "string", "description": "first"}, "b": {"type": "integer"},
            }, "required": ["a", "b"]})
        );
        assert_eq!(losses, [" allOf merged"]);
    }
}

#[test]
fn a_reference_at_the_root_becomes_what_it_refers_to() {
    for provider in JSON_SCHEMA {
        let (out, losses) = compiled(
            provider,
            json!({"type": "object", "properties": {}, "$ref": "#/$defs/Args",
                "$defs": {"Args": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}}}),
        );
        assert_eq!(
            out,
            json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"],
                "$defs": {"Args": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}}})
        );
        assert_eq!(losses, [" $ref inlined"]);
    }
}

#[test]
fn a_combinator_inside_a_property_stays() {
    let schema = json!({"type": "object", "properties": {
        "x": {"oneOf": [{"type": "string"}, {"allOf": [{"type": "integer"}, {"minimum": 2}]}]},
    }});
    for provider in JSON_SCHEMA {
        assert_eq!(compiled(provider, schema.clone()), (schema.clone(), vec![]));
    }
}

#[test]
fn a_reference_into_what_moved_gives_way_to_its_target() {
    let (out, losses) = compiled(
        Provider::OpenAi,
        json!({"type": "object", "properties": {"again": {"$ref": "#/anyOf/0/properties/a"}},
            "anyOf": [{"properties": {"a": {"type": "STRING"}}}, {"properties": {"b": {"type": "string"}}}]}),
    );
    assert_eq!(out["properties"]["again"], json!({"type": "string"}));
    assert_eq!(
        losses,
        [
            " anyOf merged",
            "/properties/a type converted",
            "/properties/again $ref inlined",
            "/properties/again type converted",
        ]
    );
}

#[test]
fn openai_is_told_what_else_it_refuses_at_the_root() {
    let schema = json!({"type": "object", "properties": {}, "not": {"required": ["a", "b"]}});
    let (out, losses) = compiled(Provider::OpenAi, schema.clone());
    assert_eq!(out, json!({"type": "object", "properties": {}}));
    assert_eq!(
        told(Provider::OpenAi, schema.clone()),
        "\nArguments, not: {\"required\":[\"a\",\"b\"]}."
    );
    assert_eq!(losses, [" not described"]);
    assert_eq!(
        compiled(Provider::Anthropic, schema.clone()),
        (schema, vec![])
    );
}

#[test]
fn a_schema_of_something_else_than_an_object_takes_any_object() {
    for provider in ALL {
        let (out, losses) = compiled(provider, json!({"type": "string", "properties": {}}));
        assert_eq!(out, json!({"type": "object", "properties": {}}));
        assert_eq!(losses, [" type replaced"]);
    }
}

#[test]
fn arguments_are_never_null() {
    for provider in ALL {
        let (out, _) = compiled(
            provider,
            json!({"type": ["object", "null"], "nullable": true, "properties": {}}),
        );
        assert_eq!(out, json!({"type": "object", "properties": {}}));
    }
}

#[test]
fn anthropic_is_told_about_names_it_refuses() {
    let schema = json!({"type": "object", "properties": {
        "ok.name-1": {"type": "string"}, "no name": {"type": "string"},
    }, "required": ["no name"]});
    let (out, losses) = compiled(Provider::Anthropic, schema.clone());
    assert_eq!(
        out,
        json!({"type": "object", "properties": {"ok.name-1": {"type": "string"}}, "required": []})
    );
    assert_eq!(
        told(Provider::Anthropic, schema.clone()),
        "\nAlso takes the argument \"no name\": {\"type\":\"string\"}."
    );
    assert_eq!(losses, ["/properties/no name  described"]);
    assert_eq!(compiled(Provider::OpenAi, schema.clone()), (schema, vec![]));
}
