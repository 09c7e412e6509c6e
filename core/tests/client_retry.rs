//! Failures and what follows them, through the public API (SPEC 7.6, 8).

mod common;

use async_trait::async_trait;
use common::Scenario;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use toolspan::client::hooks::ErrorDecision;
use toolspan::http::{HttpRequest, HttpResponse, HttpTransport};
use toolspan::{Client, Error, ErrorCode, Result, Style};

#[tokio::test]
async fn each_status_gets_as_many_requests_as_it_deserves() {
    for (status, requests, code) in [
        (400, 1, ErrorCode::ProviderRejected),
        (401, 1, ErrorCode::Unauthorized),
        (403, 1, ErrorCode::Unauthorized),
        (404, 1, ErrorCode::ProviderRejected),
        (422, 1, ErrorCode::ProviderRejected),
        (408, 3, ErrorCode::ProviderRejected),
        (429, 3, ErrorCode::RateLimited),
        (503, 3, ErrorCode::ProviderUnavailable),
        (529, 3, ErrorCode::ProviderUnavailable),
    ] {
        let reply = json!({"status": status, "json": {"error": {"message": "no"}}});
        let llm = Scenario::llm("openai", json!([reply, reply, reply, reply])).await;
        let client = llm.client(Style::OpenAi).build().unwrap();
        let error = client.run("hi").await.unwrap_err();
        assert_eq!(error.code(), code, "{status}");
        assert_eq!(error.record().http_status, Some(status));
        assert_eq!(error.record().provider.as_deref(), Some("openai"));
        assert_eq!(llm.bodies().await.len(), requests, "{status}");
    }
}

#[tokio::test]
async fn a_connection_that_closes_before_the_first_byte_is_tried_again() {
    let llm = Scenario::llm("openai", json!([{"close": true}, {"text": "ok"}])).await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    assert_eq!(client.run("hi").await.unwrap().text, "ok");
}

#[tokio::test]
async fn a_wait_beyond_the_ceiling_fails_at_once_and_says_how_long() {
    let llm = Scenario::llm(
        "openai",
        json!([{"status": 503, "headers": {"retry-after": "120"}, "json": {}}]),
    )
    .await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let error = client.run("hi").await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::RateLimited);
    assert_eq!(error.record().retry_after_ms, Some(120_000));
    assert_eq!(error.record().http_status, Some(503));
    assert_eq!(llm.bodies().await.len(), 1);
}

#[tokio::test]
async fn on_error_may_retry_what_would_fail_and_fail_what_would_be_retried() {
    let llm = Scenario::llm(
        "openai",
        json!([{"status": 404, "json": {}}, {"status": 503, "json": {}}, {"text": "never"}]),
    )
    .await;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let client = llm
        .client(Style::OpenAi)
        .on_error(move |failure| {
            let first = failure.error.http_status == Some(404);
            log.lock()
                .unwrap()
                .push((failure.attempt, failure.retryable));
            async move {
                Ok(if first {
                    ErrorDecision::Retry
                } else {
                    ErrorDecision::Fail
                })
            }
        })
        .build()
        .unwrap();
    let error = client.run("hi").await.unwrap_err();
    assert_eq!(error.record().http_status, Some(503));
    assert_eq!(*asked.lock().unwrap(), [(0, false), (1, true)]);
}

#[tokio::test]
async fn an_error_holds_the_providers_words_but_no_secret() {
    let body = json!({"error": {"message": "bad model for sk-secret-key", "type": "invalid_request_error", "user_id": "u-1", "param": null}});
    let llm = Scenario::llm(
        "openai",
        json!([{"status": 400, "json": body}, {"status": 401, "json": body}]),
    )
    .await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    let error = client.run("hi").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "provider_rejected: HTTP 400: bad model for «redacted»"
    );
    assert_eq!(
        error.record().details,
        Some(
            json!({"message": "bad model for «redacted»", "type": "invalid_request_error", "user_id": "«redacted»", "param": null})
        )
    );
    let error = client.run("hi").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "unauthorized: HTTP 401: the provider refused the credentials"
    );
    assert_eq!(error.record().details, None);
}

#[tokio::test]
async fn an_error_object_with_a_good_status_is_an_error() {
    let llm = Scenario::llm(
        "openai",
        json!([{"json": {"error": {"message": "boom", "code": 502}}}, {"text": "ok"}]),
    )
    .await;
    let client = llm.client(Style::OpenAi).retries(0).build().unwrap();
    let error = client.run("hi").await.unwrap_err();
    assert_eq!(error.to_string(), "provider_unavailable: error: boom");
    assert_eq!(client.run("hi").await.unwrap().text, "ok");
}

#[tokio::test]
async fn a_page_is_not_an_answer() {
    let llm = Scenario::llm(
        "openai",
        json!([{"headers": {"content-type": "text/html"}, "raw": "<html>"}]),
    )
    .await;
    let client = llm.client(Style::OpenAi).build().unwrap();
    assert_eq!(
        client.run("hi").await.unwrap_err().code(),
        ErrorCode::InvalidResponse
    );
}

#[tokio::test]
async fn no_answer_in_time_is_tried_again_and_then_a_timeout() {
    let llm = Scenario::llm("openai", json!([{"hang": true}, {"hang": true}])).await;
    let client = llm
        .client(Style::OpenAi)
        .retries(1)
        .first_byte_timeout(Duration::from_millis(50))
        .build()
        .unwrap();
    let error = client.run("hi").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "timeout: the beginning of the answer took longer than 50 ms"
    );
    assert_eq!(llm.bodies().await.len(), 2);
}

#[tokio::test]
async fn the_host_s_transport_sends_in_our_place() {
    struct Canned(Mutex<Vec<HttpRequest>>);

    #[async_trait]
    impl HttpTransport for Canned {
        async fn send(&self, request: HttpRequest) -> Result<HttpResponse> {
            let mut seen = self.0.lock().unwrap();
            seen.push(request);
            if seen.len() == 1 {
                return Err(Error::new(ErrorCode::ConnectionFailed, "no route"));
            }
            let body = r#"{"choices":[{"message":{"role":"assistant","content":"ok"}}]}"#;
            Ok(HttpResponse {
                status: 200,
                headers: vec![("content-type".into(), "application/json".into())],
                body: Box::pin(futures_util::stream::iter([Ok(body.into())])),
            })
        }
    }

    let canned = Arc::new(Canned(Mutex::new(Vec::new())));
    let client = Client::builder("https://h.test/v1?a=b", Style::OpenAi, "m")
        .header("X-Title", "t")
        .http_transport(canned.clone())
        .retry_base(Duration::from_millis(1))
        .build()
        .unwrap();
    assert_eq!(client.run("hi").await.unwrap().text, "ok");
    let seen = canned.0.lock().unwrap();
    assert_eq!(seen.len(), 2);
    assert_eq!(
        seen[0].url.as_str(),
        "https://h.test/v1/chat/completions?a=b"
    );
    let header = |n: &str, v: &str| (n.to_owned(), v.to_owned());
    assert_eq!(
        seen[0].headers,
        [
            header("content-type", "application/json"),
            header("x-title", "t")
        ]
    );
    assert_eq!(
        seen[0].body,
        r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#
    );
}
