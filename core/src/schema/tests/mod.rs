//! Every repair, exact in and out.

mod arrays;
mod gemini;
mod nonsense;
mod references;
mod roots;
mod shapes;
mod soup;
mod types;

use super::*;
use crate::tool::Source;

fn tool(schema: Value) -> ToolInfo {
    let Value::Object(input_schema) = schema else {
        panic!("the schema of a tool is an object")
    };
    ToolInfo {
        name: "t".into(),
        description: "d".into(),
        input_schema,
        source: Source::Native,
        server: None,
        original_name: None,
        hints: None,
    }
}

/// The compiled schema, and per loss `path keyword action`. Checks on the way what holds for every schema: the input is
/// not touched, and a second pass changes nothing.
#[track_caller]
fn compiled(provider: Provider, schema: Value) -> (Value, Vec<String>) {
    let info = tool(schema);
    let before = info.clone();
    let first = compile(provider, &[&info]);
    assert_eq!(info, before);
    let out = parameters(provider, &first);
    let again = compile(provider, &[&tool(out.clone())]);
    assert_eq!(
        again.losses,
        [],
        "{provider:?} {out} from {:?}",
        before.input_schema
    );
    assert_eq!(parameters(provider, &again), out);
    let losses = first.losses.iter().map(|loss| {
        let action = serde_json::to_value(loss.action).unwrap();
        format!(
            "{} {} {}",
            loss.path,
            loss.keyword,
            action.as_str().unwrap()
        )
    });
    (out, losses.collect())
}

fn parameters(provider: Provider, compiled: &Compiled) -> Value {
    let path = match provider {
        Provider::OpenAi => "/function/parameters",
        Provider::Anthropic => "/input_schema",
        Provider::Gemini => "/functionDeclarations/0/parameters",
    };
    compiled.tools[0].pointer(path).unwrap().clone()
}

/// What the description of the tool says after its own text, `d`.
fn told(provider: Provider, schema: Value) -> String {
    let compiled = compile(provider, &[&tool(schema)]);
    let path = match provider {
        Provider::OpenAi => "/function/description",
        Provider::Anthropic => "/description",
        Provider::Gemini => "/functionDeclarations/0/description",
    };
    let text = compiled.tools[0].pointer(path).and_then(Value::as_str);
    text.unwrap().strip_prefix("d").unwrap().to_owned()
}

/// One property `x` in and out, with its losses.
#[track_caller]
fn property(provider: Provider, schema: Value) -> (Value, Vec<String>) {
    let (out, losses) = compiled(
        provider,
        json!({"type": "object", "properties": {"x": schema}}),
    );
    (out["properties"]["x"].clone(), losses)
}

const ALL: [Provider; 3] = [Provider::OpenAi, Provider::Anthropic, Provider::Gemini];
const JSON_SCHEMA: [Provider; 2] = [Provider::OpenAi, Provider::Anthropic];
