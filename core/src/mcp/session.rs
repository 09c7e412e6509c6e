//! A server as the toolkit knows it: one connection after the other, as long as nobody closes it (SPEC 3.7).

use async_trait::async_trait;
use std::sync::{Arc, PoisonError, RwLock};
use tokio_util::sync::CancellationToken;

use super::call::call_tool;
use super::connect::{Surroundings, list, open};
use super::connection::{Connection, RequestError};
use super::list::ListedTool;
use super::plan::ServerPlan;
use super::result::{failure, tool_result};
use crate::aside::aside;
use crate::error::Error;
use crate::log::{LogLevel, Logger};
use crate::tool::{Arguments, Execute, ToolContext, ToolResult};

/// A server that was connected.
pub(super) struct Session {
    around: Surroundings,
    plan: ServerPlan,
    current: RwLock<Arc<Connection>>,
    /// Held by whoever opens the next connection.
    rejoin: tokio::sync::Mutex<()>,
    closed: CancellationToken,
}

impl Session {
    pub fn new(around: Surroundings, plan: ServerPlan, connection: Connection) -> Self {
        Session {
            around,
            plan,
            current: RwLock::new(Arc::new(connection)),
            rejoin: tokio::sync::Mutex::new(()),
            closed: CancellationToken::new(),
        }
    }

    /// What the connection ended with, if it ended.
    pub fn fault(&self) -> Option<Error> {
        let current = self.current();
        current
            .has_ended()
            .then(|| current.known_cause().server(self.around.server.as_str()))
    }

    pub fn logger(&self) -> &Logger {
        &self.around.logger
    }

    /// Whether the server may have other tools than when it was listed.
    pub fn is_stale(&self) -> bool {
        self.around.stale.is_set()
    }

    /// Its tools as they are now. One attempt for all that was said so far: a server that lists badly is not asked again before it says
    /// something new.
    pub async fn relist(&self) -> Result<Vec<ListedTool>, Error> {
        let connection = self.live().await;
        let said = self.around.stale.said();
        let listed = match connection {
            Ok(connection) => list(&self.around, &self.plan, &connection).await,
            Err(error) => Err(error),
        };
        self.around.stale.done(said);
        listed
    }

    /// Ends the session politely. The second time it does nothing.
    pub async fn close(&self) {
        self.closed.cancel();
        self.current().close().await;
    }

    /// Ends the session now.
    pub fn abort(&self) {
        self.closed.cancel();
        self.current().abort();
    }

    fn current(&self) -> Arc<Connection> {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The connection, or the next one where it has ended.
    async fn live(&self) -> Result<Arc<Connection>, Error> {
        let current = self.current();
        if !current.has_ended() {
            return Ok(current);
        }
        // On the heap: opening a connection takes thirty kilobytes of state, which every call would carry along.
        Box::pin(self.join_again()).await
    }

    /// The next connection: one attempt for every call that needs it.
    async fn join_again(&self) -> Result<Arc<Connection>, Error> {
        let _turn = self.rejoin.lock().await;
        let current = self.current();
        if !current.has_ended() {
            return Ok(current);
        }
        let server = &self.around.server;
        self.around.logger.log(
            LogLevel::Info,
            "mcp",
            || {
                format!(
                    "MCP server {server} is joined again: {}",
                    current.known_cause()
                )
            },
            [("server", server.as_str().into())],
        );
        let fresh = Arc::new(open(&self.around, &self.plan).await?);
        fresh.count(&self.around.counters);
        // What starts anew may be another version.
        self.around.stale.set();
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = fresh.clone();
        // Whoever closed the session meanwhile did not see this connection.
        if self.closed.is_cancelled() {
            fresh.abort();
        }
        Ok(fresh)
    }

    async fn call(&self, tool: &str, arguments: &Arguments) -> ToolResult {
        let server = &self.around.server;
        let silence = self.plan.timeout;
        let mut again = true;
        loop {
            let connection = match self.live().await {
                Ok(connection) => connection,
                Err(error) => {
                    return failure(server, format!("MCP server {server} is gone: {error}"));
                }
            };
            let tasks = &self.around.tasks;
            let error = match call_tool(&connection, tool, arguments, silence, tasks).await {
                Ok(text) => return aside(text.len(), || tool_result(server, &text)),
                Err(RequestError::Refused(refusal)) => return failure(server, refusal.message),
                Err(RequestError::NotTaken(_)) if std::mem::take(&mut again) => {
                    connection.abort();
                    continue;
                }
                Err(RequestError::NotTaken(error) | RequestError::Other(error)) => error,
                Err(RequestError::Ended) => connection.cause().await,
            };
            return failure(server, format!("MCP server {server}: {error}"));
        }
    }
}

/// A tool of a server.
pub(super) struct RemoteTool {
    pub session: Arc<Session>,
    /// The name the server gave.
    pub name: String,
}

#[async_trait]
impl Execute for RemoteTool {
    async fn execute(&self, arguments: Arguments, context: ToolContext) -> ToolResult {
        let server = &self.session.around.server;
        tokio::select! {
            biased;
            () = self.session.closed.cancelled() => {
                failure(server, format!("MCP server {server} was closed"))
            }
            () = context.cancel.cancelled() => failure(server, "the call was cancelled"),
            result = self.session.call(&self.name, &arguments) => result,
        }
    }
}
