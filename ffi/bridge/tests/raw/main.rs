//! The waist itself, driven the way a binding drives it.

mod calls;
mod endings;
mod host;
mod memory;
mod runs;
mod texts;
mod threads;
