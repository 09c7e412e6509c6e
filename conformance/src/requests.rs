//! What the cases sent to model endpoints, for checks from outside: one JSON object a line.

use std::fmt::Write;
use std::path::Path;

use serde_json::json;

use crate::case::NamedCase;
use crate::exec::Request;
use crate::run::PortResult;

/// Writes every request of every passed case. All languages send the same, so one of them is enough: the first.
pub fn write(file: &Path, cases: &[NamedCase], results: &[PortResult]) -> Result<(), String> {
    let first = results.iter().find_map(|port| port.outcome.as_ref().ok());
    let mut lines = String::new();
    for (case, result) in cases.iter().zip(first.into_iter().flatten()) {
        for request in result.iter().flat_map(|shown| &shown.requests) {
            let Request { method, path, body } = request;
            let line = json!({"case": case.name, "method": method, "path": path, "body": body});
            let _ = writeln!(lines, "{line}");
        }
    }
    std::fs::write(file, lines).map_err(|error| format!("{}: {error}", file.display()))
}
