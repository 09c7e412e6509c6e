//! Conversations through the public API (SPEC 7.7).

mod common;

use common::{Scenario, echo, tool, toolkit, value};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolspan::{
    Client, ConversationStore, ErrorCode, FileStore, Limit, Style, Toolkit, Transcript,
};

#[tokio::test]
async fn ask_remembers_and_run_does_not() {
    let llm = Scenario::llm(
        "openai",
        json!([{"text": "1"}, {"text": "2"}, {"text": "3"}]),
    )
    .await;
    let client = llm
        .client(Style::OpenAi)
        .system_prompt("S")
        .build()
        .unwrap();
    client.ask("one").id("x").await.unwrap();
    let second = client.ask("two").id("x").await.unwrap();
    assert_eq!(second.conversation_id.as_deref(), Some("x"));
    client.run("three").await.unwrap();
    assert_eq!(
        llm.messages(1).await,
        json!([
            {"role": "system", "content": "S"},
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "1"},
            {"role": "user", "content": "two"},
        ])
    );
    assert_eq!(llm.messages(2).await.as_array().unwrap().len(), 2);
    let stored = client.conversation_store().get("x").await.unwrap().unwrap();
    assert_eq!(stored.style, Some(Style::OpenAi));
    assert_eq!(value(&stored.messages), value(&second.messages));
}

#[tokio::test]
async fn calls_on_one_id_wait_for_each_other() {
    let llm = Scenario::llm(
        "openai",
        json!([{"gate": "first", "text": "1"}, {"text": "2"}]),
    )
    .await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let one = tokio::spawn(client.ask("one").id("x").into_future());
    llm.wait(json!({"llm": "main", "requests": 1})).await;
    let two = tokio::spawn(client.ask("two").id("x").into_future());
    llm.open("first").await;
    one.await.unwrap().unwrap();
    let two = two.await.unwrap().unwrap();
    assert_eq!(two.messages.len(), 4);
}

/// A model that calls `slow`, which ends nothing but the token, and then says "ok".
async fn calls_slow(token: &CancellationToken) -> (Scenario, Toolkit) {
    let llm = Scenario::llm(
        "openai",
        json!([{"calls": [{"id": "c1", "name": "slow", "args": {}}]}, {"text": "ok"}]),
    )
    .await;
    let arrived = token.clone();
    let slow = tool("slow", move |_, _| {
        arrived.cancel();
        std::future::pending::<String>()
    });
    (llm, toolkit([slow]).await)
}

/// The next ask on that id has the interrupted call before it.
async fn goes_on(llm: &Scenario, client: &Client) {
    client.ask("two").id("x").await.unwrap();
    assert_eq!(
        llm.messages(1).await,
        json!([
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "slow", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "Interrupted: the run ended before this call did. It may have had effects."},
            {"role": "user", "content": "two"},
        ])
    );
}

#[tokio::test]
async fn a_cancelled_ask_keeps_the_turn_that_was_running() {
    let token = CancellationToken::new();
    let (llm, tools) = calls_slow(&token).await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let ask = client.ask("one").id("x").toolkit(&tools).cancel(token);
    assert_eq!(ask.await.unwrap_err().code(), ErrorCode::Cancelled);
    goes_on(&llm, &client).await;
}

#[tokio::test]
async fn an_ask_that_is_dropped_keeps_the_turn_that_was_running() {
    let token = CancellationToken::new();
    let (llm, tools) = calls_slow(&token).await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let ask = client.ask("one").id("x").toolkit(&tools).into_future();
    tokio::select! {
        _ = ask => panic!("the tool never ends"),
        () = token.cancelled() => {}
    }
    goes_on(&llm, &client).await;
}

#[tokio::test]
async fn a_stream_that_is_dropped_keeps_the_turn_that_was_running() {
    let token = CancellationToken::new();
    let (llm, tools) = calls_slow(&token).await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let stream = client.stream("one").id("x").toolkit(&tools).start();
    token.cancelled().await;
    drop(stream);
    goes_on(&llm, &client).await;
}

#[tokio::test]
async fn a_stream_whose_events_are_dropped_keeps_the_turn_that_was_running() {
    let token = CancellationToken::new();
    let (llm, tools) = calls_slow(&token).await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let (run, events) = client.stream("one").id("x").toolkit(&tools).split();
    let run = tokio::spawn(run);
    token.cancelled().await;
    drop(events);
    assert_eq!(run.await.unwrap().unwrap_err().code(), ErrorCode::Cancelled);
    goes_on(&llm, &client).await;
}

#[tokio::test]
async fn a_failure_behind_finished_turns_saves_them() {
    let llm = Scenario::llm("openai", json!([{"calls": [{"id": "c1", "name": "t", "args": {}}]}, {"status": 400, "json": {}}, {"status": 400, "json": {}}])).await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let tools = toolkit([echo("t")]).await;
    client.ask("one").id("x").toolkit(&tools).await.unwrap_err();
    // The second failure comes before any answer and leaves nothing.
    client.ask("two").id("x").toolkit(&tools).await.unwrap_err();
    let stored = client.conversation_store().get("x").await.unwrap().unwrap();
    let roles: Vec<_> = stored
        .messages
        .iter()
        .map(|m| value(m)["role"].clone())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool"]);
}

