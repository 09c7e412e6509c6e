use super::*;
use crate::tool::Source;

fn tool(schema: Value) -> ToolInfo {
    let Value::Object(input_schema) = schema else {
        panic!("the schema of a tool is an object")
    };
    ToolInfo {
        name: "t".into(),
        description: "d".into(),
        input_schema,
        source: Source::Native,
        server: None,
        original_name: None,
        hints: None,
    }
}

/// The compiled schema, and per loss `path keyword action`. Checks on the way what holds for every schema: the input is
/// not touched, and a second pass changes nothing.
#[track_caller]
fn compiled(provider: Provider, schema: Value) -> (Value, Vec<String>) {
    let info = tool(schema);
    let before = info.clone();
    let first = compile(provider, &[&info]);
    assert_eq!(info, before);
    let out = parameters(provider, &first);
    let again = compile(provider, &[&tool(out.clone())]);
    assert_eq!(again.losses, []);
    assert_eq!(parameters(provider, &again).to_string(), out.to_string());
    let losses = first.losses.iter().map(|loss| {
        let action = serde_json::to_value(loss.action).unwrap();
        format!(
            "{} {} {}",
            loss.path,
            loss.keyword,
            action.as_str().unwrap()
        )
    });
    (out, losses.collect())
}

fn parameters(provider: Provider, compiled: &Compiled) -> Value {
    let path = match provider {
        Provider::OpenAi => "/function/parameters",
        Provider::Anthropic => "/input_schema",
        Provider::Gemini => "/functionDeclarations/0/parameters",
    };
    compiled.tools[0].pointer(path).unwrap().clone()
}

/// What the description of the tool says after its own text, `d`.
fn told(provider: Provider, schema: Value) -> String {
    let compiled = compile(provider, &[&tool(schema)]);
    let path = match provider {
        Provider::OpenAi => "/function/description",
        Provider::Anthropic => "/description",
        Provider::Gemini => "/functionDeclarations/0/description",
    };
    let text = compiled.tools[0].pointer(path).and_then(Value::as_str);
    text.unwrap().strip_prefix("d").unwrap().to_owned()
}

/// One property `x` in and out, with its losses.
#[track_caller]
fn property(provider: Provider, schema: Value) -> (Value, Vec<String>) {
    let (out, losses) = compiled(
        provider,
        json!({"type": "object", "properties": {"x": schema}}),
    );
    (out["properties"]["x"].clone(), losses)
}

const ALL: [Provider; 3] = [Provider::OpenAi, Provider::Anthropic, Provider::Gemini];
const JSON_SCHEMA: [Provider; 2] = [Provider::OpenAi, Provider::Anthropic];

mod shapes {
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
}

mod types {
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
}

mod roots {
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
}

mod arrays {
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
}

mod references {
    use super::*;

    #[test]
    fn gemini_gets_what_references_refer_to() {
        let (out, losses) = compiled(
            Provider::Gemini,
            json!({"type": "object",
                "properties": {
                    "task": {"$ref": "#/$defs/Task", "description": "what to add"},
                    "more": {"type": "array", "items": {"$ref": "#/definitions/Old"}},
                    "hdr": {"type": "object", "properties": {"k": {"type": "string"}}},
                    "again": {"type": "array", "items": {"$ref": "#/properties/hdr"}},
                },
                "required": ["task"],
                "$defs": {"Task": {"type": "object", "properties": {"title": {"type": "string"}, "prio": {"type": "integer"}}, "required": ["title"]}},
                "definitions": {"Old": {"type": "string"}}}),
        );
        let hdr = json!({"type": "object", "properties": {"k": {"type": "string"}}});
        assert_eq!(
            out,
            json!({"type": "object",
                "properties": {
                    "task": {"type": "object", "description": "what to add",
                        "properties": {"title": {"type": "string"}, "prio": {"type": "integer"}}, "required": ["title"]},
                    "more": {"type": "array", "items": {"type": "string"}},
                    "hdr": hdr,
                    "again": {"type": "array", "items": hdr},
                },
                "required": ["task"]})
        );
        assert_eq!(
            losses,
            [
                "/properties/task $ref inlined",
                "/properties/more/items $ref inlined",
                "/properties/again/items $ref inlined",
                " $defs dropped",
                " definitions dropped",
            ]
        );
    }

    fn comment() -> Value {
        json!({"type": "object", "properties": {"c": {"$ref": "#/$defs/Comment"}, "lost": {"$ref": "#/$defs/Nope"}},
        "$defs": {"Comment": {"type": "object", "properties": {
            "text": {"type": "string"},
            "replies": {"type": "array", "items": {"$ref": "#/$defs/Comment"}},
            "parent": {"$ref": "#/$defs/Comment"},
        }}}})
    }

    #[test]
    fn a_circle_is_cut_for_gemini() {
        let (out, losses) = compiled(Provider::Gemini, comment());
        let inner = json!({"type": "object", "description": "Same form as the enclosing Comment."});
        assert_eq!(
            out["properties"],
            json!({
                "c": {"type": "object", "properties": {
                    "text": {"type": "string"}, "replies": {"type": "array", "items": inner}, "parent": inner,
                }},
                "lost": {"type": "object"},
            })
        );
        assert_eq!(
            losses,
            [
                "/properties/c $ref inlined",
                "/properties/c/properties/replies/items $ref cut",
                "/properties/c/properties/parent $ref cut",
                "/properties/lost $ref replaced",
                " $defs dropped",
            ]
        );
    }

    #[test]
    fn a_circle_stays_where_references_are_understood() {
        for provider in JSON_SCHEMA {
            let (out, losses) = compiled(provider, comment());
            let mut expected = comment();
            expected["properties"]["lost"] = json!({"type": "object"});
            assert_eq!(out, expected);
            assert_eq!(losses, ["/properties/lost $ref replaced"]);
        }
    }

    #[test]
    fn a_schema_that_is_its_own_property_is_cut() {
        let (out, _) = compiled(
            Provider::Gemini,
            json!({"type": "object", "properties": {"v": {"type": "string"}, "next": {"$ref": "#"}}}),
        );
        assert_eq!(
            out["properties"]["next"],
            json!({"type": "object", "properties": {
                "v": {"type": "string"},
                "next": {"type": "object", "description": "Same form as the enclosing object."},
            }})
        );
    }

    #[test]
    fn escapes_and_anchors_are_followed_and_other_documents_are_not() {
        let x = |reference: &str| {
            compiled(
                Provider::Gemini,
                json!({"type": "object", "$id": "http://s/1", "properties": {"x": {"$ref": reference}},
                    "$defs": {"a/b c": {"type": "string"}, "n": {"$anchor": "here", "type": "integer"}}}),
            )
            .0["properties"]["x"]["type"]
                .clone()
        };
        assert_eq!(x("#/$defs/a~1b%20c"), "string");
        assert_eq!(x("#here"), "integer");
        assert_eq!(x("http://s/1#here"), "integer");
        assert_eq!(x("http://elsewhere/2#here"), "object");
    }
}

mod gemini {
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
            json!({"oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}),
        );
        assert_eq!(
            out,
            json!({"type": "string", "title": "A", "enum": ["a", "b"]})
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
}

mod nonsense {
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
        let info = tool(
            json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs}),
        );
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
}
