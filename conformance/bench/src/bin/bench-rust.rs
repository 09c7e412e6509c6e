//! The scenario from Rust, through the public API.

use std::time::Instant;
use toolspan::{Client, Style, Toolkit};
use toolspan_bench::{Plan, Times};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let plan = Plan::from_env()?;
    let config = serde_json::json!({"mcpServers": {"calc": {"command": plan.command}}});
    let toolkit = Toolkit::builder().mcp_config(config).build().await?;
    let client = Client::builder(&plan.base_url, Style::OpenAi, "bench").build()?;
    let mut times = Times::default();
    for run in 0..plan.warm_up + plan.runs {
        let start = Instant::now();
        let result = client
            .run("What is 2 + 2, twice?")
            .toolkit(&toolkit)
            .await?;
        if run >= plan.warm_up {
            times.add(start);
        }
        if result.tool_calls.len() != 2 {
            return Err(format!("{} tool calls instead of 2", result.tool_calls.len()).into());
        }
    }
    println!("{}", serde_json::to_string(&times.report())?);
    toolkit.close().await;
    Ok(())
}
