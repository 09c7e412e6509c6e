//! Sharing SIGCHLD with the host.
//!
//! Where the system has no pidfd, tokio learns from a handler of SIGCHLD that a child has ended. `signal-hook-registry`, which
//! installs it, asks for the thread's own stack (tokio-rs/tokio#3520) and then calls the handler that was there before. Go
//! ends the process when its handler is called so: its stacks are small, and it set a signal stack up for that. So the
//! handler is installed here, before there is a child, with the stack that the host's handler had.

use std::ptr::{null, null_mut};
use std::sync::Once;

/// Installs the handler if the host handles SIGCHLD on a signal stack; does nothing for any other host.
pub(crate) fn keep_signal_stack() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Some(host) = action() else { return };
        if host.sa_flags & libc::SA_ONSTACK == 0 {
            return;
        }
        // From the second registration on (tokio's) the registry leaves the system's entry alone.
        // SAFETY: the action does nothing, which a signal handler may do.
        if unsafe { signal_hook_registry::register(libc::SIGCHLD, || {}) }.is_err() {
            return;
        }
        let Some(mut ours) = action() else { return };
        ours.sa_flags |= libc::SA_ONSTACK;
        // SAFETY: `ours` is what the system gave, with one flag more; nothing is written back.
        unsafe { libc::sigaction(libc::SIGCHLD, &raw const ours, null_mut()) };
    });
}

/// What the process does on SIGCHLD.
fn action() -> Option<libc::sigaction> {
    // SAFETY: a C structure of numbers and a pointer, for which zeros are a value.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is installed, and the pointer is to a value of that type.
    let done = unsafe { libc::sigaction(libc::SIGCHLD, null(), &raw mut action) };
    (done == 0).then_some(action)
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn host(_signal: libc::c_int) {}

    #[test]
    fn a_host_with_a_signal_stack_keeps_it_when_a_child_is_watched() {
        // SAFETY: as in `action`; the handler does nothing.
        unsafe {
            let mut with_stack: libc::sigaction = std::mem::zeroed();
            with_stack.sa_sigaction = host as *const () as usize;
            with_stack.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART;
            assert_eq!(
                libc::sigaction(libc::SIGCHLD, &raw const with_stack, null_mut()),
                0
            );
        }
        keep_signal_stack();
        // SAFETY: the action does nothing.
        unsafe { signal_hook_registry::register(libc::SIGCHLD, || {}) }.unwrap();
        let now = action().unwrap();
        assert_ne!(now.sa_sigaction, host as *const () as usize);
        assert_ne!(now.sa_flags & libc::SA_ONSTACK, 0);
    }
}
