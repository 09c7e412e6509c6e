//! Runs and streams. The host's own HTTP client plays the model, so nothing here touches a network.

use super::host::{Host, all_kinds};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

const HTTP: u64 = 50;

pub fn client(host: &mut Host, more: Value) -> u64 {
    let mut options = json!({"baseUrl": "http://model.test/v1", "style": "openai", "model": "m",
        "apiKey": "k", "httpClient": {"handler": HTTP}, "retryBaseMs": 0});
    for (key, value) in more.as_object().expect("an object") {
        options[key] = value.clone();
    }
    let event = host.run(2_000_000, "client.create", &json!({"options": options}));
    event["result"]["client"]
        .as_u64()
        .unwrap_or_else(|| panic!("a number: {event}"))
}

/// The next host call, which must be of that kind; gives its number and payload.
pub fn expect(host: &mut Host, kind: &str) -> (u64, Value) {
    let event = host.next();
    assert_eq!(event["kind"], kind, "{event}");
    (
        event["call"].as_u64().expect("a number"),
        event["payload"].clone(),
    )
}

pub fn ok(host: &Host, call: u64, value: Value) {
    assert_eq!(
        host.engine.respond(call, &json!({"ok": value}).to_string()),
        Ok(())
    );
}

fn answer(message: &Value) -> Value {
    let finish = if message.get("tool_calls").is_some() {
        "tool_calls"
    } else {
        "stop"
    };
    let body = json!({"choices": [{"message": message, "finish_reason": finish}], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}});
    json!({"status": 200, "headers": [["Content-Type", "application/json"]], "body": body.to_string()})
}

pub fn says(text: &str) -> Value {
    answer(&json!({"role": "assistant", "content": text}))
}

pub fn calls_echo() -> Value {
    answer(
        &json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "echo", "arguments": "{\"x\":1}"}}]}),
    )
}

#[test]
fn a_run_asks_for_requests_and_tools_and_gives_a_result() {
    let mut host = Host::new();
    let toolkit = host.toolkit();
    let client = client(&mut host, json!({}));
    host.submit(
        1,
        "client.run",
        &json!({"client": client, "toolkit": toolkit, "prompt": "hi"}),
    );
    let (call, request) = expect(&mut host, "http.send");
    assert_eq!(request["method"], "POST");
    assert_eq!(request["url"], "http://model.test/v1/chat/completions");
    assert_eq!(request["headers"][1], json!(["authorization", "Bearer k"]));
    ok(&host, call, calls_echo());
    let event = host.next();
    assert_eq!(event["op"], 1);
    assert_eq!(
        event["payload"],
        json!({"name": "echo", "args": {"x": 1}, "callId": "c1"})
    );
    ok(
        &host,
        event["call"].as_u64().expect("a number"),
        json!({"value": "one"}),
    );
    let (call, request) = expect(&mut host, "http.send");
    let body: Value = serde_json::from_str(request["body"].as_str().expect("text")).expect("JSON");
    assert_eq!(
        body["messages"][2],
        json!({"role": "tool", "tool_call_id": "c1", "content": "one"})
    );
    ok(&host, call, says("done"));
    let result = host.next()["result"].clone();
    assert_eq!(result["text"], "done");
    assert_eq!(result["turns"], 2);
    assert_eq!(result["toolCalls"][0]["output"], "one");
}

