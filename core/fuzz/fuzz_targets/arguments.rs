//! Arguments as models write them: what is executed is one object, and reading it again changes nothing.
#![no_main]

use serde_json::{Map, Value};
use toolspan::{Arguments, json};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(arguments) = Arguments::from_text(text) {
        stands(&arguments);
    }
    if let Ok(value) = json::parse(text)
        && let Ok(arguments) = Arguments::from_json(value)
    {
        stands(&arguments);
    }
});

fn stands(arguments: &Arguments) {
    let text = arguments.raw().get();
    arguments.parse::<Map<String, Value>>().expect("an object");
    let again = Arguments::from_text(text).expect("what was read is read again");
    assert_eq!(again.raw().get(), text);
}
