//! The messages of a stream.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Bytes of a message's header.
pub(super) const HEADER_BYTES: usize = 32;
/// Messages created at once.
pub(super) const BATCH: usize = 64;

/// First bytes of every message of a stream.
const MAGIC: [u8; 4] = *b"udpf";

/// The purpose of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Client to server: this connection carries a stream of a test.
    Attach,
    /// Server to client: confirmed.
    Attached,
    /// Measured data.
    Data,
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    /// Number of the stream in its test, from 0.
    pub(super) stream: u16,
    /// Number of the test, assigned by the server.
    pub(super) test: u64,
    /// Number of the message, from 0.
    pub(super) number: u64,
    /// Creation time in nanoseconds, on the sender's clock.
    pub(super) made_ns: u64,
}

impl Header {
    pub(super) fn write(&self, to: &mut [u8]) {
        let kind: u16 = match self.kind {
            Kind::Attach => 1,
            Kind::Attached => 2,
            Kind::Data => 3,
        };
        to[..4].copy_from_slice(&MAGIC);
        to[4..6].copy_from_slice(&kind.to_be_bytes());
        to[6..8].copy_from_slice(&self.stream.to_be_bytes());
        to[8..16].copy_from_slice(&self.test.to_be_bytes());
        to[16..24].copy_from_slice(&self.number.to_be_bytes());
        to[24..32].copy_from_slice(&self.made_ns.to_be_bytes());
    }

    /// Parses the header of a message; `None` if it is not one.
    pub(super) fn read(message: &[u8]) -> Option<Self> {
        let header: &[u8; HEADER_BYTES] = message.first_chunk()?;
        if header[..4] != MAGIC {
            return None;
        }
        let n16 = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let n64 = |at: usize| header[at..at + 8].iter().fold(0, |n, &b| n << 8 | u64::from(b));
        let kind = match n16(4) {
            1 => Kind::Attach,
            2 => Kind::Attached,
            3 => Kind::Data,
            _ => return None,
        };
        let (test, number, made_ns) = (n64(8), n64(16), n64(24));
        Some(Self { kind, stream: n16(6), test, number, made_ns })
    }

    /// A message that consists of this header only.
    pub(super) fn message(&self) -> Bytes {
        let mut bytes = BytesMut::zeroed(HEADER_BYTES);
        self.write(&mut bytes);
        bytes.freeze()
    }
}

/// Creates data messages in memory that is reused once they have been sent.
#[derive(Debug)]
pub(super) struct MessageFactory {
    length: usize,
    next: Header,
    lent: VecDeque<Bytes>,
}

impl MessageFactory {
    pub(super) fn new(test: u64, stream: u16, length: usize) -> Self {
        let next = Header { kind: Kind::Data, stream, test, number: 0, made_ns: 0 };
        Self { length, next, lent: VecDeque::new() }
    }

    /// Total bytes of the messages created so far.
    pub(super) fn bytes_made(&self) -> u64 {
        self.next.number * self.length as u64
    }

    /// Creates the next messages, at most [`BATCH`].
    pub(super) fn make(
        &mut self,
        count: usize,
        now_ns: u64,
    ) -> impl Iterator<Item = Bytes> + use<> {
        let count = count.min(BATCH);
        let mut block = self.block();
        self.next.made_ns = now_ns;
        for message in block.chunks_exact_mut(self.length).take(count) {
            self.next.write(message);
            self.next.number += 1;
        }
        let block = block.freeze();
        self.lent.push_back(block.clone());
        let length = self.length;
        (0..count).map(move |n| block.slice(n * length..(n + 1) * length))
    }

    /// Memory for a batch: the oldest block, unless part of it is still queued.
    fn block(&mut self) -> BytesMut {
        if let Some(oldest) = self.lent.pop_front() {
            match oldest.try_into_mut() {
                Ok(block) => return block,
                Err(in_use) => self.lent.push_front(in_use),
            }
        }
        BytesMut::zeroed(self.length * BATCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_round_trip() {
        let header =
            Header { kind: Kind::Attach, stream: 7, test: u64::MAX - 1, number: 3, made_ns: 9 };
        assert_eq!(Header::read(&header.message()), Some(header));
        assert_eq!(Header::read(&header.message()[..31]), None);
        assert_eq!(Header::read(&[0; 100]), None);
    }

    #[test]
    fn messages_are_numbered_and_their_memory_is_used_again() {
        let mut mint = MessageFactory::new(1, 2, 100);
        let first: Vec<Bytes> = mint.make(BATCH, 5).collect();
        assert_eq!(Header::read(&first[63]).unwrap().number, 63);
        let at = first[0].as_ptr();
        let second: Vec<Bytes> = mint.make(10, 6).collect();
        assert_ne!(second[0].as_ptr(), at, "the first block is still in use");
        assert_eq!((second.len(), Header::read(&second[0]).unwrap().number), (10, 64));
        drop(first);
        let third: Vec<Bytes> = mint.make(1, 7).collect();
        assert_eq!(third[0].as_ptr(), at);
    }
}
