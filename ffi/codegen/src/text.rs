//! Names and running text.

/// Greatest width of a generated line of text.
pub const WIDTH: usize = 112;

/// `invalid_argument` or `tool_call` as `InvalidArgument`, `ToolCall`.
pub fn pascal(snake: &str) -> String {
    snake
        .split('_')
        .map(|word| {
            let mut letters = word.chars();
            letters
                .next()
                .map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
                .unwrap_or_default()
        })
        .collect()
}

/// `invalid_argument` as `invalidArgument`; a name without underscores begins with a small letter.
pub fn camel(snake: &str) -> String {
    let name = pascal(snake);
    let mut letters = name.chars();
    letters
        .next()
        .map(|first| first.to_ascii_lowercase().to_string() + letters.as_str())
        .unwrap_or_default()
}

/// The class of an error code, which ends in what the language calls one: `invalid_argument` as `InvalidArgumentError`,
/// `mcp_error` as `McpError`.
pub fn error_class(code: &str, ending: &str) -> String {
    pascal(code.strip_suffix("_error").unwrap_or(code)) + ending
}

/// `maxTurns` as `max_turns`, `beforeLLM` as `before_llm`.
pub fn snake(camel: &str) -> String {
    let letters: Vec<char> = camel.chars().collect();
    let mut out = String::new();
    for (index, letter) in letters.iter().enumerate() {
        let starts_word = letter.is_ascii_uppercase()
            && index > 0
            && (!letters[index - 1].is_ascii_uppercase()
                || letters.get(index + 1).is_some_and(char::is_ascii_lowercase));
        if starts_word {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

/// Documentation as other languages can read it: links of rustdoc become their last word.
pub fn plain(doc: &str) -> String {
    let mut out = String::new();
    let mut rest = doc.trim();
    while let Some(start) = rest.find("[`") {
        let Some(length) = rest[start..].find("`]") else {
            break;
        };
        let name = &rest[start + 2..start + length];
        let last = name.rsplit("::").next().unwrap_or(name);
        out.push_str(&rest[..start]);
        out.push('`');
        out.push_str(last);
        out.push('`');
        rest = &rest[start + length + 2..];
    }
    out.push_str(rest);
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text whose words in backticks are spelled as `name` spells them.
pub fn respell(doc: &str, name: impl Fn(&str) -> Option<String>) -> String {
    doc.split('`')
        .enumerate()
        .map(|(index, part)| match index % 2 {
            1 => name(part).unwrap_or_else(|| part.to_owned()),
            _ => part.to_owned(),
        })
        .collect::<Vec<_>>()
        .join("`")
}

/// What an option's documentation says to people who do not see the waist: without the kind of its host call.
pub fn without_kind(doc: &str) -> &str {
    let at = doc.find(" Kind `").or_else(|| doc.find(" Kinds `"));
    at.map_or(doc, |at| &doc[..at])
}

/// Lines of at most `width` characters.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Documentation as a comment each of whose lines begins with `mark`.
pub fn line_comment(doc: &str, indent: &str, mark: &str) -> String {
    commented(doc, indent)
        .iter()
        .map(|line| format!("{indent}{mark} {line}\n"))
        .collect()
}

/// Documentation as one comment between `/**` and `*/`.
pub fn block_comment(doc: &str, indent: &str) -> String {
    let doc = doc.replace("*/", "* /");
    match commented(&doc, indent).as_slice() {
        [] => String::new(),
        [one] => format!("{indent}/** {one} */\n"),
        many => {
            let body: String = many
                .iter()
                .map(|line| format!("{indent} * {line}\n"))
                .collect();
            format!("{indent}/**\n{body}{indent} */\n")
        }
    }
}

/// The lines of a comment, which has room for its marks beside it.
fn commented(doc: &str, indent: &str) -> Vec<String> {
    wrap(without_kind(doc), WIDTH - 4 - indent.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_each_language() {
        assert_eq!(
            error_class("invalid_argument", "Error"),
            "InvalidArgumentError"
        );
        assert_eq!(error_class("mcp_error", "Error"), "McpError");
        assert_eq!(error_class("timeout", "Error"), "TimeoutError");
        assert_eq!(snake("maxRetryDelayMs"), "max_retry_delay_ms");
        assert_eq!(snake("beforeLLM"), "before_llm");
        assert_eq!(snake("baseUrl"), "base_url");
    }

    #[test]
    fn only_words_in_backticks_are_respelled() {
        let loud = |word: &str| Some(word.to_uppercase());
        assert_eq!(respell("a `b` c `d`", loud), "a `B` c `D`");
    }

    #[test]
    fn kinds_of_host_calls_are_for_bindings_only() {
        assert_eq!(without_kind("Sees it. Kind `x.y`."), "Sees it.");
        assert_eq!(without_kind("Sends. Kinds `a`, `b`."), "Sends.");
        assert_eq!(without_kind("A kind word."), "A kind word.");
    }

    #[test]
    fn links_become_words() {
        assert_eq!(
            plain(" see [`RunResult::limit`]\n and [`Toolkit`]."),
            "see `limit` and `Toolkit`."
        );
        assert_eq!(plain("`[A-Za-z]{1,64}`."), "`[A-Za-z]{1,64}`.");
    }
}