#[test]
fn number_text_of_request_params_reaches_the_body() {
    let mut host = Host::new();
    let options = r#"{"baseUrl":"http://model.test/v1","style":"openai","model":"m","httpClient":{"handler":50},"requestParams":{"seed":12345678901234567890123,"temperature":1.0}}"#;
    let created = host
        .engine
        .call(&format!(
            r#"{{"op":"client.create","args":{{"options":{options}}}}}"#
        ))
        .expect("created");
    let client: Value = serde_json::from_str(&created).expect("JSON");
    host.submit(
        1,
        "client.run",
        &json!({"client": client["client"], "prompt": "hi"}),
    );
    let (_, request) = expect(&mut host, "http.send");
    let body = request["body"].as_str().expect("text");
    assert!(
        body.ends_with(r#","seed":12345678901234567890123,"temperature":1.0}"#),
        "{body}"
    );
}

#[test]
fn hooks_are_asked_in_order_and_null_changes_nothing() {
    let mut host = Host::new();
    let toolkit = host.toolkit();
    let hooks = json!({"beforeLLM": {"handler": 1}, "afterLLM": {"handler": 2}, "beforeTool": {"handler": 3}, "afterTool": {"handler": 4}});
    let client = client(
        &mut host,
        json!({"hooks": hooks, "bodyTransform": {"handler": 5}}),
    );
    host.submit(
        1,
        "client.run",
        &json!({"client": client, "toolkit": toolkit, "prompt": "hi"}),
    );
    let mut order = Vec::new();
    for (kind, reply) in [
        ("hook.beforeLLM", json!(null)),
        ("bodyTransform", json!(null)),
        ("http.send", calls_echo()),
        ("hook.afterLLM", json!({"ignored": true})),
        ("hook.beforeTool", json!({"args": {"x": 2}})),
        ("tool.execute", json!({"value": 2})),
        ("hook.afterTool", json!({"result": {"output": "replaced"}})),
        ("hook.beforeLLM", json!({"model": "m2"})),
        ("bodyTransform", json!({"whole": "new"})),
        ("http.send", says("done")),
        ("hook.afterLLM", json!(null)),
    ] {
        let (call, payload) = expect(&mut host, kind);
        order.push(payload);
        ok(&host, call, reply);
    }
    let result = host.next()["result"].clone();
    assert_eq!(order[5]["args"], json!({"x": 2}));
    assert_eq!(order[9]["body"], r#"{"whole":"new"}"#);
    assert_eq!(result["toolCalls"][0]["output"], "replaced");
    assert_eq!(result["model"], "m2");
}

#[test]
fn what_a_hook_throws_ends_the_run_and_carries_the_number_of_the_call() {
    let mut host = Host::new();
    let client = client(&mut host, json!({"hooks": {"beforeLLM": {"handler": 1}}}));
    host.submit(1, "client.run", &json!({"client": client, "prompt": "hi"}));
    let (call, _) = expect(&mut host, "hook.beforeLLM");
    let reply = r#"{"error":{"message":"not today","type":"ValueError"}}"#;
    assert_eq!(host.engine.respond(call, reply), Ok(()));
    let end = host.next();
    assert_eq!(end["type"], "failed");
    assert_eq!(end["error"]["code"], "host_failed");
    assert_eq!(end["error"]["message"], "beforeLLM failed: not today");
    assert_eq!(end["error"]["hostCall"], call);
}

#[test]
fn on_error_may_end_the_retries() {
    let mut host = Host::new();
    let client = client(&mut host, json!({"onError": {"handler": 9}}));
    host.submit(1, "client.run", &json!({"client": client, "prompt": "hi"}));
    let busy = json!({"status": 503, "headers": [], "body": "{}"});
    let (call, _) = expect(&mut host, "http.send");
    ok(&host, call, busy.clone());
    let (call, failure) = expect(&mut host, "onError");
    assert_eq!(failure["attempt"], 0);
    assert_eq!(failure["retryable"], true);
    ok(&host, call, json!(null));
    let (call, _) = expect(&mut host, "http.send");
    ok(&host, call, busy);
    let (call, _) = expect(&mut host, "onError");
    ok(&host, call, json!("fail"));
    assert_eq!(host.next()["error"]["code"], "provider_unavailable");
}

#[test]
fn a_transport_that_throws_is_a_failed_connection_with_the_cause() {
    let mut host = Host::new();
    let client = client(&mut host, json!({"retries": 0}));
    host.submit(1, "client.run", &json!({"client": client, "prompt": "hi"}));
    let (call, _) = expect(&mut host, "http.send");
    assert_eq!(
        host.engine
            .respond(call, r#"{"error":{"message":"no route"}}"#),
        Ok(())
    );
    let end = host.next();
    assert_eq!(end["error"]["code"], "connection_failed");
    assert_eq!(end["error"]["hostCall"], call);
    assert_eq!(
        end["error"]["cause"][0],
        json!({"message": "no route", "code": "host_failed"})
    );
}

#[test]
fn a_store_of_the_host_is_read_and_written() {
    let mut host = Host::new();
    let client = client(&mut host, json!({"store": {"handler": 8}}));
    host.submit(
        1,
        "client.ask",
        &json!({"client": client, "prompt": "again", "id": "c"}),
    );
    let (call, asked) = expect(&mut host, "store.get");
    assert_eq!(asked, json!({"id": "c"}));
    let past = json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]);
    ok(&host, call, past);
    let (call, _) = expect(&mut host, "http.send");
    ok(&host, call, says("hey"));
    let (call, saved) = expect(&mut host, "store.save");
    assert_eq!(saved["id"], "c");
    assert_eq!(saved["transcript"]["version"], 1);
    assert_eq!(
        saved["transcript"]["messages"][2],
        json!({"role": "user", "content": "again"})
    );
    ok(&host, call, json!(null));
    assert_eq!(host.next()["result"]["conversationId"], "c");
}

#[test]
fn a_conversation_remembers_and_its_client_s_store_shows_it() {
    let mut host = Host::new();
    let client = client(&mut host, json!({}));
    let created = host.run(
        1,
        "conversation.create",
        &json!({"client": client, "id": "c"}),
    );
    let conversation = created["result"]["conversation"].clone();
    host.submit(
        1,
        "conversation.send",
        &json!({"conversation": conversation, "prompt": "hi"}),
    );
    let (call, _) = expect(&mut host, "http.send");
    ok(&host, call, says("ho"));
    assert_eq!(host.next()["result"]["text"], "ho");
    let said = json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]);
    let messages = host.run(
        1,
        "conversation.messages",
        &json!({"conversation": conversation}),
    );
    assert_eq!(messages["result"]["messages"], said);
    let stored = host.run(1, "store.get", &json!({"client": client, "id": "c"}));
    assert_eq!(
        stored["result"]["transcript"],
        json!({"version": 1, "style": "openai", "messages": said})
    );
    assert_eq!(
        host.run(
            1,
            "conversation.reset",
            &json!({"conversation": conversation})
        )["result"],
        json!({})
    );
    let saved = json!({"client": client, "id": "d", "messages": said});
    assert_eq!(host.run(1, "store.save", &saved)["result"], json!({}));
    let bad = json!({"client": client, "id": "d", "messages": [1]});
    let refused = host.run(1, "store.save", &bad);
    assert_eq!(refused["error"]["code"], "invalid_argument");
    assert_eq!(refused["error"]["path"], "messages");
    assert_eq!(
        host.run(
            1,
            "conversation.close",
            &json!({"conversation": conversation})
        )["result"],
        json!({})
    );
    assert_eq!(
        host.run(
            1,
            "conversation.messages",
            &json!({"conversation": conversation})
        )["error"]["code"],
        "closed"
    );
}

