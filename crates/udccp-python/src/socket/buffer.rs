//! Copies messages from and to Python's bytes-like objects.
//!
//! The stable ABI of CPython 3.10 has no buffer protocol, so all objects but `bytes` are accessed
//! through a `memoryview`.

use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

/// The bytes of a bytes-like object.
///
/// # Errors
/// `TypeError` if the object is not bytes-like; `BufferError` if it is not contiguous.
pub(super) fn message(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Bytes::copy_from_slice(bytes.as_bytes()));
    }
    let copied = PyMemoryView::from(object)?.call_method0("tobytes")?;
    Ok(Bytes::copy_from_slice(copied.cast::<PyBytes>()?.as_bytes()))
}

/// A writable bytes-like object, and its length in bytes.
pub(super) struct Room<'py> {
    view: Bound<'py, PyAny>,
    len: usize,
}

impl<'py> Room<'py> {
    /// # Errors
    /// `TypeError` if the object is not bytes-like, not writable or not contiguous.
    pub(super) fn of(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let view = PyMemoryView::from(object)?.into_any();
        let is_readonly: bool = view.getattr("readonly")?.extract()?;
        if is_readonly {
            return Err(pyo3::exceptions::PyTypeError::new_err(
                "a writable bytes-like object is required, not one that is read-only",
            ));
        }
        let view = view.call_method1("cast", ("B",))?;
        let len = view.len()?;
        Ok(Self { view, len })
    }

    /// Copies as much of a message as fits, at most `most` bytes unless that is 0. Returns the
    /// number of bytes copied.
    pub(super) fn fill(&self, message: &[u8], most: usize) -> PyResult<usize> {
        let room = if most == 0 { self.len } else { most.min(self.len) };
        let copied = message.len().min(room);
        let py = self.view.py();
        let slice = pyo3::types::PySlice::new(py, 0, copied as isize, 1);
        self.view.set_item(slice, PyBytes::new(py, &message[..copied]))?;
        Ok(copied)
    }

    /// Length in bytes.
    pub(super) const fn len(&self) -> usize {
        self.len
    }
}
