//! Options of a case, which are JSON, as the builders of the crate, which are methods.

use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

use crate::behaviour::Host;
use toolspan::{
    Client, ClientBuilder, ContentPart, Error, Hints, Json, McpInput, Prompt, Style, Tool, Toolkit,
    ToolkitBuilder,
};

type Result<T> = std::result::Result<T, Error>;

/// A typed value out of JSON; the error names the place.
pub fn read<T: DeserializeOwned>(value: &Value, path: &str) -> Result<T> {
    serde_json::from_value(value.clone()).map_err(|e| Error::config(path, e.to_string()))
}

/// `mcpConfig` or `mcpConfigText`.
pub fn mcp(options: &Value) -> Result<Option<McpInput>> {
    Ok(match (&options["mcpConfig"], &options["mcpConfigText"]) {
        (Value::Null, Value::Null) => None,
        (Value::Null, text) => Some(McpInput::Text(read(text, "mcpConfigText")?)),
        (Value::String(path), _) => Some(path.as_str().into()),
        (document, _) => Some(document.clone().into()),
    })
}

pub fn toolkit(options: &Value, host: &Arc<Host>) -> Result<ToolkitBuilder> {
    let mut builder = Toolkit::builder().logger(host.logger());
    if let Some(input) = mcp(options)? {
        builder = match input {
            McpInput::Text(text) => builder.mcp_config_text(text),
            other => builder.mcp_config(other),
        };
    }
    for (index, spec) in options["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        builder = builder.tool(tool(spec, &format!("tools[{index}]"), host)?);
    }
    for name in options["disableTools"].as_array().into_iter().flatten() {
        builder = builder.disable_tools([read::<String>(name, "disableTools")?]);
    }
    if let Some(validate) = options["validateArguments"].as_bool() {
        builder = builder.validate_arguments(validate);
    }
    if let Some(ms) = options["timeoutMs"].as_u64() {
        builder = builder.timeout(Duration::from_millis(ms));
    }
    Ok(builder)
}

pub fn tool(spec: &Value, path: &str, host: &Arc<Host>) -> Result<Tool> {
    let name: String = read(&spec["name"], &format!("{path}.name"))?;
    let description = spec["description"].as_str().unwrap_or_default();
    let handler: u64 = read(&spec["handler"], &format!("{path}.handler"))?;
    let hints: Option<Hints> = read(&spec["hints"], &format!("{path}.hints"))?;
    Ok(Tool::native(
        name,
        description,
        spec["inputSchema"].clone(),
        hints,
        host.tool(handler),
    ))
}

pub fn client(options: &Value, host: &Arc<Host>) -> Result<ClientBuilder> {
    let style: Style = read(&options["style"], "style")?;
    let mut builder = Client::builder(
        read::<String>(&options["baseUrl"], "baseUrl")?,
        style,
        read::<String>(&options["model"], "model")?,
    )
    .logger(host.logger());
    for (key, value) in options.as_object().into_iter().flatten() {
        builder = set(builder, key, value, host)?;
    }
    Ok(builder)
}

