//! Every accepted operation ends exactly once, and closing ends everything.

use super::host::{Host, LONG, code};
use serde_json::{Value, json};
use std::time::Duration;

fn terminals(events: &[Value], op: u64) -> Vec<&str> {
    events
        .iter()
        .filter(|e| e["op"] == op)
        .filter_map(|e| e["type"].as_str())
        .filter(|t| ["done", "failed", "cancelled"].contains(t))
        .collect()
}

#[test]
fn an_error_is_one_failed_event_and_the_id_is_free_again() {
    let mut host = Host::new();
    let event = host.run(1, "toolkit.execute", &json!({"toolkit": 99, "name": "x"}));
    assert_eq!(event["type"], "failed");
    assert_eq!(event["error"]["code"], "not_found");
    assert_eq!(host.run(1, "version", &json!({}))["type"], "done");
    assert_eq!(host.engine.poll(Duration::ZERO, 0).as_deref(), Some("[]"));
}

#[test]
fn cancel_in_every_order_gives_one_ending() {
    let mut host = Host::new();
    let toolkit = host.toolkit();
    host.engine.cancel(5);
    let call = host.ask(5, toolkit);
    assert_eq!(host.engine.respond(call, r#"{"ok":{"value":1}}"#), Ok(()));
    assert_eq!(
        host.next()["type"],
        "done",
        "a cancel before the submit is nobody's"
    );
    host.engine.cancel(5);
    host.ask(5, toolkit);
    host.engine.cancel(5);
    host.engine.cancel(5);
    assert_eq!(host.next()["type"], "host_call_cancelled");
    assert_eq!(host.next()["type"], "cancelled");
    host.engine.cancel(5);
    assert_eq!(host.engine.poll(Duration::ZERO, 0).as_deref(), Some("[]"));
}

#[test]
fn cancel_and_answer_at_the_same_time_give_one_ending() {
    let mut host = Host::new();
    let toolkit = host.toolkit();
    for id in 1..=200 {
        let call = host.ask(id, toolkit);
        let engine = host.engine.clone();
        let canceller = std::thread::spawn(move || engine.cancel(id));
        // Which of the two is first is the race under test.
        let _ = host.engine.respond(call, r#"{"ok":{"value":1}}"#);
        canceller.join().expect("joined");
        let mut event = host.next();
        if event["type"] == "host_call_cancelled" {
            event = host.next();
        }
        assert_eq!(event["op"], id);
        assert!(
            event["type"] == "done" || event["type"] == "cancelled",
            "{event}"
        );
    }
    assert_eq!(host.counters()["operations"], 0);
    assert_eq!(host.engine.poll(Duration::ZERO, 0).as_deref(), Some("[]"));
}

#[test]
fn an_id_in_use_and_the_id_0_are_refused_without_an_event() {
    let mut host = Host::new();
    let toolkit = host.toolkit();
    host.ask(1, toolkit);
    assert_eq!(
        code(host.engine.submit(1, r#"{"op":"version"}"#)),
        "invalid_argument"
    );
    assert_eq!(
        code(host.engine.submit(0, r#"{"op":"version"}"#)),
        "invalid_argument"
    );
    assert_eq!(host.engine.poll(Duration::ZERO, 0).as_deref(), Some("[]"));
}

#[test]
fn a_panic_is_a_failed_event_and_the_next_operation_works() {
    let mut host = Host::new();
    for at in ["call", "poll", "encode", "drop"] {
        let event = host.run(1, "test.panic", &json!({"at": at}));
        assert_eq!(event["type"], "failed", "{at}");
        assert_eq!(event["error"]["code"], "internal_panic", "{at}");
    }
    assert_eq!(
        code(host.engine.call(r#"{"op":"test.panicNow"}"#)),
        "internal_panic"
    );
    assert_eq!(host.run(2, "version", &json!({}))["type"], "done");
    assert!(host.engine.close(LONG));
}

#[test]
fn close_ends_what_runs_with_closed_and_everything_after_it_is_refused() {
    let mut host = Host::new();
    let toolkit = host.toolkit();
    let call = host.ask(1, toolkit);
    host.submit(
        2,
        "toolkit.execute",
        &json!({"toolkit": toolkit, "name": "echo"}),
    );
    assert!(host.engine.close(LONG));
    let events = host.rest();
    for op in [1, 2] {
        assert_eq!(terminals(&events, op), ["failed"]);
        let end = events
            .iter()
            .find(|e| e["op"] == op && e["type"] == "failed")
            .expect("an end");
        assert_eq!(end["error"]["code"], "closed");
    }
    assert!(events.contains(&json!({"type": "host_call_cancelled", "call": call, "op": 1})));
    assert_eq!(host.engine.poll(LONG, 0), None);
    assert_eq!(code(host.engine.submit(3, r#"{"op":"version"}"#)), "closed");
    assert_eq!(code(host.engine.call(r#"{"op":"version"}"#)), "closed");
    assert_eq!(
        code(host.engine.respond(call, r#"{"ok":{"value":1}}"#)),
        "closed"
    );
    host.engine.cancel(1);
    assert!(
        host.engine.close(Duration::ZERO),
        "a second close says what the first said"
    );
}

#[test]
fn close_does_not_wait_for_work_that_does_not_yield() {
    let mut host = Host::new();
    host.submit(1, "test.block", &json!({}));
    assert_eq!(host.next()["kind"], "log", "it blocks now");
    let closer = {
        let engine = host.engine.clone();
        std::thread::spawn(move || engine.close(Duration::from_millis(50)))
    };
    assert!(!closer.join().expect("joined"), "the work could not end");
    let events = host.rest();
    assert_eq!(terminals(&events, 1), ["failed"]);
    assert_eq!(host.engine.poll(LONG, 0), None);
}

#[test]
fn an_engine_that_did_nothing_closes_at_once() {
    let mut host = Host::new();
    assert!(host.engine.close(Duration::ZERO));
    assert_eq!(host.rest(), Vec::<Value>::new());
    assert_eq!(host.engine.poll(LONG, 0), None);
}

#[test]
fn abandoning_ends_operations_at_once_and_lets_a_waiting_poll_end() {
    let mut host = Host::new();
    let toolkit = host.toolkit();
    host.ask(1, toolkit);
    let waiting = {
        let engine = host.engine.clone();
        std::thread::spawn(move || {
            let mut all = String::new();
            while let Some(batch) = engine.poll(LONG, 0) {
                all.push_str(&batch);
            }
            all
        })
    };
    host.engine.abandon();
    let seen = waiting.join().expect("joined");
    assert_eq!(seen.matches(r#""code":"closed""#).count(), 1, "{seen}");
    assert!(!host.engine.close(LONG), "nobody waited for its end");
}

#[test]
fn everything_open_is_counted_and_counts_return_to_zero() {
    let mut host = Host::new();
    let toolkit = host.toolkit();
    let call = host.ask(1, toolkit);
    assert_eq!(
        host.counters(),
        json!({"openToolkits": 1, "connectedServers": 0, "openClients": 0, "operations": 1, "openStreams": 0})
    );
    assert_eq!(host.engine.respond(call, r#"{"ok":{"value":1}}"#), Ok(()));
    assert_eq!(host.next()["type"], "done");
    assert_eq!(
        host.run(2, "toolkit.close", &json!({"toolkit": toolkit}))["type"],
        "done"
    );
    assert_eq!(
        host.run(2, "toolkit.close", &json!({"toolkit": toolkit}))["type"],
        "done"
    );
    assert_eq!(
        host.run(2, "toolkit.tools", &json!({"toolkit": toolkit}))["error"]["code"],
        "closed"
    );
    let counters = json!({"openToolkits": 0, "connectedServers": 0, "openClients": 0, "operations": 0, "openStreams": 0});
    assert_eq!(host.counters(), counters);
    assert_eq!(host.run(3, "counters", &json!({}))["result"], counters);
}
