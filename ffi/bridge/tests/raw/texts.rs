//! What a text may be, and what happens to one that may not.

use super::host::{Host, code};
use serde_json::{Value, json};
use toolspan_bridge::{MAX_DEPTH, MAX_TEXT};

#[test]
fn a_request_that_is_none_is_refused() {
    let host = Host::new();
    for text in [
        "",
        " ",
        "null",
        "[]",
        "{}",
        r#"{"op":1}"#,
        r#"{"op":"version","op":"version"}"#,
        r#"{"op":"version","x":1}"#,
        r#"{"op":"version"} x"#,
        r#"{"op":"no.such"}"#,
        "{\"op\":\"ver\0sion\"}",
    ] {
        assert_eq!(
            code(host.engine.submit(1, text)),
            "invalid_argument",
            "{text}"
        );
        assert_eq!(code(host.engine.call(text)), "invalid_argument", "{text}");
    }
    assert_eq!(
        code(host.engine.call(r#"{"op":"toolkit.create"}"#)),
        "invalid_argument"
    );
}

#[test]
fn an_unknown_argument_or_option_is_named_by_its_path() {
    let mut host = Host::new();
    let event = host.run(1, "version", &json!({"verbose": true}));
    assert_eq!(event["error"]["code"], "invalid_argument");
    assert_eq!(event["error"]["path"], "verbose");
    let event = host.run(
        1,
        "toolkit.create",
        &json!({"options": {"tools": [{"name": "a", "handler": 1, "desc": ""}]}}),
    );
    assert_eq!(event["error"]["code"], "invalid_config");
    assert_eq!(event["error"]["path"], "tools[0].desc");
    let event = host.run(
        1,
        "toolkit.create",
        &json!({"options": {"timeoutMs": "soon"}}),
    );
    assert_eq!(event["error"]["code"], "invalid_config");
    assert_eq!(event["error"]["path"], "timeoutMs");
}

#[test]
fn too_deep_is_refused_and_deep_is_not() {
    let mut host = Host::new();
    let toolkit = host.toolkit();
    let request = |depth: usize| {
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        format!(
            r#"{{"op":"toolkit.execute","args":{{"toolkit":{toolkit},"name":"echo","args":{{"x":{nested}}}}}}}"#
        )
    };
    assert_eq!(
        code(host.engine.submit(1, &request(MAX_DEPTH))),
        "limit_exceeded"
    );
    assert_eq!(host.engine.submit(1, &request(100)), Ok(()));
    let call = host.next();
    let deep = format!(
        r#"{{"ok":{{"value":{}{}}}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let call = call["call"].as_u64().expect("a number");
    assert_eq!(code(host.engine.respond(call, &deep)), "limit_exceeded");
    assert_eq!(host.next()["result"]["isError"], true);
}

#[test]
fn the_largest_text_passes_and_one_byte_more_does_not() {
    let mut host = Host::new();
    let toolkit = host.toolkit();
    let frame = format!(
        r#"{{"op":"toolkit.execute","args":{{"toolkit":{toolkit},"name":"echo","args":{{"x":"#
    );
    let fill = |bytes: usize| format!(r#"{frame}"{}"}}}}}}"#, "a".repeat(bytes - frame.len() - 5));
    assert_eq!(
        code(host.engine.submit(1, &fill(MAX_TEXT + 1))),
        "limit_exceeded"
    );
    assert_eq!(host.engine.submit(1, &fill(MAX_TEXT)), Ok(()));
    let call = host.next();
    let sent = call["payload"]["args"]["x"].as_str().map(str::len);
    assert_eq!(sent, Some(MAX_TEXT - frame.len() - 5));
    host.engine.cancel(1);
}

#[test]
fn key_order_number_text_escapes_and_nul_pass_through_both_ways() {
    let mut host = Host::new();
    let toolkit = host.toolkit();
    let args = r#"{"z":1.50,"a":123456789012345678901234567890,"n":"\u0000","s":"\ud83d\ude00"}"#;
    let request = format!(
        r#"{{"op":"toolkit.execute","args":{{"toolkit":{toolkit},"name":"echo","args":{args}}}}}"#
    );
    assert_eq!(host.engine.submit(1, &request), Ok(()));
    let batch = host.engine.poll(super::host::LONG, 1).expect("open");
    assert!(batch.contains(args), "{batch}");
    let call = serde_json::from_str::<Value>(&batch).expect("JSON")[0]["call"]
        .as_u64()
        .expect("a number");
    assert_eq!(
        host.engine
            .respond(call, &format!(r#"{{"ok":{{"value":{args}}}}}"#)),
        Ok(())
    );
    assert_eq!(host.next()["result"]["output"], args);
}

#[test]
fn half_a_surrogate_pair_is_an_error_where_text_is_read() {
    let host = Host::new();
    assert_eq!(
        code(host.engine.call(r#"{"op":"\ud800"}"#)),
        "invalid_argument"
    );
}

#[test]
fn the_manifest_names_what_there_is() {
    let manifest = toolspan_bridge::manifest();
    let names: Vec<&str> = manifest["operations"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|op| op["op"].as_str())
        .collect();
    assert!(names.contains(&"toolkit.create"));
    assert_eq!(
        manifest["errorCodes"].as_array().map(Vec::len),
        Some(toolspan::ErrorCode::ALL.len())
    );
    assert_eq!(
        toolspan_bridge::schema_hash(),
        toolspan_bridge::schema_hash()
    );
}
