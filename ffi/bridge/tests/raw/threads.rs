//! Many threads, foreign runtimes, several engines, and the wake function.

use super::host::{Host, LONG, all_kinds, code};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use toolspan_bridge::Engine;

#[test]
fn thirty_two_threads_get_their_own_answers_from_one_pump() {
    let mut host = Host::new();
    let toolkit = host.toolkit();
    let threads: Vec<_> = (0..32u64)
        .map(|thread| {
            let engine = host.engine.clone();
            std::thread::spawn(move || {
                for n in 1..=50 {
                    let id = thread * 1000 + n;
                    let request = json!({"op": "toolkit.execute", "args": {"toolkit": toolkit, "name": "echo", "args": {"id": id}}});
                    engine.submit(id, &request.to_string()).expect("accepted");
                }
            })
        })
        .collect();
    let mut ends: HashMap<u64, Value> = HashMap::new();
    while ends.len() < 32 * 50 {
        let event = host.next();
        if event["type"] == "host_call" {
            let reply = json!({"ok": {"value": event["payload"]["args"]["id"]}}).to_string();
            host.engine
                .respond(event["call"].as_u64().expect("a number"), &reply)
                .expect("waited for");
        } else {
            let id = event["op"].as_u64().expect("a number");
            assert!(ends.insert(id, event).is_none(), "ended twice");
        }
    }
    for (id, event) in ends {
        assert_eq!(event["result"]["output"], id.to_string());
    }
    for thread in threads {
        thread.join().expect("joined");
    }
    assert_eq!(host.counters()["operations"], 0);
}

#[test]
fn closing_under_thirty_two_threads_ends_each_accepted_operation_once() {
    let mut host = Host::new();
    let toolkit = host.toolkit();
    let threads: Vec<_> = (0..32u64)
        .map(|thread| {
            let engine = host.engine.clone();
            std::thread::spawn(move || {
                let mut accepted = Vec::new();
                for n in 1.. {
                    let id = thread * 1_000_000 + n;
                    let request = json!({"op": "toolkit.execute", "args": {"toolkit": toolkit, "name": "echo"}});
                    match engine.submit(id, &request.to_string()) {
                        Ok(()) => accepted.push(id),
                        refused => {
                            assert_eq!(code(refused), "closed");
                            return accepted;
                        }
                    }
                }
                accepted
            })
        })
        .collect();
    assert_eq!(host.next()["type"], "host_call");
    assert!(host.engine.close(LONG));
    let accepted: Vec<u64> = threads
        .into_iter()
        .flat_map(|t| t.join().expect("joined"))
        .collect();
    let mut ends: HashMap<u64, usize> = HashMap::new();
    for event in host.rest() {
        if event["type"] == "failed" {
            assert_eq!(event["error"]["code"], "closed");
            *ends
                .entry(event["op"].as_u64().expect("a number"))
                .or_default() += 1;
        }
    }
    assert_eq!(ends.len(), accepted.len());
    assert!(accepted.iter().all(|id| ends.get(id) == Some(&1)));
}

#[test]
fn an_engine_lives_and_dies_inside_a_foreign_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mut host = Host::new();
        let toolkit = host.toolkit();
        host.ask(1, toolkit);
        assert!(host.engine.close(LONG));
        let mut dropped = Host::new();
        let toolkit = dropped.toolkit();
        dropped.ask(1, toolkit);
    });
}

#[test]
fn two_engines_know_nothing_of_each_other() {
    let mut first = Host::new();
    let mut second = Host::new();
    let toolkit = first.toolkit();
    assert_eq!(
        second.run(1, "toolkit.tools", &json!({"toolkit": toolkit}))["error"]["code"],
        "not_found"
    );
    assert!(first.engine.close(LONG));
    assert_eq!(second.run(1, "version", &json!({}))["type"], "done");
}

#[test]
fn the_wake_function_is_called_once_per_turn_from_empty_to_filled() {
    let engine = Engine::new(&json!({"hostCalls": all_kinds()}).to_string()).expect("an engine");
    let (told, wakes) = mpsc::channel();
    engine.set_wake(Some(Box::new(move || told.send(()).expect("heard"))));
    for id in 1..=3 {
        engine.submit(id, r#"{"op":"version"}"#).expect("accepted");
    }
    assert_eq!(wakes.try_iter().count(), 1);
    assert_eq!(
        engine
            .poll(Duration::ZERO, 2)
            .map(|t| t.matches("\"done\"").count()),
        Some(2)
    );
    engine.submit(4, r#"{"op":"version"}"#).expect("accepted");
    assert_eq!(wakes.try_iter().count(), 0, "the host has not caught up");
    assert_eq!(
        engine
            .poll(Duration::ZERO, 0)
            .map(|t| t.matches("\"done\"").count()),
        Some(2)
    );
    engine.submit(5, r#"{"op":"version"}"#).expect("accepted");
    assert_eq!(wakes.try_iter().count(), 1);
    let late = Arc::new(AtomicUsize::new(0));
    let count = late.clone();
    engine.set_wake(Some(Box::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
    })));
    assert_eq!(
        late.load(Ordering::Relaxed),
        1,
        "there was something to collect"
    );
    engine.set_wake(None);
    assert!(engine.close(LONG));
    assert_eq!(late.load(Ordering::Relaxed), 1);
}
