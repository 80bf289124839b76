//! The value area of an option. Nearly all are a few bytes, which need no heap.

use core::fmt;
use core::ops::{Deref, DerefMut};

/// Bytes stored without an allocation.
const INLINE: usize = 22;

/// A short list of bytes.
#[derive(Clone)]
pub(super) struct ByteList(Bytes);

#[derive(Clone)]
enum Bytes {
    Inline { len: u8, bytes: [u8; INLINE] },
    Heap(Box<[u8]>),
}

impl ByteList {
    /// The empty list.
    pub(super) const EMPTY: Self = Self(Bytes::Inline { len: 0, bytes: [0; INLINE] });

    /// A list of these bytes.
    pub(super) fn new(list: &[u8]) -> Self {
        let mut bytes = [0; INLINE];
        match bytes.get_mut(..list.len()) {
            Some(room) => {
                room.copy_from_slice(list);
                Self(Bytes::Inline { len: list.len() as u8, bytes })
            }
            None => Self(Bytes::Heap(list.into())),
        }
    }
}

impl Deref for ByteList {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Bytes::Heap(bytes) => bytes,
        }
    }
}

impl DerefMut for ByteList {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Bytes::Inline { len, bytes } => &mut bytes[..usize::from(*len)],
            Bytes::Heap(bytes) => bytes,
        }
    }
}

impl FromIterator<u8> for ByteList {
    fn from_iter<I: IntoIterator<Item = u8>>(list: I) -> Self {
        let (mut bytes, mut len) = ([0; INLINE], 0);
        let mut list = list.into_iter();
        while let Some(byte) = list.next() {
            let Some(place) = bytes.get_mut(len) else {
                return Self(Bytes::Heap(bytes.into_iter().chain([byte]).chain(list).collect()));
            };
            *place = byte;
            len += 1;
        }
        Self(Bytes::Inline { len: len as u8, bytes })
    }
}

impl PartialEq for ByteList {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for ByteList {}

impl fmt::Debug for ByteList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_any_length_round_trip() {
        assert!(ByteList::EMPTY.is_empty());
        for len in 0..300 {
            let all: Vec<u8> = (0..len).map(|n| n as u8).collect();
            let mut list = ByteList::new(&all);
            assert_eq!((&*list, &list), (&*all, &all.iter().copied().collect()));
            list.reverse();
            assert!(list.iter().eq(all.iter().rev()));
        }
        assert_eq!(size_of::<ByteList>(), size_of::<Vec<u8>>());
    }
}
