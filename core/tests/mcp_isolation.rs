//! What one server does wrong stays with it, and what the caller ends is ended: no socket, no process, no task (SPEC 3.3).

mod support;

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use support::{Records, Scenario};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use toolspan::mcp::{ListOptions, McpConfig, list_mcp_tools};
use toolspan::{Counters, ErrorCode, ServerState, Toolkit};

async fn toolkit(servers: Value) -> Toolkit {
    Toolkit::builder()
        .mcp_config(json!({"mcpServers": servers}))
        .build()
        .await
        .unwrap()
}

/// Why server `bad` failed, while `good` is used.
async fn reason(toolkit: &Toolkit) -> String {
    let status = toolkit.status();
    assert_eq!(status["good"].state, ServerState::Connected, "{status:?}");
    assert_eq!(status["bad"].state, ServerState::Failed, "{status:?}");
    let names: Vec<_> = toolkit
        .tools()
        .iter()
        .map(|t| t.info().name.clone())
        .collect();
    assert_eq!(names, ["good_a"]);
    let error = status["bad"].error.as_ref().unwrap();
    assert_eq!(error.server.as_deref(), Some("bad"));
    status["bad"].reason.clone().unwrap()
}

async fn hang(transport: &str, phase: &str, entry: impl Fn(&Scenario) -> Value) -> String {
    let scenario = Scenario::mcp(json!({
        "bad": {"transport": transport, "tools": [{"name": "x"}], "hang": [phase]},
        "good": {"transport": "http", "tools": [{"name": "a"}]}}))
    .await;
    let mut bad = entry(&scenario);
    bad["timeout"] = json!(300);
    let toolkit = toolkit(json!({"bad": bad, "good": {"url": scenario.url("good")}})).await;
    let reason = reason(&toolkit).await;
    let nothing = if transport == "stdio" {
        "processes"
    } else {
        "connections"
    };
    scenario.wait(json!({"mcp": "bad", nothing: 0})).await;
    reason
}

#[tokio::test]
async fn each_phase_has_its_budget_and_its_name() {
    let url = |s: &Scenario| json!({"url": s.url("bad")});
    let sse = |s: &Scenario| json!({"url": s.url("bad"), "type": "sse"});
    let command = |s: &Scenario| json!({"command": s.command("bad")});
    // A server that accepts and then reads nothing cannot be told from one that thinks about its answer.
    assert_eq!(
        hang("http", "connect", url).await,
        "initialize took longer than 300 ms"
    );
    assert_eq!(
        hang("http", "initialize", url).await,
        "initialize took longer than 300 ms"
    );
    assert_eq!(
        hang("http", "list", url).await,
        "list took longer than 300 ms"
    );
    assert_eq!(
        hang("sse", "connect", sse).await,
        "connect took longer than 300 ms"
    );
    assert_eq!(
        hang("sse", "initialize", sse).await,
        "initialize took longer than 300 ms"
    );
    assert_eq!(
        hang("sse", "list", sse).await,
        "list took longer than 300 ms"
    );
    assert_eq!(
        hang("stdio", "connect", command).await,
        "initialize took longer than 300 ms"
    );
    assert_eq!(
        hang("stdio", "initialize", command).await,
        "initialize took longer than 300 ms"
    );
    assert_eq!(
        hang("stdio", "list", command).await,
        "list took longer than 300 ms"
    );
}

/// Why a server fails whose script or entry is wrong.
async fn failure(script: Value, entry: impl Fn(&Scenario) -> Value) -> (ErrorCode, String) {
    let scenario = Scenario::mcp(json!({
        "bad": script, "good": {"transport": "http", "tools": [{"name": "a"}]}}))
    .await;
    let toolkit =
        toolkit(json!({"bad": entry(&scenario), "good": {"url": scenario.url("good")}})).await;
    let code = toolkit.status()["bad"].error.as_ref().unwrap().code;
    (code, reason(&toolkit).await)
}

