//! Reads the keys of one server. Values may hold secrets, so an error names the key and what it must be, never the value.

use serde_json::{Map, Value};

use super::expand::{Lookup, expand};
use crate::error::{Error, Result};

/// Text in which variables are expanded, and where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub path: String,
    pub raw: String,
}

impl Text {
    /// The text with its variables; an unset one is `invalid_config` at the path.
    pub fn expand(&self, lookup: Lookup<'_>) -> Result<String> {
        expand(&self.raw, lookup)
            .map_err(|name| Error::config(&self.path, format!("the variable {name} is not set")))
    }
}

/// The keys of one server. A null counts as absent.
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    path: &'a str,
}

impl<'a> Fields<'a> {
    pub fn new(map: &'a Map<String, Value>, path: &'a str) -> Self {
        Fields { map, path }
    }

    /// `invalid_config` at a key.
    pub fn error(&self, key: &str, message: &str) -> Error {
        Error::config(self.at(key), message)
    }

    fn at(&self, key: &str) -> String {
        format!("{}.{key}", self.path)
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Fails on the first key that is not in `known`.
    pub fn only(&self, known: &[&str]) -> Result<()> {
        match self.map.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => Err(self.error(key, "is not a key of a server")),
            None => Ok(()),
        }
    }

    /// Fails on the first key of `others` that is there.
    pub fn none_of(&self, others: &[&str], message: &str) -> Result<()> {
        match others.iter().find(|key| self.has(key)) {
            Some(key) => Err(self.error(key, message)),
            None => Ok(()),
        }
    }

    pub fn boolean(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, Value::as_bool, "must be true or false")
    }

    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, Value::as_f64, "must be a number")
    }

    pub fn string(&self, key: &str) -> Result<Option<&'a str>> {
        self.typed(key, Value::as_str, "must be a string")
    }

    pub fn text(&self, key: &str) -> Result<Option<Text>> {
        Ok(self.string(key)?.map(|raw| Text {
            path: self.at(key),
            raw: raw.to_owned(),
        }))
    }

    pub fn is_list(&self, key: &str) -> bool {
        self.get(key).is_some_and(Value::is_array)
    }

    /// A list of strings.
    pub fn texts(&self, key: &str) -> Result<Vec<Text>> {
        let list = self.typed(key, Value::as_array, "must be a list of strings")?;
        list.into_iter()
            .flatten()
            .enumerate()
            .map(|(index, item)| {
                let path = format!("{}[{index}]", self.at(key));
                match item {
                    Value::String(raw) => Ok(Text {
                        path,
                        raw: raw.clone(),
                    }),
                    _ => Err(Error::config(path, "must be a string")),
                }
            })
            .collect()
    }

    /// An object of strings, in the order written.
    pub fn named_texts(&self, key: &str) -> Result<Vec<(String, Text)>> {
        self.entries(
            key,
            |value, path| {
                let raw = value.as_str()?.to_owned();
                Some(Text { path, raw })
            },
            "must be a string",
        )
        .map(Option::unwrap_or_default)
    }

    /// An object of booleans; `None` when absent.
    pub fn named_booleans(&self, key: &str) -> Result<Option<Vec<(String, bool)>>> {
        self.entries(key, |value, _| value.as_bool(), "must be true or false")
    }

    fn entries<T>(
        &self,
        key: &str,
        read: impl Fn(&Value, String) -> Option<T>,
        message: &str,
    ) -> Result<Option<Vec<(String, T)>>> {
        let Some(object) = self.typed(key, Value::as_object, "must be an object")? else {
            return Ok(None);
        };
        let entries = object.iter().map(|(name, value)| {
            let path = format!("{}.{name}", self.at(key));
            match read(value, path.clone()) {
                Some(value) => Ok((name.clone(), value)),
                None => Err(Error::config(path, message)),
            }
        });
        entries.collect::<Result<_>>().map(Some)
    }

    fn typed<T: 'a>(
        &self,
        key: &str,
        read: impl Fn(&'a Value) -> Option<T>,
        message: &str,
    ) -> Result<Option<T>> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => match read(value) {
                Some(value) => Ok(Some(value)),
                None => Err(self.error(key, message)),
            },
        }
    }
}