#[test]
fn metric_events_are_told_and_counted() {
    let mut host = Host::new();
    let client = client(&mut host, json!({"onMetric": {"handler": 6}}));
    host.submit(1, "client.run", &json!({"client": client, "prompt": "hi"}));
    let (call, _) = expect(&mut host, "http.send");
    ok(&host, call, says("ho"));
    let event = host.next();
    assert_eq!(
        (&event["call"], &event["handler"], &event["op"]),
        (&json!(0), &json!(6), &json!(1))
    );
    assert_eq!(event["payload"]["type"], "llm");
    assert_eq!(host.next()["payload"]["type"], "run");
    assert_eq!(host.next()["type"], "done");
    let text = host.run(1, "client.metrics", &json!({"client": client}))["result"]["text"].clone();
    assert!(
        text.as_str().expect("text").starts_with("# HELP toolspan_"),
        "{text}"
    );
}

#[test]
fn closing_a_client_ends_its_runs_and_forgets_it() {
    let mut host = Host::new();
    let client = client(&mut host, json!({}));
    host.submit(1, "client.run", &json!({"client": client, "prompt": "hi"}));
    expect(&mut host, "http.send");
    assert_eq!(host.counters()["openClients"], 1);
    let closed = host
        .engine
        .call(&json!({"op": "client.close", "args": {"client": client}}).to_string());
    assert_eq!(closed.as_deref(), Ok("{}"));
    assert_eq!(host.next()["type"], "host_call_cancelled");
    assert_eq!(host.next()["error"]["code"], "closed");
    assert_eq!(host.counters()["openClients"], 0);
    assert_eq!(
        host.run(1, "client.run", &json!({"client": client, "prompt": "hi"}))["error"]["code"],
        "closed"
    );
}

