//! Tool declarations as each provider accepts them (SPEC 5).
//!
//! A server's schema is never changed; what a provider refuses is repaired on the way out, keeping the meaning, and every
//! change is reported as a [`Loss`]. No schema makes a request fail: the worst that happens is a declaration that
//! takes any object.
//!
//! The parts: `work` holds limits, the report and references; `merge` makes one schema out of several;
//! `json_schema` repairs for OpenAI and Anthropic, which take JSON Schema with exceptions; `gemini` translates
//! into Gemini's own, much smaller language. Everything works on copies with a bounded depth and a bounded size, because
//! schemas come from outside.

mod gemini;
mod json_schema;
mod merge;
mod types;
mod work;

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::tool::ToolInfo;
use work::Work;

/// Whose declarations to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// OpenAI, and what speaks its protocol.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// Gemini.
    Gemini,
}

/// Declarations and what was changed in them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compiled {
    /// What goes under `tools` in the provider's request. For OpenAI and Anthropic one entry per tool; for Gemini
    /// one entry that holds them all, and none when there are no tools.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub tools: Vec<Value>,
    /// Every change, tool by tool.
    pub losses: Vec<Loss>,
}

/// One change to one schema. Most keep the meaning; `detail` says so or says what was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// Name of the tool.
    pub tool: String,
    /// JSON Pointer into the tool's schema; empty for the schema as a whole.
    pub path: String,
    /// The keyword concerned.
    pub keyword: String,
    /// What was done.
    pub action: Action,
    /// Why, for a person.
    pub detail: String,
}

/// What was done to a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Removed, nothing in its place.
    Dropped,
    /// Removed, and told to the model in a description.
    Described,
    /// Written in another way with the same meaning.
    Converted,
    /// Several schemas became one.
    Merged,
    /// A reference became what it refers to.
    Inlined,
    /// Something without end, or too large, was cut off.
    Cut,
    /// Something required was missing and was added.
    Added,
    /// Something unusable gave way to something that allows everything.
    Replaced,
}

/// Makes the declarations of these tools for a provider. Never fails and never changes a tool; compiling the result again
/// changes nothing.
pub fn compile(provider: Provider, tools: &[&ToolInfo]) -> Compiled {
    let mut losses = Vec::new();
    let mut declarations = Vec::with_capacity(tools.len());
    for tool in tools {
        let (schema, notes) = schema(provider, tool, &mut losses);
        let (name, mut description) = (&tool.name, tool.description.clone());
        for note in notes {
            if !description.is_empty() {
                description.push('\n');
            }
            description.push_str(&note);
        }
        declarations.push(match provider {
            Provider::OpenAi => json!({
                "type": "function",
                "function": {"name": name, "description": description, "parameters": schema},
            }),
            Provider::Anthropic => json!({
                "name": name, "description": description, "input_schema": schema,
            }),
            Provider::Gemini => json!({
                "name": name, "description": description, "parameters": schema,
            }),
        });
    }
    if provider == Provider::Gemini && !declarations.is_empty() {
        declarations = vec![json!({"functionDeclarations": declarations})];
    }
    Compiled {
        tools: declarations,
        losses,
    }
}

/// The schema as the provider accepts it, and what to add to the description of the tool.
fn schema(
    provider: Provider,
    tool: &ToolInfo,
    losses: &mut Vec<Loss>,
) -> (Map<String, Value>, Vec<String>) {
    let mut work = Work::new(&tool.name, &tool.input_schema);
    let schema = match provider {
        Provider::OpenAi => json_schema::repair_root(&mut work, json_schema::Rules::OPENAI),
        Provider::Anthropic => json_schema::repair_root(&mut work, json_schema::Rules::ANTHROPIC),
        Provider::Gemini => gemini::translate_root(&mut work),
    };
    let (mut changes, notes) = work.finish();
    losses.append(&mut changes);
    (schema, notes)
}
