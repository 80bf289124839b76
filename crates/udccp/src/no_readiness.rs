//! Readiness descriptors exist only on Unix.

/// Has no values.
#[derive(Clone, Debug)]
pub(crate) enum Readiness {}

/// Has no values.
#[derive(Debug)]
pub(crate) enum Signal {}
