//! The manifest as a generator wants it: records, choices and unions with typed fields.

use serde_json::{Map, Value};

/// A type as the languages know them.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Text,
    Integer,
    Number,
    Bool,
    /// Any JSON value.
    Any,
    /// Any JSON object.
    Object,
    List(Box<Type>),
    /// An object with free keys.
    Map(Box<Type>),
    /// A definition.
    Named(String),
    /// One of these texts.
    Literal(Vec<String>),
    /// One of these types.
    OneOf(Vec<Type>),
}

/// One key of a record.
#[derive(Clone, Debug)]
pub struct Field {
    pub key: String,
    pub doc: String,
    pub kind: Type,
    /// Whether the key is always there.
    pub required: bool,
    /// Whether null is a value of its own for a required key.
    pub nullable: bool,
    /// What an absent key means, where the schema says so.
    pub default: Option<Value>,
}

/// An object with known keys.
#[derive(Clone, Debug)]
pub struct Record {
    pub doc: String,
    pub fields: Vec<Field>,
}

/// What a name stands for.
#[derive(Clone, Debug)]
pub enum Definition {
    Record(Record),
    /// A closed list of texts.
    Choice(Vec<String>),
    /// Records told apart by `type`.
    Union {
        doc: String,
        variants: Vec<(String, Record)>,
    },
    Alias(Type),
}

/// An operation of the waist.
pub struct Operation {
    pub name: String,
    pub doc: String,
    /// Whether it is answered at once.
    pub immediate: bool,
    pub args: Record,
    pub result: Type,
}

/// A kind of host call.
pub struct HostCall {
    pub kind: String,
    pub doc: String,
    /// Whether the library waits for an answer.
    pub answered: bool,
}

/// An error code.
pub struct Code {
    pub code: String,
    pub doc: String,
    pub retryable: bool,
}

/// Everything that is generated from.
pub struct Model {
    pub abi_version: u64,
    pub operations: Vec<Operation>,
    pub host_calls: Vec<HostCall>,
    pub events: Vec<String>,
    pub codes: Vec<Code>,
    /// In the order of the manifest.
    pub definitions: Vec<(String, Definition)>,
}

impl Model {
    /// Reads the manifest; an error names what does not have the expected form.
    pub fn read(manifest: &Value) -> Result<Self, String> {
        let mut definitions = Vec::new();
        for (name, schema) in object(manifest, "$defs")? {
            definitions.push((
                name.clone(),
                definition(schema).map_err(|e| format!("{name}: {e}"))?,
            ));
        }
        let mut model = Model {
            abi_version: manifest["abiVersion"]
                .as_u64()
                .ok_or("abiVersion is not a number")?,
            operations: Vec::new(),
            host_calls: Vec::new(),
            events: Vec::new(),
            codes: Vec::new(),
            definitions,
        };
        for entry in list(manifest, "operations")? {
            let name = text(entry, "op")?;
            let Type::Named(args_name) = kind(&entry["args"])? else {
                return Err(format!("{name}: its arguments are not a record"));
            };
            model.operations.push(Operation {
                doc: text(entry, "doc")?,
                immediate: entry["immediate"] == true,
                args: model.record(&args_name)?.clone(),
                result: kind(&entry["result"])?,
                name,
            });
        }
        for entry in list(manifest, "hostCalls")? {
            model.host_calls.push(HostCall {
                kind: text(entry, "kind")?,
                doc: text(entry, "doc")?,
                answered: entry["answered"] == true,
            });
        }
        for entry in list(manifest, "errorCodes")? {
            model.codes.push(Code {
                code: text(entry, "code")?,
                doc: text(entry, "doc")?,
                retryable: entry["retryable"] == true,
            });
        }
        for entry in list(manifest, "events")? {
            model
                .events
                .push(entry.as_str().ok_or("an event has no name")?.to_owned());
        }
        Ok(model)
    }

