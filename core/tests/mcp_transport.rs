//! Every way to reach a server: connect, list, call, close (SPEC 3.2, 3.7, 3.8).

mod support;

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use support::{Records, Scenario};
use toolspan::log::LogLevel;
use toolspan::{Arguments, ServerState, ToolContext, ToolResult, Toolkit};

async fn toolkit(servers: Value) -> Toolkit {
    let document = json!({"mcpServers": servers});
    Toolkit::builder()
        .mcp_config(document)
        .build()
        .await
        .unwrap()
}

async fn call(toolkit: &Toolkit, tool: &str, arguments: &str) -> ToolResult {
    let arguments = Arguments::from_text(arguments).unwrap();
    let tool = toolkit.get(tool).unwrap();
    tool.execute(arguments, ToolContext::default()).await
}

fn echo() -> Value {
    json!([{"name": "a", "does": {"echo": true}}])
}

async fn works(transport: &str, revision: &str, entry: impl Fn(&Scenario) -> Value) -> Scenario {
    let scenario = Scenario::mcp(json!({"s": {
        "transport": transport, "revisions": [revision], "tools": echo()}}))
    .await;
    let toolkit = toolkit(json!({"s": entry(&scenario)})).await;
    assert_eq!(
        toolkit.status()["s"].state,
        ServerState::Connected,
        "{:?}",
        toolkit.status()
    );
    let result = call(&toolkit, "s_a", r#"{"q": "é"}"#).await;
    assert_eq!(
        (result.output.as_str(), result.is_error),
        (r#"{"q":"é"}"#, false)
    );
    toolkit.close().await;
    scenario
}

#[tokio::test]
async fn streamable_http() {
    let scenario = works("http", "2025-11-25", |s| json!({"url": s.url("s")})).await;
    scenario.wait(json!({"mcp": "s", "connections": 0})).await;
    let methods = scenario.methods("s").await;
    assert_eq!(
        methods,
        [
            "initialize",
            "notifications/initialized",
            "tools/list",
            "tools/call"
        ]
    );
}

#[tokio::test]
async fn streamable_http_without_initialize() {
    let scenario = works("http", "2026-07-28", |s| json!({"url": s.url("s")})).await;
    scenario.wait(json!({"mcp": "s", "connections": 0})).await;
    let methods = scenario.methods("s").await;
    assert_eq!(
        methods,
        ["initialize", "server/discover", "tools/list", "tools/call"]
    );
}

#[tokio::test]
async fn stdio() {
    let scenario = works(
        "stdio",
        "2025-11-25",
        |s| json!({"command": s.command("s")}),
    )
    .await;
    scenario.wait(json!({"mcp": "s", "processes": 0})).await;
}

#[tokio::test]
async fn stdio_without_initialize_in_one_process() {
    let scenario = works(
        "stdio",
        "2026-07-28",
        |s| json!({"command": s.command("s")}),
    )
    .await;
    scenario.wait(json!({"mcp": "s", "processes": 0})).await;
    assert_eq!(scenario.seen("s").await["processes"]["started"], 1);
}

#[tokio::test]
async fn http_sse_after_a_refused_post() {
    let scenario = works("sse", "2024-11-05", |s| json!({"url": s.url("s")})).await;
    scenario.wait(json!({"mcp": "s", "connections": 0})).await;
}

#[tokio::test]
async fn http_sse_when_told_so() {
    let scenario = works(
        "sse",
        "2024-11-05",
        |s| json!({"url": s.url("s"), "type": "sse"}),
    )
    .await;
    scenario.wait(json!({"mcp": "s", "connections": 0})).await;
    assert_eq!(scenario.methods("s").await[0], "initialize");
}

#[tokio::test]
async fn arguments_arrive_as_the_model_wrote_them() {
    let scenario = Scenario::mcp(json!({"s": {"transport": "stdio", "tools": echo()}})).await;
    let directory = tempfile::tempdir().unwrap();
    let written = directory.path().join("stdin");
    // The fixture reads numbers as JSON values, so their text is caught on its way.
    let mut command = vec![
        json!("sh"),
        json!("-c"),
        json!("tee \"$0\" | \"$@\""),
        json!(written),
    ];
    command.extend(scenario.command("s").as_array().unwrap().iter().cloned());
    let toolkit = toolkit(json!({"s": {"command": command}})).await;
    let arguments = r#"{"z":1e2,"a":12345678901234567890123}"#;
    assert!(!call(&toolkit, "s_a", arguments).await.is_error);
    let written = std::fs::read_to_string(&written).unwrap();
    let call = written.lines().last().unwrap();
    assert!(
        call.contains(&format!("\"arguments\":{arguments}")),
        "{call}"
    );
    assert!(call.contains("\"progressToken\":"), "{call}");
}

#[tokio::test]
async fn what_a_child_started_does_not_outlive_it() {
    let scenario = Scenario::mcp(json!({"s": {
        "transport": "stdio", "tools": echo(), "grandchild": true, "ignoreTerm": true}}))
    .await;
    let toolkit = toolkit(json!({"s": {"command": scenario.command("s")}})).await;
    scenario.wait(json!({"mcp": "s", "processes": 2})).await;
    let started = Instant::now();
    toolkit.close().await;
    assert!(
        started.elapsed() < Duration::from_millis(700),
        "{:?}",
        started.elapsed()
    );
    scenario.wait(json!({"mcp": "s", "processes": 0})).await;
}

#[tokio::test]
async fn we_say_who_we_are_and_promise_nothing() {
    let scenario = Scenario::mcp(json!({"s": {"transport": "http", "tools": echo()}})).await;
    let _toolkit = toolkit(json!({"s": {"url": scenario.url("s")}})).await;
    let seen = scenario.seen("s").await;
    assert_eq!(
        seen["messages"][0]["params"],
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "toolspan", "version": toolspan::VERSION}
        })
    );
}