#[test]
fn options_that_need_a_function_or_are_missing_are_named() {
    let mut host = Host::with(&json!({"hostCalls": ["http.send", "store.get"]}));
    let mut refuse = |options: Value| {
        host.run(1, "client.create", &json!({"options": options}))["error"].clone()
    };
    let base = json!({"baseUrl": "http://m.test", "style": "openai", "model": "m"});
    let with = |key: &str, value: Value| {
        let mut options = base.clone();
        options[key] = value;
        options
    };
    for (option, value, path) in [
        (
            "hooks",
            json!({"beforeTool": {"handler": 1}}),
            "hooks.beforeTool",
        ),
        ("bodyTransform", json!({"handler": 1}), "bodyTransform"),
        ("onError", json!({"handler": 1}), "onError"),
        ("httpClient", json!({"handler": 1}), "httpClient"),
        ("store", json!({"handler": 1}), "store"),
    ] {
        let error = refuse(with(option, value));
        assert_eq!(
            (&error["code"], &error["path"]),
            (&json!("invalid_argument"), &json!(path))
        );
    }
    for (option, value, path) in [
        ("baseUrl", json!(null), "baseUrl"),
        ("style", json!("gemini"), "style"),
        (
            "hooks",
            json!({"beforeLlm": {"handler": 1}}),
            "hooks.beforeLlm",
        ),
        ("requestParams", json!({"tools": []}), "requestParams.tools"),
        ("maxTurn", json!(3), "maxTurn"),
        ("store", json!(7), "store"),
    ] {
        let error = refuse(with(option, value));
        assert_eq!(
            (&error["code"], &error["path"]),
            (&json!("invalid_config"), &json!(path))
        );
    }
}

