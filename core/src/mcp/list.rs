//! The tools of a server (SPEC 3.2): all pages, each tool read by itself.

use rmcp::model::{ClientRequest, ErrorCode as RpcCode, ListToolsRequest, PaginatedRequestParams};
use rmcp::service::PeerRequestOptions;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::HashSet;

use super::codec::result_text;
use super::connection::{Connection, RequestError, answered};
use crate::error::{Error, ErrorCode, Result};
use crate::log::{LogLevel, Logger};
use crate::tool::Hints;

const MAX_PAGES: usize = 1000;

/// Most tools of one server, over all pages; those that are left out count.
const MAX_TOOLS: usize = 10_000;

/// Largest list of one server, over all pages.
const MAX_LIST_BYTES: usize = 64 * 1024 * 1024;

/// A tool as it was listed.
#[derive(Debug, PartialEq)]
pub(super) struct ListedTool {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
    pub hints: Option<Hints>,
}

/// Lists all tools. A tool that cannot be used is left out with a warning.
pub(super) async fn list_tools(
    connection: &Connection,
    server: &str,
    logger: &Logger,
) -> Result<Vec<ListedTool>> {
    let mut tools = Vec::new();
    let mut names = HashSet::new();
    let mut cursors = HashSet::new();
    let mut cursor = None;
    let (mut bytes, mut listed) = (0, 0);
    for _ in 0..MAX_PAGES {
        let Some(text) = request_page(connection, cursor).await? else {
            return Ok(tools);
        };
        bytes += text.len();
        if bytes > MAX_LIST_BYTES {
            return Err(too_much(format!("{MAX_LIST_BYTES} bytes of tools")));
        }
        let page = read_page(&text)?;
        listed += page.tools.len();
        if listed > MAX_TOOLS {
            return Err(too_much(format!("{MAX_TOOLS} tools")));
        }
        let again = page
            .next
            .as_ref()
            .is_some_and(|next| !cursors.insert(next.clone()));
        for value in page.tools {
            match read_tool(value) {
                Ok(tool) if names.insert(tool.name.clone()) => tools.push(tool),
                // A page that leads back is mostly one that was read before.
                Ok(_) if again => {}
                Ok(tool) => skip(logger, server, &format!("{:?} is listed twice", tool.name)),
                Err(why) => skip(logger, server, &why),
            }
        }
        if again {
            logger.log(
                LogLevel::Warn,
                "mcp",
                || format!("MCP server {server} repeats a cursor of its list; the tools so far are used"),
                [("server", server.into())],
            );
            return Ok(tools);
        }
        match page.next {
            None => return Ok(tools),
            next => cursor = next,
        }
    }
    Err(too_much(format!("{MAX_PAGES} pages of tools")))
}

fn too_much(limit: String) -> Error {
    Error::new(
        ErrorCode::LimitExceeded,
        format!("the server has more than {limit}"),
    )
}

fn skip(logger: &Logger, server: &str, why: &str) {
    logger.log(
        LogLevel::Warn,
        "mcp",
        || format!("a tool of MCP server {server} is left out: {why}"),
        [("server", server.into())],
    );
}

/// The text of one page; `None` from a server that has no tools at all.
async fn request_page(connection: &Connection, cursor: Option<String>) -> Result<Option<String>> {
    let first = cursor.is_none();
    let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
    let request = ClientRequest::ListToolsRequest(ListToolsRequest {
        method: Default::default(),
        params,
        extensions: Default::default(),
    });
    let sent = connection
        .peer
        .send_request_with_option(request, PeerRequestOptions::no_options())
        .await;
    let answer = match sent {
        Ok(handle) => answered(handle.rx.await),
        Err(error) => Err(error.into()),
    };
    match answer {
        Ok(result) => result_text(result).map(Some).map_err(|_| not_a_page()),
        Err(RequestError::Refused(refusal))
            if first && refusal.code == RpcCode::METHOD_NOT_FOUND && !offers_tools(connection) =>
        {
            Ok(None)
        }
        Err(RequestError::Refused(refusal)) => Err(Error::new(
            ErrorCode::McpError,
            format!("the server refuses: {}", refusal.message),
        )),
        Err(RequestError::Other(error) | RequestError::NotTaken(error)) => Err(error),
        Err(RequestError::Ended) => Err(connection.cause().await),
    }
}

