//! A transcript of one style in the other (SPEC 7.7), for a conversation that changes its provider.
//!
//! Text, calls, results and pictures have a counterpart. Thoughts with their signatures are understood by the provider that
//! made them and by nobody else: they are left out here and stay in the stored transcript until it is saved in the other
//! style.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::openai::ToolCall;
use super::parts::text_block;
use super::read;
use super::text::{is_list, text_of, text_or_empty as text};
use crate::error::Result;
use crate::json::{self, Json};
use crate::style::Style;
use crate::tool::Arguments;

/// The messages in `style`; they are in the other one.
pub(crate) fn translate(messages: &[Json], style: Style) -> Result<Vec<Json>> {
    let mut out = Vec::with_capacity(messages.len());
    for message in messages {
        let message: Message<'_> = read(message.get())?;
        match style {
            Style::Anthropic => to_anthropic(&message, &mut out)?,
            Style::OpenAi => to_openai(&message, &mut out)?,
        }
    }
    Ok(out)
}

/// A message of either style, as far as both know it.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ToolCall<'a>>>,
    #[serde(borrow)]
    tool_call_id: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Written<'a> {
    role: &'a str,
    content: Json,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Json>,
}

fn written(role: &str, content: Json) -> Result<Json> {
    let tool_calls = Vec::new();
    json::to_json(&Written {
        role,
        content,
        tool_calls,
    })
}

/// Neighbouring results become one message when the body is arranged.
fn to_anthropic(message: &Message<'_>, out: &mut Vec<Json>) -> Result<()> {
    let role = text(message.role);
    if role == "tool" {
        let content = match message.content {
            Some(raw) if is_list(raw) => json::to_json(&anthropic_blocks(raw)?)?,
            content => json::to_json(&text(content))?,
        };
        let id = text(message.tool_call_id);
        let block = json::to_json(&ResultBlock {
            r#type: "tool_result",
            tool_use_id: &id,
            content,
        })?;
        out.push(written("user", json::to_json(&[block])?)?);
        return Ok(());
    }
    let calls = message.tool_calls.as_deref().unwrap_or_default();
    let content = match message.content {
        Some(raw) if calls.is_empty() && !is_list(raw) => json::to_json(&text(Some(raw)))?,
        content => {
            let mut blocks = match content {
                Some(raw) if is_list(raw) => anthropic_blocks(raw)?,
                content => match text(content) {
                    text if text.is_empty() => Vec::new(),
                    text => vec![text_block(&text)?],
                },
            };
            for call in calls {
                blocks.push(tool_use(call)?);
            }
            if blocks.is_empty() {
                return Ok(());
            }
            json::to_json(&blocks)?
        }
    };
    // An empty turn is refused.
    if content.get() != "\"\"" {
        out.push(written(&role, content)?);
    }
    Ok(())
}

#[derive(Serialize)]
struct ResultBlock<'a> {
    r#type: &'static str,
    tool_use_id: &'a str,
    content: Json,
}

fn tool_use(call: &ToolCall<'_>) -> Result<Json> {
    #[derive(Serialize)]
    struct ToolUse<'a> {
        r#type: &'static str,
        id: &'a str,
        name: &'a str,
        input: &'a RawValue,
    }
    let function = call.function.as_ref();
    let arguments = text(function.and_then(|f| f.arguments));
    let arguments = Arguments::from_text(&arguments).unwrap_or_else(|_| Arguments::empty());
    json::to_json(&ToolUse {
        r#type: "tool_use",
        id: &text(call.id),
        name: &text(function.and_then(|f| f.name)),
        input: arguments.raw(),
    })
}

/// Content parts as blocks. A part without a counterpart leaves a note in its place.
fn anthropic_blocks(raw: &RawValue) -> Result<Vec<Json>> {
    let mut blocks = Vec::new();
    for part in read::<Vec<Value>>(raw.get())? {
        let block = match part["type"].as_str().unwrap_or_default() {
            "text" if part["text"] != "" => json!({"type": "text", "text": part["text"]}),
            "text" | "thinking" => continue,
            "image_url" => {
                let url = part["image_url"]["url"].as_str().unwrap_or_default();
                json!({"type": "image", "source": source(url)})
            }
            "file" => {
                let data = part["file"]["file_data"].as_str().unwrap_or_default();
                json!({"type": "document", "source": source(data)})
            }
            other => json!({"type": "text", "text": format!("[{other}]")}),
        };
        blocks.push(json::to_json(&block)?);
    }
    Ok(blocks)
}

/// Data URLs carry their data with them.
fn source(url: &str) -> Value {
    match url
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"))
    {
        Some((media_type, data)) => {
            json!({"type": "base64", "media_type": media_type, "data": data})
        }
        None => json!({"type": "url", "url": url}),
    }
}