    /// A definition by name.
    pub fn definition(&self, name: &str) -> Result<&Definition, String> {
        self.definitions
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, definition)| definition)
            .ok_or_else(|| format!("the manifest does not define {name}"))
    }

    /// A record by name.
    pub fn record(&self, name: &str) -> Result<&Record, String> {
        match self.definition(name)? {
            Definition::Record(record) => Ok(record),
            _ => Err(format!("{name} is not a record")),
        }
    }

    /// The contract's spelling of a key that Rust's documentation spells its own way.
    pub fn contract_name(&self, word: &str) -> Option<String> {
        let mut keys = self.keys();
        keys.find(|key| word.contains('_') && crate::text::snake(key) == word)
            .map(str::to_owned)
    }

    /// Every key of every record.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.definitions
            .iter()
            .flat_map(|(_, definition)| match definition {
                Definition::Record(record) => record.fields.iter().collect(),
                Definition::Union { variants, .. } => variants
                    .iter()
                    .flat_map(|(_, record)| &record.fields)
                    .collect(),
                _ => Vec::new(),
            })
            .map(|field: &Field| field.key.as_str())
    }

    /// The values of a closed list: a definition, or `Record.field` where the list has no name of its own.
    pub fn choice(&self, name: &str) -> Result<Vec<String>, String> {
        if let Some((record, key)) = name.split_once('.') {
            let fields = &self.record(record)?.fields;
            let found = fields.iter().find(|field| field.key == key);
            return match found.map(|field| &field.kind) {
                Some(Type::Literal(values)) => Ok(values.clone()),
                Some(Type::Named(name)) => self.choice(name),
                _ => Err(format!("{name} is not a closed list")),
            };
        }
        match self.definition(name)? {
            Definition::Choice(values) => Ok(values.clone()),
            _ => Err(format!("{name} is not a closed list")),
        }
    }

    /// An operation by name.
    pub fn operation(&self, name: &str) -> Result<&Operation, String> {
        self.operations
            .iter()
            .find(|operation| operation.name == name)
            .ok_or_else(|| format!("the manifest has no operation {name}"))
    }

    /// What a caller of an operation sets: the record behind its `options`, or its arguments where it has no such record.
    pub fn options_of(&self, operation: &str) -> Result<&Record, String> {
        let args = &self.operation(operation)?.args;
        let field = args.fields.iter().find(|field| field.key == "options");
        match field.map(|field| &field.kind) {
            Some(Type::Named(name)) => self.record(name),
            _ => Ok(args),
        }
    }

    /// Documentation whose words in backticks are spelled as the contract does.
    pub fn spelled(&self, doc: &str) -> String {
        crate::text::respell(doc, |word| self.contract_name(word))
    }
}

fn definition(schema: &Value) -> Result<Definition, String> {
    let doc = crate::text::plain(schema["description"].as_str().unwrap_or_default());
    if let Some(branches) = schema["oneOf"].as_array() {
        if let Ok(Type::Literal(values)) = kind(schema) {
            return Ok(Definition::Choice(values));
        }
        if branches
            .iter()
            .all(|branch| branch["properties"]["type"]["const"].is_string())
        {
            let variants: Result<Vec<_>, String> = branches.iter().map(variant).collect();
            return Ok(Definition::Union {
                doc,
                variants: variants?,
            });
        }
    }
    if schema.get("enum").is_some()
        && let Ok(Type::Literal(values)) = kind(schema)
    {
        return Ok(Definition::Choice(values));
    }
    if schema["type"] == "object" && !schema["additionalProperties"].is_object() && !is_free(schema)
    {
        return Ok(Definition::Record(Record {
            doc,
            fields: fields(schema)?,
        }));
    }
    Ok(Definition::Alias(kind(schema)?))
}

/// An object whose keys are all allowed and none known.
fn is_free(schema: &Value) -> bool {
    schema["additionalProperties"] == true && schema.get("properties").is_none()
}

fn variant(schema: &Value) -> Result<(String, Record), String> {
    let tag = schema["properties"]["type"]["const"]
        .as_str()
        .ok_or("a variant without type")?;
    let mut fields = fields(schema)?;
    fields.retain(|field| field.key != "type");
    let doc = crate::text::plain(schema["description"].as_str().unwrap_or_default());
    Ok((tag.to_owned(), Record { doc, fields }))
}

fn fields(schema: &Value) -> Result<Vec<Field>, String> {
    let empty = Map::new();
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    schema["properties"]
        .as_object()
        .unwrap_or(&empty)
        .iter()
        .map(|(key, schema)| {
            let (kind, nullable) = nullable(schema).map_err(|e| format!("{key}: {e}"))?;
            Ok(Field {
                key: key.clone(),
                doc: crate::text::plain(schema["description"].as_str().unwrap_or_default()),
                kind,
                required: required.contains(&key.as_str()),
                nullable,
                default: schema.get("default").cloned(),
            })
        })
        .collect()
}

/// The type of a schema and whether it takes null besides.
fn nullable(schema: &Value) -> Result<(Type, bool), String> {
    if let Some(branches) = schema["anyOf"].as_array() {
        let rest: Vec<&Value> = branches
            .iter()
            .filter(|branch| branch["type"] != "null")
            .collect();
        let kinds: Result<Vec<Type>, String> = rest.iter().map(|branch| kind(branch)).collect();
        let mut kinds = kinds?;
        let kind = if kinds.len() == 1 {
            kinds.remove(0)
        } else {
            Type::OneOf(kinds)
        };
        return Ok((kind, rest.len() < branches.len()));
    }
    if let Some(names) = schema["type"].as_array() {
        let rest: Vec<&Value> = names.iter().filter(|name| *name != "null").collect();
        if let [one] = rest.as_slice() {
            let mut single = schema.clone();
            single["type"] = (*one).clone();
            return Ok((kind(&single)?, rest.len() < names.len()));
        }
        return Ok((Type::Any, true));
    }
    Ok((kind(schema)?, false))
}

