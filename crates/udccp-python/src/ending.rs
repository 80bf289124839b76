//! Closes connections properly when Python ends the process.
//!
//! The exit handlers of the C library do this too. They do not run if Python ends by SIGINT, which
//! it sends to itself after an unhandled `KeyboardInterrupt`.

use std::sync::Once;

use pyo3::prelude::*;

/// Adds this file's functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(at_exit);
    module.add_function(wrap_pyfunction!(close_all, module)?)
}

/// Registers the handler with Python, which calls it after the interpreter has shut down.
fn at_exit() {
    // SAFETY: the function lives as long as the process, needs no interpreter, and does not unwind
    // into its callers. If Python's table of handlers is full, those of the C library remain.
    unsafe { pyo3::ffi::Py_AtExit(Some(after_python)) };
}

extern "C" fn after_python() {
    udccp::close_all();
}

/// Closes all open connections of this process, and waits until they are closed.
#[pyfunction]
fn close_all(py: Python<'_>) {
    py.detach(udccp::close_all);
}
