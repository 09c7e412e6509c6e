//! A toolkit: tools from everywhere in one ordered list, and the connections behind them (SPEC 4).

mod assembly;
mod builder;

pub use builder::{McpInput, ToolkitBuilder};

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::clock::positive;
use crate::counters::Counted;
use crate::error::{Error, ErrorCode, Result};
use crate::json::Json;
use crate::log::{LogLevel, Logger};
use crate::mcp::{McpSource, ServerStatus};
use crate::schema::{self, Compiled, Provider};
use crate::tool::{Arguments, Tool, ToolContext, ToolResult};

/// An ordered set of tools. Cloning is cheap and gives the same toolkit.
///
/// Dropping the last clone ends what [`Toolkit::close`] ends, without waiting for it.
#[derive(Clone)]
pub struct Toolkit(Arc<Inner>);

struct Inner {
    /// Replaced as a whole; a turn works on the list it started with.
    tools: RwLock<Arc<[Tool]>>,
    mcp: Option<McpSource>,
    /// `disableTools`.
    disabled: Vec<String>,
    /// Held by whoever takes over what servers say of their tools.
    settling: tokio::sync::Mutex<()>,
    /// Cancelled first: from then on nothing new starts, and calls in flight end.
    closed: CancellationToken,
    /// Set last: whoever closes a second time waits for the first.
    ended: OnceCell<()>,
    /// Counts this toolkit as open for as long as it is there.
    counted: Mutex<Option<Counted>>,
    logger: Logger,
    /// Whether arguments are checked.
    checks: bool,
}

impl Toolkit {
    /// Starts a toolkit.
    pub fn builder() -> ToolkitBuilder {
        ToolkitBuilder::default()
    }

