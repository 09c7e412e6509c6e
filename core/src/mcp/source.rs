//! All servers of one configuration: connected together, used together, ended together.

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::config::{Expose, McpConfig};
use super::connect::{Surroundings, connect};
use super::connection::Connection;
use super::list::ListedTool;
use super::plan::{Decision, Purpose, ServerPlan, Step, plan};
use super::session::{RemoteTool, Session};
use super::status::ServerStatus;
use crate::counters::Counters;
use crate::error::{Error, ErrorCode, Result};
use crate::http::Tls;
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
    /// Those that were connected, by id in code-point order.
    servers: BTreeMap<String, LoadedServer>,
    /// Of the others.
    others: BTreeMap<String, ServerStatus>,
    tasks: TaskTracker,
}

/// How long an aborted load waits for what it has ended already to be gone.
const GONE_AFTER_ABORT: Duration = Duration::from_millis(90);

/// The same after a polite close.
const GONE_AFTER_CLOSE: Duration = Duration::from_millis(500);

/// A connected server and its tools.
pub(crate) struct LoadedServer {
    pub id: String,
    pub expose: Expose,
    filter: Option<BTreeMap<String, bool>>,
    session: Arc<Session>,
    listed: RwLock<Listed>,
}

/// What a server listed last.
struct Listed {
    /// In list order, after the filter.
    tools: Arc<[ServerTool]>,
    /// How many it listed.
    count: usize,
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
    pub fn servers(&self) -> impl Iterator<Item = &LoadedServer> {
        self.servers.values()
    }

    /// What each server of the configuration is now; one that died since is `failed`.
    pub fn status(&self) -> BTreeMap<String, ServerStatus> {
        let mut status = self.others.clone();
        status.extend(self.servers().map(|server| {
            let now = match server.session.fault() {
                None => ServerStatus::connected(server.listed().count),
                Some(error) => ServerStatus::failed(&error),
            };
            (server.id.clone(), now)
        }));
        status
    }

    /// Lists the servers again that said that their tools changed; true when there were any that answered.
    pub async fn relist(&self) -> bool {
        let stale = self.servers().filter(|server| server.session.is_stale());
        let listed = join_all(stale.map(LoadedServer::relist)).await;
        listed.contains(&true)
    }

    /// Ends all sessions politely and returns when nothing is left. Calling it again does nothing.
    pub async fn close(&self) {
        join_all(self.servers().map(|server| server.session.close())).await;
        self.gone(GONE_AFTER_CLOSE).await;
    }

    fn abort(&self) {
        for server in self.servers() {
            server.session.abort();
        }
    }

    /// Waits until every task has ended, but not for ever: they have been told, and none can refuse.
    async fn gone(&self, limit: Duration) {
        self.tasks.close();
        let _ = tokio::time::timeout(limit, self.tasks.wait()).await;
    }
}

impl Drop for McpSource {
    fn drop(&mut self) {
        self.abort();
    }
}

impl LoadedServer {
    /// In list order, after the filter.
    pub fn tools(&self) -> Arc<[ServerTool]> {
        self.listed().tools.clone()
    }

    fn listed(&self) -> RwLockReadGuard<'_, Listed> {
        self.listed.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// False when the server gave no list; the tools are then what they were.
    async fn relist(&self) -> bool {
        match self.session.relist().await {
            Ok(listed) => {
                let filter = self.filter.as_ref();
                let listed = Listed::of(listed, &self.id, filter, &self.session);
                *self.listed.write().unwrap_or_else(PoisonError::into_inner) = listed;
                true
            }
            Err(error) => {
                let id = &self.id;
                self.session.logger().log(
                    LogLevel::Warn,
                    "mcp",
                    || format!("the tools of MCP server {id} may have changed and cannot be listed: {error}"),
                    [("server", id.as_str().into())],
                );
                false
            }
        }
    }
}

impl Listed {
    /// What is to be used of a list.
    fn of(
        listed: Vec<ListedTool>,
        id: &str,
        filter: Option<&BTreeMap<String, bool>>,
        session: &Arc<Session>,
    ) -> Self {
        if let Some(filter) = filter {
            warn_of_unknown_names(id, &listed, filter, session.logger());
        }
        let count = listed.len();
        let wanted = |tool: &ListedTool| filter.is_none_or(|filter| passes(filter, &tool.name));
        let tools = listed.into_iter().filter(wanted).map(|tool| ServerTool {
            run: Arc::new(RemoteTool {
                session: session.clone(),
                name: tool.name.clone(),
            }),
            original: tool.name,
            description: tool.description,
            input_schema: tool.input_schema,
            hints: tool.hints,
        });
        Listed {
            tools: tools.collect(),
            count,
        }
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
        servers: BTreeMap::new(),
        others: BTreeMap::new(),
        tasks: TaskTracker::new(),
    };
    let connected = tokio::select! {
        biased;
        () = options.cancel.cancelled() => Err(Error::cancelled()),
        connected = source.connect_all(steps, purpose, &options) => connected,
    };
    match connected {
        Ok(()) => Ok(source),
        Err(error) => {
            source.abort();
            source.gone(GONE_AFTER_ABORT).await;
            Err(error)
        }
    }
}

