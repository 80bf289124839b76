//! Iterates over option space (RFC 4340 section 5.8).

use crate::error::OptionError;
use crate::option::{OptionRef, RawOption};

/// The options of a packet in order, decoded.
///
/// An option whose length is wrong for its type is returned as an error, and iteration continues
/// after it. A nonsensical length is returned as an error and ends the iteration, because the start
/// of the next option is unknown.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a>(RawOptions<'a>);

/// The options of a packet in order, as type and data bytes.
#[derive(Clone, Copy, Debug)]
pub struct RawOptions<'a> {
    rest: &'a [u8],
}

impl<'a> Options<'a> {
    /// The options in these bytes of option space.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(RawOptions::new(bytes))
    }
}

impl<'a> RawOptions<'a> {
    /// The options in these bytes of option space.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes not iterated over yet.
    pub const fn remaining(&self) -> &'a [u8] {
        self.rest
    }

    //= 4340-5.8-5
    #[cold]
    fn nonsensical(&mut self) -> OptionError {
        let byte = |i: usize| self.rest.get(i).copied();
        let e = OptionError::Nonsensical {
            kind: byte(0).unwrap_or(0),
            length: byte(1),
            remaining: u16::try_from(self.rest.len()).unwrap_or(u16::MAX),
            data: [byte(2).unwrap_or(0), byte(3).unwrap_or(0)],
        };
        self.rest = &[];
        e
    }
}

impl<'a> Iterator for RawOptions<'a> {
    type Item = Result<RawOption<'a>, OptionError>;

    //= 4340-5.8-3
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (&kind, after_kind) = self.rest.split_first()?;
        if kind < 32 {
            self.rest = after_kind;
            return Some(Ok(RawOption { kind, data: &[] }));
        }
        let length = after_kind.first().map_or(0, |&n| usize::from(n));
        let parts = self.rest.split_at_checked(length);
        let Some(([_, _, data @ ..], rest)) = parts else {
            return Some(Err(self.nonsensical()));
        };
        self.rest = rest;
        Some(Ok(RawOption { kind, data }))
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<OptionRef<'a>, OptionError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.and_then(OptionRef::from_raw))
    }
}

impl core::iter::FusedIterator for RawOptions<'_> {}
impl core::iter::FusedIterator for Options<'_> {}
