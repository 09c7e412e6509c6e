//! The program that the public MCP conformance suite starts once per scenario: it connects to the server it is given,
//! lists the tools, calls each of them once, and closes. No scenario is known by name here; everything is the public API.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use toolspan::tool::ToolInfo;
use toolspan::{Error, ServerState, ToolContext, Toolkit};

/// What the suite says about a scenario beside its name.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Context {
    tool_calls: Vec<ToolCall>,
}

/// A call whose arguments the suite decides.
#[derive(Clone, Deserialize)]
struct ToolCall {
    name: String,
    arguments: Value,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Some(url) = std::env::args().next_back() else {
        eprintln!("usage: toolspan-suite-client URL");
        return ExitCode::from(2);
    };
    match session(&url).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// True when the server could be used.
async fn session(url: &str) -> Result<bool, Error> {
    // The suite asks for one revision at a time.
    let revision = std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").ok();
    let servers = json!({"mcpServers": {"suite": {"url": url, "expose": "original", "protocolVersion": revision}}});
    let toolkit = Toolkit::builder().mcp_config(servers).build().await?;
    let connected = toolkit
        .status()
        .values()
        .all(|status| status.state == ServerState::Connected);
    for (id, status) in toolkit.status() {
        println!("{id}: {}", json!(status));
    }
    let tools: Vec<ToolInfo> = toolkit.tools().iter().map(|t| t.info().clone()).collect();
    for call in calls(&tools, context()) {
        let arguments = Some(toolspan::json::to_json(&call.arguments)?);
        let context = ToolContext::default();
        let result = toolkit.execute_json(&call.name, arguments, context).await?;
        println!("{}: {}", call.name, result.output);
    }
    toolkit.close().await;
    Ok(connected)
}

fn context() -> Context {
    let text = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// The calls that the suite asks for, else one of each tool.
fn calls(tools: &[ToolInfo], context: Context) -> Vec<ToolCall> {
    if !context.tool_calls.is_empty() {
        return context.tool_calls;
    }
    let call = |tool: &ToolInfo| ToolCall {
        name: tool.name.clone(),
        arguments: arguments(tool, tools),
    };
    tools.iter().map(call).collect()
}

/// Arguments of the types that the schema names. An argument called `schema` is that of another tool, as we got it: a
/// scenario compares it with what its server sent.
fn arguments(tool: &ToolInfo, tools: &[ToolInfo]) -> Value {
    let properties = tool.input_schema.get("properties");
    let mut arguments = Map::new();
    for (name, schema) in properties.and_then(Value::as_object).into_iter().flatten() {
        let other = tools.iter().find(|other| other.name != tool.name);
        let value = match (schema["type"].as_str(), other) {
            (Some("object"), Some(other)) if name == "schema" => json!(other.input_schema),
            (Some("object"), _) => json!({}),
            (Some("array"), _) => json!([]),
            (Some("number" | "integer"), _) => json!(3),
            (Some("boolean"), _) => json!(true),
            (Some("string"), _) => json!("text"),
            _ => continue,
        };
        arguments.insert(name.clone(), value);
    }
    Value::Object(arguments)
}
