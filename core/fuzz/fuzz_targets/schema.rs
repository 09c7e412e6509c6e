//! Tool schemas for each provider: the result describes an object, and compiling it again changes nothing.
#![no_main]

use serde_json::{Map, Value};
use toolspan::Provider;
use toolspan::schema::compile;
use toolspan::tool::{Source, ToolInfo};

const PROVIDERS: [(Provider, &str); 3] = [
    (Provider::OpenAi, "/function/parameters"),
    (Provider::Anthropic, "/input_schema"),
    (Provider::Gemini, "/functionDeclarations/0/parameters"),
];

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(input_schema) = serde_json::from_str::<Map<String, Value>>(text) else {
        return;
    };
    for (provider, path) in PROVIDERS {
        let parameters = |input_schema| {
            let mut compiled = compile(provider, &[&tool(input_schema)]);
            match compiled.tools[0].pointer_mut(path).map(Value::take) {
                Some(Value::Object(schema)) => (schema, compiled.losses),
                other => panic!("{provider:?}: the parameters are {other:?}"),
            }
        };
        let (once, _) = parameters(input_schema.clone());
        assert_eq!(once["type"], "object", "{provider:?}");
        assert!(once["properties"].is_object(), "{provider:?}");
        let (twice, losses) = parameters(once.clone());
        assert_eq!(losses, [], "{provider:?}");
        assert_eq!(twice, once, "{provider:?}");
    }
});

fn tool(input_schema: Map<String, Value>) -> ToolInfo {
    ToolInfo {
        name: "t".to_owned(),
        description: "d".to_owned(),
        input_schema,
        source: Source::Native,
        server: None,
        original_name: None,
        hints: None,
    }
}
