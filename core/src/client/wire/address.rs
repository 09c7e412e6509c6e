//! Where requests go, and under which headers (SPEC 7.2).

use url::Url;

use crate::client::key;
use crate::error::{Error, Result};
use crate::style::Style;

/// Version of the Messages protocol we speak.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Reads `baseUrl`.
pub(crate) fn base_url(text: &str) -> Result<Url> {
    let refuse = |why: &str| Error::config("baseUrl", why);
    let mut url = Url::parse(text.trim()).map_err(|e| refuse(&format!("is not a URL: {e}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refuse("must be http or https"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(refuse("names no host"));
    }
    url.set_fragment(None);
    Ok(url)
}

/// Where requests go. A query of the base stays.
pub(crate) fn endpoint(style: Style, base: &Url) -> Url {
    let path = base.path().trim_end_matches('/');
    let tail = match style {
        Style::OpenAi => "/chat/completions",
        Style::Anthropic if path.ends_with("/v1") => "/messages",
        Style::Anthropic => "/v1/messages",
    };
    let path = format!("{path}{tail}");
    let mut url = base.clone();
    url.set_path(&path);
    url
}

/// The headers of every request: ours, each replaced in its place by the caller's of the same name, then the rest of the
/// caller's. A caller that brings credentials of its own gets none from us.
pub(crate) fn headers(
    style: Style,
    key: Option<&str>,
    own: &[(String, String)],
) -> Result<Vec<(String, String)>> {
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    let brings = |name: &str| own.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
    if let Some(key) = key
        && !brings("authorization")
        && !brings("x-api-key")
    {
        let (name, value) = key::header(style, key);
        check_header("apiKey", &name, &value)?;
        headers.push((name, value));
    }
    if style == Style::Anthropic {
        headers.push(("anthropic-version".to_owned(), ANTHROPIC_VERSION.to_owned()));
    }
    for (name, value) in own {
        check_header(&format!("headers.{name}"), name, value)?;
        let name = name.to_ascii_lowercase();
        match headers.iter_mut().find(|(n, _)| *n == name) {
            Some(header) => header.1.clone_from(value),
            None => headers.push((name, value.clone())),
        }
    }
    Ok(headers)
}

fn check_header(path: &str, name: &str, value: &str) -> Result<()> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(Error::config(path, "is not a header name"));
    }
    if value.bytes().any(|b| (b < 0x20 && b != b'\t') || b == 0x7F) {
        return Err(Error::config(path, "the value has control characters"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(style: Style, base: &str) -> String {
        endpoint(style, &base_url(base).unwrap()).into()
    }

    #[test]
    fn only_a_trailing_v1_counts_for_anthropic() {
        for (base, url) in [
            ("https://h.test", "https://h.test/v1/messages"),
            ("https://h.test/", "https://h.test/v1/messages"),
            ("https://h.test/v1", "https://h.test/v1/messages"),
            ("https://h.test/v1/", "https://h.test/v1/messages"),
            (
                "https://h.test/anthropic",
                "https://h.test/anthropic/v1/messages",
            ),
            (
                "https://h.test/anthropic/v1",
                "https://h.test/anthropic/v1/messages",
            ),
            (
                "https://h.test/v1/acct/gw",
                "https://h.test/v1/acct/gw/v1/messages",
            ),
        ] {
            assert_eq!(at(Style::Anthropic, base), url);
        }
    }

    #[test]
    fn openai_adds_no_version_and_keeps_the_query() {
        assert_eq!(
            at(Style::OpenAi, "https://h.test/api/paas/v4/"),
            "https://h.test/api/paas/v4/chat/completions"
        );
        assert_eq!(
            at(Style::OpenAi, "https://h.test/openai?api-version=1"),
            "https://h.test/openai/chat/completions?api-version=1"
        );
    }

    #[test]
    fn a_base_that_is_not_http_is_refused() {
        for base in ["ftp://h.test", "h.test", "", "file:///tmp"] {
            assert_eq!(
                base_url(base).unwrap_err().record().path.as_deref(),
                Some("baseUrl")
            );
        }
    }

    fn sent(style: Style, own: &[(&str, &str)]) -> Vec<(String, String)> {
        let own: Vec<_> = own
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect();
        headers(style, Some("K"), &own).unwrap()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect()
    }

    #[test]
    fn headers_of_each_style() {
        assert_eq!(
            sent(Style::OpenAi, &[("X-Title", "t")]),
            pairs(&[
                ("content-type", "application/json"),
                ("authorization", "Bearer K"),
                ("x-title", "t"),
            ])
        );
        assert_eq!(
            sent(Style::Anthropic, &[("anthropic-version", "2099-01-01")]),
            pairs(&[
                ("content-type", "application/json"),
                ("x-api-key", "K"),
                ("anthropic-version", "2099-01-01"),
            ])
        );
    }

    #[test]
    fn credentials_of_the_caller_replace_ours() {
        assert_eq!(
            sent(Style::Anthropic, &[("Authorization", "Bearer mine")]),
            pairs(&[
                ("content-type", "application/json"),
                ("anthropic-version", "2023-06-01"),
                ("authorization", "Bearer mine"),
            ])
        );
    }

    #[test]
    fn a_header_with_control_characters_is_refused_without_its_value() {
        let own = pairs(&[("x-a", "secret\r\nx-evil: 1")]);
        let error = headers(Style::OpenAi, None, &own).unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid_config: headers.x-a: the value has control characters"
        );
    }
}
