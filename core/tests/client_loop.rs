//! The loop through the public API (SPEC 7.3, 7.4).

mod common;

use common::{Scenario, echo, tool, toolkit, value};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolspan::client::hooks::{LlmChange, ResultChange, ToolChange};
use toolspan::{Error, ErrorCode, Limit, MetricEvent, RunStatus, Style, ToolResult};

#[tokio::test]
async fn calls_are_executed_and_their_results_sent_back() {
    let llm = Scenario::llm(
        "openai",
        json!([{"calls": [{"id": "c1", "name": "t", "args": {"q": "x"}}]}, {"text": "done"}]),
    )
    .await;
    let client = llm
        .client(Style::OpenAi)
        .system_prompt("S")
        .build()
        .unwrap();
    let result = client
        .run("hi")
        .toolkit(&toolkit([echo("t")]).await)
        .await
        .unwrap();
    assert_eq!(
        value(&result),
        json!({
            "text": "done",
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "t", "arguments": "{\"q\":\"x\"}"}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "{\"q\":\"x\"}"},
                {"role": "assistant", "content": "done"},
            ],
            "toolCalls": [{"id": "c1", "name": "t", "args": {"q": "x"}, "output": "{\"q\":\"x\"}", "isError": false}],
            "turns": 2,
            "usage": {"promptTokens": 20, "completionTokens": 10, "totalTokens": 30},
            "model": "m",
            "status": "done",
        })
    );
    assert_eq!(
        llm.messages(1).await[0],
        json!({"role": "system", "content": "S"})
    );
}

#[tokio::test]
async fn anthropic_results_go_back_in_one_message_in_call_order() {
    let calls = json!([{"id": "t1", "name": "slow", "args": {}}, {"id": "t2", "name": "bad", "args": {}}, {"id": "t3", "name": "gone", "args": {}}]);
    let llm = Scenario::llm(
        "anthropic",
        json!([{"text": "both", "calls": calls}, {"text": "ok"}]),
    )
    .await;
    let client = llm.client(Style::Anthropic).build().unwrap();
    let later = Arc::new(tokio::sync::Notify::new());
    let first = later.clone();
    let slow = tool("slow", move |_, _| {
        let first = first.clone();
        async move {
            first.notified().await;
            "slow"
        }
    });
    let bad = tool("bad", move |_, _| {
        later.notify_one();
        async { Err::<String, _>("two") }
    });
    let result = client
        .run("hi")
        .toolkit(&toolkit([slow, bad]).await)
        .await
        .unwrap();
    assert_eq!(result.text, "ok");
    assert_eq!(
        llm.messages(1).await[2],
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "slow"},
            {"type": "tool_result", "tool_use_id": "t2", "content": "two", "is_error": true},
            {"type": "tool_result", "tool_use_id": "t3", "content": "Unknown tool: gone. The tools are: slow, bad.", "is_error": true},
        ]})
    );
}

#[tokio::test]
async fn no_more_calls_run_at_once_than_allowed() {
    let calls: Vec<_> = (0..6)
        .map(|n| json!({"id": format!("c{n}"), "name": "t", "args": {}}))
        .collect();
    let llm = Scenario::llm("openai", json!([{"calls": calls}, {"text": "ok"}])).await;
    let client = llm
        .client(Style::OpenAi)
        .max_tool_concurrency(2)
        .build()
        .unwrap();
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (r, m) = (running.clone(), most.clone());
    let t = tool("t", move |_, _| {
        let (running, most) = (r.clone(), m.clone());
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            running.fetch_sub(1, Ordering::SeqCst);
            "r"
        }
    });
    let result = client.run("hi").toolkit(&toolkit([t]).await).await.unwrap();
    assert_eq!(result.tool_calls.len(), 6);
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn turns_run_out_with_every_call_answered() {
    let llm = Scenario::llm(
        "openai",
        json!([{"text": "hm", "calls": [{"id": "c1", "name": "t", "args": {}}]}]),
    )
    .await;
    let client = llm.client(Style::OpenAi).max_turns(1).build().unwrap();
    let result = client
        .run("hi")
        .toolkit(&toolkit([echo("t")]).await)
        .await
        .unwrap();
    assert_eq!(
        (result.status, result.limit),
        (RunStatus::Incomplete, Some(Limit::MaxTurns))
    );
    assert_eq!(result.text, "hm");
    assert_eq!(
        value(&result.messages)[2],
        json!({"role": "tool", "tool_call_id": "c1", "content": "{}"})
    );
}

#[tokio::test]
async fn calls_of_a_cut_answer_are_not_executed_but_answered() {
    let message = json!({"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "t", "arguments": "{\"q\":\"xx"}}]});
    let llm = Scenario::llm(
        "openai",
        json!([{"json": {"choices": [{"message": message, "finish_reason": "length"}]}}]),
    )
    .await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let result = client
        .run("hi")
        .toolkit(&toolkit([echo("t")]).await)
        .await
        .unwrap();
    assert_eq!(
        (result.status, result.limit),
        (RunStatus::Incomplete, Some(Limit::MaxTokens))
    );
    assert!(result.tool_calls.is_empty());
    let messages = value(&result.messages);
    assert_eq!(messages[1]["tool_calls"][0]["function"]["arguments"], "{}");
    assert_eq!(
        messages[2],
        json!({"role": "tool", "tool_call_id": "c1", "content": "Not executed: the answer was cut off by the output limit before the call was complete."})
    );
}

