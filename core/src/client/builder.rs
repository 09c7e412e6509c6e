//! Options of a client as a program gives them (SPEC 7.1).

use indexmap::IndexMap;
use serde::Serialize;
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::hooks::{
    AfterLlm, AfterTool, BeforeLlm, BeforeTool, BodyTransform, ErrorDecision, Hook, Hooks,
    LlmChange, OnError, RequestFailure, ResultChange, ToolChange,
};
use super::options::{Options, RetryPolicy, defaults};
use super::{Client, key, wire};
use crate::clock::positive;
use crate::error::{Error, Result};
use crate::http::{HttpTransport, ReqwestTransport};
use crate::json::{self, Json};
use crate::log::{LogLevel, Logger};
use crate::metrics::MetricSink;
use crate::store::{ConversationStore, FileStore, MemoryStore};
use crate::style::Style;

/// Body keys that belong to the loop; only `bodyTransform` may touch them (SPEC 7.2).
const RESERVED_PARAMS: [&str; 3] = ["messages", "tools", "stream"];

/// Options of a client. Defaults are those of SPEC 7.1, written in [`defaults`].
#[must_use = "call build()"]
pub struct ClientBuilder {
    base_url: String,
    style: Style,
    model: String,
    api_key: Option<String>,
    api_key_env: Option<String>,
    headers: Vec<(String, String)>,
    system_prompt: Option<String>,
    max_turns: u32,
    max_tool_concurrency: usize,
    max_tool_output_bytes: usize,
    retry: RetryPolicy,
    timeout: Option<Duration>,
    first_byte_timeout: Duration,
    idle_timeout: Duration,
    request_params: IndexMap<String, Json>,
    body_transform: Option<BodyTransform>,
    hooks: Hooks,
    on_error: Option<OnError>,
    transport: Option<Arc<dyn HttpTransport>>,
    store: Option<Arc<dyn ConversationStore>>,
    on_metric: Option<MetricSink>,
    logger: Logger,
    /// The first setter that could not take its value; reported by `build`.
    refused: Option<Error>,
}

impl ClientBuilder {
    pub(super) fn new(base_url: String, style: Style, model: String) -> Self {
        ClientBuilder {
            base_url,
            style,
            model,
            api_key: None,
            api_key_env: None,
            headers: Vec::new(),
            system_prompt: None,
            max_turns: defaults::MAX_TURNS,
            max_tool_concurrency: defaults::MAX_TOOL_CONCURRENCY,
            max_tool_output_bytes: defaults::MAX_TOOL_OUTPUT_BYTES,
            retry: RetryPolicy {
                retries: defaults::RETRIES,
                base: defaults::RETRY_BASE,
                max_delay: defaults::MAX_RETRY_DELAY,
                statuses: BTreeSet::new(),
            },
            timeout: None,
            first_byte_timeout: defaults::FIRST_BYTE_TIMEOUT,
            idle_timeout: defaults::IDLE_TIMEOUT,
            request_params: IndexMap::new(),
            body_transform: None,
            hooks: Hooks::default(),
            on_error: None,
            transport: None,
            store: None,
            on_metric: None,
            logger: Logger::default(),
            refused: None,
        }
    }

    /// `apiKey`. Default: the variable of [`api_key_env`](Self::api_key_env), else the provider's own variable, and
    /// that only for the provider's own host over https; else no credentials are sent.
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// `apiKeyEnv`: the environment variable that holds the key. It must be set when the client is built.
    pub fn api_key_env(mut self, variable: impl Into<String>) -> Self {
        self.api_key_env = Some(variable.into());
        self
    }

    /// `headers`: one more header; wins over a header of ours with the same name, the credentials included.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// `headers`: several.
    pub fn headers<N: Into<String>, V: Into<String>>(
        mut self,
        headers: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let headers = headers.into_iter().map(|(n, v)| (n.into(), v.into()));
        self.headers.extend(headers);
        self
    }

