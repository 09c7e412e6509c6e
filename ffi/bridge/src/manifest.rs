//! What there is, as data: the source of the bindings' generated models and of the tables in `SPEC.md`.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::OnceLock;

use crate::ABI_VERSION;
use crate::dispatch::Op;
use crate::engine::EngineOptions;
use crate::host::HostCallKind;
use toolspan::ErrorCode;
use toolspan::error::ErrorRecord;

/// Operations with the JSON Schemas (2020-12) of their arguments and results, host calls, events, error codes.
pub fn manifest() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let mut manifest = json!({
        "abiVersion": ABI_VERSION,
        "engineOptions": generator.subschema_for::<EngineOptions>(),
        "operations": operations(&mut generator),
        "hostCalls": HostCallKind::ALL.iter().map(|kind| json!({
            "kind": kind.as_str(),
            "answered": kind.answered(),
            "doc": kind.describe().trim(),
        })).collect::<Vec<_>>(),
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

/// The first 8 bytes (big endian) of the SHA-256 of the manifest's compact text. A binding was generated from one
/// manifest and refuses a library with another hash.
pub fn schema_hash() -> u64 {
    static HASH: OnceLock<u64> = OnceLock::new();
    *HASH.get_or_init(|| {
        let digest = Sha256::digest(manifest().to_string().as_bytes());
        digest
            .iter()
            .take(8)
            .fold(0, |hash, byte| hash << 8 | u64::from(*byte))
    })
}
