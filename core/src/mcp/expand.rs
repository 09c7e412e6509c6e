//! `${NAME}` and `${NAME:-default}` (SPEC 3.1). Values never appear in an error.

/// Looks a variable up.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Replaces every reference in `text`. As in a shell, `:-default` stands in for a variable that is unset or empty.
/// What a variable holds is not looked at again, and text that only resembles a reference stays as it is. The error is
/// the name of the first variable that is not set.
pub(super) fn expand(text: &str, lookup: Lookup<'_>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, reference) = rest.split_at(start);
        out.push_str(before);
        let Some((name, default, after)) = reference_at(reference) else {
            out.push_str("${");
            rest = &reference[2..];
            continue;
        };
        let value = lookup(name);
        match (value, default) {
            (Some(value), None) => out.push_str(&value),
            (Some(value), Some(_)) if !value.is_empty() => out.push_str(&value),
            (_, Some(default)) => out.push_str(default),
            (None, None) => return Err(name.to_owned()),
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// Splits text that starts with `${` into name, default and what follows the closing brace.
fn reference_at(text: &str) -> Option<(&str, Option<&str>, &str)> {
    let (inside, after) = text.strip_prefix("${")?.split_once('}')?;
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    is_name(name).then_some((name, default, after))
}

/// Whether this can be the name of a variable: letters, digits and `_`, not starting with a digit.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<String> {
        match name {
            "TOKEN" => Some("t0k".into()),
            "NESTED" => Some("${TOKEN}".into()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn references_are_replaced_wherever_they_stand() {
        assert_eq!(
            expand("a ${TOKEN}b${TOKEN}", &env).as_deref(),
            Ok("a t0kbt0k")
        );
        assert_eq!(expand("${EMPTY}|", &env).as_deref(), Ok("|"));
    }

    #[test]
    fn a_default_stands_in_for_an_unset_or_empty_variable() {
        assert_eq!(expand("${NONE:-d}", &env).as_deref(), Ok("d"));
        assert_eq!(expand("${EMPTY:-d}", &env).as_deref(), Ok("d"));
        assert_eq!(expand("${TOKEN:-d}", &env).as_deref(), Ok("t0k"));
        assert_eq!(expand("${NONE:-}", &env).as_deref(), Ok(""));
    }

    #[test]
    fn what_a_variable_holds_is_not_expanded_again() {
        assert_eq!(expand("${NESTED}", &env).as_deref(), Ok("${TOKEN}"));
        assert_eq!(expand("${NONE:-$TOKEN}x", &env).as_deref(), Ok("$TOKENx"));
    }

    #[test]
    fn an_unset_variable_is_named() {
        assert_eq!(
            expand("${TOKEN} ${MISSING}", &env),
            Err("MISSING".to_owned())
        );
    }

    #[test]
    fn other_text_with_dollars_stays() {
        for text in [
            "$TOKEN",
            "${",
            "${1A}",
            "${x%%.*}",
            "${input:key}",
            "$$",
            "{}",
        ] {
            assert_eq!(expand(text, &env).as_deref(), Ok(text));
        }
    }
}
