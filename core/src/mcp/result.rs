//! The result of `tools/call` as a [`ToolResult`] (SPEC 3.7). Pure.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::ErrorCode;
use crate::tool::{ContentPart, ToolResult};

/// Largest result of one call, bytes of its JSON.
pub(super) const MAX_RESULT_BYTES: usize = 32 * 1024 * 1024;

const EMPTY_ERROR: &str = "MCP tool returned an error";
const ANY_TYPE: &str = "application/octet-stream";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    #[serde(default)]
    content: Vec<Value>,
    #[serde(borrow, default)]
    structured_content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(default)]
    result_type: Option<String>,
}

/// What the model gets for the text of a result.
pub(super) fn tool_result(server: &str, text: &str) -> ToolResult {
    if text.len() > MAX_RESULT_BYTES {
        return failure(server, too_large(text.len()));
    }
    let read = match text.starts_with('{') {
        true => serde_json::from_str::<CallResult<'_>>(text).ok(),
        // Serde would take a list for the fields in their order.
        false => None,
    };
    match read {
        Some(result) if result.result_type.as_deref() == Some("input_required") => failure(
            server,
            "The tool asks for input from the user, which this program cannot give.",
        ),
        Some(result) => convert(server, result),
        None => failure(
            server,
            format!(
                "{}: the result of the tool is not what the protocol promises",
                ErrorCode::InvalidResponse
            ),
        ),
    }
}

/// What the model reads instead of a result that is too large.
fn too_large(bytes: usize) -> String {
    format!(
        "{}: the result of the tool has {bytes} bytes, {MAX_RESULT_BYTES} are allowed",
        ErrorCode::LimitExceeded
    )
}

/// An error result of a tool of this server.
pub(super) fn failure(server: &str, message: impl Into<String>) -> ToolResult {
    let mut output = message.into();
    if output.trim().is_empty() {
        output = EMPTY_ERROR.to_owned();
    }
    ToolResult {
        metadata: metadata(server),
        ..ToolResult::error(output)
    }
}

fn metadata(server: &str) -> Map<String, Value> {
    Map::from_iter([("server".to_owned(), server.into())])
}

fn convert(server: &str, result: CallResult<'_>) -> ToolResult {
    let is_error = result.is_error == Some(true);
    let mut texts = Vec::new();
    let mut parts = Vec::new();
    for block in &result.content {
        match read_block(block) {
            Block::Text(text) => texts.push(text),
            Block::Part(part) => parts.push(part),
        }
    }
    let structured = result
        .structured_content
        .filter(|structured| structured.get() != "null" && !says_the_same(structured, &texts));
    if let Some(structured) = structured {
        texts.push(compact(structured.get()));
    }
    let texts = texts.iter().map(String::as_str);
    let output = if is_error {
        let said: Vec<_> = texts.filter(|text| !text.trim().is_empty()).collect();
        match said.is_empty() {
            true => EMPTY_ERROR.to_owned(),
            false => said.join("\n\n"),
        }
    } else {
        texts.collect::<Vec<_>>().join("\n")
    };
    ToolResult {
        output,
        is_error,
        parts,
        metadata: metadata(server),
    }
}

enum Block {
    Text(String),
    Part(ContentPart),
}

fn read_block(block: &Value) -> Block {
    let kind = block["type"].as_str().unwrap_or_default();
    let read = match kind {
        "text" => string(block, "text").map(Block::Text),
        "image" => string(block, "data").map(|data| {
            Block::Part(ContentPart::Image {
                mime_type: mime_type(block),
                data: Some(data),
                url: None,
            })
        }),
        "audio" => string(block, "data").map(|data| {
            Block::Part(ContentPart::Audio {
                mime_type: mime_type(block),
                data: Some(data),
                url: None,
            })
        }),
        "resource_link" => string(block, "uri").map(|url| {
            Block::Part(ContentPart::File {
                mime_type: mime_type(block),
                data: None,
                url: Some(url),
                name: string(block, "name"),
            })
        }),
        "resource" => embedded(&block["resource"]),
        _ => None,
    };
    // The model should know that there was something it does not get.
    read.unwrap_or_else(|| Block::Text(format!("[content of type {kind:?} that cannot be shown]")))
}

fn embedded(resource: &Value) -> Option<Block> {
    if let Some(text) = string(resource, "text") {
        return Some(Block::Text(text));
    }
    Some(Block::Part(ContentPart::File {
        mime_type: mime_type(resource),
        data: Some(string(resource, "blob")?),
        url: None,
        name: string(resource, "uri"),
    }))
}

fn string(block: &Value, key: &str) -> Option<String> {
    block[key].as_str().map(str::to_owned)
}

fn mime_type(block: &Value) -> String {
    string(block, "mimeType").unwrap_or_else(|| ANY_TYPE.to_owned())
}

/// Whether the structured content is the text over again: the same JSON, or the value that many servers wrap as
/// `{"result": …}` because structured content has to be an object, shown as one text or as one text for each item.
fn says_the_same(structured: &RawValue, texts: &[String]) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(structured.get()) else {
        return false;
    };
    let wrapped = match &value {
        Value::Object(map) if map.len() == 1 => map.get("result"),
        _ => None,
    };
    [Some(&value), wrapped]
        .into_iter()
        .flatten()
        .any(|value| match (value, texts) {
            (value, [text]) if shows(text, value) => true,
            (Value::Array(items), texts) => {
                !texts.is_empty()
                    && items.len() == texts.len()
                    && items
                        .iter()
                        .zip(texts)
                        .all(|(item, text)| shows(text, item))
            }
            _ => false,
        })
}

