//! The narrow waist: everything a language binding needs of toolspan, as text in and text out.
//!
//! This crate is a layer of its own. Below it is `toolspan`, which decides everything; above it are the C ABI, the
//! Python and Node modules and uniffi, which decide nothing. No thread of this crate ever runs code of the host: the
//! host *asks* ([`Engine::submit`]), the core works, and the host *collects* ([`Engine::poll`]). What the host
//! supplies (tools, hooks, stores, transports) is asked for with a `host_call` event and answered with
//! [`Engine::respond`].
//!
//! # Requests
//! `{"op": NAME, "args": {...}}`; the names, arguments and results are the list in [`ops`]. Options are the structs in
//! [`options`]. An unknown key is an error that names its path.
//!
//! # Events
//! Text of a JSON array, see [`Engine::poll`]:
//!
//! | event | meaning |
//! |---|---|
//! | `{"type":"done","op":N,"result":R}` | the operation ended well |
//! | `{"type":"failed","op":N,"error":RECORD}` | it failed |
//! | `{"type":"cancelled","op":N,"error":RECORD}` | it was cancelled with [`Engine::cancel`] |
//! | `{"type":"host_call","call":C,"op":N,"kind":K,"handler":H,"payload":P}` | the host is asked; `call` 0 wants no answer |
//! | `{"type":"host_call_cancelled","call":C,"op":N}` | nobody waits for that answer any more |
//!
//! Every accepted operation gets exactly one of the first three, whatever happens, and nothing after it.
#![forbid(unsafe_code)]

mod dispatch;
mod engine;
mod event;
mod fork;
mod handles;
mod host;
mod limits;
mod manifest;
mod operation;
pub mod ops;
pub mod options;
mod queue;
mod request;
mod shared;
mod streams;
mod work;

pub use dispatch::Op;
pub use engine::{Engine, EngineOptions};
pub use event::record;
pub use handles::{Kind, Table};
pub use host::{HostCallKind, Reply};
pub use limits::{MAX_DEPTH, MAX_TEXT};
pub use toolspan::{Error, ErrorCode};

pub use manifest::{manifest, schema_hash};

/// Version of the operations, events and functions. It changes when an old binding would misunderstand a new engine.
pub const ABI_VERSION: u32 = 1;
