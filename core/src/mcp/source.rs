//! All servers of one configuration: connected together, used together, ended together.

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

use super::config::{Expose, McpConfig};
use super::connect::{Connected, Session, connect};
use super::plan::{Decision, Purpose, plan};
use super::status::ServerStatus;
use crate::counters::Counters;
use crate::error::{Error, ErrorCode, Result};
use crate::log::{LogLevel, Logger};
use crate::tool::{Execute, Hints};

/// What a load needs beside the configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadOptions {
    /// Ends the load with `cancelled`, at once.
    pub cancel: CancellationToken,
    pub logger: Logger,
    /// Where connected servers are counted.
    pub counters: Counters,
}

/// The MCP servers of a toolkit. Dropping it ends every session, socket and child process; [`McpSource::close`] does so
/// politely.
pub(crate) struct McpSource {
    servers: Vec<LoadedServer>,
    /// Of the servers that were not connected.
    others: BTreeMap<String, ServerStatus>,
    /// Of the others, with the number of tools each listed.
    sessions: BTreeMap<String, (Arc<Session>, usize)>,
}

/// A connected server and the tools to use.
pub(crate) struct LoadedServer {
    pub id: String,
    pub expose: Expose,
    /// In list order, after the filter.
    pub tools: Vec<ServerTool>,
}

/// A tool as the server describes it.
#[derive(Clone)]
pub(crate) struct ServerTool {
    pub original: String,
    pub description: String,
    /// As it came.
    pub input_schema: Value,
    pub hints: Option<Hints>,
    pub run: Arc<dyn Execute>,
}

impl McpSource {
    /// Connects every server at the same time. A server that fails is left out, unless it is required.
    pub async fn load(config: McpConfig, options: LoadOptions) -> Result<Self> {
        load(config, Purpose::Use, options).await
    }

    /// Connected servers, by id in code-point order.
    pub fn servers(&self) -> &[LoadedServer] {
        &self.servers
    }

    /// What each server of the configuration is now; one that died since is `failed`.
    pub fn status(&self) -> BTreeMap<String, ServerStatus> {
        let mut status = self.others.clone();
        status.extend(self.sessions.iter().map(|(id, (session, tools))| {
            let now = match session.fault() {
                None => ServerStatus::connected(*tools),
                Some(error) => ServerStatus::failed(&error),
            };
            (id.clone(), now)
        }));
        status
    }

    /// Ends all sessions politely and returns when nothing is left. Calling it again does nothing.
    pub async fn close(&self) {
        join_all(self.sessions.values().map(|(session, _)| session.close())).await;
    }
}

/// Connects the servers that `purpose` wants. Dropping the future ends whatever it had opened.
pub(super) async fn load(
    config: McpConfig,
    purpose: Purpose,
    options: LoadOptions,
) -> Result<McpSource> {
    let steps = plan(&config, purpose, &|name| std::env::var(name).ok())?;
    let mut source = McpSource {
        servers: Vec::new(),
        others: BTreeMap::new(),
        sessions: BTreeMap::new(),
    };
    let mut connecting = FuturesUnordered::new();
    for (id, step) in steps {
        match step.decision {
            Decision::Disabled => {
                source.others.insert(id, ServerStatus::disabled());
            }
            Decision::Deduplicated(kept) => {
                note_duplicate(&options.logger, &id, &kept);
                source.others.insert(id, ServerStatus::deduplicated(&kept));
            }
            Decision::Faulty(error) => source.fail(id, step.required, error, &options.logger)?,
            Decision::Connect(server) => {
                let options = &options;
                connecting.push(async move {
                    let outcome = connect(&id, &server, options).await;
                    (id, step.required, server, outcome)
                });
            }
        }
    }
    loop {
        let next = tokio::select! {
            biased;
            () = options.cancel.cancelled() => return Err(Error::cancelled()),
            next = connecting.next() => next,
        };
        match next {
            None => break,
            Some((id, required, _, Err(error))) => {
                source.fail(id, required, error, &options.logger)?;
            }
            Some((id, _, server, Ok(connected))) => {
                source.add(
                    id,
                    server.expose,
                    connected,
                    purpose,
                    server.filter,
                    &options.logger,
                );
            }
        }
    }
    source.servers.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(source)
}

impl McpSource {
    fn add(
        &mut self,
        id: String,
        expose: Expose,
        connected: Connected,
        purpose: Purpose,
        filter: Option<BTreeMap<String, bool>>,
        logger: &Logger,
    ) {
        let Connected { session, tools } = connected;
        self.sessions.insert(id.clone(), (session, tools.len()));
        let tools = match (purpose, filter) {
            (Purpose::Use, Some(filter)) => filtered(&id, tools, &filter, logger),
            _ => tools,
        };
        self.servers.push(LoadedServer { id, expose, tools });
    }

    /// Notes that a server cannot be used; fails where it must be.
    fn fail(&mut self, id: String, required: bool, error: Error, logger: &Logger) -> Result<()> {
        if required {
            let message = format!("the required MCP server {id} cannot be used");
            return Err(Error::new(ErrorCode::RequiredServerFailed, message)
                .server(id)
                .because(&error));
        }
        let status = ServerStatus::failed(&error);
        let reason = status.reason.clone().unwrap_or_default();
        logger.log(
            LogLevel::Warn,
            "mcp",
            || format!("MCP server {id} cannot be used: {reason}"),
            [("server", id.clone().into())],
        );
        self.others.insert(id, status);
        Ok(())
    }
}

fn note_duplicate(logger: &Logger, id: &str, kept: &str) {
    logger.log(
        LogLevel::Info,
        "mcp",
        || format!("MCP server {id} is a duplicate of {kept} and is not contacted"),
        [("server", id.into()), ("kept", kept.into())],
    );
}

/// The tools that a filter lets through (SPEC 3.4).
fn filtered(
    id: &str,
    tools: Vec<ServerTool>,
    filter: &BTreeMap<String, bool>,
    logger: &Logger,
) -> Vec<ServerTool> {
    let unmatched: Vec<_> = filter
        .keys()
        .filter(|name| tools.iter().all(|tool| tool.original != **name))
        .cloned()
        .collect();
    if !unmatched.is_empty() {
        logger.log(
            LogLevel::Warn,
            "mcp",
            || {
                let names = unmatched.join(", ");
                format!("the tools filter of MCP server {id} names tools it does not have: {names}")
            },
            [("server", id.into()), ("tools", unmatched.clone().into())],
        );
    }
    tools
        .into_iter()
        .filter(|tool| passes(filter, &tool.original))
        .collect()
}

/// Empty: nothing. Any `true`: only those named `true`. Only `false`: all but those.
fn passes(filter: &BTreeMap<String, bool>, name: &str) -> bool {
    match filter.get(name) {
        Some(wanted) => *wanted,
        None => !filter.is_empty() && !filter.values().any(|wanted| *wanted),
    }
}
