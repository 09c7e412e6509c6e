//! How large and how deep a text from the host may be. Checked before anything reads it.

use toolspan::{Error, ErrorCode};

/// Longest text accepted from the host, bytes.
pub const MAX_TEXT: usize = 64 * 1024 * 1024;

/// Deepest nesting accepted from the host.
pub const MAX_DEPTH: usize = toolspan::json::MAX_DEPTH;

/// Refuses what no reader behind this point should have to survive. One pass, no allocation.
pub(crate) fn check(text: &str) -> Result<(), Error> {
    if text.len() > MAX_TEXT {
        return Err(Error::new(
            ErrorCode::LimitExceeded,
            format!(
                "the text has {} bytes; at most {MAX_TEXT} are accepted",
                text.len()
            ),
        ));
    }
    if deeper_than(text, MAX_DEPTH) {
        return Err(Error::new(
            ErrorCode::LimitExceeded,
            format!("the JSON is nested deeper than {MAX_DEPTH} levels"),
        ));
    }
    Ok(())
}

fn deeper_than(text: &str, limit: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for byte in text.bytes() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_brackets_outside_strings_only() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(check(&nested(MAX_DEPTH)).is_ok());
        let refused = check(&nested(MAX_DEPTH + 1)).map_err(|e| e.code());
        assert_eq!(refused, Err(ErrorCode::LimitExceeded));
        assert!(check(&format!("\"\\\"{}\"", "[".repeat(1000))).is_ok());
        assert!(check(&"[]".repeat(1000)).is_ok());
    }
}