#[tokio::test]
async fn a_conversation_is_an_ask_with_an_id_of_its_own() {
    let llm = Scenario::llm(
        "openai",
        json!([{"text": "1"}, {"text": "2"}, {"text": "3"}]),
    )
    .await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let conversation = client.conversation();
    conversation.send("one").await.unwrap();
    conversation.send("two").await.unwrap();
    assert_eq!(conversation.messages().await.unwrap().len(), 4);
    client.conversation().send("three").await.unwrap();
    assert_eq!(
        llm.messages(2).await,
        json!([{"role": "user", "content": "three"}])
    );
    conversation.reset().await.unwrap();
    assert!(conversation.messages().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_stream_with_an_id_is_saved_before_it_is_done() {
    let llm = Scenario::llm("anthropic", json!([{"text": "1"}])).await;
    let client = llm.client(Style::Anthropic).build().unwrap();
    let mut events = client.stream("one").id("x").start();
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(value(&event.unwrap()));
    }
    let stored = client.conversation_store().get("x").await.unwrap().unwrap();
    assert_eq!(last.unwrap()["result"]["messages"], value(&stored.messages));
}

#[tokio::test]
async fn a_conversation_may_change_its_provider() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn ConversationStore> = Arc::new(FileStore::new(folder.path()));
    let before = Transcript::new(
        Some(Style::OpenAi),
        serde_json::from_value(json!([
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "t", "arguments": "{}"}},
                {"id": "c2", "type": "function", "function": {"name": "t", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "1"},
            {"role": "tool", "tool_call_id": "c2", "content": "2"},
            {"role": "assistant", "content": "done"},
        ]))
        .unwrap(),
    );
    store.save("x", before).await.unwrap();
    let llm = Scenario::llm("anthropic", json!([{"text": "ok"}])).await;
    let client = llm
        .client(Style::Anthropic)
        .store(store.clone())
        .build()
        .unwrap();
    client.ask("go on").id("x").await.unwrap();
    assert_eq!(
        llm.messages(0).await,
        json!([
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "c1", "name": "t", "input": {}},
                {"type": "tool_use", "id": "c2", "name": "t", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "1"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "2"},
            ]},
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": "go on"},
        ])
    );
    let after = store.get("x").await.unwrap().unwrap();
    assert_eq!(after.style, Some(Style::Anthropic));
}

#[tokio::test]
async fn time_that_is_up_before_the_conversation_is_free_changes_nothing() {
    let llm = Scenario::llm("openai", json!([{"gate": "first", "text": "1"}])).await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let one = tokio::spawn(client.ask("one").id("x").into_future());
    llm.wait(json!({"llm": "main", "requests": 1})).await;
    let two = client.ask("two").id("x").timeout(Duration::from_millis(50));
    let two = two.await.unwrap();
    assert_eq!(two.limit, Some(Limit::Timeout));
    assert_eq!(two.turns, 0);
    llm.open("first").await;
    let one = one.await.unwrap().unwrap();
    let stored = client.conversation_store().get("x").await.unwrap().unwrap();
    assert_eq!(value(&stored.messages), value(&one.messages));
    assert_eq!(llm.bodies().await.len(), 1);
}

#[tokio::test]
async fn a_first_turn_that_runs_out_of_time_is_not_saved() {
    let llm = Scenario::llm("openai", json!([{"hang": true}])).await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let run = client.ask("one").id("x").timeout(Duration::from_millis(50));
    assert_eq!(run.await.unwrap().limit, Some(Limit::Timeout));
    let stored = client.conversation_store().get("x").await.unwrap();
    assert_eq!(stored, None);
}

#[tokio::test]
async fn an_empty_prompt_needs_something_to_continue() {
    let client = toolspan::Client::builder("http://127.0.0.1:9", Style::OpenAi, "m")
        .retries(0)
        .build()
        .unwrap();
    let error = client.ask("").id("new").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid_argument: prompt: must not be empty without a history"
    );
}

#[tokio::test]
async fn a_conversation_that_somebody_else_begins_meanwhile_is_not_overwritten() {
    let llm = Scenario::llm("openai", json!([{"gate": "answer", "text": "1"}])).await;
    let dir = tempfile::tempdir().unwrap();
    let client = llm.client(Style::OpenAi);
    let client = client.store(Arc::new(FileStore::new(dir.path())));
    let client = client.build().unwrap();
    let ours = tokio::spawn(client.ask("hi").id("x").into_future());
    llm.wait(json!({"llm": "main", "requests": 1})).await;
    let theirs = Transcript::new(Some(Style::OpenAi), Vec::new());
    let store = FileStore::new(dir.path());
    store.save("x", theirs.clone()).await.unwrap();
    llm.open("answer").await;
    let error = ours.await.unwrap().unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreConflict);
    assert_eq!(store.get("x").await, Ok(Some(theirs)));
}
