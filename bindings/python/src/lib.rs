//! The native half of the Python package: `toolspan_bridge::Engine` as a Python class, and nothing more.
//!
//! Text goes in, text comes out. No thread of the library ever enters the interpreter: Python's own pump thread waits
//! in [`Engine::poll`] without the GIL. The other half is `python/toolspan/_engine.py`.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

create_exception!(
    _toolspan,
    EngineError,
    PyException,
    "What the engine refused; the only argument is the text of an error record."
);

const PANICKED: &str = r#"{"code":"internal_panic","message":"toolspan panicked; this is a defect, please report it with what standard error says","retryable":false}"#;

/// Does the work without the GIL. A panic becomes an ordinary exception, never pyo3's `PanicException`, which
/// `except Exception` does not catch.
fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, String> + Send,
) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(PANICKED.to_owned())))
        .map_err(EngineError::new_err)
}

/// An engine. Every method may be called from any thread.
#[pyclass(frozen, module = "toolspan._toolspan")]
struct Engine(toolspan_bridge::Engine);

#[pymethods]
impl Engine {
    #[new]
    fn new(py: Python<'_>, options: &str) -> PyResult<Self> {
        detached(py, || toolspan_bridge::Engine::new(options)).map(Engine)
    }

    /// Does an operation that needs no waiting and gives the text of its result.
    fn call(&self, py: Python<'_>, request: &str) -> PyResult<String> {
        detached(py, || self.0.call(request))
    }

    /// Starts an operation under a number of the caller's.
    fn submit(&self, py: Python<'_>, op: u64, request: &str) -> PyResult<()> {
        detached(py, || self.0.submit(op, request))
    }

    /// The text of a list of events, `[]` after the timeout, `None` once closed.
    fn poll(&self, py: Python<'_>, timeout_ms: u64, most: usize) -> PyResult<Option<String>> {
        detached(py, || {
            Ok(self.0.poll(Duration::from_millis(timeout_ms), most))
        })
    }

    /// Answers a host call.
    fn respond(&self, py: Python<'_>, call: u64, reply: &str) -> PyResult<()> {
        detached(py, || self.0.respond(call, reply))
    }

    /// Asks an operation to stop.
    fn cancel(&self, py: Python<'_>, op: u64) -> PyResult<()> {
        detached(py, || {
            self.0.cancel(op);
            Ok(())
        })
    }

    /// Ends everything; whether that was done in time.
    fn close(&self, py: Python<'_>, timeout_ms: u64) -> PyResult<bool> {
        detached(py, || Ok(self.0.close(Duration::from_millis(timeout_ms))))
    }
}

/// Built for CPython 3.10 and later by the stable ABI.
#[pymodule(gil_used = false)]
mod _toolspan {
    use pyo3::exceptions::PyImportError;
    use pyo3::prelude::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[pymodule_export]
    use super::{Engine, EngineError};

    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    const ABI_VERSION: u32 = toolspan_bridge::ABI_VERSION;

    /// pyo3's classes belong to the interpreter that made them first, and nothing else keeps a second one of the same
    /// process away from them. An interpreter is known by its `sys.modules`.
    #[pymodule_init]
    fn refuse_a_second_interpreter(module: &Bound<'_, PyModule>) -> PyResult<()> {
        static OWNER: AtomicUsize = AtomicUsize::new(0);
        let here = module.py().import("sys")?.getattr("modules")?.as_ptr() as usize;
        match OWNER.compare_exchange(0, here, Ordering::Relaxed, Ordering::Relaxed) {
            Err(owner) if owner != here => Err(PyImportError::new_err(
                "toolspan is in use by another interpreter of this process; use it from one only",
            )),
            _ => Ok(()),
        }
    }
}
