//! Options of a toolkit, and how it is built (SPEC 4.1).

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

use super::{Inner, Toolkit, assembly};
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::log::Logger;
use crate::tool::Tool;

/// Options of a toolkit. [`ToolkitBuilder::build`] does the work.
#[derive(Default)]
#[must_use = "call build()"]
pub struct ToolkitBuilder {
    tools: Vec<Tool>,
    disabled: Vec<String>,
    timeout: Option<Duration>,
    cancel: CancellationToken,
    logger: Logger,
    counters: Counters,
}

impl ToolkitBuilder {
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
        let tools = assembly::assemble(Vec::new(), self.tools, &self.disabled, &self.logger)?;
        if self.cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        Ok(Toolkit(Arc::new(Inner {
            tools: RwLock::new(tools.into()),
            closed: AtomicBool::new(false),
            counted: Mutex::new(Some(self.counters.toolkit())),
            logger: self.logger,
        })))
    }
}
