//! Options of a toolkit, and how it is built (SPEC 4.1).

use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::assembly;
use super::{Inner, Toolkit};
use crate::clock::positive;
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::log::Logger;
use crate::mcp::{LoadOptions, McpConfig, McpSource};
use crate::tool::Tool;

/// Where an MCP configuration comes from (SPEC 3.1). Text and paths convert to a file, values to a parsed document.
#[derive(Clone, Debug)]
pub enum McpInput {
    /// A JSON file.
    Path(PathBuf),
    /// A parsed document.
    Document(Value),
    /// The text of a document.
    Text(String),
}

impl McpInput {
    /// Reads and checks the configuration.
    ///
    /// # Errors
    /// `not_found` for a missing file, `limit_exceeded` for one of more than 16 MiB, `invalid_config` for anything else that
    /// is wrong.
    pub fn read(&self) -> Result<McpConfig> {
        match self {
            McpInput::Path(path) => McpConfig::from_path(path),
            McpInput::Document(value) => McpConfig::from_json(value),
            McpInput::Text(text) => McpConfig::from_text(text),
        }
    }
}

impl From<&str> for McpInput {
    fn from(path: &str) -> Self {
        McpInput::Path(path.into())
    }
}

impl From<String> for McpInput {
    fn from(path: String) -> Self {
        McpInput::Path(path.into())
    }
}

impl From<PathBuf> for McpInput {
    fn from(path: PathBuf) -> Self {
        McpInput::Path(path)
    }
}

impl From<Value> for McpInput {
    fn from(document: Value) -> Self {
        McpInput::Document(document)
    }
}

/// Options of a toolkit. [`ToolkitBuilder::build`] does the work.
#[must_use = "call build()"]
pub struct ToolkitBuilder {
    mcp: Option<McpInput>,
    tools: Vec<Tool>,
    disabled: Vec<String>,
    checks: bool,
    timeout: Option<Duration>,
    cancel: CancellationToken,
    logger: Logger,
    counters: Counters,
}

impl Default for ToolkitBuilder {
    fn default() -> Self {
        ToolkitBuilder {
            mcp: None,
            tools: Vec::new(),
            disabled: Vec::new(),
            checks: true,
            timeout: None,
            cancel: CancellationToken::new(),
            logger: Logger::default(),
            counters: Counters::default(),
        }
    }
}

impl ToolkitBuilder {
    /// MCP servers: the path of an `mcp.json`, or the document itself as a `serde_json::Value`.
    pub fn mcp_config(mut self, input: impl Into<McpInput>) -> Self {
        self.mcp = Some(input.into());
        self
    }

    /// MCP servers: the text of an `mcp.json`.
    pub fn mcp_config_text(mut self, text: impl Into<String>) -> Self {
        self.mcp = Some(McpInput::Text(text.into()));
        self
    }

    /// Adds a function of the program, after all MCP tools and in the order of these calls.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds several.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Removes tools by final name, whatever their source.
    pub fn disable_tools(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.disabled.extend(names.into_iter().map(Into::into));
        self
    }

    /// Whether arguments are checked against the tool's schema before it runs (SPEC 4.4). Default: they are.
    pub fn validate_arguments(mut self, validate: bool) -> Self {
        self.checks = validate;
        self
    }

    /// Deadline of the whole build. Default: none beyond the budgets of each server.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Cancels the build. Dropping its future does the same.
    pub fn cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Where log records go. Default: nowhere.
    pub fn logger(mut self, logger: Logger) -> Self {
        self.logger = logger;
        self
    }

    /// Where open toolkits and connected servers are counted. Default: a place of its own.
    pub fn counters(mut self, counters: Counters) -> Self {
        self.counters = counters;
        self
    }

    /// Connects, lists and assembles.
    ///
    /// # Errors
    /// `invalid_config`; `required_server_failed`; `cancelled` or `timeout` with nothing left open (SPEC 3.3).
    pub async fn build(self) -> Result<Toolkit> {
        positive(self.timeout, |why| Error::config("timeoutMs", why))?;
        if self.cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        let config = self.mcp.as_ref().map(McpInput::read).transpose()?;
        let cancel = self.cancel.child_token();
        // A build that is dropped halfway ends its connections too.
        let _guard = cancel.clone().drop_guard();
        let load = async {
            let options = LoadOptions {
                cancel: cancel.clone(),
                logger: self.logger.clone(),
                counters: self.counters.clone(),
            };
            match config {
                Some(config) => McpSource::load(config, options).await.map(Some),
                None => Ok(None),
            }
        };
        let mcp = match self.timeout {
            None => load.await?,
            Some(limit) => {
                tokio::pin!(load);
                tokio::select! {
                    loaded = &mut load => loaded?,
                    () = tokio::time::sleep(limit) => {
                        cancel.cancel();
                        if let Ok(Some(late)) = load.await {
                            late.close().await;
                        }
                        return Err(Error::timeout("building the toolkit", limit));
                    }
                }
            }
        };
        let remote = mcp.as_ref().map_or_else(Vec::new, assembly::unnamed);
        let tools = assembly::assemble(
            remote,
            self.tools,
            &self.disabled,
            self.checks,
            &self.logger,
        );
        let tools = match tools {
            Ok(tools) => tools,
            Err(error) => {
                if let Some(mcp) = mcp {
                    mcp.close().await;
                }
                return Err(error);
            }
        };
        Ok(Toolkit(Arc::new(Inner {
            tools: RwLock::new(tools.into()),
            mcp,
            disabled: self.disabled,
            settling: tokio::sync::Mutex::default(),
            closed: CancellationToken::new(),
            ended: OnceCell::new(),
            counted: Mutex::new(Some(self.counters.toolkit())),
            logger: self.logger,
            checks: self.checks,
        })))
    }
}
