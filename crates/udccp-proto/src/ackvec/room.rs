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
