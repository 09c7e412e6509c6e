//! Tool calls out of the deltas of an OpenAI-style stream.
//!
//! The protocol says: `index` names the call, `id` and `name` come once, `arguments` in pieces. Servers say: no index, one
//! index for all calls, ids late, repeated, changing or absent, names resent or in pieces, null for anything. The rules
//! below read all of these the way their senders meant them; where two readings are possible, the comment says why
//! this one.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::text::text_or_empty;
use crate::json::{self, Json};

/// One element of `delta.tool_calls`. Null and absent mean the same.
#[derive(Deserialize)]
pub(super) struct CallDelta<'a> {
    #[serde(borrow)]
    index: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    function: Option<FunctionDelta<'a>>,
    /// Gemini's signature of the thoughts behind a call; it wants it back.
    #[serde(borrow)]
    extra_content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct FunctionDelta<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// A call as far as it has come.
#[derive(Debug, Default)]
pub(super) struct PartialCall {
    index: Option<u64>,
    pub id: String,
    pub name: String,
    pub arguments: String,
    pub extra_content: Option<Json>,
    progress: Progress,
}

/// The calls of one answer, in the order of their first appearance.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<PartialCall>);

impl Calls {
    pub(super) fn take(&mut self, delta: &CallDelta<'_>) {
        let function = delta.function.as_ref();
        let piece = Piece {
            index: delta.index.and_then(|raw| raw.get().parse().ok()),
            id: text_or_empty(delta.id),
            typed: delta.kind.is_some(),
            name: text_or_empty(function.and_then(|f| f.name)),
            // Some servers send the object itself instead of its text.
            arguments: text_or_empty(function.and_then(|f| f.arguments)),
        };
        let at = self.place(&piece);
        let call = &mut self.0[at];
        if let Some(extra) = delta.extra_content {
            call.extra_content = json::parse(extra.get()).ok();
        }
        call.add(piece);
    }

    /// The finished calls. What never got a name cannot be called.
    pub(super) fn finish(self) -> Vec<PartialCall> {
        self.0
            .into_iter()
            .filter(|call| !call.name.is_empty())
            .collect()
    }

    /// The call that a piece belongs to, made when it is a new one.
    fn place(&mut self, piece: &Piece) -> usize {
        let last = |test: &dyn Fn(&PartialCall) -> bool| self.0.iter().rposition(test);
        let same_id = |call: &PartialCall| !piece.id.is_empty() && call.id == piece.id;
        let known = match piece.index {
            Some(index) => last(&|call| call.index == Some(index) && same_id(call))
                .or_else(|| last(&|call| call.index == Some(index)))
                // An index that counts deltas; but a name under a new index is a new call, whatever its id.
                .or_else(|| last(&same_id).filter(|_| piece.name.is_empty())),
            None => last(&same_id).or_else(|| self.0.len().checked_sub(1)),
        };
        match known {
            Some(at) if !piece.begins_another(&self.0[at]) => at,
            _ => {
                self.0.push(PartialCall {
                    index: piece.index,
                    ..PartialCall::default()
                });
                self.0.len() - 1
            }
        }
    }
}

/// A delta in plain terms; empty means not given.
struct Piece {
    index: Option<u64>,
    id: String,
    typed: bool,
    name: String,
    arguments: String,
}

impl Piece {
    /// Whether this is the start of a call other than the one its index, its id or its place points to. Only a piece with a
    /// name can be: one without could never be called.
    fn begins_another(&self, call: &PartialCall) -> bool {
        if self.name.is_empty() || call.name.is_empty() {
            return false;
        }
        // Two ids and a name: two calls at one index. An id that changes without a name is the same call (OS-06).
        if !self.id.is_empty() && !call.id.is_empty() && self.id != call.id {
            return true;
        }
        // A complete object takes no more text, so more text is the next call's (OS-03). A name that is merely sent again
        // (OS-09) brings none.
        if call.progress.complete() {
            return !self.arguments.is_empty() || self.name != call.name;
        }
        // Another name before any argument: a call without parameters and then the next call, if it presents itself as
        // one; else the name comes in pieces.
        call.arguments.is_empty()
            && self.name != call.name
            && self.typed
            && self.id.is_empty()
            && self.index.is_none_or(|index| call.index == Some(index))
    }
}

impl PartialCall {
    fn add(&mut self, piece: Piece) {
        if self.id.is_empty() {
            self.id = piece.id;
        }
        if self.index.is_none() {
            self.index = piece.index;
        }
        if piece.name.starts_with(&self.name) {
            // The first time, or sent again, as a whole or grown.
            self.name = piece.name;
        } else {
            self.name.push_str(&piece.name);
        }
        self.progress.read(&piece.arguments);
        self.arguments.push_str(&piece.arguments);
    }
}

/// Follows the text of the arguments far enough to know where its object ends.
#[derive(Debug, Default)]
struct Progress {
    depth: usize,
    in_string: bool,
    escaped: bool,
    opened: bool,
}