#[tokio::test]
async fn a_list_has_a_limit_over_all_its_pages() {
    let url = |s: &Scenario| json!({"url": s.url("bad")});
    let mebibyte = json!([{"name": "x", "description": "x".repeat(1024 * 1024)}]);
    let long =
        json!({"transport": "http", "tools": mebibyte, "pages": [["x"]], "cursors": ["$fresh"]});
    let (code, reason) = failure(long, url).await;
    assert_eq!(code, ErrorCode::LimitExceeded);
    assert_eq!(
        reason,
        "list: the server has more than 67108864 bytes of tools"
    );
    let names: Vec<_> = (0..10_001).map(|n| format!("t{n}")).collect();
    let many: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
    let halves = [&names[..5000], &names[5000..]];
    let wide = json!({"transport": "http", "tools": many, "pages": halves});
    let (code, reason) = failure(wide, url).await;
    assert_eq!(code, ErrorCode::LimitExceeded);
    assert_eq!(reason, "list: the server has more than 10000 tools");
}

#[tokio::test]
async fn a_failure_says_what_happened() {
    let url = |s: &Scenario| json!({"url": s.url("bad")});
    let command = |s: &Scenario| json!({"command": s.command("bad")});
    let http = |more: Value| {
        let mut script = json!({"transport": "http", "tools": [{"name": "x"}]});
        script
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        script
    };
    let is = |code, reason: &str| (code, reason.to_owned());
    assert_eq!(
        failure(
            http(json!({"errors": {"initialize": {"status": 401, "body": "no"}}})),
            url
        )
        .await,
        is(
            ErrorCode::Unauthorized,
            "initialize: the server refuses our credentials (HTTP 401)"
        )
    );
    assert_eq!(
        failure(
            http(json!({"errors": {"initialize": {"status": 500, "body": "no"}}})),
            url
        )
        .await,
        is(
            ErrorCode::McpError,
            "initialize: the server answered HTTP 500"
        )
    );
    assert_eq!(
        failure(
            http(json!({"errors": {"initialize": {"status": 404, "body": "no"}}})),
            url
        )
        .await,
        is(
            ErrorCode::McpError,
            "initialize: the server answered HTTP 404; over HTTP+SSE: the server answered HTTP 400"
        )
    );
    assert_eq!(
        failure(
            http(json!({"errors": {"initialize": {"code": -32603, "message": "on fire"}}})),
            url
        )
        .await,
        is(
            ErrorCode::McpError,
            "initialize: the server refuses: on fire"
        )
    );
    assert_eq!(
        failure(
            http(json!({"errors": {"tools/list": {"code": -32603, "message": "on fire"}}})),
            url
        )
        .await,
        is(ErrorCode::McpError, "list: the server refuses: on fire")
    );
    assert_eq!(
        failure(http(json!({"pages": [["x"]], "cursors": ["$fresh"]})), url).await,
        is(
            ErrorCode::LimitExceeded,
            "list: the server has more than 1000 pages of tools"
        )
    );
    let exits = json!({"transport": "stdio", "tools": [{"name": "x"}], "exitOn": "initialize"});
    assert_eq!(
        failure(exits, command).await,
        is(
            ErrorCode::ProcessFailed,
            "initialize: the process ended (exit status: 1)"
        )
    );
    let unused = json!({"transport": "http", "tools": []});
    assert_eq!(
        failure(unused, |_| json!({"command": ["no-such-program"]})).await,
        is(
            ErrorCode::ProcessFailed,
            "connect: the program no-such-program cannot be started: No such file or directory (os error 2)"
        )
    );
}

#[tokio::test]
async fn a_server_nobody_runs_is_not_reached() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let toolkit =
        toolkit(json!({"s": {"url": format!("http://127.0.0.1:{port}/?key=SECRET")}})).await;
    let status = toolkit.status();
    let error = status["s"].error.as_ref().unwrap();
    assert_eq!(error.code, ErrorCode::ConnectionFailed);
    assert_eq!(
        error.message,
        format!(
            "connect: could not connect to 127.0.0.1:{port}: Connection refused (os error 111)"
        )
    );
    assert!(!format!("{status:?}").contains("SECRET"));
}

