//! One ordered list out of many sources: order, names, collisions, `disableTools`, and whether arguments are checked
//! (SPEC 4.1, 4.2, 4.4). Pure.

use serde_json::Value;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::log::{LogLevel, Logger};
use crate::mcp::{Expose, LoadedServer, McpSource, ServerTool};
use crate::tool::name::{self, Namer};
use crate::tool::{Execute, Hints, Source, Tool, ToolInfo, complete_schema};

/// A tool of a server before it has its final name.
pub(crate) struct Unnamed {
    pub server: String,
    pub original: String,
    /// Whether the model sees the original name (SPEC 4.2 `expose`).
    pub bare: bool,
    pub description: String,
    pub input_schema: Value,
    pub hints: Option<Hints>,
    pub run: Arc<dyn Execute>,
}

/// The tools of all connected servers in final order: servers by id, each in list order.
pub(crate) fn unnamed(source: &McpSource) -> Vec<Unnamed> {
    let of_server = |server: &LoadedServer| {
        let (id, bare) = (server.id.clone(), server.expose == Expose::Original);
        let unnamed = move |tool: &ServerTool| Unnamed {
            server: id.clone(),
            original: tool.original.clone(),
            bare,
            description: tool.description.clone(),
            input_schema: tool.input_schema.clone(),
            hints: tool.hints,
            run: tool.run.clone(),
        };
        server.tools().iter().map(unnamed).collect::<Vec<_>>()
    };
    source.servers().flat_map(of_server).collect()
}

/// Names and orders everything. `remote` is in final order already; the program's own tools follow.
pub(crate) fn assemble(
    remote: Vec<Unnamed>,
    native: Vec<Tool>,
    disabled: &[String],
    checks: bool,
    logger: &Logger,
) -> Result<Vec<Tool>> {
    // The program's own names are never changed, so they are taken first: a server that grows a tool of the same
    // name overnight is the one that gets the suffix.
    let mut namer = Namer::default();
    for (index, tool) in native.iter().enumerate() {
        let name = &tool.info().name;
        check_native_name(name, &format!("tools[{index}].name"))?;
        if !namer.claim(name) {
            return Err(Error::config(
                format!("tools[{index}].name"),
                format!("two tools are named {name}"),
            ));
        }
    }
    let mut tools: Vec<Tool> = Vec::with_capacity(remote.len() + native.len());
    for tool in remote {
        let named = name_remote(&mut namer, &tool, &tools, logger);
        let info = ToolInfo {
            name: named,
            description: tool.description,
            input_schema: complete_schema(tool.input_schema),
            source: Source::Mcp,
            server: Some(tool.server),
            original_name: Some(tool.original),
            hints: tool.hints,
        };
        tools.push(Tool::from_parts(info, tool.run));
    }
    tools.extend(native);
    drop_disabled(&mut tools, disabled, logger);
    let checked = tools.into_iter().map(|tool| tool.checked(checks, logger));
    Ok(checked.collect())
}

fn name_remote(namer: &mut Namer, tool: &Unnamed, before: &[Tool], logger: &Logger) -> String {
    let (wish, identity) = name::wish(&tool.server, &tool.original, tool.bare);
    let named = namer.assign(&wish, &identity);
    if named.collided {
        let plain = name::sanitize(&wish);
        let first = before
            .iter()
            .map(Tool::info)
            .find(|info| info.name == plain);
        let owner = first.map_or(plain.clone(), |info| {
            match (&info.server, &info.original_name) {
                (Some(server), Some(original)) => format!("{server}/{original}"),
                _ => info.name.clone(),
            }
        });
        logger.log(
            LogLevel::Warn,
            "toolkit",
            || {
                format!(
                    "{identity} and {owner} would both be named {plain}; {identity} is named {}",
                    named.name
                )
            },
            [("tool", named.name.as_str().into())],
        );
    }
    named.name
}

/// Names of the program's own tools are used as they stand or not at all.
pub(crate) fn check_native_name(name: &str, path: &str) -> Result<()> {
    if name::is_valid(name) {
        return Ok(());
    }
    Err(Error::config(
        path,
        format!(
            "{name:?} is not a tool name; use 1 to {} of the characters A-Z a-z 0-9 _ -",
            name::MAX_LEN
        ),
    ))
}

fn drop_disabled(tools: &mut Vec<Tool>, disabled: &[String], logger: &Logger) {
    let unknown: Vec<&str> = disabled
        .iter()
        .filter(|name| !tools.iter().any(|tool| tool.info().name == **name))
        .map(String::as_str)
        .collect();
    if !unknown.is_empty() {
        logger.log(
            LogLevel::Warn,
            "toolkit",
            || format!("disableTools names no tool: {}", unknown.join(", ")),
            [("tools", unknown.clone().into())],
        );
    }
    tools.retain(|tool| !disabled.contains(&tool.info().name));
}
