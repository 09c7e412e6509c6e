//! Which revision of MCP is spoken with a server, and how a session of it is opened (SPEC 3.1, 3.2). Pure.

use rmcp::model::ProtocolVersion;
use rmcp::service::ClientLifecycleMode;

/// What the configuration of a server says about the revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Revision {
    /// Nothing: the newest with `initialize`, else the newest without.
    #[default]
    Any,
    /// This one.
    Only(ProtocolVersion),
}

/// One way to open a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// The `initialize` handshake, which asks for this revision.
    Initialize(ProtocolVersion),
    /// `server/discover`; every request says for itself that it is of this revision.
    Discover(ProtocolVersion),
}

impl Revision {
    /// The names that a configuration may give, oldest first.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ProtocolVersion::KNOWN_VERSIONS
            .iter()
            .map(ProtocolVersion::as_str)
    }

    /// The revision of this name.
    pub fn named(name: &str) -> Option<Self> {
        ProtocolVersion::KNOWN_VERSIONS
            .iter()
            .find(|version| version.as_str() == name)
            .map(|version| Revision::Only(version.clone()))
    }

    /// Whether a session can begin with `initialize`, the only way there is over HTTP+SSE.
    pub fn has_initialize(&self) -> bool {
        matches!(self.openings().0, Opening::Initialize(_))
    }

    /// What is tried first, and what then, where the server refuses the first.
    pub fn openings(&self) -> (Opening, Option<Opening>) {
        match self {
            Revision::Any => (
                Opening::Initialize(ProtocolVersion::LATEST_WITH_INITIALIZE),
                Some(Opening::Discover(ProtocolVersion::LATEST)),
            ),
            Revision::Only(version) if version.has_initialize() => {
                (Opening::Initialize(version.clone()), None)
            }
            Revision::Only(version) => (Opening::Discover(version.clone()), None),
        }
    }
}

impl Opening {
    /// The revision that is asked for.
    pub fn version(&self) -> &ProtocolVersion {
        match self {
            Opening::Initialize(version) | Opening::Discover(version) => version,
        }
    }

    /// The same for the SDK.
    pub fn lifecycle(&self) -> ClientLifecycleMode {
        match self {
            Opening::Initialize(_) => ClientLifecycleMode::Initialize,
            Opening::Discover(version) => ClientLifecycleMode::Discover {
                preferred_versions: vec![version.clone()],
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_word_both_ways_are_tried() {
        assert_eq!(
            Revision::default().openings(),
            (
                Opening::Initialize(ProtocolVersion::V_2025_11_25),
                Some(Opening::Discover(ProtocolVersion::V_2026_07_28))
            )
        );
    }

    #[test]
    fn a_named_revision_is_opened_in_its_own_way_only() {
        let openings = |name| Revision::named(name).map(|revision| revision.openings());
        let old = Opening::Initialize(ProtocolVersion::V_2025_06_18);
        assert_eq!(openings("2025-06-18"), Some((old, None)));
        let new = Opening::Discover(ProtocolVersion::V_2026_07_28);
        assert_eq!(openings("2026-07-28"), Some((new, None)));
        assert_eq!(openings("2025-06-19"), None);
    }
}
