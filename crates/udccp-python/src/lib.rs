//! Lets Python open DCCP sockets and run the laboratory: scenarios, campaigns, metrics and what
//! figures draw.
//!
//! This is the module `udccp._native`. The functions of the laboratory take and give plain values
//! (texts, numbers, lists); records cross the border as JSON. Sockets are classes that wait on
//! descriptors. The package around it, in `python/udccp`, gives them their names, types and
//! documentation.
//!
//! No function holds the interpreter while it simulates or waits, and none lets a panic through:
//! see `border`.

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
