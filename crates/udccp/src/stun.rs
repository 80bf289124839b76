//! STUN on the UDP port of DCCP: how hosts behind NATs learn their addresses.

use std::collections::VecDeque;
use std::net::SocketAddr;

use bytes::Bytes;

use crate::shared::Waiting;

/// Most unread messages. If there are more, the oldest are discarded.
const MAX_WAITING: usize = 64;

/// Bytes 4 to 8 of every STUN message (RFC 8489 section 5).
const MAGIC_COOKIE: [u8; 4] = 0x2112_a442_u32.to_be_bytes();
const HEADER_BYTES: usize = 20;

/// Whether a UDP payload is a STUN message (RFC 8489 section 5): the first two bits are zero, the
/// length fits, and the magic cookie is there. In a DCCP packet inside UDP, the last two bytes of
/// the cookie would be the checksum, which is sent as zero (RFC 6773 section 3.3), so neither is
/// taken for the other. The first byte alone, part of the DCCP port, would not tell them apart.
///
/// ```
/// let mut binding_request = vec![0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42];
/// binding_request.extend_from_slice(&[7; 12]);
/// assert!(udccp::is_stun(&binding_request));
/// assert!(!udccp::is_stun(&binding_request[..19]));
/// ```
pub fn is_stun(payload: &[u8]) -> bool {
    if payload.get(4..8) != Some(&MAGIC_COOKIE[..]) {
        return false;
    }
    let length = usize::from(u16::from_be_bytes([payload[2], payload[3]]));
    payload[0] & 0xc0 == 0 && length % 4 == 0 && payload.len() == HEADER_BYTES + length
}

/// STUN messages not read yet.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    messages: VecDeque<(Bytes, SocketAddr)>,
    pub(crate) readers: Waiting,
}

impl Inbox {
    /// Adds a received message.
    pub(crate) fn push(&mut self, message: Bytes, from: SocketAddr) {
        if self.messages.len() == MAX_WAITING {
            self.messages.pop_front();
        }
        self.messages.push_back((message, from));
    }

    /// Takes the oldest message.
    pub(crate) fn pop(&mut self) -> Option<(Bytes, SocketAddr)> {
        self.messages.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message whose header says `length`, with this many bytes of attributes.
    fn message(first: u8, length: u16, attributes: usize) -> Vec<u8> {
        let mut bytes = vec![first, 1];
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&MAGIC_COOKIE);
        bytes.resize(HEADER_BYTES + attributes, 7);
        bytes
    }

    #[test]
    fn stun_has_two_zero_bits_its_cookie_and_whole_words() {
        for (first, length) in [(0, 0), (1, 8), (0x3f, 1200)] {
            assert!(is_stun(&message(first, length, length.into())), "{first} {length}");
        }
        for (first, length, attributes) in
            [(0x40, 8, 8), (0x80, 8, 8), (0xff, 8, 8), (0, 8, 4), (0, 8, 12), (0, 0, 4), (0, 6, 6)]
        {
            assert!(!is_stun(&message(first, length, attributes)), "{first} {length} {attributes}");
        }
        for byte in 4..8 {
            let mut other = message(0, 0, 0);
            other[byte] ^= 1;
            assert!(!is_stun(&other), "byte {byte}");
        }
        assert!((0..HEADER_BYTES).all(|len| !is_stun(&message(0, 0, 0)[..len])));
    }

    #[test]
    fn memory_for_unread_stun_messages_is_bounded() {
        let mut inbox = Inbox::default();
        let from = |n: u16| SocketAddr::from(([192, 0, 2, 1], n));
        (0..100).for_each(|n| inbox.push(Bytes::new(), from(n)));
        let left: Vec<_> = std::iter::from_fn(|| inbox.pop()).map(|(_, at)| at.port()).collect();
        assert_eq!(left, (36..100).collect::<Vec<_>>(), "the newest");
    }
}
