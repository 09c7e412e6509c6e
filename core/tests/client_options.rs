//! Options through the public API (SPEC 7.1, 7.2).

mod common;

use common::{Scenario, echo, toolkit};
use serde_json::json;
use std::time::Duration;
use toolspan::{Client, ClientBuilder, Style};

fn refused(builder: ClientBuilder) -> String {
    builder.build().unwrap_err().to_string()
}

fn builder() -> ClientBuilder {
    Client::builder("http://127.0.0.1:9/v1", Style::OpenAi, "m")
}

#[test]
fn a_wrong_option_is_named_when_the_client_is_built() {
    for key in ["messages", "tools", "stream"] {
        assert_eq!(
            refused(builder().request_param(key, 1)),
            format!(
                "invalid_config: requestParams.{key}: {key} belongs to the loop; use bodyTransform to change it"
            )
        );
    }
    assert_eq!(
        refused(builder().max_turns(0)),
        "invalid_config: maxTurns: must be at least 1"
    );
    assert_eq!(
        refused(builder().timeout(Duration::ZERO)),
        "invalid_config: timeoutMs: must be positive"
    );
    assert_eq!(
        refused(builder().store_named("redis")),
        "invalid_config: store: must be \"memory\" or \"file:DIR\""
    );
    assert_eq!(
        refused(Client::builder("http://h", Style::OpenAi, "")),
        "invalid_config: model: must not be empty"
    );
    assert_eq!(
        refused(builder().api_key("a\nb")),
        "invalid_config: apiKey: the value has control characters"
    );
}

#[tokio::test]
async fn the_body_is_built_in_the_pinned_order_and_the_transform_has_the_last_word() {
    let llm = Scenario::llm("openai", json!([{"text": "1"}, {"text": "2"}])).await;
    let client = llm
        .client(Style::OpenAi)
        .request_param("temperature", 0.2)
        .request_param("tool_choice", "required")
        .body_transform(|body| async move {
            let text = body.get().replace("hi", "hi /nothink");
            Ok((!body.get().contains("leave")).then(|| toolspan::json::parse(&text).unwrap()))
        })
        .build()
        .unwrap();
    let tools = toolkit([echo("t")]).await;
    client.run("hi").toolkit(&tools).await.unwrap();
    client.run("leave").toolkit(&tools).await.unwrap();
    let declarations = r#"[{"type":"function","function":{"name":"t","description":"d","parameters":{"type":"object","properties":{}}}}]"#;
    let body = |prompt: &str| {
        format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"{prompt}"}}],"tools":{declarations},"tool_choice":"required","temperature":0.2}}"#
        )
    };
    assert_eq!(llm.bodies().await, [body("hi /nothink"), body("leave")]);
}

#[tokio::test]
async fn an_anthropic_body_has_its_system_prompt_and_headers() {
    let llm = Scenario::llm("anthropic", json!([{"text": "1"}])).await;
    let client = llm
        .client(Style::Anthropic)
        .system_prompt("S")
        .build()
        .unwrap();
    let result = client
        .run("hi")
        .system_prompt("other")
        .model("m2")
        .await
        .unwrap();
    assert_eq!(result.model, "m2");
    assert_eq!(
        llm.bodies().await,
        [
            r#"{"model":"m2","max_tokens":4096,"system":"other","messages":[{"role":"user","content":"hi"}]}"#
        ]
    );
    let seen = llm.seen().await;
    let headers = &seen["requests"][0]["headers"];
    assert_eq!(headers["x-api-key"], "sk-secret-key");
    assert_eq!(headers["anthropic-version"], "2023-06-01");
    assert_eq!(headers["authorization"], json!(null));
}

#[tokio::test]
async fn a_model_among_the_parameters_is_the_model_that_answers() {
    let llm = Scenario::llm("openai", json!([{"text": "1"}])).await;
    let client = llm
        .client(Style::OpenAi)
        .request_param("model", "other")
        .build()
        .unwrap();
    assert_eq!(client.run("hi").await.unwrap().model, "other");
    assert_eq!(
        llm.bodies().await,
        [r#"{"model":"other","messages":[{"role":"user","content":"hi"}]}"#]
    );
}

#[tokio::test]
async fn an_empty_prompt_continues_a_history_and_nothing_else() {
    let llm = Scenario::llm("openai", json!([{"text": "1"}])).await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let error = client.run("").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid_argument: prompt: must not be empty without a history"
    );
    let history = vec![toolspan::json::parse(r#"{"role":"user","content":"a"}"#).unwrap()];
    client.run("").history(history).await.unwrap();
    assert_eq!(
        llm.messages(0).await,
        json!([{"role": "user", "content": "a"}])
    );
}
