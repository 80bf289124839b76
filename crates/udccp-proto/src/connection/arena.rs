//! Memory for the headers of outgoing packets.

use core::fmt;

use bytes::BytesMut;
use udccp_base::HeaderBytes;

/// Bytes of the first block. It is small, since most endpoints write few long headers.
const FIRST_BYTES: u32 = 64;
/// Maximum size of a block in bytes, except for a header that is longer.
const MOST_BYTES: u32 = 8 << 10;

/// A block into which headers are written; long ones are split off. A block is reused once
/// everything split off it is freed. Until then, a new block of twice the size replaces it.
#[derive(Clone)]
pub(crate) struct Arena {
    block: BytesMut,
    next_bytes: u32,
    /// The next header is likely to be about as long as the last.
    last_len: u32,
}

/// Leaves the contents out: tests compare an endpoint's state as text, and its memory is no part of
/// that.
impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena").finish_non_exhaustive()
    }
}

impl Default for Arena {
    fn default() -> Self {
        Self {
            block: BytesMut::new(),
            next_bytes: FIRST_BYTES,
            last_len: HeaderBytes::SHORT as u32,
        }
    }
}

impl Arena {
    /// An empty buffer for the next header.
    #[inline]
    pub(crate) fn buffer(&mut self) -> &mut BytesMut {
        self.reserve(self.last_len as usize + 16);
        &mut self.block
    }

    /// Takes the header that was written to [`Self::buffer`].
    #[inline]
    pub(crate) fn take(&mut self) -> HeaderBytes {
        self.last_len = self.block.len() as u32;
        HeaderBytes::take_from(&mut self.block)
    }

    /// A copy of a header.
    #[inline]
    pub(crate) fn copy(&mut self, header: &[u8]) -> HeaderBytes {
        if header.len() > HeaderBytes::SHORT {
            self.reserve(header.len());
        }
        HeaderBytes::copied(header, &mut self.block)
    }

    #[inline]
    fn reserve(&mut self, len: usize) {
        if self.block.capacity() < len {
            self.refill(len);
        }
    }

    #[inline(never)]
    fn refill(&mut self, len: usize) {
        if !self.block.try_reclaim(len) {
            self.block = BytesMut::with_capacity(len.max(self.next_bytes as usize));
            self.next_bytes = (2 * self.next_bytes).min(MOST_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(arena: &mut Arena) -> HeaderBytes {
        arena.buffer().resize(100, 7);
        arena.take()
    }

    #[test]
    fn blocks_grow_while_headers_are_read() {
        let mut arena = Arena::default();
        let kept: Vec<HeaderBytes> = (0..400).map(|_| write(&mut arena)).collect();
        assert_eq!(arena.next_bytes, MOST_BYTES);
        assert!(kept.iter().all(|header| *header == vec![7; 100]));
    }

    #[test]
    fn one_block_is_enough_where_headers_are_dropped() {
        let mut arena = Arena::default();
        (0..400).for_each(|_| drop(write(&mut arena)));
        assert_eq!(arena.next_bytes, 2 * FIRST_BYTES, "a second block was made");
    }

    #[test]
    fn short_headers_take_no_memory() {
        let mut arena = Arena::default();
        assert_eq!(arena.copy(&[3; HeaderBytes::SHORT]), vec![3; HeaderBytes::SHORT]);
        assert_eq!(arena.block.capacity(), 0);
        assert_eq!(arena.copy(&[3; 300]), vec![3; 300]);
    }
}
