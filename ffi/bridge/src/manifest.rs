//! What there is, as data: the source of the bindings' generated models and of the tables in `SPEC.md`.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::OnceLock;

use crate::ABI_VERSION;
use crate::dispatch::Op;
use crate::engine::EngineOptions;
use crate::host::HostCallKind;
use toolspan::client::hooks;
use toolspan::error::ErrorRecord;
use toolspan::{ErrorCode, LogRecord, MetricEvent};

/// Operations with the JSON Schemas (2020-12) of their arguments and results, host calls, events, error codes.
pub fn manifest() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let mut manifest = json!({
        "abiVersion": ABI_VERSION,
        "engineOptions": generator.subschema_for::<EngineOptions>(),
        "operations": operations(&mut generator),
        "hostCalls": host_calls(&mut generator),
        "events": ["done", "failed", "cancelled", "host_call", "host_call_cancelled"],
        "errorRecord": generator.subschema_for::<ErrorRecord>(),
        "errorCodes": ErrorCode::ALL.iter().map(|code| json!({
            "code": code.as_str(),
            "retryable": code.retryable(),
            "doc": code.describe().trim(),
        })).collect::<Vec<_>>(),
    });
    manifest["$defs"] = generator.take_definitions(true).into();
    manifest
}

fn host_calls(generator: &mut SchemaGenerator) -> Vec<Value> {
    HostCallKind::ALL
        .iter()
        .map(|kind| {
            let mut entry = json!({
                "kind": kind.as_str(),
                "answered": kind.answered(),
                "doc": kind.describe().trim(),
            });
            if let Some(payload) = payload(*kind, generator) {
                entry["payload"] = payload.into();
            }
            entry
        })
        .collect()
}

/// What the host is given, where that is a type of the core; the other payloads are put together in `work`.
fn payload(kind: HostCallKind, generator: &mut SchemaGenerator) -> Option<Schema> {
    Some(match kind {
        HostCallKind::BeforeLlm => generator.subschema_for::<hooks::BeforeLlm>(),
        HostCallKind::AfterLlm => generator.subschema_for::<hooks::AfterLlm>(),
        HostCallKind::BeforeTool => generator.subschema_for::<hooks::BeforeTool>(),
        HostCallKind::AfterTool => generator.subschema_for::<hooks::AfterTool>(),
        HostCallKind::OnError => generator.subschema_for::<hooks::RequestFailure>(),
        HostCallKind::Metric => generator.subschema_for::<MetricEvent>(),
        HostCallKind::Log => generator.subschema_for::<LogRecord>(),
        _ => return None,
    })
}

fn operations(generator: &mut SchemaGenerator) -> Vec<Value> {
    Op::ALL
        .iter()
        // What only tests can call is not part of what bindings are generated from.
        .filter(|op| !op.as_str().starts_with("test."))
        .map(|op| {
            let (args, result) = op.schemas(generator);
            json!({
                "op": op.as_str(),
                "immediate": op.immediate(),
                "doc": op.describe().trim(),
                "args": args,
                "result": result,
            })
        })
        .collect()
}

/// The first 8 bytes (big endian) of the SHA-256 of the manifest's compact text, documentation left out. A binding was
/// generated from one manifest and refuses a library with another hash.
pub fn schema_hash() -> u64 {
    static HASH: OnceLock<u64> = OnceLock::new();
    *HASH.get_or_init(|| {
        let digest = Sha256::digest(without_words(manifest()).to_string().as_bytes());
        digest
            .iter()
            .take(8)
            .fold(0, |hash, byte| hash << 8 | u64::from(*byte))
    })
}

/// Without what is said only to people: other words are no other interface.
fn without_words(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(key, value)| !(value.is_string() && (key == "description" || key == "doc")))
            .map(|(key, value)| (key, without_words(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_words).collect(),
        plain => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_left_out_and_properties_of_that_name_are_not() {
        let schema = json!({"description": "d", "properties": {"description": {"type": "string", "description": "d"}}});
        assert_eq!(
            without_words(schema),
            json!({"properties": {"description": {"type": "string"}}})
        );
    }
}
