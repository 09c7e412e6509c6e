//! `{"op": NAME, "args": {...}}`, and arguments as types.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::borrow::Cow;

use crate::dispatch::Op;
use crate::limits;
use toolspan::{Error, ErrorCode};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text<'a> {
    #[serde(borrow)]
    op: Cow<'a, str>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

/// A request that was read as far as its operation.
pub(crate) struct Request<'a> {
    pub(crate) op: Op,
    /// Text of the arguments' object.
    pub(crate) args: &'a str,
}

impl<'a> Request<'a> {
    /// # Errors
    /// `limit_exceeded`; `invalid_argument` for text that is no request or names no operation.
    pub(crate) fn parse(text: &'a str) -> Result<Self, Error> {
        limits::check(text)?;
        let request: Text<'a> = serde_json::from_str(text).map_err(|e| {
            Error::new(
                ErrorCode::InvalidArgument,
                format!("the request cannot be read: {e}"),
            )
        })?;
        let op = Op::named(&request.op).ok_or_else(|| {
            Error::argument("op", format!("there is no operation {:?}", request.op))
        })?;
        Ok(Request {
            op,
            args: request.args.map_or("{}", RawValue::get),
        })
    }
}

/// Reads arguments. What is wrong inside `options` is `invalid_config`, with the path as the user of a binding sees it.
pub(crate) fn decode<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    toolspan::json::decode(text).map_err(|e| {
        let option = e
            .record()
            .path
            .as_deref()
            .and_then(|path| path.strip_prefix("options."));
        match option {
            Some(path) => Error::config(path, e.record().message.clone()),
            None => e,
        }
    })
}