fn shows(text: &str, value: &Value) -> bool {
    value.as_str() == Some(text)
        || serde_json::from_str::<Value>(text).is_ok_and(|shown| shown == *value)
}

/// JSON without the white space between its tokens; everything else as it stands.
fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut in_string = false;
    let mut escaped = false;
    for c in json.chars() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if c.is_ascii_whitespace() {
            continue;
        } else {
            in_string = c == '"';
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(result: &str) -> String {
        tool_result("s", result).output
    }

    #[test]
    fn texts_are_joined_by_a_newline() {
        let result = tool_result(
            "s",
            r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":""},{"type":"text","text":"b"}]}"#,
        );
        assert_eq!(result.output, "a\n\nb");
        assert!(!result.is_error);
        assert_eq!(
            Value::Object(result.metadata),
            serde_json::json!({"server": "s"})
        );
    }

    #[test]
    fn texts_of_an_error_are_joined_by_a_blank_line_and_its_data_follows() {
        let result = tool_result(
            "s",
            r#"{"isError":true,"content":[{"type":"text","text":"no such table"},{"type":"text","text":" "},{"type":"text","text":"hint: x"}],"structuredContent":{"code":"SQL"}}"#,
        );
        assert_eq!(
            result.output,
            "no such table\n\nhint: x\n\n{\"code\":\"SQL\"}"
        );
        assert!(result.is_error);
    }

    #[test]
    fn an_empty_error_still_says_something() {
        for content in ["[]", r#"[{"type":"text","text":""}]"#] {
            let result = tool_result("s", &format!(r#"{{"isError":true,"content":{content}}}"#));
            assert_eq!(result.output, "MCP tool returned an error");
            assert!(result.is_error);
        }
    }

    #[test]
    fn structured_content_that_says_more_follows_the_text() {
        assert_eq!(
            output(
                r#"{"content":[{"type":"text","text":"returned 2 items"}],"structuredContent":{"items": [1, 2.50]}}"#
            ),
            "returned 2 items\n{\"items\":[1,2.50]}"
        );
        assert_eq!(
            output(r#"{"content":[],"structuredContent":{"z":"a  b","a":"\" , {"}}"#),
            r#"{"z":"a  b","a":"\" , {"}"#
        );
    }

    #[test]
    fn structured_content_that_repeats_the_text_is_left_out() {
        assert_eq!(
            output(
                r#"{"content":[{"type":"text","text":"{ \"b\": 1, \"a\": [] }"}],"structuredContent":{"a":[],"b":1}}"#
            ),
            "{ \"b\": 1, \"a\": [] }"
        );
        assert_eq!(
            output(
                r#"{"content":[{"type":"text","text":"plain"}],"structuredContent":{"result":"plain"}}"#
            ),
            "plain"
        );
        assert_eq!(
            output(
                r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"2"}],"structuredContent":{"result":["a",2]}}"#
            ),
            "a\n2"
        );
    }

    #[test]
    fn media_and_resources_become_parts() {
        let result = tool_result(
            "s",
            r#"{"content":[
                {"type":"image","data":"AAAA","mimeType":"image/png"},
                {"type":"audio","data":"BBBB","mimeType":"audio/wav"},
                {"type":"resource_link","uri":"file:///x","name":"x"},
                {"type":"resource","resource":{"uri":"r://b","blob":"CCCC","mimeType":"application/pdf"}},
                {"type":"resource","resource":{"uri":"r://t","text":"inside"}}],"structuredContent":{"w":1}}"#,
        );
        assert_eq!(result.output, "inside\n{\"w\":1}");
        assert_eq!(
            serde_json::to_value(&result.parts).unwrap(),
            serde_json::json!([
                {"type": "image", "mimeType": "image/png", "data": "AAAA"},
                {"type": "audio", "mimeType": "audio/wav", "data": "BBBB"},
                {"type": "file", "mimeType": "application/octet-stream", "url": "file:///x", "name": "x"},
                {"type": "file", "mimeType": "application/pdf", "data": "CCCC", "name": "r://b"},
            ])
        );
    }

    #[test]
    fn content_nobody_knows_is_named() {
        assert_eq!(
            output(r#"{"content":[{"type":"hologram"},{"type":"text","text":"x"}]}"#),
            "[content of type \"hologram\" that cannot be shown]\nx"
        );
    }

    #[test]
    fn what_is_not_a_result_is_an_error() {
        for text in ["[]", r#"{"content":"x"}"#] {
            let result = tool_result("s", text);
            assert!(result.is_error);
            assert_eq!(
                result.output,
                "invalid_response: the result of the tool is not what the protocol promises"
            );
        }
    }

    #[test]
    fn a_result_over_the_limit_is_an_error_that_names_it() {
        let text = format!(
            r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#,
            "x".repeat(MAX_RESULT_BYTES)
        );
        let result = tool_result("s", &text);
        assert!(result.is_error);
        assert_eq!(
            result.output,
            format!(
                "limit_exceeded: the result of the tool has {} bytes, 33554432 are allowed",
                text.len()
            )
        );
    }
}