#[tokio::test]
async fn credentials_stay_on_their_origin() {
    let scenario =
        Scenario::mcp(json!({"other": {"transport": "http", "tools": [{"name": "a"}]}})).await;
    let other = scenario.url("other");
    let elsewhere = Scenario::mcp(json!({
        "away": {"transport": "http", "tools": [{"name": "a"}], "redirect": {"status": 307, "to": other}},
        "found": {"transport": "http", "tools": [{"name": "a"}], "redirect": {"status": 302, "to": "/mcp/"}},
        "slash": {"transport": "http", "tools": [{"name": "a"}], "redirect": {"status": 307, "to": "/mcp/"},
            "requireHeaders": {"x-api-key": "K"}}}))
    .await;
    let entry = |name: &str| json!({"url": elsewhere.url(name), "headers": {"X-Api-Key": "K"}});
    let toolkit =
        toolkit(json!({"away": entry("away"), "found": entry("found"), "slash": entry("slash")}))
            .await;
    let status = toolkit.status();
    assert_eq!(
        status["away"].reason.as_deref(),
        Some("initialize: the server answered HTTP 307, a redirect that is not followed")
    );
    assert_eq!(
        status["found"].reason.as_deref(),
        Some("initialize: the server answered HTTP 302, a redirect that is not followed")
    );
    assert_eq!(status["slash"].state, ServerState::Connected, "{status:?}");
    assert_eq!(scenario.seen("other").await["connections"]["opened"], 0);
}

#[tokio::test]
async fn a_required_server_fails_the_build_and_nothing_stays() {
    let scenario = Scenario::mcp(json!({
        "bad": {"transport": "http", "tools": [], "errors": {"tools/list": {"status": 500, "body": ""}}},
        "child": {"transport": "stdio", "tools": [{"name": "a"}]},
        "good": {"transport": "http", "tools": [{"name": "a"}]}}))
    .await;
    let counters = Counters::default();
    let error = Toolkit::builder()
        .counters(counters.clone())
        .mcp_config(json!({
            "bad": {"url": scenario.url("bad"), "required": true},
            "child": {"command": scenario.command("child")},
            "good": {"url": scenario.url("good")}}))
        .build()
        .await
        .err()
        .unwrap();
    assert_eq!(error.code(), ErrorCode::RequiredServerFailed);
    assert_eq!(error.record().server.as_deref(), Some("bad"));
    assert_eq!(
        error.record().cause[0].message,
        "list: the server answered HTTP 500"
    );
    assert_eq!(counters.connected_servers(), 0);
    scenario
        .wait(json!({"mcp": "good", "connections": 0}))
        .await;
    scenario.wait(json!({"mcp": "child", "processes": 0})).await;
}

/// Three servers that work and one that hangs in `phase`.
async fn stuck(transport: &str, phase: &str) -> Scenario {
    Scenario::mcp(json!({
        "stuck": {"transport": transport, "tools": [{"name": "a"}], "hang": [phase], "ignoreEof": transport == "stdio",
            "ignoreTerm": transport == "stdio", "grandchild": transport == "stdio"},
        "http": {"transport": "http", "tools": [{"name": "a"}]},
        "sse": {"transport": "sse", "tools": [{"name": "a"}]},
        "stdio": {"transport": "stdio", "tools": [{"name": "a"}], "grandchild": true, "ignoreEof": true, "ignoreTerm": true}}))
    .await
}

fn all(scenario: &Scenario, transport: &str) -> Value {
    let stuck = match transport {
        "stdio" => json!({"command": scenario.command("stuck")}),
        "sse" => json!({"url": scenario.url("stuck"), "type": "sse"}),
        _ => json!({"url": scenario.url("stuck")}),
    };
    json!({
        "stuck": stuck,
        "http": {"url": scenario.url("http")},
        "sse": {"url": scenario.url("sse")},
        "stdio": {"command": scenario.command("stdio")}})
}

