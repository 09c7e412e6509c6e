//! What a provider says when it fails, as our error (SPEC 7.6, 8): a status, an error object in an answer, or an error event.

use serde::Deserialize;
use serde_json::Value;
use std::time::{Duration, SystemTime};

use super::options::Options;
use super::retry;
use crate::error::{Error, ErrorCode};
use crate::log::REDACTED;
use crate::style::Style;

/// Characters of the provider's message that are kept.
const MAX_MESSAGE: usize = 200;

/// Largest text whose object is kept as `details`, bytes.
const MAX_DETAILS: usize = 64 * 1024;

/// Values that name who pays. Shape is kept, content is not.
const PRIVATE: [&str; 4] = ["user_id", "account_id", "org_id", "organization"];

/// A failed attempt and what it means for the next one.
#[derive(Debug)]
pub(crate) struct Failure {
    pub error: Error,
    /// Whether the same request may work next time.
    pub retry: bool,
    /// What `Retry-After` asks for.
    pub wait: Option<Duration>,
}

impl Failure {
    /// A failure that the same request would meet again.
    pub(crate) fn fatal(error: Error) -> Self {
        Failure {
            error,
            retry: false,
            wait: None,
        }
    }
}

/// An answer with an error status.
pub(crate) fn from_status(
    options: &Options,
    status: u16,
    retry_after: Option<&str>,
    body: &[u8],
) -> Failure {
    let wait = retry_after.and_then(|value| retry::retry_after(value, SystemTime::now()));
    let retry = retry::is_retryable(&options.retry, status);
    let mut error = match status {
        401 if options.anonymous => Error::new(
            ErrorCode::Unauthorized,
            format!(
                "HTTP {status}: the provider wants credentials, and none were sent; set apiKey or apiKeyEnv"
            ),
        ),
        401 | 403 => Error::new(
            ErrorCode::Unauthorized,
            format!("HTTP {status}: the provider refused the credentials"),
        ),
        300..=399 => Error::new(
            ErrorCode::InvalidResponse,
            format!(
                "HTTP {status}: the endpoint redirects elsewhere; set baseUrl to where it leads"
            ),
        ),
        _ => {
            let said = Said::read(body);
            let text = match &said.message {
                Some(message) => format!("HTTP {status}: {}", short(&scrub(options, message))),
                // Nobody there knows what was asked for: mostly the base URL has a part too few or too many.
                None if status == 404 || status == 405 => {
                    format!("HTTP {status} from {}; check baseUrl", address(options))
                }
                None => format!("HTTP {status}"),
            };
            let error = Error::new(code(status), text);
            match said.details {
                Some(details) => error.details(redacted(options, details)),
                None => error,
            }
        }
    };
    error = named(options.style, error)
        .http_status(status)
        .retryable(retry);
    if let Some(wait) = wait {
        error = error.retry_after(wait);
    }
    Failure { error, retry, wait }
}

/// An error object inside an answer with a good status: `{"error": {...}}` or an error event.
pub(crate) fn from_object(options: &Options, text: &str) -> Failure {
    let said = Said::read(text.as_bytes());
    let status = said.status();
    let kind = said.kind.as_deref().unwrap_or("error");
    let code = status.map_or(ErrorCode::ProviderUnavailable, code);
    let message = match &said.message {
        // Providers like to quote the key they refuse.
        Some(message) if code != ErrorCode::Unauthorized => {
            format!("{kind}: {}", scrub(options, message))
        }
        _ => kind.to_owned(),
    };
    let retry = status.is_none_or(|status| retry::is_retryable(&options.retry, status));
    let mut error = Error::new(code, short(&message)).retryable(retry);
    if code != ErrorCode::Unauthorized
        && let Some(details) = said.details
    {
        error = error.details(redacted(options, details));
    }
    Failure {
        error: named(options.style, error),
        retry,
        wait: None,
    }
}

/// An answer that is not what the protocol promises.
pub(crate) fn malformed(style: Style, what: impl Into<String>) -> Failure {
    Failure::fatal(named(
        style,
        // A reader's reason may quote what it read, however long that is.
        Error::new(ErrorCode::InvalidResponse, short(&what.into())),
    ))
}

/// The endpoint without what may be secret in it.
fn address(options: &Options) -> String {
    let mut plain = options.endpoint.clone();
    plain.set_query(None);
    plain.set_fragment(None);
    // Neither fails for a URL with a host, which every endpoint has.
    let _ = plain.set_username("");
    let _ = plain.set_password(None);
    plain.into()
}

/// Marks an error with the style of the endpoint.
pub(crate) fn named(style: Style, error: Error) -> Error {
    error.provider(style.as_str())
}

fn code(status: u16) -> ErrorCode {
    match status {
        401 | 403 => ErrorCode::Unauthorized,
        429 => ErrorCode::RateLimited,
        400..=499 => ErrorCode::ProviderRejected,
        500..=599 => ErrorCode::ProviderUnavailable,
        _ => ErrorCode::InvalidResponse,
    }
}

/// The parts of an error object that the two dialects and their imitators agree on.
#[derive(Debug, Default)]
struct Said {
    message: Option<String>,
    kind: Option<String>,
    code: Option<u16>,
    details: Option<Value>,
}

