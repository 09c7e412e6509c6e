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