    /// `systemPrompt`. Default: none.
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.system_prompt = Some(text.into());
        self
    }

    /// `maxTurns`, at least 1.
    pub fn max_turns(mut self, turns: u32) -> Self {
        self.max_turns = turns;
        self
    }

    /// `maxToolConcurrency`: calls of one turn that run at the same time, at least 1.
    pub fn max_tool_concurrency(mut self, calls: usize) -> Self {
        self.max_tool_concurrency = calls;
        self
    }

    /// `maxToolOutputBytes`: longer text of a tool is cut at a character and says so.
    pub fn max_tool_output_bytes(mut self, bytes: usize) -> Self {
        self.max_tool_output_bytes = bytes;
        self
    }

    /// `retries`: further attempts of one request; 0 for none.
    pub fn retries(mut self, retries: u32) -> Self {
        self.retry.retries = retries;
        self
    }

    /// `retryBaseMs`: delay before the first further attempt; it doubles each time.
    pub fn retry_base(mut self, base: Duration) -> Self {
        self.retry.base = base;
        self
    }

    /// `maxRetryDelayMs`: a provider that asks to wait longer fails the run with `rate_limited`.
    pub fn max_retry_delay(mut self, delay: Duration) -> Self {
        self.retry.max_delay = delay;
        self
    }

    /// `retryableStatuses`, beside the built-in ones.
    pub fn retryable_statuses(mut self, statuses: impl IntoIterator<Item = u16>) -> Self {
        self.retry.statuses.extend(statuses);
        self
    }

    /// `timeoutMs`: deadline of a run, positive. Default: none.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// `firstByteTimeoutMs`: silence allowed before an answer begins.
    pub fn first_byte_timeout(mut self, timeout: Duration) -> Self {
        self.first_byte_timeout = timeout;
        self
    }

    /// `idleTimeoutMs`: silence allowed between two pieces of an answer.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// `requestParams`: one body key. A key of ours is replaced in its place, another one is appended.
    pub fn request_param(mut self, name: impl Into<String>, value: impl Serialize) -> Self {
        let name = name.into();
        match json::to_json(&value) {
            Ok(value) => {
                self.request_params.insert(name, value);
            }
            Err(error) => {
                let path = format!("requestParams.{name}");
                let refused = Error::config(path, "the value cannot be written as JSON");
                self.refused.get_or_insert(refused.because(&error));
            }
        }
        self
    }

    /// `requestParams`: several, in this order.
    pub fn request_params(mut self, params: impl IntoIterator<Item = (String, Json)>) -> Self {
        self.request_params.extend(params);
        self
    }

    /// `bodyTransform`: sees the whole body, last; what it returns goes out as it is.
    pub fn body_transform<F, Fut>(mut self, transform: F) -> Self
    where
        F: Fn(Json) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<Json>>> + Send + 'static,
    {
        self.body_transform = Some(Hook::new("bodyTransform", transform));
        self
    }

    /// `hooks.beforeLLM`
    pub fn before_llm<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(BeforeLlm) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<LlmChange>> + Send + 'static,
    {
        self.hooks.before_llm = Some(Hook::new("beforeLLM", hook));
        self
    }

    /// `hooks.afterLLM`
    pub fn after_llm<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(AfterLlm) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.hooks.after_llm = Some(Hook::new("afterLLM", hook));
        self
    }

    /// `hooks.beforeTool`
    pub fn before_tool<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(BeforeTool) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ToolChange>> + Send + 'static,
    {
        self.hooks.before_tool = Some(Hook::new("beforeTool", hook));
        self
    }

    /// `hooks.afterTool`
    pub fn after_tool<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(AfterTool) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ResultChange>> + Send + 'static,
    {
        self.hooks.after_tool = Some(Hook::new("afterTool", hook));
        self
    }

    /// `onError`: decides about each failed request, within `retries`.
    pub fn on_error<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(RequestFailure) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ErrorDecision>> + Send + 'static,
    {
        self.on_error = Some(Hook::new("onError", hook));
        self
    }

    /// `httpClient`: sends the LLM requests in our place.
    pub fn http_transport(mut self, transport: Arc<dyn HttpTransport>) -> Self {
        self.transport = Some(transport);
        self
    }

    /// `store` of the program. Default: a [`MemoryStore`] of this client.
    pub fn store(mut self, store: Arc<dyn ConversationStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// `store` by its text: `memory` or `file:DIR`.
    pub fn store_named(mut self, name: &str) -> Self {
        let store: Arc<dyn ConversationStore> = match name.split_once(':') {
            None if name == "memory" => Arc::new(MemoryStore::new()),
            Some(("file", dir)) if !dir.is_empty() => Arc::new(FileStore::new(dir)),
            _ => {
                let refused = Error::config("store", "must be \"memory\" or \"file:DIR\"");
                self.refused.get_or_insert(refused);
                return self;
            }
        };
        self.store = Some(store);
        self
    }

    /// `onMetric`. Default: no metrics.
    pub fn on_metric(mut self, sink: MetricSink) -> Self {
        self.on_metric = Some(sink);
        self
    }

    /// Where log records go. Default: nowhere.
    pub fn logger(mut self, logger: Logger) -> Self {
        self.logger = logger;
        self
    }

    /// Checks everything and makes the client. Nothing is sent.
    ///
    /// # Errors
    /// `invalid_config` with the path of the option that is wrong.
    pub fn build(self) -> Result<Client> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        if self.model.is_empty() {
            return Err(Error::config("model", "must not be empty"));
        }
        at_least_one("maxTurns", u64::from(self.max_turns))?;
        at_least_one("maxToolConcurrency", self.max_tool_concurrency as u64)?;
        at_least_one("maxToolOutputBytes", self.max_tool_output_bytes as u64)?;
        positive(Some(self.first_byte_timeout), |why| {
            Error::config("firstByteTimeoutMs", why)
        })?;
        positive(Some(self.idle_timeout), |why| {
            Error::config("idleTimeoutMs", why)
        })?;
        positive(self.timeout, |why| Error::config("timeoutMs", why))?;
        for name in RESERVED_PARAMS {
            if self.request_params.contains_key(name) {
                return Err(Error::config(
                    format!("requestParams.{name}"),
                    format!("{name} belongs to the loop; use bodyTransform to change it"),
                ));
            }
        }
        let base = wire::base_url(&self.base_url)?;
        let endpoint = wire::endpoint(self.style, &base);
        let own_header = |name: &str| {
            self.headers
                .iter()
                .any(|(n, _)| n.eq_ignore_ascii_case(name))
        };
        let key = key::find(self.api_key, self.api_key_env.as_deref(), &base, |name| {
            std::env::var(name).ok()
        })?;
        let anonymous = key.is_none() && !own_header("authorization") && !own_header("x-api-key");
        if anonymous {
            let host = base.host_str().unwrap_or_default().to_owned();
            self.logger.log(
                LogLevel::Info,
                "client",
                || format!("no API key for {host}; requests carry no credentials"),
                [("host", host.clone().into())],
            );
        }
        let headers = wire::headers(self.style, key.as_deref(), &self.headers)?;
        let mut secrets: Vec<String> = key.into_iter().collect();
        for (_, value) in self.headers {
            // `Bearer KEY` may come back as `KEY`.
            secrets.extend(value.split_once(' ').map(|(_, rest)| rest.to_owned()));
            secrets.push(value);
        }
        let transport = match self.transport {
            Some(transport) => transport,
            None => Arc::new(ReqwestTransport::new()?),
        };
        Ok(Client::new(Options {
            endpoint,
            style: self.style,
            model: self.model,
            headers,
            anonymous: anonymous && transport.keeps_headers(),
            secrets,
            system_prompt: self.system_prompt.filter(|text| !text.is_empty()),
            max_turns: self.max_turns,
            max_tool_concurrency: self.max_tool_concurrency,
            max_tool_output_bytes: self.max_tool_output_bytes,
            retry: self.retry,
            timeout: self.timeout,
            first_byte_timeout: self.first_byte_timeout,
            idle_timeout: self.idle_timeout,
            request_params: self.request_params,
            body_transform: self.body_transform,
            hooks: self.hooks,
            on_error: self.on_error,
            transport,
            store: self.store.unwrap_or_else(|| Arc::new(MemoryStore::new())),
            on_metric: self.on_metric,
            logger: self.logger,
        }))
    }
}

fn at_least_one(path: &str, value: u64) -> Result<()> {
    if value == 0 {
        return Err(Error::config(path, "must be at least 1"));
    }
    Ok(())
}
