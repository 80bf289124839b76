//! Descriptors that show whether a call would wait are of Unix: elsewhere there are none.

/// Nobody has one.
#[derive(Clone, Debug)]
pub(crate) enum Readiness {}

/// Nothing shows.
#[derive(Debug)]
pub(crate) enum Signal {}