#[tokio::test]
async fn a_server_that_asks_for_input_is_told_that_there_is_none() {
    let ask = json!({"elicit": {"message": "who?", "requestedSchema": {"type": "object", "properties": {}}}});
    let scenario = Scenario::mcp(json!({
        "old": {"transport": "http", "tools": [{"name": "a", "does": ask}]},
        "new": {"transport": "http", "revisions": ["2026-07-28"], "tools": [{"name": "a", "does": ask}]}}))
    .await;
    let toolkit = toolkit(json!({
        "old": {"url": scenario.url("old")}, "new": {"url": scenario.url("new")}}))
    .await;
    let old = call(&toolkit, "old_a", "").await;
    assert!(old.output.contains("-32601"), "{}", old.output);
    let new = call(&toolkit, "new_a", "").await;
    assert_eq!(
        (new.output.as_str(), new.is_error),
        (
            "The tool asks for input from the user, which this program cannot give.",
            true
        )
    );
}

#[tokio::test]
async fn pages_end_at_an_empty_cursor_and_a_bad_tool_costs_itself() {
    let scenario = Scenario::mcp(json!({"s": {
        "transport": "http",
        "tools": [{"name": "b"}, {"name": "a", "inputSchema": true}, {"name": "c"}],
        "pages": [["b", "a"], ["c"]], "cursors": ["1", ""]}}))
    .await;
    let records = Records::default();
    let toolkit = Toolkit::builder()
        .mcp_config(json!({"s": {"url": scenario.url("s")}}))
        .logger(records.logger())
        .build()
        .await
        .unwrap();
    let names: Vec<_> = toolkit
        .tools()
        .iter()
        .map(|t| t.info().name.clone())
        .collect();
    assert_eq!(names, ["s_b", "s_c"]);
    assert_eq!(toolkit.status()["s"].tools, Some(2));
    assert_eq!(
        records.messages(LogLevel::Warn),
        ["a tool of MCP server s is left out: the input schema of \"a\" is not an object"]
    );
    assert_eq!(
        scenario
            .methods("s")
            .await
            .iter()
            .filter(|m| *m == "tools/list")
            .count(),
        2
    );
}

