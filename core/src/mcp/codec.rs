//! Messages of our transports as text.
//!
//! The SDK reads a result by trying one shape after the other. That may lose a whole page of tools for one bad tool, a
//! content block of a kind it does not know, and the digits of a large number. So the results it does not need reach us as
//! their own text, inside a custom result; and arguments go out as the text they came in.

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, CustomResult, DiscoverResult, ErrorData, GetExtensions,
    InitializeResult, ListToolsResult, RequestId, RequestMetaObject, ServerJsonRpcMessage,
    ServerResult,
};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

use crate::json::Json;

/// Arguments of a call as they were written; travels beside the request inside this process.
#[derive(Clone, Debug)]
pub(super) struct RawArguments(pub Json);

/// One message as the text to send.
pub(super) fn encode(message: &ClientJsonRpcMessage) -> serde_json::Result<String> {
    let ClientJsonRpcMessage::Request(request) = message else {
        return serde_json::to_string(message);
    };
    let raw = request.request.extensions().get::<RawArguments>();
    let (Some(RawArguments(arguments)), ClientRequest::CallToolRequest(call)) =
        (raw, &request.request)
    else {
        return serde_json::to_string(message);
    };
    // A call of ours has a name, arguments and what the SDK puts into `_meta`. Written by hand, for the SDK makes two trees of
    // values on the way to the text.
    #[derive(Serialize)]
    struct Call<'a> {
        jsonrpc: &'a str,
        id: &'a RequestId,
        method: &'a str,
        params: Params<'a>,
    }
    #[derive(Serialize)]
    struct Params<'a> {
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<&'a RequestMetaObject>,
        name: &'a str,
        arguments: &'a RawValue,
    }
    serde_json::to_string(&Call {
        jsonrpc: "2.0",
        id: &request.id,
        method: "tools/call",
        params: Params {
            meta: call.extensions.get(),
            name: &call.params.name,
            arguments,
        },
    })
}

/// A message from a server. An answer that cannot be understood becomes an error answer to the same request, so that
/// nobody waits for it; the error is about text that is no message at all.
pub(super) fn decode(text: &str) -> serde_json::Result<ServerJsonRpcMessage> {
    #[derive(Deserialize)]
    struct Reply<'a> {
        id: Option<RequestId>,
        method: Option<IgnoredAny>,
        #[serde(borrow)]
        result: Option<&'a RawValue>,
    }
    let reply: Reply<'_> = serde_json::from_str(text)?;
    match reply {
        Reply {
            id: Some(id),
            method: None,
            result: Some(result),
        } => Ok(ServerJsonRpcMessage::response(known_result(result), id)),
        Reply {
            id: Some(id),
            method: None,
            ..
        } => Ok(serde_json::from_str(text).unwrap_or_else(|_| unreadable(id))),
        _ => serde_json::from_str(text),
    }
}

/// The answer to request `id` that says that the real one is not to be had.
pub(super) fn failure(
    id: RequestId,
    message: impl Into<Cow<'static, str>>,
) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::internal_error(message, None), Some(id))
}

fn unreadable(id: RequestId) -> ServerJsonRpcMessage {
    failure(
        id,
        "the answer of the server is not what the protocol promises",
    )
}

/// What the SDK needs (the handshake, and tools whose schemas ask for request headers) as its types, all else as text.
fn known_result(result: &RawValue) -> ServerResult {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Shape {
        protocol_version: Option<IgnoredAny>,
        supported_versions: Option<IgnoredAny>,
        tools: Option<IgnoredAny>,
    }
    fn typed<T: DeserializeOwned + Into<ServerResult>>(text: &str) -> Option<ServerResult> {
        serde_json::from_str::<T>(text).ok().map(Into::into)
    }
    let text = result.get();
    let known = match serde_json::from_str(text).unwrap_or_default() {
        Shape {
            supported_versions: Some(_),
            ..
        } => typed::<DiscoverResult>(text),
        Shape {
            protocol_version: Some(_),
            ..
        } => typed::<InitializeResult>(text),
        Shape { tools: Some(_), .. } => typed::<ListToolsResult>(text),
        _ => None,
    };
    known.unwrap_or_else(|| CustomResult(Value::String(text.to_owned())).into())
}