impl McpSource {
    async fn connect_all(
        &mut self,
        steps: BTreeMap<String, Step>,
        purpose: Purpose,
        options: &LoadOptions,
    ) -> Result<()> {
        let mut connecting = FuturesUnordered::new();
        let tls = Tls::default();
        for (id, step) in steps {
            match step.decision {
                Decision::Disabled => {
                    self.others.insert(id, ServerStatus::disabled());
                }
                Decision::Deduplicated(kept) => {
                    note_duplicate(&options.logger, &id, &kept);
                    self.others.insert(id, ServerStatus::deduplicated(&kept));
                }
                Decision::Faulty(error) => self.fail(id, step.required, error, &options.logger)?,
                Decision::Connect(plan) => {
                    let around = Surroundings {
                        server: id,
                        logger: options.logger.clone(),
                        counters: options.counters.clone(),
                        tls: tls.clone(),
                        stale: Arc::default(),
                        tasks: self.tasks.clone(),
                    };
                    connecting.push(async move {
                        let outcome = connect(&around, &plan).await;
                        (around, plan, step.required, outcome)
                    });
                }
            }
        }
        while let Some((around, plan, required, outcome)) = connecting.next().await {
            match outcome {
                Ok((connection, tools)) => self.add(around, *plan, connection, tools, purpose),
                Err(error) => {
                    let error = error.server(around.server.as_str());
                    self.fail(around.server, required, error, &options.logger)?;
                }
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        around: Surroundings,
        plan: ServerPlan,
        connection: Connection,
        listed: Vec<ListedTool>,
        purpose: Purpose,
    ) {
        let id = around.server.clone();
        let filter = plan.filter.clone().filter(|_| purpose == Purpose::Use);
        let expose = plan.expose;
        let session = Arc::new(Session::new(around, plan, connection));
        let server = LoadedServer {
            id: id.clone(),
            expose,
            listed: RwLock::new(Listed::of(listed, &id, filter.as_ref(), &session)),
            filter,
            session,
        };
        self.servers.insert(id, server);
    }

    /// Notes that a server cannot be used; fails where it must be.
    fn fail(&mut self, id: String, required: bool, error: Error, logger: &Logger) -> Result<()> {
        if required {
            let reason = ServerStatus::failed(&error).reason.unwrap_or_default();
            let message = format!("the required MCP server {id} cannot be used: {reason}");
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

/// Tells once which names of a filter match nothing (SPEC 3.4).
fn warn_of_unknown_names(
    id: &str,
    tools: &[ListedTool],
    filter: &BTreeMap<String, bool>,
    logger: &Logger,
) {
    let unknown: Vec<_> = filter
        .keys()
        .filter(|name| tools.iter().all(|tool| tool.name != **name))
        .cloned()
        .collect();
    if unknown.is_empty() {
        return;
    }
    logger.log(
        LogLevel::Warn,
        "mcp",
        || {
            let names = unknown.join(", ");
            format!("the tools filter of MCP server {id} names tools it does not have: {names}")
        },
        [("server", id.into()), ("tools", unknown.clone().into())],
    );
}

/// Empty: nothing. Any `true`: only those named `true`. Only `false`: all but those.
fn passes(filter: &BTreeMap<String, bool>, name: &str) -> bool {
    match filter.get(name) {
        Some(wanted) => *wanted,
        None => !filter.is_empty() && !filter.values().any(|wanted| *wanted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passing(filter: &[(&str, bool)]) -> Vec<&'static str> {
        let filter = filter
            .iter()
            .map(|(name, wanted)| ((*name).to_owned(), *wanted))
            .collect();
        ["a", "b", "c"]
            .into_iter()
            .filter(|name| passes(&filter, name))
            .collect()
    }

    #[test]
    fn a_filter_is_an_allowlist_once_it_wants_anything() {
        assert_eq!(passing(&[]), Vec::<&str>::new());
        assert_eq!(passing(&[("b", true)]), ["b"]);
        assert_eq!(passing(&[("b", true), ("a", false)]), ["b"]);
        assert_eq!(passing(&[("a", false)]), ["b", "c"]);
        assert_eq!(passing(&[("x", true)]), Vec::<&str>::new());
    }
}
