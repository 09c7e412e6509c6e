//! Streams through the public API (SPEC 7.5).

mod common;

use common::{Scenario, echo, toolkit, value};
use serde_json::{Value, json};
use std::time::Duration;
use toolspan::{ErrorCode, Event, EventStream, Style};

/// Everything until the end, as JSON; an error as `{"error": code}`.
async fn all(mut events: EventStream) -> Vec<Value> {
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        seen.push(match event {
            Ok(event) => value(&event),
            Err(error) => json!({"error": error.code()}),
        });
    }
    seen
}

fn chunk(delta: Value) -> Value {
    json!({"data": {"choices": [{"index": 0, "delta": delta}]}})
}

fn finish(reason: &str) -> Value {
    json!({"data": {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}})
}

#[tokio::test]
async fn the_events_of_a_whole_run_in_order() {
    let llm = Scenario::llm(
        "openai",
        json!([{"text": "look here", "calls": [{"id": "c1", "name": "t", "args": {"q": 1}}]}, {"text": "done"}]),
    )
    .await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let tools = toolkit([echo("t")]).await;
    let mut seen = all(client.stream("hi").toolkit(&tools).start()).await;
    let done = seen.pop().unwrap();
    let usage = json!({"type": "usage", "usage": {"promptTokens": 10, "completionTokens": 5, "totalTokens": 15}});
    assert_eq!(
        seen,
        [
            json!({"type": "text", "delta": "look "}),
            json!({"type": "text", "delta": "here"}),
            usage.clone(),
            json!({"type": "tool_call", "id": "c1", "name": "t", "args": {"q": 1}}),
            json!({"type": "tool_result", "id": "c1", "name": "t", "output": "{\"q\":1}", "isError": false}),
            json!({"type": "text", "delta": "done"}),
            usage,
        ]
    );
    assert_eq!(done["type"], "done");
    assert_eq!(done["result"]["text"], "done");
    assert_eq!(done["result"]["usage"]["totalTokens"], 30);
}

#[tokio::test]
async fn reasoning_is_shown_apart_and_replayed() {
    let llm = Scenario::llm(
        "openai",
        json!([
            {"sse": [
                chunk(json!({"reasoning_content": "need "})),
                chunk(json!({"reasoning_content": "it"})),
                chunk(json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "t", "arguments": ""}}]})),
                finish("tool_calls"),
                "[DONE]",
            ]},
            {"text": "ok"},
        ]),
    )
    .await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let seen = all(client
        .stream("hi")
        .toolkit(&toolkit([echo("t")]).await)
        .start())
    .await;
    assert_eq!(seen[0], json!({"type": "reasoning", "delta": "need "}));
    assert_eq!(seen[1], json!({"type": "reasoning", "delta": "it"}));
    assert_eq!(
        llm.messages(1).await[1],
        json!({"role": "assistant", "content": "", "reasoning_content": "need it", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "t", "arguments": "{}"}}]})
    );
}

#[tokio::test]
async fn calls_without_ids_get_some_that_hold_everywhere() {
    let call = |name: &str| json!({"index": 0, "type": "function", "function": {"name": name, "arguments": "{}"}});
    let llm = Scenario::llm(
        "openai",
        json!([
            {"sse": [chunk(json!({"tool_calls": [call("a")]})), chunk(json!({"tool_calls": [call("b")]})), finish("stop"), "[DONE]"]},
            {"text": "ok"},
        ]),
    )
    .await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let tools = toolkit([echo("a"), echo("b")]).await;
    let seen = all(client.stream("hi").toolkit(&tools).start()).await;
    let ids = |kind: &str| -> Vec<Value> {
        let of_kind = |event: &&Value| event["type"] == kind;
        seen.iter()
            .filter(of_kind)
            .map(|event| event["id"].clone())
            .collect()
    };
    assert_eq!(ids("tool_call"), ["call_1", "call_2"]);
    assert_eq!(ids("tool_result"), ["call_1", "call_2"]);
    let messages = llm.messages(1).await;
    assert_eq!(messages[1]["tool_calls"][1]["id"], "call_2");
    assert_eq!(messages[3]["tool_call_id"], "call_2");
}

