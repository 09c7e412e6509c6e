//! What differs between two runs of one case without meaning anything: addresses, ids, the clock.

use serde_json::{Map, Value};

/// Replaces what belongs to one run only, so that the rest can be compared between languages.
#[derive(Debug, Default)]
pub struct Mask {
    /// Texts of this run, longest first, and what stands for them.
    texts: Vec<(String, String)>,
}

/// Keys whose number counts something the runner or the system numbers.
const NUMBERED: &[&str] = &["toolkit", "client", "conversation", "ms"];

/// Keys that one language has and another has not: a Rust function is called without a number.
const OF_THE_LANGUAGE: &str = "hostCall";

/// Keys whose whole value belongs to the run.
const OF_THE_RUN: &[&str] = &["pids", "mcp-session-id"];

impl Mask {
    /// `text` will read `<name>`.
    pub fn add(&mut self, text: &str, name: &str) {
        if !text.is_empty() {
            self.texts.push((text.to_owned(), format!("<{name}>")));
            self.texts
                .sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        }
    }

    /// Every text in a scenario's answer will read as the path it stands at.
    pub fn add_all(&mut self, path: &str, value: &Value) {
        match value {
            Value::String(text) => self.add(text, path),
            Value::Array(items) => {
                // A command: its program is the same for all, its arguments name the scenario.
                items.iter().enumerate().skip(1).for_each(|(index, item)| {
                    if item.as_str().is_some_and(|text| text.len() > 8) {
                        self.add_all(&format!("{path}.{index}"), item);
                    }
                });
            }
            // The id of the scenario is a short number: it would be found in every port.
            Value::Object(map) => map
                .iter()
                .filter(|(key, _)| *key != "id")
                .for_each(|(key, value)| self.add_all(&format!("{path}.{key}"), value)),
            _ => {}
        }
    }

    /// A copy of `value` without what belongs to the run.
    pub fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.value(item)).collect())
            }
            Value::Object(map) => {
                let entry = |(key, value): (&String, &Value)| {
                    let masked = if OF_THE_RUN.contains(&key.as_str())
                        || (NUMBERED.contains(&key.as_str()) && value.is_number())
                        || (key == "retryAfterMs" && is_far(&value.to_string()))
                    {
                        "<run>".into()
                    } else {
                        self.value(value)
                    };
                    (key.clone(), masked)
                };
                let kept = map.iter().filter(|(key, _)| *key != OF_THE_LANGUAGE);
                Value::Object(kept.map(entry).collect::<Map<_, _>>())
            }
            scalar => scalar.clone(),
        }
    }

    /// A copy of `text` without what belongs to the run.
    pub fn text(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for (from, to) in &self.texts {
            masked = masked.replace(from, to);
        }
        mask_far_waits(&mask_conversations(&mask_ids(&mask_ports(&masked))))
    }
}

/// `127.0.0.1:4711` reads `127.0.0.1:<port>`.
fn mask_ports(text: &str) -> String {
    const HOSTS: &[&str] = &["127.0.0.1:", "localhost:", "[::1]:"];
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, host)) = HOSTS
        .iter()
        .filter_map(|host| Some((rest.find(host)?, host)))
        .min()
    {
        let (before, after) = rest.split_at(at + host.len());
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        masked.push_str(before);
        if digits > 0 {
            masked.push_str("<port>");
        }
        rest = &after[digits..];
    }
    masked + rest
}

/// Milliseconds until a date far away, which pass while the languages take their turns.
fn is_far(ms: &str) -> bool {
    ms.len() >= 10 && ms.bytes().all(|byte| byte.is_ascii_digit())
}

/// `wait 5462051213112 ms` reads `wait <clock> ms`.
fn mask_far_waits(text: &str) -> String {
    let words = text
        .split(' ')
        .map(|word| if is_far(word) { "<clock>" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// A conversation id that the library made up reads `conversation-<id>`.
fn mask_conversations(text: &str) -> String {
    const PREFIX: &str = "conversation-";
    let mut parts = text.split(PREFIX);
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        masked.push_str(PREFIX);
        masked.push_str(if digits == 16 {
            "<id>"
        } else {
            &part[..digits]
        });
        masked.push_str(&part[digits..]);
    }
    masked
}

/// A UUID reads `<id>`.
fn mask_ids(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut masked = String::with_capacity(text.len());
    let mut start = 0;
    let mut at = 0;
    while at + 36 <= bytes.len() {
        if is_uuid(&bytes[at..at + 36]) {
            masked.push_str(&text[start..at]);
            masked.push_str("<id>");
            at += 36;
            start = at;
        } else {
            at += 1;
        }
    }
    masked + &text[start..]
}

fn is_uuid(bytes: &[u8]) -> bool {
    bytes.iter().enumerate().all(|(index, byte)| match index {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

/// Prometheus text without the values of durations, which are the clock's.
pub fn mask_durations(text: &str) -> String {
    let line = |line: &str| match line.rsplit_once(' ') {
        Some((series, _)) if !line.starts_with('#') && series.contains("_seconds") => {
            format!("{series} <clock>")
        }
        _ => line.to_owned(),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn addresses_of_the_scenario_read_as_their_place() {
        let mut mask = Mask::default();
        mask.add_all(
            "",
            &json!({"mcp": {"srv": {"url": "http://127.0.0.1:5/mcp"}}}),
        );
        assert_eq!(
            mask.text("POST http://127.0.0.1:5/mcp failed"),
            "POST <.mcp.srv.url> failed"
        );
    }

    #[test]
    fn ports_of_loopback_are_masked() {
        assert_eq!(
            Mask::default().text("127.0.0.1:80 localhost:x [::1]:9"),
            "127.0.0.1:<port> localhost:x [::1]:<port>"
        );
    }

    #[test]
    fn uuids_are_masked_and_umlauts_survive() {
        assert_eq!(
            Mask::default().text("ü 0189f7a2-0000-7000-8000-00000000abcd ü"),
            "ü <id> ü"
        );
    }

    #[test]
    fn numbers_of_handles_are_masked_but_not_other_numbers() {
        assert_eq!(
            Mask::default().value(&json!({"toolkit": 4, "turns": 4})),
            json!({"toolkit": "<run>", "turns": 4})
        );
    }

    #[test]
    fn only_durations_are_masked_in_metrics() {
        assert_eq!(
            mask_durations("# HELP a_seconds x 1\na_seconds_sum{m=\"x y\"} 0.5\nb_total 2\n"),
            "# HELP a_seconds x 1\na_seconds_sum{m=\"x y\"} <clock>\nb_total 2\n"
        );
    }
}