fn set(
    builder: ClientBuilder,
    key: &str,
    value: &Value,
    host: &Arc<Host>,
) -> Result<ClientBuilder> {
    let ms = || read(value, key).map(Duration::from_millis);
    Ok(match key {
        "baseUrl" | "style" | "model" => builder,
        "apiKey" => builder.api_key(read::<String>(value, key)?),
        "apiKeyEnv" => builder.api_key_env(read::<String>(value, key)?),
        "headers" => builder.headers(read::<Vec<(String, String)>>(&pairs(value), key)?),
        "systemPrompt" => builder.system_prompt(read::<String>(value, key)?),
        "maxTurns" => builder.max_turns(read(value, key)?),
        "maxToolConcurrency" => builder.max_tool_concurrency(read(value, key)?),
        "maxToolOutputBytes" => builder.max_tool_output_bytes(read(value, key)?),
        "retries" => builder.retries(read(value, key)?),
        "retryBaseMs" => builder.retry_base(ms()?),
        "maxRetryDelayMs" => builder.max_retry_delay(ms()?),
        "retryableStatuses" => builder.retryable_statuses(read::<Vec<u16>>(value, key)?),
        "timeoutMs" => builder.timeout(ms()?),
        "firstByteTimeoutMs" => builder.first_byte_timeout(ms()?),
        "idleTimeoutMs" => builder.idle_timeout(ms()?),
        "requestParams" => value
            .as_object()
            .into_iter()
            .flatten()
            .fold(builder, |b, (name, value)| b.request_param(name, value)),
        "bodyTransform" => {
            let (host, handler) = (host.clone(), number(value, key)?);
            builder.body_transform(move |body: Json| {
                let host = host.clone();
                async move { host.body_transform(handler, body).await }
            })
        }
        "hooks" => hooks(builder, value, host)?,
        "onError" => {
            let (host, handler) = (host.clone(), number(value, key)?);
            builder.on_error(move |failure| {
                let host = host.clone();
                async move { host.hook(handler, "onError", &failure).await }
            })
        }
        "httpClient" => builder.http_transport(host.transport(number(value, key)?)?),
        "store" => match value {
            Value::String(name) => builder.store_named(name),
            other => builder.store(host.store(number(other, key)?)),
        },
        "onMetric" => builder.on_metric(host.metric_sink(number(value, key)?)),
        other => return Err(Error::config(other, format!("unknown option {other}"))),
    })
}

fn hooks(mut builder: ClientBuilder, value: &Value, host: &Arc<Host>) -> Result<ClientBuilder> {
    for (kind, value) in value.as_object().into_iter().flatten() {
        let (host, handler) = (host.clone(), number(value, kind)?);
        builder = match kind.as_str() {
            "beforeLLM" => builder.before_llm(move |input| {
                let host = host.clone();
                async move { host.hook(handler, "beforeLLM", &input).await }
            }),
            "afterLLM" => builder.after_llm(move |input| {
                let host = host.clone();
                async move { host.hook(handler, "afterLLM", &input).await }
            }),
            "beforeTool" => builder.before_tool(move |input| {
                let host = host.clone();
                async move { host.hook(handler, "beforeTool", &input).await }
            }),
            "afterTool" => builder.after_tool(move |input| {
                let host = host.clone();
                async move { host.hook(handler, "afterTool", &input).await }
            }),
            other => {
                return Err(Error::config(
                    format!("hooks.{other}"),
                    format!("unknown hook {other}"),
                ));
            }
        };
    }
    Ok(builder)
}

/// What the user says: text, or content parts.
pub fn prompt(args: &Value) -> Result<Prompt> {
    match &args["prompt"] {
        Value::String(text) => Ok(text.as_str().into()),
        parts => read::<Vec<ContentPart>>(parts, "prompt").map(Into::into),
    }
}

/// The options that a run and a stream share, set on either builder.
macro_rules! run_options {
    ($run:expr, $args:expr, $toolkit:expr) => {{
        let (mut run, args) = ($run, $args);
        if let Some(toolkit) = $toolkit {
            run = run.toolkit(&toolkit);
        }
        for (key, value) in args
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, value)| !value.is_null())
        {
            run = match key.as_str() {
                "history" => run.history(options::messages(value)?),
                "id" => run.id(options::read::<String>(value, key)?),
                "systemPrompt" => run.system_prompt(options::read::<String>(value, key)?),
                "model" => run.model(options::read::<String>(value, key)?),
                "maxTurns" => run.max_turns(options::read(value, key)?),
                "timeoutMs" => run.timeout(Duration::from_millis(options::read(value, key)?)),
                _ => run,
            };
        }
        run
    }};
}

pub fn messages(value: &Value) -> Result<Vec<Json>> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .map(toolspan::json::to_json)
        .collect()
}

fn number(value: &Value, path: &str) -> Result<u64> {
    value["handler"]
        .as_u64()
        .ok_or_else(|| Error::config(path, "a host function is needed"))
}

fn pairs(map: &Value) -> Value {
    map.as_object()
        .into_iter()
        .flatten()
        .map(|(k, v)| Value::from(vec![Value::from(k.as_str()), v.clone()]))
        .collect()
}