#[tokio::test]
async fn a_stream_that_is_cut_is_an_error_after_its_text() {
    let llm = Scenario::llm(
        "openai",
        json!([{"sse": [chunk(json!({"content": "Part"})), {"cut": true}]}, {"text": "again"}]),
    )
    .await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    assert_eq!(
        all(client.stream("hi").start()).await,
        [
            json!({"type": "text", "delta": "Part"}),
            json!({"error": "stream_interrupted"})
        ]
    );
    assert_eq!(llm.bodies().await.len(), 1);
}

#[tokio::test]
async fn an_openai_stream_may_end_behind_its_finish_reason_without_a_marker() {
    let llm = Scenario::llm("openai", json!([{"sse": [chunk(json!({"content": "all"})), finish("stop")]}, {"sse": [chunk(json!({"content": "half"}))]}])).await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let whole = all(client.stream("hi").start()).await;
    assert_eq!(whole.last().unwrap()["result"]["text"], "all");
    let half = all(client.stream("hi").start()).await;
    assert_eq!(
        half.last().unwrap(),
        &json!({"error": "stream_interrupted"})
    );
}

#[tokio::test]
async fn an_anthropic_stream_needs_its_marker() {
    let frames = json!([
        {"event": "content_block_start", "data": {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}},
        {"event": "content_block_delta", "data": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}},
        {"event": "message_delta", "data": {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}},
    ]);
    let llm = Scenario::llm("anthropic", json!([{"sse": frames}])).await;
    let client = llm.client(Style::Anthropic).build().unwrap();
    let seen = all(client.stream("hi").start()).await;
    assert_eq!(
        seen.last().unwrap(),
        &json!({"error": "stream_interrupted"})
    );
}

#[tokio::test]
async fn an_error_event_is_retried_only_while_nothing_was_shown() {
    let overloaded = json!({"event": "error", "data": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}});
    let start = json!({"event": "message_start", "data": {"type": "message_start", "message": {"usage": {"input_tokens": 3}}}});
    let text = json!({"event": "content_block_delta", "data": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Part"}}});
    let llm = Scenario::llm(
        "anthropic",
        json!([{"sse": [start, overloaded]}, {"sse": [text, overloaded]}, {"text": "never"}]),
    )
    .await;
    let client = llm.client(Style::Anthropic).build().unwrap();
    let mut events = client.stream("hi").start();
    assert_eq!(
        value(&events.next().await.unwrap().unwrap()),
        json!({"type": "text", "delta": "Part"})
    );
    let error = events.next().await.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "provider_unavailable: overloaded_error: Overloaded"
    );
    assert!(events.next().await.is_none());
    assert_eq!(llm.bodies().await.len(), 2);
}

#[tokio::test]
async fn usage_is_the_last_running_total() {
    let usage = |completion: u64| json!({"data": {"choices": [], "usage": {"prompt_tokens": 64, "completion_tokens": completion, "total_tokens": 64 + completion}}});
    let llm = Scenario::llm("openai", json!([{"sse": [chunk(json!({"content": "a"})), usage(10), usage(20), finish("stop"), "[DONE]"]}])).await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let seen = all(client.stream("hi").start()).await;
    let usages: Vec<_> = seen.iter().filter(|e| e["type"] == "usage").collect();
    assert_eq!(
        usages,
        [
            &json!({"type": "usage", "usage": {"promptTokens": 64, "completionTokens": 20, "totalTokens": 84}})
        ]
    );
}

#[tokio::test]
async fn a_json_answer_to_a_stream_request_is_taken() {
    let llm = Scenario::llm("openai", json!([{"json": {"choices": [{"message": {"role": "assistant", "content": "whole"}, "finish_reason": "stop"}]}}])).await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let seen = all(client.stream("hi").start()).await;
    assert_eq!(seen[0], json!({"type": "text", "delta": "whole"}));
    assert_eq!(seen.last().unwrap()["result"]["text"], "whole");
}