async fn wait_until_stuck(scenario: &Scenario, phase: &str) {
    for server in ["http", "sse", "stdio"] {
        scenario
            .wait(json!({"mcp": server, "method": "tools/list"}))
            .await;
    }
    let stuck = match phase {
        "connect" => json!({"mcp": "stuck", "connections": 1}),
        "initialize" => json!({"mcp": "stuck", "method": "initialize"}),
        _ => json!({"mcp": "stuck", "method": "tools/list"}),
    };
    scenario.wait(stuck).await;
}

async fn nothing_is_left(scenario: &Scenario, transport: &str) {
    for server in ["http", "sse"] {
        scenario
            .wait(json!({"mcp": server, "connections": 0}))
            .await;
    }
    scenario.wait(json!({"mcp": "stdio", "processes": 0})).await;
    let nothing = if transport == "stdio" {
        "processes"
    } else {
        "connections"
    };
    scenario.wait(json!({"mcp": "stuck", nothing: 0})).await;
}

#[tokio::test]
async fn a_cancelled_build_ends_at_once_and_leaves_nothing() {
    for (transport, phase) in [
        ("http", "connect"),
        ("http", "initialize"),
        ("http", "list"),
        ("sse", "connect"),
        ("sse", "list"),
        ("stdio", "initialize"),
        ("stdio", "list"),
    ] {
        let scenario = stuck(transport, phase).await;
        let counters = Counters::default();
        let cancel = CancellationToken::new();
        let tasks = Handle::current().metrics().num_alive_tasks();
        let build = Toolkit::builder()
            .mcp_config(all(&scenario, transport))
            .counters(counters.clone())
            .cancel(cancel.clone())
            .build();
        let build = tokio::spawn(build);
        wait_until_stuck(&scenario, phase).await;
        let started = Instant::now();
        cancel.cancel();
        let error = build.await.unwrap().err().unwrap();
        let took = started.elapsed();
        assert_eq!(error.code(), ErrorCode::Cancelled);
        assert!(
            took < Duration::from_millis(250),
            "{transport} {phase}: {took:?}"
        );
        assert_eq!(
            (counters.open_toolkits(), counters.connected_servers()),
            (0, 0)
        );
        nothing_is_left(&scenario, transport).await;
        let left = Handle::current().metrics().num_alive_tasks();
        assert!(
            left <= tasks + 1,
            "{transport} {phase}: {left} tasks, there were {tasks}"
        );
    }
}

#[tokio::test]
async fn dropping_a_build_leaves_nothing_either() {
    for transport in ["http", "stdio"] {
        let scenario = stuck(transport, "list").await;
        let build = Toolkit::builder()
            .mcp_config(all(&scenario, transport))
            .build();
        let build = tokio::spawn(build);
        wait_until_stuck(&scenario, "list").await;
        build.abort();
        nothing_is_left(&scenario, transport).await;
    }
}

#[tokio::test]
async fn the_deadline_of_a_build_is_a_timeout_and_leaves_nothing() {
    let scenario = stuck("http", "initialize").await;
    let error = Toolkit::builder()
        .mcp_config(all(&scenario, "http"))
        .timeout(Duration::from_millis(700))
        .build()
        .await
        .err()
        .unwrap();
    assert_eq!(error.code(), ErrorCode::Timeout);
    nothing_is_left(&scenario, "http").await;
}

