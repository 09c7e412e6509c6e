//! A tool: what the model is told about it, and how it is executed (SPEC 2, 4.4, 6).

mod arguments;
mod check;
mod context;
pub mod name;
mod part;
mod result;

pub use arguments::{Arguments, BadArguments};
pub use context::ToolContext;
pub use part::ContentPart;
pub use result::{IntoToolResult, ToolResult};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::future::Future;
use std::sync::Arc;
use tokio_util::task::AbortOnDropHandle;

use crate::log::Logger;
use check::Check;

/// Where a tool comes from. A closed list; it grows with the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// An MCP server.
    Mcp,
    /// A function of the program.
    Native,
}

/// What a tool says about itself, advisory (SPEC 2). From MCP annotations, with the defaults of that protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hints {
    /// The tool changes nothing.
    pub read_only: bool,
    /// What it changes may not be undone.
    pub destructive: bool,
    /// It reaches beyond a closed set of things.
    pub open_world: bool,
}

/// What the model is told about a tool, and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolInfo {
    /// The name the model uses: `[A-Za-z0-9_-]{1,64}`.
    pub name: String,
    /// For the model; may be empty.
    pub description: String,
    /// JSON Schema of the arguments, as it came, with `type: object` and `properties` added where missing.
    pub input_schema: Map<String, Value>,
    /// Origin.
    pub source: Source,
    /// Id of the MCP server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The name the MCP server gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_name: Option<String>,
    /// Advisory hints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Hints>,
}

/// The part of a tool that does something.
///
/// A failure that the model should see is a [`ToolResult`] with `is_error`. Dropping the future, or the token in the
/// context, tells the tool to stop.
#[async_trait]
pub trait Execute: Send + Sync {
    /// Executes one call.
    async fn execute(&self, arguments: Arguments, context: ToolContext) -> ToolResult;
}

/// A tool. Cloning is cheap.
#[derive(Clone)]
pub struct Tool {
    info: Arc<ToolInfo>,
    run: Arc<dyn Execute>,
    /// Of a tool in a toolkit that checks arguments.
    check: Option<Arc<Check>>,
}

impl Tool {
    /// A function of the program as a tool (SPEC 6). `input_schema` is a JSON Schema object; what the function returns
    /// is turned into a result by [`IntoToolResult`].
    ///
    /// Each call is a task of its own on the tokio runtime and is aborted when nobody waits for it any more; `tokio`'s task-local
    /// values of the caller are not there.
    ///
    /// ```
    /// # use toolspan::Tool;
    /// # use serde_json::json;
    /// let add = Tool::new("add", "Add two integers", json!({
    ///     "type": "object",
    ///     "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    ///     "required": ["a", "b"],
    /// }), |args, _ctx| async move {
    ///     let v = args.to_value();
    ///     (v["a"].as_i64().unwrap_or(0) + v["b"].as_i64().unwrap_or(0)).to_string()
    /// });
    /// # assert_eq!(add.info().name, "add");
    /// ```
    pub fn new<F, Fut>(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
        function: F,
    ) -> Self
    where
        F: Fn(Arguments, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: IntoToolResult,
    {
        Tool::native(
            name,
            description,
            input_schema,
            None,
            Arc::new(Function(function)),
        )
    }

    /// A tool of the program with its own [`Execute`], which is polled by the task that runs the loop.
    pub fn native(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
        hints: Option<Hints>,
        run: Arc<dyn Execute>,
    ) -> Self {
        let info = ToolInfo {
            name: name.into(),
            description: description.into(),
            input_schema: complete_schema(input_schema),
            source: Source::Native,
            server: None,
            original_name: None,
            hints,
        };
        Tool::from_parts(info, run)
    }

    pub(crate) fn from_parts(info: ToolInfo, run: Arc<dyn Execute>) -> Self {
        Tool {
            info: Arc::new(info),
            run,
            check: None,
        }
    }

    /// The same tool with its arguments checked (SPEC 4.4), or not: each toolkit decides that for its own.
    pub(crate) fn checked(self, checks: bool, logger: &Logger) -> Self {
        let check = checks.then(|| Arc::new(Check::of(self.info.clone(), logger.clone())));
        Tool { check, ..self }
    }

    /// The arguments as the tool gets them; an error is the text that the model reads instead of a result. Comes before
    /// [`Tool::execute`], which takes what it is given.
    pub(crate) fn accept(&self, arguments: Arguments) -> Result<Arguments, String> {
        match &self.check {
            None => Ok(arguments),
            Some(check) => check.accept(arguments),
        }
    }

    /// What the model is told.
    pub fn info(&self) -> &ToolInfo {
        &self.info
    }

    /// Executes one call. A panic of the tool becomes an error result, and a failure always has a text: OpenAI-style messages
    /// have no other sign of it. The arguments are not checked here, but by [`Toolkit::execute`](crate::Toolkit::execute) and in a
    /// run.
    pub async fn execute(&self, arguments: Arguments, context: ToolContext) -> ToolResult {
        use futures_util::FutureExt;
        let call =
            std::panic::AssertUnwindSafe(self.run.execute(arguments, context)).catch_unwind();
        let mut result = call
            .await
            .unwrap_or_else(|_| ToolResult::error(format!("tool {} panicked", self.info.name)));
        if result.is_error && result.parts.is_empty() && result.output.trim().is_empty() {
            result.output = "The tool failed without saying why.".to_owned();
        }
        result
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.info.name)
            .field("source", &self.info.source)
            .finish_non_exhaustive()
    }
}

struct Function<F>(F);

#[async_trait]
impl<F, Fut> Execute for Function<F>
where
    F: Fn(Arguments, ToolContext) -> Fut + Send + Sync,
    Fut: Future + Send + 'static,
    Fut::Output: IntoToolResult,
{
    /// In a task of its own: the calls of a turn then use several cores, and a function that computes without a pause does
    /// not keep its run from hearing of a cancel or a deadline.
    async fn execute(&self, arguments: Arguments, context: ToolContext) -> ToolResult {
        let call = (self.0)(arguments, context);
        let task = tokio::spawn(async move { call.await.into_tool_result() });
        match AbortOnDropHandle::new(task).await {
            Ok(result) => result,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => ToolResult::error("the call was cancelled"),
            },
        }
    }
}

/// Adds what every provider needs and nothing else (SPEC 5): `type: object` and `properties` where missing.
pub(crate) fn complete_schema(schema: Value) -> Map<String, Value> {
    let mut schema = match schema {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    if !schema.contains_key("type") {
        schema.shift_insert(0, "type".into(), json!("object"));
    }
    if !schema.contains_key("properties") {
        schema.insert("properties".into(), json!({}));
    }
    schema
}