#[tokio::test]
async fn a_child_that_ignores_everything_is_gone_after_close_with_its_own_child() {
    let scenario = Scenario::mcp(json!({"s": {
        "transport": "stdio", "tools": echo(), "grandchild": true, "ignoreEof": true, "ignoreTerm": true}}))
    .await;
    let toolkit = toolkit(json!({"s": {"command": scenario.command("s")}})).await;
    scenario.wait(json!({"mcp": "s", "processes": 2})).await;
    let started = Instant::now();
    toolkit.close().await;
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
    scenario.wait(json!({"mcp": "s", "processes": 0})).await;
    toolkit.close().await;
}

#[tokio::test]
async fn dropping_a_toolkit_ends_its_children() {
    let scenario = Scenario::mcp(json!({"s": {
        "transport": "stdio", "tools": echo(), "grandchild": true, "ignoreEof": true, "ignoreTerm": true}}))
    .await;
    let toolkit = toolkit(json!({"s": {"command": scenario.command("s")}})).await;
    scenario.wait(json!({"mcp": "s", "processes": 2})).await;
    drop(toolkit);
    scenario.wait(json!({"mcp": "s", "processes": 0})).await;
}

#[tokio::test]
async fn stderr_is_logged_and_noise_on_stdout_does_no_harm() {
    let scenario = Scenario::mcp(json!({"s": {
        "transport": "stdio", "tools": echo(), "stderr": ["warming up", "KEY=sk-secret-key"], "stdout": ["Listening...", ""]}}))
    .await;
    let records = Records::default();
    let toolkit = Toolkit::builder()
        .mcp_config(
            json!({"s": {"command": scenario.command("s"), "env": {"KEY": "sk-secret-key"}}}),
        )
        .logger(records.logger())
        .build()
        .await
        .unwrap();
    assert_eq!(call(&toolkit, "s_a", "{}").await.output, "{}");
    toolkit.close().await;
    assert_eq!(
        records.messages(LogLevel::Info),
        ["warming up", "KEY=«redacted»"]
    );
    assert_eq!(
        records.messages(LogLevel::Warn),
        ["MCP server s wrote a line to stdout that is not a message"]
    );
}

#[tokio::test]
async fn large_answers_and_large_arguments_arrive_whole() {
    let tools = json!([{"name": "bytes", "does": {"bytes": 5_000_000}}, {"name": "a", "does": {"echo": true}}]);
    let scenario = Scenario::mcp(json!({
        "http": {"transport": "http", "tools": tools}, "stdio": {"transport": "stdio", "tools": tools},
        "sse": {"transport": "sse", "tools": tools}}))
    .await;
    let toolkit = toolkit(json!({
        "http": {"url": scenario.url("http")}, "stdio": {"command": scenario.command("stdio")},
        "sse": {"url": scenario.url("sse"), "type": "sse"}}))
    .await;
    let big = json!({"text": "x".repeat(5_000_000)}).to_string();
    for server in ["http", "stdio", "sse"] {
        let result = call(&toolkit, &format!("{server}_bytes"), "").await;
        assert_eq!(
            (result.output.len(), result.is_error),
            (5_000_000, false),
            "{server}"
        );
        let result = call(&toolkit, &format!("{server}_a"), &big).await;
        assert!(result.output == big, "{server}");
    }
}

#[tokio::test]
async fn a_result_over_the_limit_fails_only_its_call() {
    let tools = json!([{"name": "bytes", "does": {"bytes": 40_000_000}}, {"name": "huge", "does": {"bytes": 70_000_000}}, {"name": "a"}]);
    let scenario = Scenario::mcp(json!({"s": {"transport": "stdio", "tools": tools}})).await;
    let toolkit = toolkit(json!({"s": {"command": scenario.command("s")}})).await;
    let result = call(&toolkit, "s_bytes", "").await;
    assert!(
        result
            .output
            .starts_with("limit_exceeded: the result of the tool has 40000"),
        "{}",
        result.output
    );
    let result = call(&toolkit, "s_huge", "").await;
    assert_eq!(
        result.output,
        "limit_exceeded: the answer has more than 67108864 bytes"
    );
    assert_eq!(call(&toolkit, "s_a", "").await.output, "ok");
    assert_eq!(scenario.seen("s").await["processes"]["started"], 1);
}