#[tokio::test]
async fn a_deadline_keeps_the_work_and_stops_the_tool() {
    let llm = Scenario::llm("openai", json!([{"calls": [{"id": "c1", "name": "fast", "args": {}}, {"id": "c2", "name": "stuck", "args": {}}]}])).await;
    let client = llm
        .client(Style::OpenAi)
        .timeout(Duration::from_millis(300))
        .build()
        .unwrap();
    let told = CancellationToken::new();
    let tell = told.clone();
    let stuck = tool("stuck", move |_, context: toolspan::ToolContext| {
        let tell = tell.clone();
        // Work that outlives the dropped future, as a host's does.
        tokio::spawn(async move {
            context.cancel.cancelled().await;
            tell.cancel();
        });
        std::future::pending::<String>()
    });
    let result = client
        .run("hi")
        .toolkit(&toolkit([echo("fast"), stuck]).await)
        .await
        .unwrap();
    assert_eq!(
        (result.status, result.limit),
        (RunStatus::Incomplete, Some(Limit::Timeout))
    );
    let calls: Vec<_> = result
        .tool_calls
        .iter()
        .map(|c| (c.output.as_str(), c.is_error))
        .collect();
    assert_eq!(
        calls,
        [
            ("{}", false),
            (
                "Interrupted: the run ended before this call did. It may have had effects.",
                true
            )
        ]
    );
    told.cancelled().await;
}

#[tokio::test]
async fn cancelling_drops_the_request() {
    let llm = Scenario::llm("openai", json!([{"hang": true}])).await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let token = CancellationToken::new();
    let run = tokio::spawn(client.run("hi").cancel(token.clone()).into_future());
    llm.wait(json!({"llm": "main", "requests": 1})).await;
    token.cancel();
    assert_eq!(run.await.unwrap().unwrap_err().code(), ErrorCode::Cancelled);
    llm.wait(json!({"llm": "main", "connections": 0})).await;
}

/// A token tells its children before it is cancelled itself, so a tool may end of a cancel that its run has not seen yet. Here the
/// tool cancels the child alone, which holds that moment still.
#[tokio::test]
async fn a_tool_that_ended_of_a_cancel_is_not_followed_by_a_request() {
    let calls = json!({"calls": [{"name": "t", "args": {}}]});
    let llm = Scenario::llm("openai", json!([calls, {"text": "too late"}])).await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let cancelled = tool("t", |_, context| {
        context.cancel.cancel();
        async { Err::<String, _>("the call was cancelled") }
    });
    let run = client.run("hi").toolkit(&toolkit([cancelled]).await).await;
    assert_eq!(run.unwrap_err().code(), ErrorCode::Cancelled);
    assert_eq!(llm.bodies().await.len(), 1);
}

#[tokio::test]
async fn closing_the_client_ends_its_runs() {
    let llm = Scenario::llm("openai", json!([{"hang": true}])).await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let run = tokio::spawn(client.run("hi").into_future());
    llm.wait(json!({"llm": "main", "requests": 1})).await;
    client.close();
    assert_eq!(run.await.unwrap().unwrap_err().code(), ErrorCode::Closed);
    assert_eq!(
        client.run("hi").await.unwrap_err().code(),
        ErrorCode::Closed
    );
}

#[tokio::test]
async fn hooks_change_what_they_may_change() {
    let llm = Scenario::llm("openai", json!([{"calls": [{"id": "c1", "name": "t", "args": {}}, {"id": "c2", "name": "virtual", "args": {}}]}, {"text": "ok"}])).await;
    let client = llm
        .client(Style::OpenAi)
        .before_llm(|given| async move {
            let model = (given.turn == 2).then(|| "second".to_owned());
            let tools = (given.turn == 2).then(Vec::new);
            Ok(LlmChange {
                model,
                tools,
                ..LlmChange::default()
            })
        })
        .before_tool(|given| async move {
            let result = (given.name == "virtual").then(|| ToolResult::text("from the hook"));
            let args = Some(toolspan::json::to_json(&json!({"n": 1})).unwrap());
            Ok(ToolChange { result, args })
        })
        .after_tool(|given| async move {
            Ok(ResultChange {
                result: Some(ToolResult::text(given.result.output + "!")),
            })
        })
        .build()
        .unwrap();
    let result = client
        .run("hi")
        .toolkit(&toolkit([echo("t")]).await)
        .await
        .unwrap();
    assert_eq!(result.model, "second");
    let outputs: Vec<_> = result
        .tool_calls
        .iter()
        .map(|c| c.output.as_str())
        .collect();
    assert_eq!(outputs, [r#"{"n":1}!"#, "from the hook"]);
    let second: serde_json::Value = serde_json::from_str(&llm.bodies().await[1]).unwrap();
    let keys: Vec<_> = second
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(keys, ["model", "messages"]);
}

#[tokio::test]
async fn what_a_hook_throws_ends_the_run() {
    let llm = Scenario::llm("openai", json!([{"calls": [{"name": "t", "args": {}}]}])).await;
    let client = llm
        .client(Style::OpenAi)
        .before_tool(|_| async { Err(Error::new(ErrorCode::HostFailed, "no")) })
        .build()
        .unwrap();
    let error = client
        .run("hi")
        .toolkit(&toolkit([echo("t")]).await)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "host_failed: beforeTool failed: no");
}

#[tokio::test]
async fn a_closed_toolkit_is_refused_before_anything_is_sent() {
    let llm = Scenario::llm("openai", json!([{"text": "ok"}])).await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let closed = toolkit([echo("t")]).await;
    closed.close().await;
    let error = client.run("hi").toolkit(&closed).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Closed);
    assert!(llm.bodies().await.is_empty());
}

