//! Host calls: asking, answering, failing, giving up.

use super::host::{Host, code};
use serde_json::json;
use toolspan_bridge::Engine;

#[test]
fn a_tool_of_the_host_is_asked_and_its_value_is_the_output() {
    let mut host = Host::new();
    let toolkit = host.toolkit();
    host.submit(
        1,
        "toolkit.execute",
        &json!({"toolkit": toolkit, "name": "echo", "args": {"b": 1, "a": 2}, "timeoutMs": 60000}),
    );
    let call = host.next();
    assert_eq!(
        call,
        json!({"type": "host_call", "call": 1, "op": 1, "kind": "tool.execute", "handler": 7,
            "payload": {"name": "echo", "args": {"b": 1, "a": 2}, "timeoutMs": 60000}})
    );
    assert_eq!(host.engine.respond(1, r#"{"ok":{"value":"two"}}"#), Ok(()));
    assert_eq!(
        host.next(),
        json!({"type": "done", "op": 1, "result": {"output": "two", "isError": false}})
    );
}

#[test]
fn a_finished_result_passes_as_it_is() {
    let mut host = Host::new();
    let toolkit = host.toolkit();
    let call = host.ask(1, toolkit);
    let result = json!({"output": "no", "isError": true, "parts": [{"type": "image", "mimeType": "image/png", "url": "http://x/"}]});
    let reply = json!({"ok": {"result": result}}).to_string();
    assert_eq!(host.engine.respond(call, &reply), Ok(()));
    assert_eq!(
        host.next(),
        json!({"type": "done", "op": 1, "result": result})
    );
}

#[test]
fn what_a_tool_throws_is_an_error_result() {
    let mut host = Host::new();
    let toolkit = host.toolkit();
    let call = host.ask(1, toolkit);
    let reply = r#"{"error":{"message":"disk full","type":"OSError"}}"#;
    assert_eq!(host.engine.respond(call, reply), Ok(()));
    assert_eq!(
        host.next(),
        json!({"type": "done", "op": 1, "result": {"output": "disk full", "isError": true}})
    );
}

#[test]
fn a_call_is_answered_once() {
    let mut host = Host::new();
    let toolkit = host.toolkit();
    let call = host.ask(1, toolkit);
    assert_eq!(host.engine.respond(call, r#"{"ok":{"value":1}}"#), Ok(()));
    assert_eq!(
        code(host.engine.respond(call, r#"{"ok":{"value":2}}"#)),
        "not_found"
    );
    assert_eq!(host.next()["result"]["output"], "1");
    assert_eq!(
        code(host.engine.respond(4711, r#"{"ok":null}"#)),
        "not_found"
    );
}

#[test]
fn an_answer_that_cannot_be_read_fails_the_call_and_says_so_to_both_sides() {
    for reply in [
        "",
        "{",
        "{}",
        r#"{"ok":1,"error":{"message":"x"}}"#,
        r#"{"error":{}}"#,
        r#"{"yes":1}"#,
    ] {
        let mut host = Host::new();
        let toolkit = host.toolkit();
        let call = host.ask(1, toolkit);
        assert_eq!(
            code(host.engine.respond(call, reply)),
            "invalid_argument",
            "{reply}"
        );
        assert_eq!(
            host.next()["result"],
            json!({"output": "the answer of the host could not be read", "isError": true}),
            "{reply}"
        );
    }
}

#[test]
fn an_answer_of_the_wrong_shape_fails_the_call() {
    let mut host = Host::new();
    let toolkit = host.toolkit();
    let call = host.ask(1, toolkit);
    assert_eq!(
        host.engine
            .respond(call, r#"{"ok":{"output":"forgot the result key"}}"#),
        Ok(())
    );
    assert_eq!(
        host.next()["result"],
        json!({"output": "the answer to tool.execute has the wrong shape", "isError": true})
    );
}

#[test]
fn cancelling_the_operation_cancels_its_open_call_and_a_late_answer_is_refused() {
    let mut host = Host::new();
    let toolkit = host.toolkit();
    let call = host.ask(1, toolkit);
    host.engine.cancel(1);
    assert_eq!(
        host.next(),
        json!({"type": "host_call_cancelled", "call": call, "op": 1})
    );
    let end = host.next();
    assert_eq!(end["type"], "cancelled");
    assert_eq!(end["error"]["code"], "cancelled");
    assert_eq!(
        code(host.engine.respond(call, r#"{"ok":{"value":1}}"#)),
        "not_found"
    );
}

#[test]
fn a_budget_that_runs_out_cancels_the_call() {
    let mut host = Host::new();
    let toolkit = host.toolkit();
    host.submit(
        1,
        "toolkit.execute",
        &json!({"toolkit": toolkit, "name": "echo", "timeoutMs": 1}),
    );
    assert_eq!(host.next()["type"], "host_call");
    assert_eq!(host.next()["type"], "host_call_cancelled");
    let end = host.next();
    assert_eq!(end["type"], "failed");
    assert_eq!(end["error"]["code"], "timeout");
}

#[test]
fn a_kind_the_host_does_not_answer_is_refused_with_the_path_of_the_option() {
    let mut host = Host::with(&json!({}));
    let event = host.run(
        1,
        "toolkit.create",
        &json!({"options": {"tools": [{"name": "t", "handler": 1}]}}),
    );
    assert_eq!(event["type"], "failed");
    assert_eq!(event["error"]["code"], "invalid_argument");
    assert_eq!(event["error"]["path"], "tools[0].handler");
}

#[test]
fn an_unknown_kind_or_option_of_the_engine_is_refused_with_its_path() {
    let refuse = |options: &str| -> serde_json::Value {
        serde_json::from_str(&Engine::new(options).err().expect("a refusal")).expect("a record")
    };
    assert_eq!(
        refuse(r#"{"hostCalls":["tool.execute","tool.exec"]}"#)["path"],
        "hostCalls[1]"
    );
    assert_eq!(refuse(r#"{"worker":1}"#)["path"], "worker");
    assert_eq!(refuse(r#"{"workers":0}"#)["path"], "workers");
    assert_eq!(refuse(r#"{"log":"loud"}"#)["path"], "log");
}

#[test]
fn log_records_come_as_calls_that_want_no_answer() {
    let mut host = Host::with(&json!({"hostCalls": ["tool.execute"], "log": "warn"}));
    host.submit(
        1,
        "toolkit.create",
        &json!({"options": {"disableTools": ["nobody"]}}),
    );
    assert_eq!(
        host.next(),
        json!({"type": "host_call", "call": 0, "op": 1, "kind": "log", "handler": 0, "payload": {
            "level": "warn", "target": "toolkit", "message": "disableTools names no tool: nobody",
            "fields": {"tools": ["nobody"]}}})
    );
    assert_eq!(host.next()["type"], "done");
}
