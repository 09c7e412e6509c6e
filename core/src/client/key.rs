//! Which credentials a request carries (SPEC 7.1 `apiKey`, `apiKeyEnv`).

use url::Url;

use crate::error::{Error, Result};
use crate::style::Style;

/// Variables this library reads by itself, each only for the host it belongs to. Children of the library do not inherit
/// them (SPEC 3.1 `inheritEnv`).
pub const OWN_VARIABLES: &[(&str, &str)] = &[
    ("OPENAI_API_KEY", "api.openai.com"),
    ("ANTHROPIC_API_KEY", "api.anthropic.com"),
    ("OPENROUTER_API_KEY", "openrouter.ai"),
    ("GEMINI_API_KEY", "generativelanguage.googleapis.com"),
];

/// The key to send, or none. An empty variable counts as unset.
///
/// # Errors
/// `invalid_config` when the explicit key is blank, or `apiKeyEnv` names a variable that is not set.
pub(crate) fn find(
    explicit: Option<String>,
    variable: Option<&str>,
    base: &Url,
    env: impl Fn(&str) -> Option<String>,
) -> Result<Option<String>> {
    if let Some(key) = explicit {
        if key.trim().is_empty() {
            return Err(Error::config(
                "apiKey",
                "must not be empty; leave it out to send no credentials",
            ));
        }
        return Ok(Some(key));
    }
    let read = |name: &str| env(name).filter(|value| !value.trim().is_empty());
    if let Some(name) = variable {
        return read(name).map(Some).ok_or_else(|| {
            Error::config(
                "apiKeyEnv",
                format!("environment variable {name} is not set"),
            )
        });
    }
    // A key of one provider must never reach another one, nor travel in the clear.
    let own = OWN_VARIABLES
        .iter()
        .find(|(_, host)| base.scheme() == "https" && base.host_str() == Some(*host));
    Ok(own.and_then(|(name, _)| read(name)))
}

/// The header that carries the key.
pub(crate) fn header(style: Style, key: &str) -> (String, String) {
    match style {
        Style::OpenAi => ("authorization".into(), format!("Bearer {key}")),
        Style::Anthropic => ("x-api-key".into(), key.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(base: &str, explicit: Option<&str>, variable: Option<&str>) -> Option<String> {
        let env = |name: &str| match name {
            "OPENAI_API_KEY" => Some("from-openai".to_owned()),
            "MINE" => Some("from-mine".to_owned()),
            _ => None,
        };
        let base = Url::parse(base).unwrap();
        find(explicit.map(str::to_owned), variable, &base, env).unwrap()
    }

    #[test]
    fn the_provider_s_variable_serves_only_its_own_host_over_https() {
        let openai = Some("from-openai".to_owned());
        assert_eq!(found("https://api.openai.com/v1", None, None), openai);
        assert_eq!(found("http://api.openai.com/v1", None, None), None);
        assert_eq!(
            found("https://api.openai.com.evil.test/v1", None, None),
            None
        );
        assert_eq!(found("http://127.0.0.1:1", None, None), None);
    }

    #[test]
    fn an_explicit_key_wins_over_variables() {
        let base = "https://api.openai.com";
        assert_eq!(found(base, Some("k"), Some("MINE")), Some("k".to_owned()));
        assert_eq!(
            found(base, None, Some("MINE")),
            Some("from-mine".to_owned())
        );
    }

    #[test]
    fn an_explicit_key_is_not_blank() {
        let base = Url::parse("https://h.test").unwrap();
        for key in ["", " "] {
            let error = find(Some(key.to_owned()), None, &base, |_| None).unwrap_err();
            assert_eq!(
                error.to_string(),
                "invalid_config: apiKey: must not be empty; leave it out to send no credentials"
            );
        }
    }

    #[test]
    fn a_named_variable_must_be_set() {
        let base = Url::parse("https://h.test").unwrap();
        let error = find(None, Some("GONE"), &base, |_| None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid_config: apiKeyEnv: environment variable GONE is not set"
        );
    }
}
