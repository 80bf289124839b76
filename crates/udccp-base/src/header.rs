//! The bytes of a transport header.

use core::fmt;
use core::ops::{Deref, RangeBounds};

use bytes::{Bytes, BytesMut};

/// The bytes of a transport header, possibly followed by data. Short ones, as most headers of
/// departing packets, are stored inline; longer ones, and received buffers, are shared and never
/// copied.
#[derive(Clone)]
pub struct HeaderBytes(Store);

#[derive(Clone)]
enum Store {
    Short {
        len: u8,
        bytes: [u8; HeaderBytes::SHORT],
    },
    Shared(Bytes),
    /// `len` bytes of a buffer, from `from` on.
    Part {
        buffer: Bytes,
        from: u32,
        len: u16,
    },
}

impl HeaderBytes {
    /// Longest header that is stored inline, in bytes: a TCP header with timestamps, or a DCCP
    /// acknowledgement of about a hundred packets.
    pub const SHORT: usize = 38;

    /// No bytes.
    pub const EMPTY: Self = Self(Store::Short { len: 0, bytes: [0; Self::SHORT] });

    /// A copy of a short header; `None` if it is longer than [`Self::SHORT`].
    #[inline]
    pub fn short(header: &[u8]) -> Option<Self> {
        if header.len() > Self::SHORT {
            return None;
        }
        let mut bytes = [0; Self::SHORT];
        bytes.get_mut(..header.len())?.copy_from_slice(header);
        Some(Self(Store::Short { len: header.len() as u8, bytes }))
    }

    /// A short header of fixed length.
    #[inline]
    pub fn of<const N: usize>(header: [u8; N]) -> Self {
        const { assert!(N <= Self::SHORT) };
        let mut bytes = [0; Self::SHORT];
        bytes[..N].copy_from_slice(&header);
        Self(Store::Short { len: N as u8, bytes })
    }

    /// A copy of a header. One longer than [`Self::SHORT`] is written to `arena`, which must be
    /// empty.
    #[inline(always)]
    pub fn copied(header: &[u8], arena: &mut BytesMut) -> Self {
        Self::short(header).unwrap_or_else(|| {
            arena.extend_from_slice(header);
            Self(Store::Shared(arena.split().freeze()))
        })
    }

    /// Takes what was written to `arena`, which is then empty. A few bytes are copied, so the arena
    /// can be used again; more are split off.
    #[inline]
    pub fn take_from(arena: &mut BytesMut) -> Self {
        match Self::short(arena) {
            Some(short) => {
                arena.clear();
                short
            }
            None => Self(Store::Shared(arena.split().freeze())),
        }
    }

    /// The first datagram in a buffer with several; [`Self::advance`] goes to the next.
    #[inline]
    pub fn first_in_buffer(buffer: Bytes, len: u16) -> Self {
        Self(Store::Part { buffer, from: 0, len })
    }

    /// Advances bytes of [`Self::first_in_buffer`] by this number of datagrams in the buffer,
    /// without copying. The new datagram has at most as many bytes. Returns false if there is none,
    /// or if the bytes are not of that kind.
    #[inline]
    pub fn advance(&mut self, datagrams: usize) -> bool {
        let Store::Part { buffer, from, len } = &mut self.0 else { return false };
        let next = *from as usize + datagrams * usize::from(*len);
        let left = buffer.len().saturating_sub(next);
        *len = u16::try_from(left).map_or(*len, |left| left.min(*len));
        *from = u32::try_from(next).unwrap_or(*from);
        left > 0
    }

    /// These bytes, with all that follow in a buffer with several datagrams.
    #[inline]
    pub fn with_following(&self) -> &[u8] {
        match &self.0 {
            Store::Part { buffer, from, .. } => buffer.get(*from as usize..).unwrap_or_default(),
            _ => self,
        }
    }

    /// Up to `len` bytes from the start of these, including those that follow in the buffer: a
    /// slice of the same buffer, or a copy if the header is short.
    pub fn slice_through(&self, len: usize) -> Bytes {
        let all = self.with_following();
        let part = all.get(..len).unwrap_or(all);
        match &self.0 {
            Store::Short { .. } => Bytes::copy_from_slice(part),
            Store::Shared(buffer) | Store::Part { buffer, .. } => buffer.slice_ref(part),
        }
    }

    /// A part of the bytes: a slice of the same buffer, or a copy if the header is short.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Bytes {
        match &self.0 {
            Store::Short { .. } => Bytes::copy_from_slice(self).slice(range),
            Store::Shared(bytes) => bytes.slice(range),
            Store::Part { buffer, .. } => {
                let range = (range.start_bound().cloned(), range.end_bound().cloned());
                buffer.slice_ref(&self[range])
            }
        }
    }
}

impl Deref for HeaderBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Store::Short { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or(bytes),
            Store::Shared(bytes) => bytes,
            Store::Part { buffer, from, len } => {
                let from = *from as usize;
                buffer.get(from..from + usize::from(*len)).unwrap_or_default()
            }
        }
    }
}

impl Default for HeaderBytes {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl From<Bytes> for HeaderBytes {
    fn from(bytes: Bytes) -> Self {
        Self(Store::Shared(bytes))
    }
}

impl From<Vec<u8>> for HeaderBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for HeaderBytes {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl AsRef<[u8]> for HeaderBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Eq for HeaderBytes {}

impl fmt::Debug for HeaderBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Bytes::copy_from_slice(self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_of_one_buffer_follow_each_other() {
        let buffer = Bytes::from((0..25).collect::<Vec<u8>>());
        let mut header = HeaderBytes::first_in_buffer(buffer.clone(), 10);
        assert_eq!(header, buffer[..10]);
        assert_eq!(header.slice(3..5), buffer[3..5]);
        assert_eq!(header.with_following(), buffer);
        let mut last = header.clone();
        assert!(last.advance(2) && last == buffer[20..] && !last.clone().advance(2));
        assert!(header.advance(1));
        assert_eq!(header, buffer[10..20]);
        assert_eq!(header.slice(4..).as_ptr(), buffer[14..].as_ptr(), "no copy");
        assert_eq!(header.slice_through(12), buffer[10..22]);
        assert_eq!(header.slice_through(100).as_ptr(), buffer[10..].as_ptr(), "no copy");
        assert!(header.advance(1));
        assert_eq!(header, buffer[20..], "the last one may be shorter");
        assert!(header.slice(5..).is_empty());
        assert_eq!(header.with_following(), &*header);
        assert!(!header.advance(1) && header.is_empty());
        assert!(!HeaderBytes::from(buffer).advance(1));
    }

    #[test]
    fn short_and_long_headers_read_alike_and_the_arena_is_used_again() {
        let mut arena = BytesMut::with_capacity(1000);
        for len in [0, 1, 38, 39, 200] {
            let start = arena.as_ptr();
            let written: Vec<u8> = (0..len as u8).collect();
            arena.extend_from_slice(&written);
            let header = HeaderBytes::take_from(&mut arena);
            assert!(arena.is_empty() && header == written);
            assert_eq!(header, HeaderBytes::from(written.clone()));
            assert!(
                len != 38 || HeaderBytes::of::<38>(written.clone().try_into().unwrap()) == header
            );
            assert_eq!(header.slice(len / 2..), written[len / 2..]);
            assert_eq!(len <= HeaderBytes::SHORT, arena.as_ptr() == start);
        }
        assert!(size_of::<HeaderBytes>() <= 40);
    }
}
