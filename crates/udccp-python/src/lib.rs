//! Gives Python DCCP sockets and the laboratory: scenarios, campaigns, metrics and the data of
//! figures.
//!
//! This is the module `udccp._native`. The functions of the laboratory take and return plain values
//! (texts, numbers, lists); records are passed as JSON. Sockets are classes that wait on
//! descriptors. The package around it, in `python/udccp`, adds the public names, types and
//! documentation.
//!
//! No function holds the interpreter lock while it simulates or waits, and no panic escapes: see
//! `border`.

#![deny(unsafe_code)]

mod border;
mod capture;
#[expect(unsafe_code, reason = "a function of Python that no library wraps")]
mod ending;
mod error;
mod lab;
mod metrics;
mod socket;

use pyo3::prelude::*;

/// The module `udccp._native`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(border::panic_for_test, module)?)?;
    module.add_function(wrap_pyfunction!(capture::read_capture, module)?)?;
    ending::register(module)?;
    metrics::register(module)?;
    socket::register(module)?;
    lab::register(module)
}
