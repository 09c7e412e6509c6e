//! Streams of Chat Completions, from bytes to the next request.
#![no_main]

use std::sync::LazyLock;
use toolspan::{Style, fuzzing::Streams};

static STREAMS: LazyLock<Streams> =
    LazyLock::new(|| Streams::new(Style::OpenAi).expect("a client"));

libfuzzer_sys::fuzz_target!(|stream: &[u8]| STREAMS.read(stream));
