//! Closes connections in order where Python ends the process.
//!
//! The exit handlers of the C library do that too, but they do not run where Python ends by SIGINT,
//! which it sends itself after an unhandled `KeyboardInterrupt`.

use std::sync::Once;

use pyo3::prelude::*;

/// Adds what is here to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(at_exit);
    module.add_function(wrap_pyfunction!(close_all, module)?)
}

/// Has Python close everything when nothing of it runs any more.
fn at_exit() {
    // SAFETY: the function lives as long as the process, needs no interpreter, and its callers do
    // not unwind into it. Where Python keeps enough of them already, the C library's are left.
    unsafe { pyo3::ffi::Py_AtExit(Some(after_python)) };
}

extern "C" fn after_python() {
    udccp::close_all();
}

/// Closes every open connection of this process in order, and waits for that.
#[pyfunction]
fn close_all(py: Python<'_>) {
    py.detach(udccp::close_all);
}
