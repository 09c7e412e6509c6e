//! What a child process was given in confidence, taken out of what it says (SPEC 3.2).

use crate::log::REDACTED;

/// Shorter values are no secrets, and taking them out would mangle every text.
const SHORTEST: usize = 6;

/// Texts that must not reach a log.
#[derive(Clone, Default)]
pub(super) struct Secrets {
    /// The longest first: one may be a part of another.
    texts: Vec<String>,
}

impl Secrets {
    /// Values of several lines, such as a private key, are told line by line.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut texts: Vec<String> = values
            .into_iter()
            .flat_map(|value| {
                let lines = value.lines().map(|line| line.trim().to_owned());
                lines.collect::<Vec<_>>()
            })
            .filter(|line| line.len() >= SHORTEST)
            .collect();
        texts.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        texts.dedup();
        Secrets { texts }
    }

    /// The line without secrets. One that was `cut` may end in the middle of a secret.
    pub fn scrub(&self, line: &str, cut: bool) -> String {
        let mut out = String::with_capacity(line.len());
        let mut rest = line;
        while let Some(next) = rest.chars().next() {
            let whole = self.texts.iter().find(|text| rest.starts_with(*text));
            if let Some(secret) = whole {
                out.push_str(REDACTED);
                rest = &rest[secret.len()..];
            } else if cut && self.texts.iter().any(|text| text.starts_with(rest)) {
                out.push_str(REDACTED);
                break;
            } else {
                out.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrubbed(secrets: &[&str], line: &str, cut: bool) -> String {
        let secrets = Secrets::new(secrets.iter().map(|text| (*text).to_owned()));
        secrets.scrub(line, cut)
    }

    #[test]
    fn every_occurrence_goes_and_the_rest_stays() {
        assert_eq!(
            scrubbed(&["sk-key"], "é sk-key, sk-keysk-ke", false),
            "é «redacted», «redacted»sk-ke"
        );
        assert_eq!(scrubbed(&["short"], "short", false), "short");
        assert_eq!(scrubbed(&[], "text", false), "text");
    }

    #[test]
    fn a_secret_within_a_longer_one_leaves_nothing_of_it() {
        assert_eq!(
            scrubbed(&["sk-key", "Bearer sk-key-2"], "Bearer sk-key-2", false),
            "«redacted»"
        );
    }

    #[test]
    fn a_value_of_several_lines_is_recognised_in_each() {
        assert_eq!(
            scrubbed(&["MIIEvQ\r\nIBADAN\n"], "IBADAN", false),
            "«redacted»"
        );
    }

    #[test]
    fn a_line_cut_within_a_secret_does_not_show_its_beginning() {
        assert_eq!(scrubbed(&["sk-secret"], "a sk-sec", true), "a «redacted»");
    }
}
