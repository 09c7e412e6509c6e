//! The names of everything a binding has to have, for the reflection test of each language.

use serde_json::{Map, Value, json};

use crate::File;
use crate::model::{Definition, Model, Type};

/// `bindings/api-manifest.json`.
pub fn api(model: &Model) -> Result<File, String> {
    let names = |list: Vec<&String>| Value::from(list.into_iter().cloned().collect::<Vec<_>>());
    let mut records = Map::new();
    let mut unions = Map::new();
    for (name, definition) in &model.definitions {
        match definition {
            Definition::Record(record) => {
                let keys = record.fields.iter().map(|field| &field.key).collect();
                records.insert(name.clone(), names(keys));
            }
            Definition::Union { variants, .. } => {
                let variants = variants.iter().map(|(tag, record)| {
                    (
                        tag.clone(),
                        names(record.fields.iter().map(|field| &field.key).collect()),
                    )
                });
                unions.insert(name.clone(), Value::Object(variants.collect()));
            }
            Definition::Choice(values) => {
                unions.insert(name.clone(), names(values.iter().collect()));
            }
            Definition::Alias(_) => {}
        }
    }
    let operations = model.operations.iter().map(|operation| {
        let options = operation
            .args
            .fields
            .iter()
            .find_map(|field| match &field.kind {
                Type::Named(name) if field.key == "options" => Some(name.clone()),
                _ => None,
            });
        let mut entry = json!({
            "args": names(operation.args.fields.iter().map(|field| &field.key).collect()),
        });
        if let Some(options) = options {
            entry["options"] = options.into();
        }
        (operation.name.clone(), entry)
    });
    let manifest = json!({
        "generated": "by `make gen` from the types of ffi/bridge; do not edit",
        "abiVersion": model.abi_version,
        "schemaHash": format!("{:016x}", toolspan_bridge::schema_hash()),
        "operations": operations.collect::<Map<_, _>>(),
        "hostCalls": model.host_calls.iter().map(|call| &call.kind).collect::<Vec<_>>(),
        "events": model.events,
        "errorCodes": model.codes.iter().map(|code| &code.code).collect::<Vec<_>>(),
        "records": records,
        "choices": unions,
    });
    let mut content = serde_json::to_string_pretty(&manifest).map_err(|e| e.to_string())?;
    content.push('\n');
    Ok(File {
        path: "bindings/api-manifest.json",
        content,
    })
}
