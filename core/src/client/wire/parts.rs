//! Content that is not text, in each dialect (SPEC 2 `ContentPart`). What a dialect cannot carry is refused, never dropped.

use serde::Serialize;

use crate::error::{Error, ErrorCode, Result};
use crate::json::{self, Json};
use crate::style::Style;
use crate::tool::ContentPart;

/// The content block for a part.
///
/// # Errors
/// `unsupported` when the dialect has no block for it.
pub(super) fn block(style: Style, part: &ContentPart) -> Result<Json> {
    if let ContentPart::Text { text } = part {
        return text_block(text);
    }
    match style {
        Style::OpenAi => openai(part),
        Style::Anthropic => anthropic(part),
    }
}

pub(super) fn text_block(text: &str) -> Result<Json> {
    #[derive(Serialize)]
    struct Block<'a> {
        r#type: &'static str,
        text: &'a str,
    }
    json::to_json(&Block {
        r#type: "text",
        text,
    })
}

fn refused(style: Style, part: &ContentPart) -> Error {
    Error::new(
        ErrorCode::Unsupported,
        format!("{style}-style messages cannot carry {}", part.describe()),
    )
}

fn data_url(mime_type: &str, data: &str) -> String {
    format!("data:{mime_type};base64,{data}")
}

fn openai(part: &ContentPart) -> Result<Json> {
    use serde_json::json;
    let value = match part {
        ContentPart::Image {
            mime_type,
            data: Some(data),
            ..
        } => json!({"type": "image_url", "image_url": {"url": data_url(mime_type, data)}}),
        ContentPart::Image { url: Some(url), .. } => {
            json!({"type": "image_url", "image_url": {"url": url}})
        }
        ContentPart::File {
            mime_type,
            data: Some(data),
            name,
            ..
        } => {
            let filename = name.as_deref().unwrap_or("file");
            let file_data = data_url(mime_type, data);
            json!({"type": "file", "file": {"filename": filename, "file_data": file_data}})
        }
        ContentPart::Audio {
            mime_type,
            data: Some(data),
            ..
        } => {
            let format = match mime_type.as_str() {
                "audio/mpeg" | "audio/mp3" => "mp3",
                "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
                _ => return Err(refused(Style::OpenAi, part)),
            };
            json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
        }
        _ => return Err(refused(Style::OpenAi, part)),
    };
    json::to_json(&value)
}

fn anthropic(part: &ContentPart) -> Result<Json> {
    use serde_json::json;
    let (kind, mime_type, data, url) = match part {
        ContentPart::Image {
            mime_type,
            data,
            url,
        } => ("image", mime_type, data, url),
        ContentPart::File {
            mime_type,
            data,
            url,
            ..
        } => ("document", mime_type, data, url),
        _ => return Err(refused(Style::Anthropic, part)),
    };
    let source = match (data, url) {
        (Some(data), _) => json!({"type": "base64", "media_type": mime_type, "data": data}),
        (None, Some(url)) => json!({"type": "url", "url": url}),
        (None, None) => return Err(refused(Style::Anthropic, part)),
    };
    json::to_json(&json!({"type": kind, "source": source}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(style: Style, part: &str) -> String {
        match block(style, &serde_json::from_str(part).unwrap()) {
            Ok(block) => block.get().to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn each_dialect_has_its_own_blocks() {
        let image = r#"{"type":"image","mimeType":"image/png","data":"AAAA"}"#;
        assert_eq!(
            sent(Style::OpenAi, image),
            r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}"#
        );
        assert_eq!(
            sent(Style::Anthropic, image),
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#
        );
    }

    #[test]
    fn what_a_dialect_cannot_carry_is_refused_by_name() {
        let audio = r#"{"type":"audio","mimeType":"audio/wav","data":"AAAA"}"#;
        assert_eq!(
            sent(Style::Anthropic, audio),
            "unsupported: anthropic-style messages cannot carry audio (audio/wav, 3 bytes)"
        );
        let linked = r#"{"type":"file","mimeType":"application/pdf","url":"https://h.test/a"}"#;
        assert_eq!(
            sent(Style::OpenAi, linked),
            "unsupported: openai-style messages cannot carry file (application/pdf, 0 bytes)"
        );
    }
}