/// Starts a stream and answers its request with a body that is handed out under number 77.
fn start(host: &mut Host, id: u64, client: u64) {
    host.submit(
        id,
        "client.stream",
        &json!({"client": client, "prompt": "hi"}),
    );
    let (call, request) = expect(host, "http.send");
    assert!(
        request["body"]
            .as_str()
            .expect("text")
            .contains(r#""stream":true"#)
    );
    ok(
        host,
        call,
        json!({"status": 200, "headers": [["content-type", "text/event-stream"]], "stream": 77}),
    );
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    format!(
        "data: {}\n\n",
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    )
}

fn text_chunk(text: &str) -> String {
    chunk(&json!({"content": text}), None)
}

/// Answers the next `http.read`.
fn feed(host: &mut Host, text: &str) {
    let (call, payload) = expect(host, "http.read");
    assert_eq!(payload, json!({"stream": 77}));
    ok(host, call, json!({"data": BASE64_STANDARD.encode(text)}));
}

#[test]
fn a_stream_is_pulled_and_its_ending_comes_before_the_last_pull_s() {
    let mut host = Host::new();
    let client = client(&mut host, json!({}));
    start(&mut host, 1, client);
    assert_eq!(host.counters()["openStreams"], 1);
    feed(&mut host, &text_chunk("a"));
    let (call, _) = expect(&mut host, "http.read");
    host.submit(2, "stream.next", &json!({"stream": 1}));
    assert_eq!(
        host.next(),
        json!({"type": "done", "op": 2, "result": {"items": [{"type": "text", "delta": "a"}], "end": false}})
    );
    host.submit(3, "stream.next", &json!({"stream": 1, "maxWaitMs": 1}));
    assert_eq!(
        host.next(),
        json!({"type": "done", "op": 3, "result": {"items": [], "end": false}})
    );
    let rest = format!(
        "{}{}data: [DONE]\n\n",
        text_chunk("b"),
        chunk(&json!({}), Some("stop"))
    );
    ok(&host, call, json!({"data": BASE64_STANDARD.encode(rest)}));
    let mut event = json!(null);
    let mut deltas = Vec::new();
    for id in 4.. {
        host.submit(id, "stream.next", &json!({"stream": 1, "maxItems": 1}));
        event = host.next_ending();
        if event["op"] == 1 {
            break;
        }
        deltas.extend(
            event["result"]["items"][0]["delta"]
                .as_str()
                .map(str::to_owned),
        );
    }
    assert_eq!(deltas, ["b"]);
    assert_eq!(event["type"], "done");
    assert_eq!(event["result"]["text"], "ab");
    let last = host.next();
    assert_eq!(last["result"]["end"], true);
    assert_eq!(last["result"]["items"][0]["result"]["text"], "ab");
    assert_eq!(host.counters()["openStreams"], 0);
    let after = host.run(9, "stream.next", &json!({"stream": 1}));
    assert_eq!(after["result"], json!({"items": [], "end": true}));
}

#[test]
fn a_reader_may_come_before_the_run_has_started_and_after_it_failed() {
    let mut host = Host::new();
    host.submit(1, "client.stream", &json!({"client": 1, "prompt": "hi"}));
    host.submit(2, "stream.next", &json!({"stream": 1}));
    let (first, second) = (host.next(), host.next());
    let (stream, pull) = if first["op"] == 1 {
        (first, second)
    } else {
        (second, first)
    };
    assert_eq!(stream["error"]["code"], "not_found");
    assert_eq!(pull["result"], json!({"items": [], "end": true}));
}

#[test]
fn a_stream_that_breaks_off_ends_its_reader_and_fails() {
    let mut host = Host::new();
    let client = client(&mut host, json!({}));
    start(&mut host, 1, client);
    feed(&mut host, &text_chunk("a"));
    let (call, _) = expect(&mut host, "http.read");
    ok(&host, call, json!({"end": true}));
    host.submit(2, "stream.next", &json!({"stream": 1}));
    assert_eq!(host.next_ending()["result"]["items"][0]["delta"], "a");
    host.submit(3, "stream.next", &json!({"stream": 1}));
    let end = host.next_ending();
    assert_eq!(
        (&end["op"], &end["error"]["code"]),
        (&json!(1), &json!("stream_interrupted"))
    );
    assert_eq!(
        host.next(),
        json!({"type": "done", "op": 3, "result": {"items": [], "end": true}})
    );
}

#[test]
fn leaving_a_stream_closes_its_body_and_ends_a_waiting_pull() {
    let mut host = Host::new();
    let client = client(&mut host, json!({}));
    start(&mut host, 1, client);
    let (call, _) = expect(&mut host, "http.read");
    host.submit(2, "stream.next", &json!({"stream": 1}));
    host.engine.cancel(1);
    let mut seen: Vec<Value> = (0..4).map(|_| host.next()).collect();
    let pulled = seen
        .iter()
        .position(|e| e["op"] == 2)
        .expect("the pull ended");
    assert_eq!(
        seen.remove(pulled)["result"],
        json!({"items": [], "end": true})
    );
    assert_eq!(
        seen[0],
        json!({"type": "host_call_cancelled", "call": call, "op": 1})
    );
    assert_eq!(
        (&seen[1]["kind"], &seen[1]["payload"]),
        (&json!("http.close"), &json!({"stream": 77}))
    );
    assert_eq!(seen[2]["type"], "cancelled");
    assert_eq!(host.counters()["openStreams"], 0);
}

#[test]
fn a_stream_that_nobody_reads_stops_reading_its_body() {
    let mut host = Host::new();
    let client = client(&mut host, json!({}));
    start(&mut host, 1, client);
    let many: String = (0..1000).map(|n| text_chunk(&n.to_string())).collect();
    feed(&mut host, &many);
    // Were the run not waiting for its reader, it would read on before this finds nothing to collect.
    host.submit(2, "stream.next", &json!({"stream": 1, "maxItems": 1}));
    assert_eq!(host.next()["result"]["items"][0]["delta"], "0");
    assert_eq!(
        host.engine
            .poll(std::time::Duration::from_millis(50), 0)
            .as_deref(),
        Some("[]")
    );
    host.engine.cancel(1);
    assert_eq!(host.next()["kind"], "http.close");
    assert_eq!(host.next()["type"], "cancelled");
}

#[test]
fn a_hundred_unread_streams_leave_nothing_behind() {
    let mut host = Host::with(&json!({"hostCalls": all_kinds()}));
    let client = client(&mut host, json!({}));
    for id in 1..=100 {
        start(&mut host, id, client);
        expect(&mut host, "http.read");
        host.engine.cancel(id);
        assert_eq!(host.next()["type"], "host_call_cancelled");
        assert_eq!(host.next()["kind"], "http.close");
        assert_eq!(host.next()["type"], "cancelled");
    }
    let counters = host.counters();
    assert_eq!(
        (&counters["openStreams"], &counters["operations"]),
        (&json!(0), &json!(0))
    );
}
