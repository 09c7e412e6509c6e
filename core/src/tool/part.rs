//! Content beside text (SPEC 2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One piece of content. Media carry either `data` (standard base64, padded) or `url`, never a path.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum ContentPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// E.g. `image/png`.
        #[serde(rename = "mimeType")]
        mime_type: String,
        /// Base64.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<String>,
        /// Where it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
    },
    /// A document or any other file.
    File {
        /// E.g. `application/pdf`.
        #[serde(rename = "mimeType")]
        mime_type: String,
        /// Base64.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<String>,
        /// Where it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        /// A name to show.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// Sound.
    Audio {
        /// E.g. `audio/wav`.
        #[serde(rename = "mimeType")]
        mime_type: String,
        /// Base64.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<String>,
        /// Where it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
    },
}

impl ContentPart {
    /// `<type> (<mime>, <n> bytes)`: what stands in for a part where only text can go, in logs and in placeholders.
    pub fn describe(&self) -> String {
        let (kind, mime, data) = match self {
            ContentPart::Text { text } => {
                return format!("text (text/plain, {} bytes)", text.len());
            }
            ContentPart::Image {
                mime_type, data, ..
            } => ("image", mime_type, data),
            ContentPart::File {
                mime_type, data, ..
            } => ("file", mime_type, data),
            ContentPart::Audio {
                mime_type, data, ..
            } => ("audio", mime_type, data),
        };
        let bytes = data
            .as_ref()
            .map_or(0, |d| d.trim_end_matches('=').len() * 3 / 4);
        format!("{kind} ({mime}, {bytes} bytes)")
    }
}

impl std::fmt::Debug for ContentPart {
    /// Base64 never reaches a log by accident.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.describe())
    }
}
