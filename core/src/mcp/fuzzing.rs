//! A configuration from its text to the plan of each server (see `crate::fuzzing`).

use super::config::McpConfig;
use super::plan::{Purpose, plan as decide};

/// Reads a configuration and decides about every server of it; nothing is contacted.
pub fn plan(text: &str) {
    let Ok(config) = McpConfig::from_text(text) else {
        return;
    };
    let lookup = |name: &str| match name {
        "TOKEN" => Some("t0k".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    };
    for purpose in [Purpose::Use, Purpose::Inventory] {
        if let Ok(steps) = decide(&config, purpose, &lookup) {
            assert!(steps.keys().map(String::as_str).eq(config.ids()));
        }
    }
}