#[tokio::test]
async fn content_that_is_not_text_follows_in_a_user_message() {
    let llm = Scenario::llm(
        "openai",
        json!([{"calls": [{"id": "c1", "name": "t", "args": {}}]}, {"text": "ok"}]),
    )
    .await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let t = tool("t", |_, _| async {
        let parts = json!([{"type": "image", "mimeType": "image/png", "data": "AAAA"}, {"type": "file", "mimeType": "a/b", "url": "https://h.test"}]);
        ToolResult {
            parts: serde_json::from_value(parts).unwrap(),
            ..ToolResult::text("two")
        }
    });
    client.run("hi").toolkit(&toolkit([t]).await).await.unwrap();
    let messages = llm.messages(1).await;
    assert_eq!(
        messages[2],
        json!({"role": "tool", "tool_call_id": "c1", "content": "two"})
    );
    assert_eq!(
        messages[3],
        json!({"role": "user", "content": [
            {"type": "text", "text": "Output of tool t (c1):"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            {"type": "text", "text": "[file (a/b, 0 bytes)]"},
        ]})
    );
}

#[tokio::test]
async fn metrics_tell_requests_tools_and_the_run() {
    let llm = Scenario::llm("openai", json!([{"calls": [{"name": "t", "args": {}}, {"name": "gone", "args": {}}]}, {"status": 400, "json": {}}])).await;
    let events = Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = events.clone();
    let client = llm
        .client(Style::OpenAi)
        .on_metric(Arc::new(move |event| sink.lock().unwrap().push(event)))
        .build()
        .unwrap();
    client
        .run("hi")
        .toolkit(&toolkit([echo("t")]).await)
        .await
        .unwrap_err();
    let mut seen: Vec<String> = events
        .lock()
        .unwrap()
        .iter()
        .map(|event| match event {
            MetricEvent::Llm {
                model,
                status,
                prompt_tokens,
                ..
            } => format!("llm {model} {status:?} {prompt_tokens}"),
            MetricEvent::Tool {
                tool,
                source,
                is_error,
                ..
            } => format!("tool {tool} {source:?} {is_error}"),
            MetricEvent::Run {
                turns,
                tool_calls,
                total_tokens,
                error,
                ..
            } => format!("run {turns} {tool_calls} {total_tokens} {error:?}"),
        })
        .collect();
    // Calls run at the same time, so either may end first.
    seen[1..3].sort();
    assert_eq!(
        seen,
        [
            "llm m Ok 10",
            "tool gone None true",
            "tool t Some(Native) false",
            "llm m Error 0",
            "run 1 2 15 Some(ProviderRejected)",
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn functions_that_compute_without_a_pause_run_side_by_side() {
    let calls =
        json!([{"id": "c1", "name": "a", "args": {}}, {"id": "c2", "name": "b", "args": {}}]);
    let llm = Scenario::llm("openai", json!([{"calls": calls}, {"text": "ok"}])).await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    // Each blocks its thread until the other one is there too.
    let (to_a, at_a) = std::sync::mpsc::sync_channel::<()>(1);
    let (to_b, at_b) = std::sync::mpsc::sync_channel::<()>(1);
    let meet =
        |name, tell: std::sync::mpsc::SyncSender<()>, hear: std::sync::mpsc::Receiver<()>| {
            let hear = std::sync::Mutex::new(hear);
            let ends = Arc::new((tell, hear));
            tool(name, move |_, _| {
                let ends = ends.clone();
                async move {
                    ends.0.send(()).unwrap();
                    let hear = ends.1.lock().unwrap();
                    hear.recv_timeout(Duration::from_secs(10))
                        .map_or("alone", |()| "met")
                }
            })
        };
    let tools = toolkit([meet("a", to_b, at_a), meet("b", to_a, at_b)]).await;
    let result = client.run("hi").toolkit(&tools).await.unwrap();
    let outputs: Vec<_> = result
        .tool_calls
        .iter()
        .map(|c| c.output.as_str())
        .collect();
    assert_eq!(outputs, ["met", "met"]);
}
