//! Event streams, cut anywhere.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolspan::fuzzing::sse(data));
