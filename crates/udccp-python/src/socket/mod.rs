//! Lets Python open endpoints and exchange messages. All waiting uses descriptors, see `wait`. The
//! interface like that of the standard sockets is in `python/udccp/socket`.

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

/// Adds this folder's classes and functions to the module.
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

/// The `OSError` with Linux's error number; Python chooses its subclass.
fn raise(e: &udccp::Error) -> PyErr {
    PyOSError::new_err((e.errno(), e.to_string()))
}
