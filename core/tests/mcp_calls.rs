//! Calls that take long, are given up, or meet a server that went away (SPEC 3.7).

mod support;

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use support::{Records, Scenario};
use tokio_util::sync::CancellationToken;
use toolspan::log::LogLevel;
use toolspan::{Arguments, Counters, ServerState, Tool, ToolContext, ToolResult, Toolkit};

async fn toolkit(servers: Value) -> Toolkit {
    Toolkit::builder()
        .mcp_config(json!({"mcpServers": servers}))
        .build()
        .await
        .unwrap()
}

async fn run(tool: Tool) -> ToolResult {
    tool.execute(Arguments::empty(), ToolContext::default())
        .await
}

async fn call(toolkit: &Toolkit, tool: &str) -> ToolResult {
    run(toolkit.get(tool).unwrap()).await
}

/// Returns once the toolkit knows that a server is gone.
async fn fails(toolkit: &Toolkit, server: &str) {
    let known = async {
        while toolkit.status()[server].state != ServerState::Failed {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), known)
        .await
        .expect("the end of the server is noticed");
}

/// Every transport, with its entry in the configuration.
async fn everywhere(tools: Value) -> (Scenario, Vec<(&'static str, Value)>) {
    let scenario = Scenario::mcp(json!({
        "http": {"transport": "http", "tools": tools},
        "json": {"transport": "http", "json": true, "tools": tools},
        "modern": {"transport": "http", "revisions": ["2026-07-28"], "tools": tools},
        "sse": {"transport": "sse", "tools": tools},
        "stdio": {"transport": "stdio", "tools": tools},
        "new": {"transport": "stdio", "revisions": ["2026-07-28"], "tools": tools}}))
    .await;
    let entries = vec![
        ("http", json!({"url": scenario.url("http")})),
        ("json", json!({"url": scenario.url("json")})),
        ("modern", json!({"url": scenario.url("modern")})),
        ("sse", json!({"url": scenario.url("sse"), "type": "sse"})),
        ("stdio", json!({"command": scenario.command("stdio")})),
        ("new", json!({"command": scenario.command("new")})),
    ];
    (scenario, entries)
}

#[tokio::test]
async fn a_silent_call_ends_in_time_and_the_server_works_on() {
    let (scenario, entries) =
        everywhere(json!([{"name": "slow", "does": {"gate": "go"}}, {"name": "fast"}])).await;
    for (server, mut entry) in entries {
        entry["timeout"] = json!(400);
        let toolkit = toolkit(json!({server: entry})).await;
        let started = Instant::now();
        let result = call(&toolkit, &format!("{server}_slow")).await;
        assert_eq!(
            (result.output, result.is_error),
            (
                format!(
                    "MCP server {server}: timeout: the call took longer than 400 ms without progress"
                ),
                true
            )
        );
        assert!(
            started.elapsed() < Duration::from_millis(900),
            "{server}: {:?}",
            started.elapsed()
        );
        // Over HTTP the revision without sessions cancels by closing the stream.
        if server != "modern" {
            scenario
                .wait(json!({"mcp": server, "method": "notifications/cancelled"}))
                .await;
        }
        assert_eq!(
            call(&toolkit, &format!("{server}_fast")).await.output,
            "ok",
            "{server}"
        );
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_or_dropped_is_given_up_at_the_server() {
    let scenario = Scenario::mcp(
        json!({"s": {"transport": "stdio", "tools": [{"name": "slow", "does": {"hang": true}}]}}),
    )
    .await;
    let toolkit = toolkit(json!({"s": {"command": scenario.command("s")}})).await;
    let tool = toolkit.get("s_slow").unwrap();

    let cancel = CancellationToken::new();
    let context = ToolContext {
        cancel: cancel.clone(),
        ..ToolContext::default()
    };
    let first = {
        let tool = tool.clone();
        tokio::spawn(async move { tool.execute(Arguments::empty(), context).await })
    };
    scenario
        .wait(json!({"mcp": "s", "method": "tools/call", "count": 1}))
        .await;
    cancel.cancel();
    let result = first.await.unwrap();
    assert_eq!(
        (result.output.as_str(), result.is_error),
        ("the call was cancelled", true)
    );
    scenario
        .wait(json!({"mcp": "s", "method": "notifications/cancelled", "count": 1}))
        .await;

    let second = tokio::spawn(run(tool));
    scenario
        .wait(json!({"mcp": "s", "method": "tools/call", "count": 2}))
        .await;
    second.abort();
    scenario
        .wait(json!({"mcp": "s", "method": "notifications/cancelled", "count": 2}))
        .await;

    let seen = scenario.seen("s").await;
    let ids = |method: &str, pointer: &str| -> Vec<Value> {
        let messages = seen["messages"].as_array().unwrap();
        let of = messages
            .iter()
            .filter(|message| message["method"] == method);
        of.map(|message| message.pointer(pointer).unwrap().clone())
            .collect()
    };
    assert_eq!(
        ids("notifications/cancelled", "/params/requestId"),
        ids("tools/call", "/id")
    );
}

#[tokio::test]
async fn progress_starts_the_budget_of_a_call_anew() {
    let tools =
        json!([{"name": "a", "does": {"progress": {"every": "p", "times": 3}, "text": "made it"}}]);
    let scenario = Scenario::mcp(json!({"s": {"transport": "http", "tools": tools}})).await;
    let toolkit = toolkit(json!({"s": {"url": scenario.url("s"), "timeout": 800}})).await;
    let call = tokio::spawn(run(toolkit.get("s_a").unwrap()));
    for step in 1..=3 {
        scenario.wait(json!({"gate": format!("p{step}")})).await;
        tokio::time::sleep(Duration::from_millis(400)).await;
        scenario.open(&format!("p{step}")).await;
    }
    assert_eq!(call.await.unwrap().output, "made it");
}

#[tokio::test]
async fn calls_that_meet_a_forgotten_session_share_one_new_one() {
    let scenario = Scenario::mcp(
        json!({"s": {"transport": "http", "tools": [{"name": "a", "does": {"echo": true}}]}}),
    )
    .await;
    let toolkit = toolkit(json!({"s": {"url": scenario.url("s")}})).await;
    assert_eq!(call(&toolkit, "s_a").await.output, "{}");
    scenario.restart("s").await;
    let (first, second) = tokio::join!(call(&toolkit, "s_a"), call(&toolkit, "s_a"));
    assert_eq!(
        (first.output.as_str(), second.output.as_str()),
        ("{}", "{}")
    );
    assert_eq!(toolkit.status()["s"].state, ServerState::Connected);
    let initializes = scenario
        .methods("s")
        .await
        .iter()
        .filter(|m| *m == "initialize")
        .count();
    assert_eq!(initializes, 2);
}

#[tokio::test]
async fn a_server_that_came_back_is_joined_before_the_next_call() {
    let (scenario, entries) = everywhere(json!([{"name": "a"}])).await;
    for (server, entry) in entries {
        let toolkit = toolkit(json!({server: entry})).await;
        scenario.restart(server).await;
        if ["stdio", "new"].contains(&server) {
            // A call written while the child is on its way out may have been read, and is not sent again.
            fails(&toolkit, server).await;
        }
        let result = call(&toolkit, &format!("{server}_a")).await;
        assert_eq!(
            (result.output.as_str(), result.is_error),
            ("ok", false),
            "{server}"
        );
        toolkit.close().await;
    }
}

#[tokio::test]
async fn a_child_that_dies_in_a_call_fails_it_at_once_and_is_started_for_the_next() {
    let scenario = Scenario::mcp(json!({"s": {"transport": "stdio", "tools": [{"name": "die", "does": {"exit": true}}, {"name": "b"}]}})).await;
    let counters = Counters::default();
    let records = Records::default();
    let toolkit = Toolkit::builder()
        .counters(counters.clone())
        .logger(records.logger())
        .mcp_config(json!({"s": {"command": scenario.command("s")}}))
        .build()
        .await
        .unwrap();
    assert_eq!(counters.connected_servers(), 1);
    let started = Instant::now();
    let result = call(&toolkit, "s_die").await;
    assert_eq!(
        (result.output.as_str(), result.is_error),
        (
            "MCP server s: process_failed: the process ended (exit status: 1)",
            true
        )
    );
    assert!(started.elapsed() < Duration::from_secs(1));
    let status = toolkit.status();
    assert_eq!(status["s"].state, ServerState::Failed);
    assert_eq!(
        status["s"].reason.as_deref(),
        Some("the process ended (exit status: 1)")
    );
    assert_eq!(counters.connected_servers(), 0);

    assert_eq!(call(&toolkit, "s_b").await.output, "ok");
    assert_eq!(toolkit.status()["s"].state, ServerState::Connected);
    assert_eq!(counters.connected_servers(), 1);
    assert_eq!(
        records.messages(LogLevel::Info),
        ["MCP server s is joined again: process_failed: the process ended (exit status: 1)"]
    );
    let calls = scenario
        .methods("s")
        .await
        .iter()
        .filter(|m| *m == "tools/call")
        .count();
    assert_eq!(
        (
            calls,
            scenario.seen("s").await["processes"]["started"].as_u64()
        ),
        (2, Some(2))
    );
    toolkit.close().await;
    assert_eq!(counters.connected_servers(), 0);
}

#[tokio::test]
async fn after_close_a_call_is_an_error_and_starts_nothing() {
    let scenario = Scenario::mcp(json!({"s": {"transport": "stdio", "tools": [{"name": "a"}, {"name": "slow", "does": {"hang": true}}]}})).await;
    let toolkit = toolkit(json!({"s": {"command": scenario.command("s")}})).await;
    let tool = toolkit.get("s_a").unwrap();
    let slow = tokio::spawn(run(toolkit.get("s_slow").unwrap()));
    scenario
        .wait(json!({"mcp": "s", "method": "tools/call"}))
        .await;
    toolkit.close().await;
    let result = slow.await.unwrap();
    assert_eq!(
        (result.output.as_str(), result.is_error),
        ("MCP server s was closed", true)
    );
    assert_eq!(run(tool).await.output, "MCP server s was closed");
    scenario.wait(json!({"mcp": "s", "processes": 0})).await;
    assert_eq!(scenario.seen("s").await["processes"]["started"], 1);
}

#[tokio::test]
async fn an_error_of_the_protocol_is_an_error_result_with_its_message() {
    let tools =
        json!([{"name": "a", "does": {"error": {"code": -32000, "message": "quota used up"}}}]);
    let scenario = Scenario::mcp(json!({"s": {"transport": "http", "tools": tools}})).await;
    let toolkit = toolkit(json!({"s": {"url": scenario.url("s")}})).await;
    let result = call(&toolkit, "s_a").await;
    assert_eq!(
        (result.output.as_str(), result.is_error),
        ("quota used up", true)
    );
    assert_eq!(Value::Object(result.metadata), json!({"server": "s"}));
}
