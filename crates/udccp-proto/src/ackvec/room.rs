//! Stores short vectors without an allocation.

use core::ops::{Deref, DerefMut};

/// Enough bytes for most vectors. With the tag, they are as large as the three words of a `Vec`.
const FIRST: usize = 23;

/// A buffer of cells.
#[derive(Clone)]
pub(super) enum Room {
    First([u8; FIRST]),
    Heap(Box<[u8]>),
}

impl Room {
    /// The bytes of these places; fewer steps than by a slice of either kind.
    #[inline(always)]
    pub(super) fn part(&self, from: usize, to: usize) -> &[u8] {
        match self {
            Self::First(bytes) => &bytes[from..to],
            Self::Heap(bytes) => &bytes[from..to],
        }
    }

    /// The byte at this place; fewer steps than by a slice of either kind.
    #[inline(always)]
    pub(super) fn byte_mut(&mut self, at: usize) -> Option<&mut u8> {
        match self {
            Self::First(bytes) => bytes.get_mut(at),
            Self::Heap(bytes) => bytes.get_mut(at),
        }
    }

    /// A buffer of `bytes` bytes on the heap.
    pub(super) fn of(bytes: usize) -> Self {
        Self::Heap(vec![0; bytes].into())
    }
}

impl Default for Room {
    fn default() -> Self {
        Self::First([0; FIRST])
    }
}

impl Deref for Room {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::First(bytes) => bytes,
            Self::Heap(bytes) => bytes,
        }
    }
}

impl DerefMut for Room {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::First(bytes) => bytes,
            Self::Heap(bytes) => bytes,
        }
    }
}