fn offers_tools(connection: &Connection) -> bool {
    connection
        .peer
        .peer_info()
        .is_some_and(|info| info.capabilities.tools.is_some())
}

fn not_a_page() -> Error {
    Error::new(
        ErrorCode::McpError,
        "the list of tools is not what the protocol promises",
    )
}

#[derive(Debug, PartialEq)]
struct Page {
    tools: Vec<Value>,
    next: Option<String>,
}

/// An empty or null cursor is the end.
fn read_page(text: &str) -> Result<Page> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Raw {
        tools: Vec<Value>,
        next_cursor: Option<String>,
    }
    let raw: Raw = serde_json::from_str(text).map_err(|_| not_a_page())?;
    Ok(Page {
        tools: raw.tools,
        next: raw.next_cursor.filter(|cursor| !cursor.is_empty()),
    })
}

fn read_tool(mut value: Value) -> Result<ListedTool, String> {
    let name = match value["name"].as_str() {
        Some("") | None => return Err("it has no name".to_owned()),
        Some(name) => name.to_owned(),
    };
    let input_schema = match value.get_mut("inputSchema").map(Value::take) {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(schema @ Value::Object(_)) => schema,
        Some(_) => return Err(format!("the input schema of {name:?} is not an object")),
    };
    Ok(ListedTool {
        description: value["description"].as_str().unwrap_or_default().to_owned(),
        hints: read_hints(&value["annotations"]),
        input_schema,
        name,
    })
}

/// None unless at least one is given; the others then have the defaults of the protocol.
fn read_hints(annotations: &Value) -> Option<Hints> {
    let hint = |key: &str| annotations[key].as_bool();
    let (read_only, destructive, open_world) = (
        hint("readOnlyHint"),
        hint("destructiveHint"),
        hint("openWorldHint"),
    );
    read_only.or(destructive).or(open_world)?;
    let read_only = read_only.unwrap_or(false);
    Some(Hints {
        read_only,
        destructive: !read_only && destructive.unwrap_or(true),
        open_world: open_world.unwrap_or(true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_empty_or_null_cursor_is_the_end() {
        for cursor in [r#","nextCursor":"""#, r#","nextCursor":null"#, ""] {
            let page = read_page(&format!(r#"{{"tools":[]{cursor}}}"#)).unwrap();
            assert_eq!(page.next, None, "{cursor}");
        }
        let page = read_page(r#"{"tools":[],"nextCursor":"8"}"#).unwrap();
        assert_eq!(page.next.as_deref(), Some("8"));
    }

    #[test]
    fn a_page_without_tools_breaks_the_protocol() {
        for text in ["{}", r#"{"tools":{}}"#, r#"{"tools":[],"nextCursor":8}"#] {
            assert_eq!(
                read_page(text).unwrap_err().code(),
                ErrorCode::McpError,
                "{text}"
            );
        }
    }

    #[test]
    fn a_schema_keeps_every_keyword_in_order() {
        let schema = json!({"title": "T", "type": "object", "oneOf": [{}], "$defs": {"b": {}, "a": {}}, "x-own": 1});
        let tool = read_tool(json!({"name": "t", "inputSchema": schema})).unwrap();
        assert_eq!(tool.input_schema.to_string(), schema.to_string());
        assert_eq!(tool.description, "");
    }

    #[test]
    fn a_tool_that_cannot_be_used_says_why() {
        let why = |value| read_tool(value).unwrap_err();
        assert_eq!(why(json!({"inputSchema": {}})), "it has no name");
        assert_eq!(why(json!({"name": ""})), "it has no name");
        assert_eq!(why(json!(7)), "it has no name");
        assert_eq!(
            why(json!({"name": "t", "inputSchema": true})),
            "the input schema of \"t\" is not an object"
        );
    }

    #[test]
    fn hints_have_the_defaults_of_the_protocol() {
        let hints = |annotations| read_hints(&annotations);
        assert_eq!(hints(json!(null)), None);
        assert_eq!(hints(json!({"title": "x"})), None);
        assert_eq!(
            hints(json!({"readOnlyHint": true, "destructiveHint": true})),
            Some(Hints {
                read_only: true,
                destructive: false,
                open_world: true
            })
        );
        assert_eq!(
            hints(json!({"openWorldHint": false})),
            Some(Hints {
                read_only: false,
                destructive: true,
                open_world: false
            })
        );
    }
}
