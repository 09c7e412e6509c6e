//! The text of an `mcp.json`, up to the decision about each server.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| toolspan::fuzzing::plan(text));