/// One message may become several: results first, as the other style wants them right behind their calls.
fn to_openai(message: &Message<'_>, out: &mut Vec<Json>) -> Result<()> {
    let role = text(message.role);
    let Some(raw) = message.content else {
        return Ok(());
    };
    if !is_list(raw) {
        out.push(written(&role, json::to_json(&text_of(raw))?)?);
        return Ok(());
    }
    let mut content: Vec<Value> = Vec::new();
    let mut calls: Vec<Json> = Vec::new();
    for raw in read::<Vec<&RawValue>>(raw.get())? {
        let block: Value = read(raw.get())?;
        match block["type"].as_str().unwrap_or_default() {
            "tool_use" => calls.push(function_call(raw)?),
            "tool_result" => {
                let (message, rest) = tool_message(&block)?;
                out.push(message);
                content.extend(rest);
            }
            _ => content.extend(openai_part(&block)),
        }
    }
    let texts: Option<Vec<&str>> = content.iter().map(|part| part["text"].as_str()).collect();
    let written_content = match texts {
        Some(texts) if texts.is_empty() && calls.is_empty() => return Ok(()),
        Some(texts) if texts.is_empty() => json::to_json(&())?,
        Some(texts) => json::to_json(&texts.concat())?,
        None => json::to_json(&content)?,
    };
    out.push(json::to_json(&Written {
        role: &role,
        content: written_content,
        tool_calls: calls,
    })?);
    Ok(())
}

fn function_call(raw: &RawValue) -> Result<Json> {
    #[derive(Deserialize)]
    struct ToolUse<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
        #[serde(borrow)]
        name: Option<&'a RawValue>,
        #[serde(borrow)]
        input: Option<&'a RawValue>,
    }
    #[derive(Serialize)]
    struct Call<'a> {
        id: &'a str,
        r#type: &'static str,
        function: CallFunction<'a>,
    }
    #[derive(Serialize)]
    struct CallFunction<'a> {
        name: &'a str,
        arguments: &'a str,
    }
    let call: ToolUse<'_> = read(raw.get())?;
    json::to_json(&Call {
        id: &text(call.id),
        r#type: "function",
        function: CallFunction {
            name: &text(call.name),
            arguments: call.input.map_or("{}", RawValue::get),
        },
    })
}

/// A result as a `tool` message, and the parts of it that such a message cannot carry.
fn tool_message(block: &Value) -> Result<(Json, Vec<Value>)> {
    #[derive(Serialize)]
    struct Tool<'a> {
        role: &'static str,
        tool_call_id: &'a str,
        content: &'a str,
    }
    let (mut content, mut rest) = (String::new(), Vec::new());
    match &block["content"] {
        Value::String(text) => content.clone_from(text),
        Value::Array(blocks) => {
            for part in blocks.iter().filter_map(openai_part) {
                match part["text"].as_str() {
                    Some(text) => content.push_str(text),
                    None => rest.push(part),
                }
            }
        }
        _ => {}
    }
    let message = json::to_json(&Tool {
        role: "tool",
        tool_call_id: block["tool_use_id"].as_str().unwrap_or_default(),
        content: &content,
    })?;
    Ok((message, rest))
}

/// A block as a content part; thoughts have none, and what is unknown leaves a note.
fn openai_part(block: &Value) -> Option<Value> {
    let url = || {
        let source = &block["source"];
        match source["url"].as_str() {
            Some(url) => url.to_owned(),
            None => {
                let text = |key: &str| source[key].as_str().unwrap_or_default();
                format!("data:{};base64,{}", text("media_type"), text("data"))
            }
        }
    };
    let part = match block["type"].as_str().unwrap_or_default() {
        "text" => json!({"type": "text", "text": block["text"]}),
        "thinking" | "redacted_thinking" => return None,
        "image" => json!({"type": "image_url", "image_url": {"url": url()}}),
        "document" if block["source"]["type"] == "base64" => {
            json!({"type": "file", "file": {"filename": "file", "file_data": url()}})
        }
        other => json!({"type": "text", "text": format!("[{other}]")}),
    };
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(style: Style, messages: &str) -> String {
        let messages: Vec<Json> = serde_json::from_str(messages).unwrap();
        serde_json::to_string(&translate(&messages, style).unwrap()).unwrap()
    }

    #[test]
    fn calls_and_results_have_a_counterpart_in_both_directions() {
        let openai = r#"[{"role":"user","content":"hi"},{"role":"assistant","content":"look","tool_calls":[{"id":"c1","type":"function","function":{"name":"t","arguments":"{\"n\":1.50}"}}]},{"role":"tool","tool_call_id":"c1","content":"r"},{"role":"assistant","content":"ok"}]"#;
        let anthropic = r#"[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"look"},{"type":"tool_use","id":"c1","name":"t","input":{"n":1.50}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"r"}]},{"role":"assistant","content":"ok"}]"#;
        assert_eq!(translated(Style::Anthropic, openai), anthropic);
        assert_eq!(translated(Style::OpenAi, anthropic), openai);
    }

    #[test]
    fn text_beside_results_is_kept_behind_them() {
        let anthropic = r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"1"}]},{"type":"tool_result","tool_use_id":"b","is_error":true},{"type":"text","text":"hurry"}]}]"#;
        assert_eq!(
            translated(Style::OpenAi, anthropic),
            r#"[{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":""},{"role":"user","content":"hurry"}]"#
        );
    }

    #[test]
    fn thoughts_stay_with_their_provider() {
        let anthropic = r#"[{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"a","name":"t","input":{}}]}]"#;
        assert_eq!(
            translated(Style::OpenAi, anthropic),
            r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"t","arguments":"{}"}}]}]"#
        );
    }

    #[test]
    fn pictures_move_with_their_data() {
        let openai = r#"[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]"#;
        let anthropic = r#"[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]"#;
        assert_eq!(translated(Style::Anthropic, openai), anthropic);
        assert_eq!(translated(Style::OpenAi, anthropic), openai);
    }
}
