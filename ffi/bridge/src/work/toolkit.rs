//! Toolkits (SPEC 4).

use std::time::Duration;

use super::host_tool;
use crate::dispatch::Context;
use crate::ops::{
    Empty, MaybeTool, McpList, Registered, Servers, ToolkitAdapt, ToolkitCreate, ToolkitExecute,
    ToolkitGet, ToolkitNumber, ToolkitRegister, Tools,
};
use crate::options::McpConfig;
use toolspan::mcp::{Inventory, ListOptions, list_mcp_tools};
use toolspan::schema::Compiled;
use toolspan::{Error, McpInput, ToolContext, ToolResult, Toolkit};

pub(crate) async fn create(context: Context, args: ToolkitCreate) -> Result<ToolkitNumber, Error> {
    let shared = &context.shared;
    let options = args.options;
    let mcp = mcp_input(options.mcp_config, options.mcp_config_text)
        .map_err(|e| Error::config("mcpConfigText", e))?;
    let mut builder = Toolkit::builder()
        .logger(shared.logger.clone())
        .counters(shared.counters.clone())
        .disable_tools(options.disable_tools);
    for (index, spec) in options.tools.into_iter().enumerate() {
        builder = builder.tool(host_tool::tool(
            spec,
            &shared.host,
            &format!("tools[{index}]"),
        )?);
    }
    if let Some(validate) = options.validate_arguments {
        builder = builder.validate_arguments(validate);
    }
    if let Some(ms) = options.timeout_ms {
        builder = builder.timeout(Duration::from_millis(ms));
    }
    if let Some(input) = mcp {
        builder = builder.mcp_config(input);
    }
    let toolkit = builder.build().await?;
    Ok(ToolkitNumber {
        toolkit: shared.toolkits.insert(toolkit)?,
    })
}

/// At most one of the two ways to give a configuration.
fn mcp_input(
    config: Option<McpConfig>,
    text: Option<String>,
) -> Result<Option<McpInput>, &'static str> {
    match (config, text) {
        (None, None) => Ok(None),
        (Some(McpConfig::Path(path)), None) => Ok(Some(path.into())),
        (Some(McpConfig::Document(map)), None) => Ok(Some(McpInput::Document(map.into()))),
        (None, Some(text)) => Ok(Some(McpInput::Text(text))),
        (Some(_), Some(_)) => Err("give mcpConfig or mcpConfigText, not both"),
    }
}

pub(crate) async fn list(context: Context, args: McpList) -> Result<Inventory, Error> {
    let input = mcp_input(args.mcp_config, args.mcp_config_text)
        .map_err(|e| Error::argument("mcpConfigText", e))?
        .ok_or_else(|| Error::argument("mcpConfig", "give mcpConfig or mcpConfigText"))?;
    let options = ListOptions {
        timeout: args.timeout_ms.map(Duration::from_millis),
        logger: context.shared.logger.clone(),
        ..ListOptions::default()
    };
    list_mcp_tools(input.read()?, options).await
}

pub(crate) fn status(context: &Context, args: ToolkitNumber) -> Result<Servers, Error> {
    let toolkit = context.shared.toolkits.get(args.toolkit)?;
    Ok(Servers {
        servers: toolkit.status(),
    })
}

pub(crate) fn adapt(context: &Context, args: ToolkitAdapt) -> Result<Compiled, Error> {
    Ok(context
        .shared
        .toolkits
        .get(args.toolkit)?
        .adapt(args.provider))
}

pub(crate) fn tools(context: &Context, args: ToolkitNumber) -> Result<Tools, Error> {
    let toolkit = context.shared.toolkits.get(args.toolkit)?;
    Ok(Tools {
        tools: toolkit
            .tools()
            .iter()
            .map(|tool| tool.info().clone())
            .collect(),
    })
}

pub(crate) fn get(context: &Context, args: ToolkitGet) -> Result<MaybeTool, Error> {
    let toolkit = context.shared.toolkits.get(args.toolkit)?;
    Ok(MaybeTool {
        tool: toolkit.get(&args.name).map(|tool| tool.info().clone()),
    })
}

pub(crate) fn register(context: &Context, args: ToolkitRegister) -> Result<Registered, Error> {
    let toolkit = context.shared.toolkits.get(args.toolkit)?;
    let tool = host_tool::tool(args.tool, &context.shared.host, "tool")?;
    Ok(Registered {
        registered: toolkit.register(tool)?,
    })
}

pub(crate) async fn execute(context: Context, args: ToolkitExecute) -> Result<ToolResult, Error> {
    let toolkit = context.shared.toolkits.get(args.toolkit)?;
    let call = ToolContext {
        timeout: args.timeout_ms.map(Duration::from_millis),
        ..ToolContext::default()
    };
    let arguments = args.args.map(Into::into);
    toolkit.execute_json(&args.name, arguments, call).await
}

pub(crate) async fn close(context: Context, args: ToolkitNumber) -> Result<Empty, Error> {
    if let Some(toolkit) = context.shared.toolkits.remove_once(args.toolkit)? {
        toolkit.close().await;
    }
    Ok(Empty {})
}