/// The text of a result that [`decode`] passed on.
pub(super) fn result_text(result: ServerResult) -> serde_json::Result<String> {
    match result {
        ServerResult::CustomResult(CustomResult(Value::String(text))) => Ok(text),
        other => serde_json::to_string(&other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::{CallToolRequest, CallToolRequestParams, ProgressToken};
    use serde_json::json;

    #[test]
    fn arguments_go_out_as_they_were_written() {
        let mut request = CallToolRequest::new(CallToolRequestParams::new("t"));
        let raw = crate::json::parse(r#"{"z": 1e2, "a": 12345678901234567890123}"#).unwrap();
        request.extensions.insert(RawArguments(raw));
        let message = ClientJsonRpcMessage::request(
            ClientRequest::CallToolRequest(request),
            RequestId::Number(7),
        );
        assert_eq!(
            encode(&message).unwrap(),
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":{"z": 1e2, "a": 12345678901234567890123}}}"#
        );
    }

    #[test]
    fn a_call_goes_out_as_the_sdk_writes_it() {
        let arguments = r#"{"z":1,"a":[true,null,"x"]}"#;
        let params = CallToolRequestParams::new("t")
            .with_arguments(serde_json::from_str(arguments).unwrap());
        let mut request = CallToolRequest::new(params);
        let mut meta = RequestMetaObject::default();
        meta.set_progress_token(ProgressToken(RequestId::Number(3)));
        request.extensions.insert(meta);
        let written = |request: CallToolRequest| {
            let request = ClientRequest::CallToolRequest(request);
            encode(&ClientJsonRpcMessage::request(
                request,
                RequestId::Number(7),
            ))
            .unwrap()
        };
        let by_sdk = written(request.clone());
        let raw = crate::json::parse(arguments).unwrap();
        request.extensions.insert(RawArguments(raw));
        let ours = written(request);
        assert!(by_sdk.contains("progressToken"), "{by_sdk}");
        assert_eq!(ours, by_sdk);
    }

    fn text_of(reply: &str) -> String {
        match decode(reply).unwrap() {
            ServerJsonRpcMessage::Response(response) => result_text(response.result).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_result_of_a_call_is_kept_letter_by_letter() {
        let result = r#"{"content": [{"type":"new"}], "structuredContent": {"n": 1.50}}"#;
        let reply = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        assert_eq!(text_of(&reply), result);
    }

    #[test]
    fn a_page_with_one_bad_tool_is_kept_whole() {
        let result =
            r#"{"tools":[{"name":7},{"name":"a","inputSchema":{}}],"resultType":"complete"}"#;
        let reply = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        assert_eq!(text_of(&reply), result);
    }

    #[test]
    fn the_handshake_reaches_the_sdk_as_its_type() {
        let reply = json!({"jsonrpc": "2.0", "id": 0, "result": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}});
        let ServerJsonRpcMessage::Response(response) = decode(&reply.to_string()).unwrap() else {
            panic!("not a response");
        };
        assert!(matches!(response.result, ServerResult::InitializeResult(_)));
    }

    #[test]
    fn an_answer_nobody_can_read_fails_its_request() {
        for reply in [
            r#"{"jsonrpc":"2.0","id":4,"error":"boom"}"#,
            r#"{"jsonrpc":"2.0","id":4}"#,
        ] {
            let ServerJsonRpcMessage::Error(error) = decode(reply).unwrap() else {
                panic!("{reply}");
            };
            assert_eq!(error.id, Some(RequestId::Number(4)), "{reply}");
        }
    }

    #[test]
    fn text_that_is_no_message_is_an_error() {
        assert!(decode("Server listening on port 3000").is_err());
        assert!(decode(r#"{"level":"info"}"#).is_err());
    }
}