impl Progress {
    fn read(&mut self, text: &str) {
        for byte in text.bytes() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => {
                    self.depth += 1;
                    self.opened = true;
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn complete(&self) -> bool {
        self.opened && self.depth == 0 && !self.in_string
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line is one `delta.tool_calls`; the result is `id name arguments` per call.
    fn read(deltas: &[&str]) -> Vec<String> {
        let mut calls = Calls::default();
        for delta in deltas {
            for piece in serde_json::from_str::<Vec<CallDelta<'_>>>(delta).unwrap() {
                calls.take(&piece);
            }
        }
        calls
            .finish()
            .iter()
            .map(|call| format!("{}|{}|{}", call.id, call.name, call.arguments))
            .collect()
    }

    #[test]
    fn the_protocol_as_written() {
        assert_eq!(
            read(&[
                r#"[{"index":0,"id":"c1","type":"function","function":{"name":"add","arguments":""}}]"#,
                r#"[{"index":0,"function":{"arguments":"{\"a\""}}]"#,
                r#"[{"index":1,"id":"c2","type":"function","function":{"name":"add","arguments":"{}"}}]"#,
                r#"[{"index":0,"function":{"arguments":":1}"}}]"#,
            ]),
            [r#"c1|add|{"a":1}"#, "c2|add|{}"]
        );
    }

    #[test]
    fn no_index_at_all() {
        assert_eq!(
            read(&[
                r#"[{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}},{"id":"c2","type":"function","function":{"name":"mul","arguments":"{\"a\":2}"}}]"#,
                r#"[{"id":"c3","type":"function","function":{"name":"neg","arguments":"{\"a\""}}]"#,
                r#"[{"function":{"arguments":":3}"}}]"#,
            ]),
            [
                r#"c1|add|{"a":1}"#,
                r#"c2|mul|{"a":2}"#,
                r#"c3|neg|{"a":3}"#
            ]
        );
    }

    #[test]
    fn every_call_at_index_zero_with_ids() {
        assert_eq!(
            read(&[
                r#"[{"index":0,"id":"c1","type":"function","function":{"name":"now","arguments":""}}]"#,
                r#"[{"index":0,"id":"c2","type":"function","function":{"name":"now","arguments":""}}]"#,
            ]),
            ["c1|now|", "c2|now|"]
        );
    }

    #[test]
    fn every_call_at_index_zero_without_ids() {
        assert_eq!(
            read(&[
                r#"[{"index":0,"type":"function","function":{"name":"fetch","arguments":"{\"url\":\"u1\"}"}}]"#,
                r#"[{"index":0,"type":"function","function":{"name":"fetch","arguments":"{\"url\":"}}]"#,
                r#"[{"index":0,"function":{"arguments":"\"u}2{\"}"}}]"#,
                r#"[{"index":0,"type":"function","function":{"name":"search","arguments":"{\"q\":\"x\"}"}}]"#,
            ]),
            [
                r#"|fetch|{"url":"u1"}"#,
                r#"|fetch|{"url":"u}2{"}"#,
                r#"|search|{"q":"x"}"#
            ]
        );
    }

    #[test]
    fn an_id_that_is_repeated_or_changes_on_the_way() {
        assert_eq!(
            read(&[
                r#"[{"index":0,"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\""}}]"#,
                r#"[{"index":0,"id":"c1","type":"function","function":{"arguments":":"}}]"#,
                r#"[{"index":0,"id":"rest-9","function":{"arguments":"1}"}}]"#,
            ]),
            [r#"c1|add|{"a":1}"#]
        );
    }

    #[test]
    fn null_stands_for_absent() {
        assert_eq!(
            read(&[
                r#"[{"index":0,"id":"c1","type":"function","function":{"name":"now","arguments":null}},{"index":1,"id":"c2","type":"function","function":{"name":"add","arguments":"{\"a\":"}}]"#,
                r#"[{"index":1,"id":null,"type":null,"function":{"name":null,"arguments":"1}"}}]"#,
                r#"[{"index":0,"function":{"arguments":null}}]"#,
            ]),
            ["c1|now|", r#"c2|add|{"a":1}"#]
        );
    }

    #[test]
    fn a_function_that_comes_later_than_its_id() {
        assert_eq!(
            read(&[
                r#"[{"index":0,"id":"c1","type":"function","function":null}]"#,
                r#"[{"index":0,"function":{"name":"add"}}]"#,
                r#"[{"index":0,"function":{"arguments":"{\"a\":1}"}}]"#,
            ]),
            [r#"c1|add|{"a":1}"#]
        );
    }

    #[test]
    fn a_name_that_is_sent_again_or_in_pieces() {
        assert_eq!(
            read(&[
                r#"[{"index":0,"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\":"}}]"#,
                r#"[{"index":0,"function":{"name":"read","arguments":"\"a\"}"}}]"#,
                r#"[{"index":0,"function":{"name":"read","arguments":""}}]"#,
                r#"[{"index":1,"id":"c2","type":"function","function":{"name":"get_"}}]"#,
                r#"[{"index":1,"function":{"name":"weather"}}]"#,
            ]),
            [r#"c1|read|{"path":"a"}"#, "c2|get_weather|"]
        );
    }

    #[test]
    fn arguments_as_an_object() {
        assert_eq!(
            read(&[r#"[{"index":0,"id":"c1","function":{"name":"add","arguments":{"a":1}}}]"#]),
            [r#"c1|add|{"a":1}"#]
        );
    }
}