impl Said {
    fn read(body: &[u8]) -> Said {
        let Ok(whole) = serde_json::from_slice::<Value>(body) else {
            return Said {
                message: plain_text(body),
                ..Said::default()
            };
        };
        let error = match whole.get("error") {
            Some(error) => error.clone(),
            None => whole,
        };
        let keep = |error| (body.len() <= MAX_DETAILS).then_some(error);
        #[derive(Deserialize)]
        struct Fields {
            message: Option<Value>,
            detail: Option<Value>,
            #[serde(rename = "type")]
            kind: Option<Value>,
            code: Option<Value>,
        }
        let text = |value: Option<Value>| match value {
            Some(Value::String(text)) if !text.is_empty() => Some(text),
            _ => None,
        };
        match serde_json::from_value::<Fields>(error.clone()) {
            Ok(fields) => Said {
                message: text(fields.message).or(text(fields.detail)),
                code: fields.code.as_ref().and_then(number),
                kind: text(fields.kind).or(text(fields.code)),
                details: keep(error),
            },
            // `{"error": "text"}`
            Err(_) => Said {
                message: text(Some(error.clone())),
                details: keep(error),
                ..Said::default()
            },
        }
    }

    /// The HTTP status that the object stands for.
    fn status(&self) -> Option<u16> {
        let by_kind = match self.kind.as_deref().unwrap_or_default() {
            "overloaded_error" => 529,
            "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => 429,
            "api_error" | "server_error" | "internal_server_error" => 500,
            "timeout_error" => 504,
            "authentication_error" | "invalid_api_key" => 401,
            "permission_error" => 403,
            "billing_error" => 402,
            "not_found_error" => 404,
            "request_too_large" => 413,
            "invalid_request_error" => 400,
            _ => return self.code,
        };
        // A number says more than a word: some send `type: invalid_request_error` with `code: 503`.
        Some(self.code.unwrap_or(by_kind))
    }
}

fn number(value: &Value) -> Option<u16> {
    let number = match value {
        Value::Number(number) => number.as_u64()?,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    };
    u16::try_from(number)
        .ok()
        .filter(|status| (400..600).contains(status))
}

/// The body of a proxy that does not speak JSON, unless it is a page.
fn plain_text(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    (!text.is_empty() && !text.starts_with('<')).then(|| text.to_owned())
}

/// At most [`MAX_MESSAGE`] characters.
pub(crate) fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Takes the credentials out of a text of the provider.
fn scrub(options: &Options, text: &str) -> String {
    let mut text = text.to_owned();
    for secret in &options.secrets {
        // A shorter value is no secret and would mangle the text.
        if secret.len() >= 6 && text.contains(secret.as_str()) {
            text = text.replace(secret.as_str(), REDACTED);
        }
    }
    text
}

fn redacted(options: &Options, value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(scrub(options, &text)),
        Value::Array(items) => items.into_iter().map(|v| redacted(options, v)).collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| {
                let value = if PRIVATE.contains(&key.as_str()) && !value.is_null() {
                    Value::String(REDACTED.to_owned())
                } else {
                    redacted(options, value)
                };
                (key, value)
            })
            .collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::options::tests::options;

    fn refused(body: &str) -> String {
        let options = options(Style::OpenAi);
        from_status(&options, 400, None, body.as_bytes())
            .error
            .record()
            .message
            .clone()
    }

    #[test]
    fn the_message_is_found_wherever_servers_put_it() {
        assert_eq!(refused(r#"{"error":{"message":"no"}}"#), "HTTP 400: no");
        assert_eq!(refused(r#"{"error":"no"}"#), "HTTP 400: no");
        assert_eq!(refused(r#"{"message":"no"}"#), "HTTP 400: no");
        assert_eq!(refused(r#"{"detail":"no"}"#), "HTTP 400: no");
        assert_eq!(refused(" no "), "HTTP 400: no");
        assert_eq!(refused("<html>no</html>"), "HTTP 400");
        assert_eq!(refused(""), "HTTP 400");
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let text = refused(&"é".repeat(201));
        assert_eq!(text, format!("HTTP 400: {}…", "é".repeat(200)));
    }

    fn event(text: &str) -> (ErrorCode, bool) {
        let failure = from_object(&options(Style::OpenAi), text);
        assert_eq!(failure.error.record().http_status, None);
        (failure.error.code(), failure.retry)
    }

    #[test]
    fn an_error_event_is_read_by_its_number_or_its_kind() {
        let unavailable = (ErrorCode::ProviderUnavailable, true);
        assert_eq!(event(r#"{"error":{"code":502}}"#), unavailable);
        assert_eq!(event(r#"{"error":{"code":"502"}}"#), unavailable);
        assert_eq!(event(r#"{"error":{"message":"boom"}}"#), unavailable);
        assert_eq!(
            event(r#"{"type":"error","error":{"type":"overloaded_error"}}"#),
            unavailable
        );
        assert_eq!(
            event(r#"{"error":{"type":"rate_limit_error"}}"#),
            (ErrorCode::RateLimited, true)
        );
        assert_eq!(
            event(r#"{"error":{"type":"invalid_request_error","code":"context_length_exceeded"}}"#),
            (ErrorCode::ProviderRejected, false)
        );
    }

    #[test]
    fn details_are_kept_up_to_a_size() {
        let details = |padding: usize| {
            let text = format!(
                r#"{{"error":{{"message":"m","x":"{}"}}}}"#,
                "x".repeat(padding)
            );
            let failure = from_object(&options(Style::OpenAi), &text);
            assert_eq!(failure.error.record().message, "error: m");
            failure.error.record().details.is_some()
        };
        assert!(details(60_000));
        assert!(!details(64 * 1024));
    }

    #[test]
    fn credentials_of_an_event_are_refused_without_details() {
        let failure = from_object(
            &options(Style::Anthropic),
            r#"{"type":"error","error":{"type":"authentication_error","message":"sk-secret-key is wrong"}}"#,
        );
        assert_eq!(failure.error.code(), ErrorCode::Unauthorized);
        assert_eq!(failure.error.record().details, None);
        assert_eq!(failure.error.record().message, "authentication_error");
    }
}
