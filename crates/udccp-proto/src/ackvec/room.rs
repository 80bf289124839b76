//! Gives the first cells of a vector room without an allocation.

use core::ops::{Deref, DerefMut};

/// Bytes that most vectors never outgrow: a tag and these fill the three words of a `Vec`.
const FIRST: usize = 23;

/// A buffer of cells.
#[derive(Clone)]
pub(super) enum Room {
    First([u8; FIRST]),
    Heap(Box<[u8]>),
}

impl Room {
    /// So many bytes, more than the first ones.
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