#[tokio::test]
async fn an_inventory_shows_everything_unfiltered_and_leaves_nothing() {
    let scenario = Scenario::mcp(json!({
        "my.srv": {"transport": "http", "tools": [{"name": "get.item", "description": "d"}, {"name": "b"}]},
        "child": {"transport": "stdio", "tools": [{"name": "x"}]},
        "off": {"transport": "http", "tools": [{"name": "x"}]}}))
    .await;
    let config = McpConfig::from_json(&json!({
        "my.srv": {"url": scenario.url("my.srv"), "tools": {}, "dedupKey": "k"},
        "child": {"command": scenario.command("child"), "dedupKey": "k", "expose": "original"},
        "off": {"url": scenario.url("off"), "disabled": true}}))
    .unwrap();
    let inventory = list_mcp_tools(config, ListOptions::default())
        .await
        .unwrap();
    let schema = json!({"type": "object", "properties": {}});
    assert_eq!(
        serde_json::to_value(&inventory).unwrap(),
        json!({
            "tools": {
                "child": [{"name": "x", "exposedName": "x", "description": "", "inputSchema": schema}],
                "my.srv": [
                    {"name": "get.item", "exposedName": "my_srv_get_item", "description": "d", "inputSchema": schema},
                    {"name": "b", "exposedName": "my_srv_b", "description": "", "inputSchema": schema}]},
            "status": {
                "child": {"state": "connected", "tools": 1},
                "my.srv": {"state": "connected", "tools": 2},
                "off": {"state": "disabled"}}})
    );
    scenario
        .wait(json!({"mcp": "my.srv", "connections": 0}))
        .await;
    scenario.wait(json!({"mcp": "child", "processes": 0})).await;
    assert_eq!(scenario.seen("off").await["connections"]["opened"], 0);
}

#[tokio::test]
async fn a_secret_reaches_the_server_and_nothing_else() {
    let scenario = Scenario::mcp(json!({
        "s": {"transport": "http", "tools": [{"name": "a"}], "requireHeaders": {"authorization": "other"}},
        "child": {"transport": "stdio", "tools": [{"name": "a"}], "exitOn": "initialize"}}))
    .await;
    let records = Records::default();
    let toolkit = Toolkit::builder()
        .logger(records.logger())
        .mcp_config(json!({
            "s": {"url": format!("{}?key=MARKER", scenario.url("s")), "headers": {"Authorization": "Bearer MARKER"}},
            "child": {"command": scenario.command("child"), "env": {"TOKEN": "MARKER"}}}))
        .build()
        .await
        .unwrap();
    let seen = scenario.seen("s").await;
    assert_eq!(
        seen["messages"][0]["headers"]["authorization"],
        "Bearer MARKER"
    );
    assert_eq!(scenario.seen("child").await["env"]["TOKEN"], "MARKER");
    let status = serde_json::to_string(&toolkit.status()).unwrap();
    assert!(!status.contains("MARKER"), "{status}");
    assert!(!records.text().contains("MARKER"), "{}", records.text());
}

/// Answers every POST with `post` and every GET with `get`, both whole HTTP answers, and closes.
async fn canned(post: &'static str, get: &'static str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 64 * 1024];
            let read = stream.read(&mut request).await.unwrap_or(0);
            let answer = if request[..read].starts_with(b"GET") {
                get
            } else {
                post
            };
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    url
}

#[tokio::test]
async fn what_answers_a_post_but_speaks_no_mcp_is_tried_over_http_sse() {
    const NO: &str = "HTTP/1.1 405 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let stream = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
                  event: endpoint\ndata: /msg?s=1\n\n";
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 5\r\nconnection: close\r\n\r\n<html";
    let away = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
                event: endpoint\ndata: http://localhost:1/msg\n\n";
    let reason = async |post, get| {
        let toolkit =
            toolkit(json!({"s": {"url": canned(post, get).await, "timeout": 5000}})).await;
        toolkit.status()["s"].reason.clone().unwrap()
    };
    let not_mcp = "initialize: the server answered with something that is not MCP; over HTTP+SSE:";
    assert_eq!(
        reason(stream, NO).await,
        format!("{not_mcp} the server answered HTTP 405")
    );
    assert_eq!(
        reason(page, NO).await,
        format!("{not_mcp} the server answered HTTP 405")
    );
    assert_eq!(
        reason(page, away).await,
        format!("{not_mcp} the server named an endpoint of another origin")
    );
}
