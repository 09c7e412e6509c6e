//! A function of the host as a tool.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;

use crate::host::{Host, HostCallKind};
use crate::operation;
use crate::options::ToolSpec;
use toolspan::tool::{Execute, IntoToolResult};
use toolspan::{Arguments, Error, Tool, ToolContext, ToolResult};

/// Makes the tool; `path` is where its specification stands, for errors.
pub(crate) fn tool(spec: ToolSpec, host: &Arc<Host>, path: &str) -> Result<Tool, Error> {
    host.kinds
        .require(HostCallKind::ToolExecute, &format!("{path}.handler"))?;
    let run = HostTool {
        host: host.clone(),
        name: spec.name.clone(),
        handler: spec.handler,
    };
    Ok(Tool::native(
        spec.name,
        spec.description,
        spec.input_schema.into(),
        spec.hints,
        Arc::new(run),
    ))
}

struct HostTool {
    host: Arc<Host>,
    name: String,
    handler: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Payload<'a> {
    name: &'a str,
    args: &'a Arguments,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
}

/// What the function returned: a finished result, or a value that becomes one.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Result(ToolResult),
    Value(Box<RawValue>),
}

#[async_trait]
impl Execute for HostTool {
    async fn execute(&self, arguments: Arguments, context: ToolContext) -> ToolResult {
        let payload = Payload {
            name: &self.name,
            args: &arguments,
            call_id: context.call_id.as_deref(),
            timeout_ms: context
                .timeout
                .map(|t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX)),
        };
        let op = operation::current();
        let answer = self
            .host
            .ask(op, HostCallKind::ToolExecute, self.handler, &payload);
        let answer = tokio::select! {
            biased;
            () = context.cancel.cancelled() => Err(Error::cancelled()),
            answer = answer => answer,
        };
        match answer {
            Ok(Answer::Result(result)) => result,
            Ok(Answer::Value(value)) => text_of(&value).into_tool_result(),
            Err(error) => ToolResult::error(error.record().message.clone()),
        }
    }
}

/// The text of a JSON string, nothing for null, or the JSON itself without spaces between its tokens.
fn text_of(value: &RawValue) -> String {
    if value.get() == "null" {
        return String::new();
    }
    serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| compact(value.get()))
}

/// JSON without insignificant white space. Key order and number text stay.
fn compact(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let (mut in_string, mut escaped) = (false, false);
    for c in json.chars() {
        if in_string {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => {}
            }
        } else if c == '"' {
            in_string = true;
        } else if c.is_ascii_whitespace() {
            continue;
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_becomes_text_and_keeps_its_numbers_and_the_order_of_its_keys()
    -> Result<(), serde_json::Error> {
        let value: Box<RawValue> = serde_json::from_str(r#"{ "z": 1.50, "a": [1, " x \" y "] }"#)?;
        assert_eq!(text_of(&value), r#"{"z":1.50,"a":[1," x \" y "]}"#);
        let text: Box<RawValue> = serde_json::from_str(r#""a\n b""#)?;
        assert_eq!(text_of(&text), "a\n b");
        assert_eq!(text_of(RawValue::NULL), "");
        Ok(())
    }
}
