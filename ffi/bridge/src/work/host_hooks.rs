//! The host's hooks: each forwards what it is given and takes what comes back (SPEC 7.1, 7.4).

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

use crate::host::{Host, HostCallKind};
use crate::operation;
use crate::options::{Handler, HookOptions};
use toolspan::client::hooks::{
    AfterLlm, AfterTool, BeforeLlm, BeforeTool, ErrorDecision, LlmChange, RequestFailure,
    ResultChange, ToolChange,
};
use toolspan::{ClientBuilder, Error, Json};

/// The host's functions that step into a run.
pub(crate) struct Functions {
    pub(crate) hooks: HookOptions,
    pub(crate) body_transform: Option<Handler>,
    pub(crate) on_error: Option<Handler>,
}

#[derive(Serialize)]
struct Body<'a> {
    body: &'a Json,
}

impl Functions {
    /// # Errors
    /// `invalid_argument` with the path of a function whose kind the host does not answer.
    pub(crate) fn install(
        self,
        mut builder: ClientBuilder,
        host: &Arc<Host>,
    ) -> Result<ClientBuilder, Error> {
        use HostCallKind as Kind;
        let bind =
            |function: Option<Handler>, kind, path| Function::bind(host, function, kind, path);
        if let Some(f) = bind(self.hooks.before_llm, Kind::BeforeLlm, "hooks.beforeLLM")? {
            builder =
                builder.before_llm(move |turn: BeforeLlm| f.clone().ask::<_, LlmChange>(turn));
        }
        if let Some(f) = bind(self.hooks.after_llm, Kind::AfterLlm, "hooks.afterLLM")? {
            builder = builder.after_llm(move |turn: AfterLlm| {
                let f = f.clone();
                // What it returns means nothing, so it may be anything.
                async move { f.call::<_, serde::de::IgnoredAny>(&turn).await.map(|_| ()) }
            });
        }
        if let Some(f) = bind(self.hooks.before_tool, Kind::BeforeTool, "hooks.beforeTool")? {
            builder =
                builder.before_tool(move |call: BeforeTool| f.clone().ask::<_, ToolChange>(call));
        }
        if let Some(f) = bind(self.hooks.after_tool, Kind::AfterTool, "hooks.afterTool")? {
            builder =
                builder.after_tool(move |call: AfterTool| f.clone().ask::<_, ResultChange>(call));
        }
        if let Some(f) = bind(self.body_transform, Kind::BodyTransform, "bodyTransform")? {
            builder = builder.body_transform(move |body: Json| {
                let f = f.clone();
                async move {
                    let answer: Box<serde_json::value::RawValue> =
                        f.call(&Body { body: &body }).await?;
                    Ok(Some(Json::from(answer)).filter(|body| body.get() != "null"))
                }
            });
        }
        if let Some(f) = bind(self.on_error, Kind::OnError, "onError")? {
            builder = builder.on_error(move |failure: RequestFailure| {
                let f = f.clone();
                async move {
                    let answer: Option<ErrorDecision> = f.call(&failure).await?;
                    let unchanged = if failure.retryable {
                        ErrorDecision::Retry
                    } else {
                        ErrorDecision::Fail
                    };
                    Ok(answer.unwrap_or(unchanged))
                }
            });
        }
        Ok(builder)
    }
}

/// One function of the host.
#[derive(Clone)]
struct Function {
    host: Arc<Host>,
    kind: HostCallKind,
    handler: u64,
}

impl Function {
    fn bind(
        host: &Arc<Host>,
        function: Option<Handler>,
        kind: HostCallKind,
        path: &str,
    ) -> Result<Option<Self>, Error> {
        let Some(Handler { handler }) = function else {
            return Ok(None);
        };
        host.kinds.require(kind, path)?;
        Ok(Some(Function {
            host: host.clone(),
            kind,
            handler,
        }))
    }

    async fn call<P: Serialize, R: DeserializeOwned>(&self, payload: &P) -> Result<R, Error> {
        let op = operation::current();
        self.host.ask(op, self.kind, self.handler, payload).await
    }

    /// Null is the answer that changes nothing.
    async fn ask<P: Serialize, R: DeserializeOwned + Default>(
        self,
        payload: P,
    ) -> Result<R, Error> {
        let answer: Option<R> = self.call(&payload).await?;
        Ok(answer.unwrap_or_default())
    }
}
