//! Raises the exceptions that `udccp.errors` defines.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use udccp_scenario::{Diagnostic, Diagnostics};

/// Creates an exception of `udccp.errors` with these arguments.
fn make<'py>(py: Python<'py>, class: &str, arguments: Bound<'py, PyTuple>) -> PyErr {
    let made = py
        .import("udccp.errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1(arguments));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// Creates an exception of `udccp.errors` with a message.
pub(crate) fn raise(py: Python<'_>, class: &str, message: impl Into<String>) -> PyErr {
    match PyTuple::new(py, [message.into()]) {
        Ok(arguments) => make(py, class, arguments),
        Err(error) => error,
    }
}

/// The exception for a bug in this package.
pub(crate) fn internal(py: Python<'_>, panic: &str) -> PyErr {
    raise(
        py,
        "InternalError",
        format!(
            "a defect of udccp {}, not of your program: {panic}. Please report it, with the call \
             and its arguments.",
            udccp_scenario::VERSION
        ),
    )
}

/// One diagnostic with the fields of `udccp.lab.Diagnostic`: message, file, line, column, hint.
type Row = (String, Option<String>, Option<usize>, Option<usize>, Option<String>);

fn row(diagnostic: &Diagnostic) -> Row {
    let place = diagnostic.span.as_ref().map(|span| (span.source.name.clone(), span.line_column()));
    let (file, line, column) = match place {
        Some((file, (line, column))) => (Some(file), Some(line), Some(column)),
        None => (None, None, None),
    };
    (diagnostic.message.clone(), file, line, column, diagnostic.hint.clone())
}

/// The exception for errors in a scenario or an experiment, with places and fixes.
pub(crate) fn scenario(py: Python<'_>, errors: &Diagnostics) -> PyErr {
    let all: Vec<Row> = errors.0.iter().map(row).collect();
    match (errors.to_string(), all).into_pyobject(py) {
        Ok(arguments) => make(py, "ScenarioError", arguments),
        Err(error) => error,
    }
}
