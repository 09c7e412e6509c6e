//! What the servers of a configuration offer (SPEC 3.6).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

use super::config::{Expose, McpConfig};
use super::plan::Purpose;
use super::source::{LoadOptions, LoadedServer, load};
use super::status::ServerStatus;
use crate::clock::positive;
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::log::Logger;
use crate::tool::complete_schema;
use crate::tool::name::{self, Namer};

/// Options of [`list_mcp_tools`].
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Ends the call with `cancelled`.
    pub cancel: CancellationToken,
    /// Deadline of the whole call; it then ends with `timeout`. Default none: each phase of each server has its own budget.
    pub timeout: Option<Duration>,
    /// Where records go.
    pub logger: Logger,
}

/// What [`list_mcp_tools`] found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Inventory {
    /// Unfiltered tools of every server that answered, by server id.
    pub tools: BTreeMap<String, Vec<InventoryTool>>,
    /// Every server of the configuration.
    pub status: BTreeMap<String, ServerStatus>,
}

/// One tool of an [`Inventory`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InventoryTool {
    /// The name the server gave; the key for `tools` in the configuration.
    pub name: String,
    /// The name a toolkit of all these tools would give it.
    pub exposed_name: String,
    /// May be empty.
    pub description: String,
    /// JSON Schema of the arguments, completed as in a toolkit.
    pub input_schema: Map<String, Value>,
}

/// Connects every enabled server, lists its tools and disconnects. Filters and duplicates do not apply. Fails with
/// `cancelled`, `timeout` or, where a required server cannot be used, `required_server_failed`; nothing is left open then
/// either.
pub async fn list_mcp_tools(config: McpConfig, options: ListOptions) -> Result<Inventory> {
    positive(options.timeout, |why| Error::argument("timeoutMs", why))?;
    let load_options = LoadOptions {
        cancel: options.cancel,
        logger: options.logger,
        counters: Counters::default(),
    };
    let loading = load(config, Purpose::Inventory, load_options);
    let source = match options.timeout {
        None => loading.await?,
        Some(budget) => tokio::time::timeout(budget, loading)
            .await
            .map_err(|_| Error::timeout("listing the tools of the MCP servers", budget))??,
    };
    let status = source.status();
    let mut namer = Namer::default();
    let tools = source
        .servers()
        .map(|server| (server.id.clone(), described(server, &mut namer)))
        .collect();
    source.close().await;
    Ok(Inventory { tools, status })
}

fn described(server: &LoadedServer, namer: &mut Namer) -> Vec<InventoryTool> {
    server
        .tools()
        .iter()
        .map(|tool| {
            let bare = server.expose == Expose::Original;
            let (wish, identity) = name::wish(&server.id, &tool.original, bare);
            InventoryTool {
                name: tool.original.clone(),
                exposed_name: namer.assign(&wish, &identity).name,
                description: tool.description.clone(),
                input_schema: complete_schema(tool.input_schema.clone()),
            }
        })
        .collect()
}
