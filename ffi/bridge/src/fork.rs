//! A forked child has the engine's memory but none of its threads. Every entry asks here first.

use toolspan::{Error, ErrorCode};

/// The process in which something was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Birthplace(u32);

impl Birthplace {
    pub(crate) fn here() -> Self {
        Birthplace(std::process::id())
    }

    /// Whether this is another process by now.
    pub(crate) fn forked(self) -> bool {
        std::process::id() != self.0
    }

    /// # Errors
    /// `forked` in a forked child.
    pub(crate) fn check(self) -> Result<(), Error> {
        if self.forked() {
            return Err(Error::new(
                ErrorCode::Forked,
                "the process was forked after this engine was created; create a new engine in the child",
            ));
        }
        Ok(())
    }
}