    /// The tools, in order (SPEC 4.1). After `close` the list is empty.
    pub fn tools(&self) -> Arc<[Tool]> {
        self.0
            .tools
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The tools as a provider declares them, and what had to be changed for it (SPEC 5).
    pub fn adapt(&self, provider: Provider) -> Compiled {
        let tools = self.tools();
        let infos: Vec<_> = tools.iter().map(Tool::info).collect();
        schema::compile(provider, &infos)
    }

    /// The tool of that final name.
    pub fn get(&self, name: &str) -> Option<Tool> {
        self.tools()
            .iter()
            .find(|tool| tool.info().name == name)
            .cloned()
    }

    /// Executes one call outside a run. An unknown name, and arguments that do not fit the tool's schema, are an error result
    /// (SPEC 4.3, 4.4).
    ///
    /// # Errors
    /// `closed` after [`Toolkit::close`]; `cancelled` or `timeout` when the context says so first.
    pub async fn execute(
        &self,
        name: &str,
        arguments: Arguments,
        context: ToolContext,
    ) -> Result<ToolResult> {
        self.open()?;
        positive(context.timeout, |why| Error::argument("timeoutMs", why))?;
        let Some(tool) = self.get(name) else {
            return Ok(ToolResult::error(format!("Unknown tool: {name}")));
        };
        let arguments = match tool.accept(arguments) {
            Ok(arguments) => arguments,
            Err(complaint) => return Ok(ToolResult::error(complaint)),
        };
        let cancel = context.cancel.clone();
        let timeout = context.timeout;
        // Dropped with the call, so a tool that works elsewhere hears of every end.
        let context = ToolContext {
            cancel: cancel.child_token(),
            ..context
        };
        let _ended = context.cancel.clone().drop_guard();
        let call = async {
            match timeout {
                None => Ok(tool.execute(arguments, context).await),
                Some(limit) => tokio::time::timeout(limit, tool.execute(arguments, context))
                    .await
                    .map_err(|_| Error::timeout("the tool", limit).tool(name)),
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Error::cancelled()),
            () = self.closed() => Err(closed()),
            result = call => result,
        }
    }

    /// [`Toolkit::execute`] with arguments in any of the shapes of SPEC 4.4; absent ones are `{}`. Text that is not JSON is an
    /// error result.
    ///
    /// # Errors
    /// As [`Toolkit::execute`].
    pub async fn execute_json(
        &self,
        name: &str,
        arguments: Option<Json>,
        context: ToolContext,
    ) -> Result<ToolResult> {
        match arguments.map_or_else(|| Ok(Arguments::empty()), Arguments::from_json) {
            Ok(arguments) => self.execute(name, arguments, context).await,
            Err(bad) => self.open().map(|()| ToolResult::error(bad.to_string())),
        }
    }

    /// Adds a tool of the program. False, with a warning, when the name is taken: the first keeps it (SPEC 4.3).
    ///
    /// # Errors
    /// `closed`; `invalid_config` when the name is not one that providers accept.
    pub fn register(&self, tool: Tool) -> Result<bool> {
        let name = tool.info().name.clone();
        self.open()?;
        assembly::check_native_name(&name, "tool.name")?;
        let tool = tool.checked(self.0.checks, &self.0.logger);
        if self.append(tool)? {
            return Ok(true);
        }
        // The sink is the program's own and may ask this toolkit something, so no lock is held here.
        self.0.logger.log(
            LogLevel::Warn,
            "toolkit",
            || format!("a tool named {name} exists; the new one was not registered"),
            [("tool", name.as_str().into())],
        );
        Ok(false)
    }

    /// Puts a tool at the end of the list unless its name is taken.
    fn append(&self, tool: Tool) -> Result<bool> {
        let mut tools = self.0.tools.write().unwrap_or_else(PoisonError::into_inner);
        // Asked under the lock: `close` empties the list, and nothing may come after that.
        self.open()?;
        let name = &tool.info().name;
        if tools.iter().any(|other| other.info().name == *name) {
            return Ok(false);
        }
        *tools = tools.iter().cloned().chain([tool]).collect();
        Ok(true)
    }

    /// Takes over the tools of servers that said that they changed (SPEC 3.7). Whoever comes meanwhile waits and sees the same.
    pub(crate) async fn settle(&self) -> Result<()> {
        let Some(mcp) = &self.0.mcp else {
            return Ok(());
        };
        let _turn = self.0.settling.lock().await;
        if !mcp.relist().await {
            return Ok(());
        }
        loop {
            let before = self.tools();
            let own = before.iter().filter(|tool| tool.info().server.is_none());
            let own = own.cloned().collect();
            // Without the lock: the log is the program's own.
            let remote = assembly::unnamed(mcp);
            let tools =
                assembly::assemble(remote, own, &self.0.disabled, self.0.checks, &self.0.logger)?;
            if self.replace(&before, tools)? {
                return Ok(());
            }
        }
    }

    /// Replaces the list, unless it is not that one any more.
    fn replace(&self, before: &Arc<[Tool]>, after: Vec<Tool>) -> Result<bool> {
        let mut tools = self.0.tools.write().unwrap_or_else(PoisonError::into_inner);
        // Asked under the lock: `close` empties the list, and nothing may come after that.
        self.open()?;
        let same = Arc::ptr_eq(&tools, before);
        if same {
            *tools = after.into();
        }
        Ok(same)
    }

    /// Ends sessions, sockets and process trees (SPEC 3.8). Idempotent; calls and runs in flight end with `closed`.
    pub async fn close(&self) {
        self.0.closed.cancel();
        let end = || async {
            let tools = std::mem::replace(
                &mut *self.0.tools.write().unwrap_or_else(PoisonError::into_inner),
                Arc::from([]),
            );
            // Tools are the program's own, also when they are dropped: not under the lock.
            drop(tools);
            if let Some(mcp) = &self.0.mcp {
                mcp.close().await;
            }
            self.0
                .counted
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
        };
        self.0.ended.get_or_init(end).await;
    }

    /// What became of each MCP server, by id (SPEC 3.3).
    pub fn status(&self) -> BTreeMap<String, ServerStatus> {
        self.0
            .mcp
            .as_ref()
            .map_or_else(BTreeMap::new, McpSource::status)
    }

    /// Whether [`Toolkit::close`] was called.
    pub fn is_closed(&self) -> bool {
        self.0.closed.is_cancelled()
    }

    /// Waits until [`Toolkit::close`] is called.
    pub(crate) async fn closed(&self) {
        self.0.closed.cancelled().await;
    }

    fn open(&self) -> Result<()> {
        if self.is_closed() {
            Err(closed())
        } else {
            Ok(())
        }
    }
}

/// What every use of a closed toolkit, and every run that still used it, ends with.
pub(crate) fn closed() -> Error {
    Error::new(ErrorCode::Closed, "the toolkit is closed")
}

impl std::fmt::Debug for Toolkit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Toolkit")
            .field("tools", &self.tools())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::OnceLock;

    #[tokio::test]
    async fn no_lock_is_held_while_the_program_is_told_about_a_taken_name() {
        let toolkit: Arc<OnceLock<Toolkit>> = Arc::default();
        let seen: Arc<Mutex<Vec<bool>>> = Arc::default();
        let (asked, free) = (toolkit.clone(), seen.clone());
        let sink = move |_| {
            let free_now = asked.get().is_some_and(|t| t.0.tools.try_read().is_ok());
            free.lock().unwrap().push(free_now);
        };
        let tool = || Tool::new("a", "", json!({}), |_, _| async {});
        let built = Toolkit::builder()
            .tool(tool())
            .logger(Logger::new(Arc::new(sink), LogLevel::Warn))
            .build()
            .await
            .unwrap();
        assert!(!toolkit.get_or_init(|| built).register(tool()).unwrap());
        assert_eq!(*seen.lock().unwrap(), [true]);
    }
}
