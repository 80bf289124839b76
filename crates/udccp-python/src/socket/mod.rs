//! Lets Python open endpoints and carry messages. Everything waits on descriptors, see `wait`; what
//! makes these classes feel like the standard module's sockets is in `python/udccp/socket`.

mod address;
mod buffer;
mod connection;
mod endpoint;
mod event;
mod numbers;
mod settings;
mod wait;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// Adds what is here to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<connection::Connection>()?;
    module.add_class::<endpoint::Early>()?;
    module.add_class::<endpoint::Endpoint>()?;
    module.add_class::<endpoint::Handshake>()?;
    module.add_class::<endpoint::Listener>()?;
    module.add_class::<event::Events>()?;
    module.add_class::<wait::Waiter>()?;
    module.add_function(wrap_pyfunction!(settings::service_number, module)?)?;
    module.add_function(wrap_pyfunction!(settings::service_text, module)?)
}

/// The `OSError` of Linux's number, which is the subclass that Python has for it.
fn raise(e: &udccp::Error) -> PyErr {
    PyOSError::new_err((e.errno(), e.to_string()))
}