#[tokio::test]
async fn events_come_while_the_answer_is_still_coming_and_leaving_closes_the_socket() {
    let llm = Scenario::llm(
        "openai",
        json!([{"sse": [chunk(json!({"content": "now"})), {"hang": true}]}]),
    )
    .await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let mut events = client.stream("hi").start();
    assert!(matches!(events.next().await, Some(Ok(Event::Text { delta })) if delta == "now"));
    drop(events);
    llm.wait(json!({"llm": "main", "connections": 0})).await;
}

#[tokio::test]
async fn silence_in_the_middle_is_a_timeout() {
    let llm = Scenario::llm(
        "openai",
        json!([{"sse": [chunk(json!({"content": "now"})), {"hang": true}]}]),
    )
    .await;
    let client = llm
        .client(Style::OpenAi)
        .idle_timeout(Duration::from_millis(50))
        .build()
        .unwrap();
    let mut events = client.stream("hi").start();
    events.next().await.unwrap().unwrap();
    let error = events.next().await.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "timeout: the next piece of the answer took longer than 50 ms"
    );
}

#[tokio::test]
async fn a_stream_and_a_run_give_the_same_result_byte_by_byte() {
    let reply = json!({"text": "grüße 🌍", "calls": [{"id": "c1", "name": "t", "args": {"q": "ü"}}], "chunkBytes": 1});
    for style in [Style::OpenAi, Style::Anthropic] {
        let llm = Scenario::llm(
            style.as_str(),
            json!([reply, {"text": "ok"}, reply, {"text": "ok"}]),
        )
        .await;
        let client = llm.client(style).build().unwrap();
        let tools = toolkit([echo("t")]).await;
        let ran = value(&client.run("hi").toolkit(&tools).await.unwrap());
        let streamed = all(client.stream("hi").toolkit(&tools).start()).await;
        assert_eq!(streamed.last().unwrap()["result"], ran);
    }
}

#[tokio::test]
async fn without_a_runtime_the_stream_says_so() {
    let llm = Scenario::llm("openai", json!([])).await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let mut events = std::thread::spawn(move || client.stream("hi").start())
        .join()
        .unwrap();
    assert_eq!(
        events.next().await.unwrap().unwrap_err().code(),
        ErrorCode::Internal
    );
}

#[tokio::test]
async fn streams_and_refusals_leave_their_connection_to_the_next_request() {
    let llm = Scenario::llm(
        "openai",
        json!([{"text": "1"}, {"status": 503, "json": {}}, {"text": "2"}, {"text": "3"}]),
    )
    .await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    for text in ["1", "2", "3"] {
        let seen = all(client.stream("hi").start()).await;
        assert_eq!(seen.last().unwrap()["result"]["text"], text);
    }
    assert_eq!(llm.seen().await["connections"]["opened"], 1);
}

#[tokio::test]
async fn a_reader_that_stands_still_stops_the_reading_of_the_socket() {
    let piece = "x".repeat(64 * 1024);
    let mut frames: Vec<Value> = (0..400).map(|_| chunk(json!({"content": piece}))).collect();
    frames.push(json!({"gate": "sent"}));
    frames.push(finish("stop"));
    frames.push(json!("[DONE]"));
    let llm = Scenario::llm("openai", json!([{"sse": frames}])).await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let mut events = client.stream("hi").start();
    events.next().await.unwrap().unwrap();
    // 25 MiB fit into no socket buffer, so the server cannot have come to its gate.
    let waiting = llm.wait(json!({"gate": "sent"}));
    assert!(
        tokio::time::timeout(Duration::from_millis(300), waiting)
            .await
            .is_err()
    );
    llm.open("sent").await;
    let mut bytes = piece.len();
    while let Some(event) = events.next().await {
        if let Event::Text { delta } = event.unwrap() {
            bytes += delta.len();
        }
    }
    assert_eq!(bytes, 400 * piece.len());
}
