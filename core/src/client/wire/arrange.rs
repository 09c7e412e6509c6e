//! Transcripts as an Anthropic-style endpoint accepts them: one system prompt, roles that take turns (SPEC 7.2).

use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

use super::anthropic::{Block, Message};
use super::openai::is_system_role;
use super::parts::text_block;
use super::read;
use super::text::text_of;
use crate::error::Result;
use crate::json::{self, Json};

/// A transcript in the shape the endpoint accepts.
pub(super) struct Arranged<'a> {
    pub system: Option<Json>,
    pub messages: Cow<'a, [Json]>,
}

#[derive(Deserialize)]
struct Peek<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// Moves system messages to where they belong, joins neighbours of one role, and trims the end of a last message that is
/// the assistant's. A transcript that needs none of it is not copied.
pub(super) fn arrange<'a>(system: Option<&str>, messages: &'a [Json]) -> Result<Arranged<'a>> {
    let peeks: Vec<Peek<'_>> = messages
        .iter()
        .map(|message| read(message.get()))
        .collect::<Result<_>>()?;
    let role = |peek: &Peek<'_>| peek.role.map(text_of).unwrap_or_default().into_owned();
    let roles: Vec<String> = peeks.iter().map(role).collect();

    let mut prompts: Vec<Json> = Vec::new();
    if let Some(text) = system.filter(|text| !text.is_empty()) {
        prompts.push(json::to_json(text)?);
    }
    for (peek, _) in peeks.iter().zip(&roles).filter(|(_, r)| is_system_role(r)) {
        prompts.extend(peek.content.map(|content| content.to_owned().into()));
    }
    let system = join_prompts(&prompts)?;

    let plain = roles.windows(2).all(|pair| pair[0] != pair[1])
        && !roles.iter().any(|role| is_system_role(role))
        && roles.last().is_none_or(|role| role != "assistant");
    if plain {
        return Ok(Arranged {
            system,
            messages: Cow::Borrowed(messages),
        });
    }

    let mut arranged: Vec<(&str, Json)> = Vec::with_capacity(messages.len());
    for ((peek, role), message) in peeks.iter().zip(&roles).zip(messages) {
        if is_system_role(role) {
            continue;
        }
        match arranged.last_mut() {
            Some((last, joined)) if last == role => *joined = join(role, joined, peek.content)?,
            _ => arranged.push((role, message.clone())),
        }
    }
    if let Some(("assistant", last)) = arranged.last_mut().map(|(role, json)| (*role, json)) {
        *last = trimmed(last)?;
    }
    Ok(Arranged {
        system,
        messages: arranged.into_iter().map(|(_, json)| json).collect(),
    })
}

/// The `system` key: text when everything is text, else blocks.
fn join_prompts(prompts: &[Json]) -> Result<Option<Json>> {
    let texts: Vec<Cow<'_, str>> = prompts
        .iter()
        .filter(|prompt| prompt.get().starts_with('"'))
        .map(|prompt| text_of(prompt))
        .filter(|text| !text.is_empty())
        .collect();
    let all_text = prompts.iter().all(|prompt| prompt.get().starts_with('"'));
    if all_text {
        return match texts.is_empty() {
            true => Ok(None),
            false => json::to_json(&texts.join("\n\n")).map(Some),
        };
    }
    let mut blocks = Vec::new();
    for prompt in prompts {
        blocks.extend(content_blocks(Some(prompt))?);
    }
    json::to_json(&blocks).map(Some)
}

/// Content as a list of blocks; an empty text is no block.
fn content_blocks(content: Option<&RawValue>) -> Result<Vec<Json>> {
    match content {
        Some(raw) if raw.get().starts_with('[') => read(raw.get()),
        Some(raw) if raw.get().starts_with('"') => {
            let text = text_of(raw);
            if text.is_empty() {
                return Ok(Vec::new());
            }
            Ok(vec![text_block(&text)?])
        }
        _ => Ok(Vec::new()),
    }
}

fn join(role: &str, first: &Json, second: Option<&RawValue>) -> Result<Json> {
    let first: Peek<'_> = read(first.get())?;
    let mut content = content_blocks(first.content)?;
    content.extend(content_blocks(second)?);
    json::to_json(&Message {
        role,
        content: &content,
    })
}

/// The message without white space at the end of its text, which the endpoint refuses on the last one.
fn trimmed(message: &Json) -> Result<Json> {
    let peek: Peek<'_> = read(message.get())?;
    let role = "assistant";
    match peek.content {
        Some(raw) if raw.get().starts_with('"') => {
            let text = text_of(raw);
            let end = text.trim_end();
            if end.len() == text.len() {
                return Ok(message.clone());
            }
            json::to_json(&Message { role, content: end })
        }
        Some(raw) if raw.get().starts_with('[') => {
            let mut blocks: Vec<Json> = read(raw.get())?;
            let Some(last) = blocks.last_mut() else {
                return Ok(message.clone());
            };
            let block: Block<'_> = read(last.get())?;
            let (Some("text"), Some(text)) = (block.kind().as_deref(), block.text.map(text_of))
            else {
                return Ok(message.clone());
            };
            let end = text.trim_end();
            if end.len() == text.len() {
                return Ok(message.clone());
            }
            let replaced = text_block(end)?;
            *last = replaced;
            json::to_json(&Message {
                role,
                content: &blocks,
            })
        }
        _ => Ok(message.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arranged(system: Option<&str>, messages: &str) -> (Option<String>, String) {
        let messages: Vec<Json> = serde_json::from_str(messages).unwrap();
        let arranged = arrange(system, &messages).unwrap();
        let list = serde_json::to_string(&arranged.messages).unwrap();
        (arranged.system.map(|s| s.get().to_owned()), list)
    }

    #[test]
    fn system_messages_move_and_neighbours_of_one_role_are_joined() {
        let (system, messages) = arranged(
            Some("S0"),
            r#"[{"role":"system","content":"S1"},{"role":"user","content":"one"},{"role":"user","content":"two"},
                {"role":"assistant","content":"A"},{"role":"assistant","content":"B"},{"role":"system","content":"S2"},
                {"role":"user","content":"three"}]"#,
        );
        assert_eq!(system.as_deref(), Some(r#""S0\n\nS1\n\nS2""#));
        assert_eq!(
            messages,
            r#"[{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]},{"role":"assistant","content":[{"type":"text","text":"A"},{"type":"text","text":"B"}]},{"role":"user","content":"three"}]"#
        );
    }

    #[test]
    fn a_last_assistant_message_loses_white_space_at_its_end() {
        let (_, messages) = arranged(
            None,
            r#"[{"role":"user","content":"go on"},{"role":"assistant","content":"Sure, \n"}]"#,
        );
        assert_eq!(
            messages,
            r#"[{"role":"user","content":"go on"},{"role":"assistant","content":"Sure,"}]"#
        );
    }

    #[test]
    fn nothing_is_rewritten_without_need() {
        let (system, messages) = arranged(None, r#"[{"content": 1.0, "role":"user"}]"#);
        assert_eq!(system, None);
        assert_eq!(messages, r#"[{"content": 1.0, "role":"user"}]"#);
    }
}
