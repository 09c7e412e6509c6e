//! What a run that is ended from outside still saves (SPEC 7.7), in a store of the host.

use super::host::{Host, LONG};
use super::runs::{calls_echo, client, expect, ok, says};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Operation 1 is an ask whose tool call waits for the host; gives the number of that call.
fn ask(host: &mut Host, op: &str) -> u64 {
    let toolkit = host.toolkit();
    let client = client(host, json!({"store": {"handler": 8}}));
    let args = json!({"client": client, "toolkit": toolkit, "prompt": "hi", "id": "c"});
    host.submit(1, op, &args);
    let (call, _) = expect(host, "store.get");
    ok(host, call, json!(null));
    let (call, _) = expect(host, "http.send");
    ok(host, call, calls_echo());
    expect(host, "tool.execute").0
}

fn taken_back(event: &Value, call: u64) {
    let expected = json!({"type": "host_call_cancelled", "call": call, "op": 1});
    assert_eq!(event, &expected);
}

fn ends(host: &mut Host, how: &str) {
    let end = host.next();
    assert_eq!(
        (&end["type"], &end["op"]),
        (&json!(how), &json!(1)),
        "{end}"
    );
}

fn keeps_what_was_done(op: &str) {
    let mut host = Host::new();
    let tool = ask(&mut host, op);
    host.engine.cancel(1);
    taken_back(&host.next(), tool);
    let (call, saved) = expect(&mut host, "store.save");
    let messages = &saved["transcript"]["messages"];
    assert_eq!(messages.as_array().map(Vec::len), Some(3));
    assert_eq!(
        messages[2],
        json!({"role": "tool", "tool_call_id": "c1", "content": "Interrupted: the run ended before this call did. It may have had effects."})
    );
    host.engine.cancel(1);
    ok(&host, call, json!(null));
    ends(&mut host, "cancelled");
    assert_eq!(host.counters()["operations"], 0);
    assert_eq!(host.counters()["openStreams"], 0);
}

#[test]
fn a_cancelled_ask_saves_before_it_ends() {
    keeps_what_was_done("client.ask");
}

#[test]
fn a_cancelled_stream_saves_before_it_ends() {
    keeps_what_was_done("client.stream");
}

#[test]
fn a_result_that_is_being_saved_when_the_run_is_cancelled_is_saved() {
    let mut host = Host::new();
    let tool = ask(&mut host, "client.ask");
    ok(&host, tool, json!({"value": "done"}));
    let (call, _) = expect(&mut host, "http.send");
    ok(&host, call, says("yes"));
    let (call, _) = expect(&mut host, "store.save");
    host.engine.cancel(1);
    ok(&host, call, json!(null));
    ends(&mut host, "cancelled");
}

#[test]
fn a_store_that_does_not_answer_holds_a_cancel_up_for_less_than_two_seconds() {
    let mut host = Host::new();
    let tool = ask(&mut host, "client.ask");
    let begun = Instant::now();
    host.engine.cancel(1);
    taken_back(&host.next(), tool);
    let (call, _) = expect(&mut host, "store.save");
    taken_back(&host.next(), call);
    ends(&mut host, "cancelled");
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_close_does_not_wait_for_a_store_of_the_host() {
    let mut host = Host::new();
    let tool = ask(&mut host, "client.ask");
    let begun = Instant::now();
    assert!(host.engine.close(LONG));
    assert!(begun.elapsed() < Duration::from_secs(1));
    let events = host.rest();
    taken_back(&events[0], tool);
    assert_eq!(events[1]["error"]["code"], "closed");
    assert_eq!(events.len(), 2);
}

#[test]
fn a_close_keeps_what_was_done_in_a_store_of_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut host = Host::new();
    let toolkit = host.toolkit();
    let store = format!("file:{}", folder.path().display());
    let client = client(&mut host, json!({"store": store}));
    let args = json!({"client": client, "toolkit": toolkit, "prompt": "hi", "id": "c"});
    host.submit(1, "client.ask", &args);
    let (call, _) = expect(&mut host, "http.send");
    ok(&host, call, calls_echo());
    expect(&mut host, "tool.execute");
    assert!(host.engine.close(LONG));
    let text = std::fs::read_to_string(folder.path().join("c.json")).expect("saved");
    let kept: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(kept["messages"].as_array().map(Vec::len), Some(3));
}
