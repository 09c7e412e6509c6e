//! A small host: submits, collects, answers.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use toolspan_bridge::Engine;

/// Longer than anything here takes; reaching it fails the test.
pub const LONG: Duration = Duration::from_secs(30);

/// Every kind that wants an answer.
pub fn all_kinds() -> Value {
    json!([
        "tool.execute",
        "hook.beforeLLM",
        "hook.afterLLM",
        "hook.beforeTool",
        "hook.afterTool",
        "bodyTransform",
        "onError",
        "store.get",
        "store.save",
        "http.send",
        "http.read"
    ])
}

pub struct Host {
    pub engine: Engine,
    seen: VecDeque<Value>,
}

impl Host {
    pub fn new() -> Self {
        Host::with(&json!({"hostCalls": all_kinds()}))
    }

    pub fn with(options: &Value) -> Self {
        Host::of(Engine::new(&options.to_string()).expect("an engine"))
    }

    pub fn of(engine: Engine) -> Self {
        Host {
            engine,
            seen: VecDeque::new(),
        }
    }

    pub fn submit(&self, id: u64, op: &str, args: &Value) {
        let request = json!({"op": op, "args": args}).to_string();
        self.engine.submit(id, &request).expect("accepted");
    }

    /// The next event.
    pub fn next(&mut self) -> Value {
        let end = Instant::now() + LONG;
        while self.seen.is_empty() {
            assert!(Instant::now() < end, "no event came");
            let batch = self.engine.poll(LONG, 0).expect("open");
            let batch: Vec<Value> = serde_json::from_str(&batch).expect("an array of events");
            self.seen.extend(batch);
        }
        self.seen.pop_front().expect("an event")
    }

    /// The next terminal event; host calls before it are left to themselves.
    pub fn next_ending(&mut self) -> Value {
        loop {
            let event = self.next();
            if event["type"] != "host_call" && event["type"] != "host_call_cancelled" {
                return event;
            }
        }
    }

    /// Everything that still comes out of a closed engine.
    pub fn rest(&mut self) -> Vec<Value> {
        let mut all: Vec<Value> = self.seen.drain(..).collect();
        while let Some(batch) = self.engine.poll(Duration::ZERO, 0) {
            if batch == "[]" {
                break;
            }
            all.extend(serde_json::from_str::<Vec<Value>>(&batch).expect("an array of events"));
        }
        all
    }

    /// Submits and waits for the terminal event, which must be the next event.
    pub fn run(&mut self, id: u64, op: &str, args: &Value) -> Value {
        self.submit(id, op, args);
        let event = self.next();
        assert_eq!(event["op"], id);
        event
    }

    /// A toolkit with one tool, `echo`, of handler 7.
    pub fn toolkit(&mut self) -> u64 {
        let event = self.run(
            1_000_000,
            "toolkit.create",
            &json!({"options": {"tools": [{"name": "echo", "handler": 7}]}}),
        );
        event["result"]["toolkit"].as_u64().expect("a number")
    }

    /// Starts a call of `echo` and gives the number of the host call it makes.
    pub fn ask(&mut self, id: u64, toolkit: u64) -> u64 {
        self.submit(
            id,
            "toolkit.execute",
            &json!({"toolkit": toolkit, "name": "echo", "args": {"x": 1}}),
        );
        let event = self.next();
        assert_eq!(event["type"], "host_call");
        assert_eq!(event["op"], id);
        event["call"].as_u64().expect("a number")
    }

    pub fn counters(&self) -> Value {
        let text = self
            .engine
            .call(r#"{"op":"counters","args":{}}"#)
            .expect("counters");
        serde_json::from_str(&text).expect("JSON")
    }
}

/// The code of a refusal.
pub fn code(refusal: Result<impl std::fmt::Debug, String>) -> String {
    let record: Value = serde_json::from_str(&refusal.expect_err("a refusal")).expect("a record");
    record["code"].as_str().expect("a code").to_owned()
}