fn kind(schema: &Value) -> Result<Type, String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference
            .strip_prefix("#/$defs/")
            .ok_or("a reference that is none of ours")?;
        return Ok(Type::Named(name.to_owned()));
    }
    if schema.get("anyOf").is_some() {
        return nullable(schema).map(|(kind, _)| kind);
    }
    if let Some(value) = schema["const"].as_str() {
        return Ok(Type::Literal(vec![value.to_owned()]));
    }
    if let Some(branches) = schema["oneOf"].as_array() {
        let texts: Option<Vec<String>> = branches
            .iter()
            .map(|branch| branch["const"].as_str().map(str::to_owned))
            .collect();
        return texts
            .map(Type::Literal)
            .ok_or_else(|| "a union that has no name".to_owned());
    }
    if let Some(values) = schema["enum"].as_array() {
        let texts: Option<Vec<String>> = values
            .iter()
            .map(|v| v.as_str().map(str::to_owned))
            .collect();
        return texts
            .map(Type::Literal)
            .ok_or_else(|| "an enum of other than texts".to_owned());
    }
    Ok(match schema["type"].as_str() {
        Some("string") => Type::Text,
        Some("integer") => Type::Integer,
        Some("number") => Type::Number,
        Some("boolean") => Type::Bool,
        Some("array") => Type::List(Box::new(match schema.get("items") {
            Some(items) => nullable(items)?.0,
            None => Type::Any,
        })),
        Some("object") => match &schema["additionalProperties"] {
            Value::Object(_) => Type::Map(Box::new(nullable(&schema["additionalProperties"])?.0)),
            _ => Type::Object,
        },
        _ => Type::Any,
    })
}

fn object<'a>(value: &'a Value, key: &str) -> Result<&'a Map<String, Value>, String> {
    value[key]
        .as_object()
        .ok_or_else(|| format!("{key} is not an object"))
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>, String> {
    value[key]
        .as_array()
        .ok_or_else(|| format!("{key} is not a list"))
}

fn text(value: &Value, key: &str) -> Result<String, String> {
    let text = value[key]
        .as_str()
        .ok_or_else(|| format!("{key} is not a text"))?;
    Ok(if key == "doc" {
        crate::text::plain(text)
    } else {
        text.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_become_types_that_languages_have() {
        let text = || Box::new(Type::Text);
        for (schema, expected) in [
            (json!({"type": ["string", "null"]}), (Type::Text, true)),
            (
                json!({"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}),
                (Type::Named("A".into()), true),
            ),
            (
                json!({"type": "array", "items": {"type": "string"}}),
                (Type::List(text()), false),
            ),
            (
                json!({"type": "object", "additionalProperties": {"type": "string"}}),
                (Type::Map(text()), false),
            ),
            (
                json!({"type": "object", "additionalProperties": true}),
                (Type::Object, false),
            ),
            (
                json!({"oneOf": [{"const": "a"}, {"const": "b"}]}),
                (Type::Literal(vec!["a".into(), "b".into()]), false),
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"$ref": "#/$defs/H"}]}),
                (
                    Type::OneOf(vec![Type::Text, Type::Named("H".into())]),
                    false,
                ),
            ),
            (json!({"description": "anything"}), (Type::Any, false)),
        ] {
            assert_eq!(nullable(&schema), Ok(expected), "{schema}");
        }
    }

    #[test]
    fn a_union_without_a_name_is_refused() {
        let schema = json!({"oneOf": [{"type": "string"}, {"type": "object"}]});
        assert_eq!(kind(&schema), Err("a union that has no name".to_owned()));
    }

    #[test]
    fn records_told_apart_by_type_are_a_union() {
        let schema = json!({"oneOf": [{
            "type": "object",
            "description": "An end.",
            "properties": {"type": {"const": "end"}, "why": {"type": "string"}},
            "required": ["type"],
        }]});
        let Ok(Definition::Union { variants, .. }) = definition(&schema) else {
            panic!("a union")
        };
        assert_eq!(variants.len(), 1);
        let (tag, record) = &variants[0];
        assert_eq!((tag.as_str(), record.doc.as_str()), ("end", "An end."));
        let fields: Vec<_> = record
            .fields
            .iter()
            .map(|f| (f.key.as_str(), f.required))
            .collect();
        assert_eq!(fields, [("why", false)]);
    }
}
