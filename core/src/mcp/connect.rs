//! One server: from its plan to its tools.

use super::plan::ServerPlan;
use super::source::{LoadOptions, ServerTool};
use crate::error::{Error, ErrorCode, Result};

/// A live server.
pub(super) struct Session;

impl Session {
    /// What ended it, if it ended.
    pub fn fault(&self) -> Option<Error> {
        None
    }

    pub async fn close(&self) {}
}

pub(super) struct Connected {
    pub session: std::sync::Arc<Session>,
    pub tools: Vec<ServerTool>,
}

pub(super) async fn connect(
    _id: &str,
    _plan: &ServerPlan,
    _options: &LoadOptions,
) -> Result<Connected> {
    Err(Error::new(ErrorCode::Unsupported, "no transport yet"))
}
