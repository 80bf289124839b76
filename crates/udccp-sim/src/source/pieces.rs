//! Messages longer than a packet, and messages that are known again at the other end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::{BufMut, BytesMut};
use udccp_base::{AppPort, Duration, Instant, Message, Payload, SendOutcome};

/// Bytes by which a piece is known again: message, time, number of the piece, number of pieces.
pub(super) const MARK: usize = 16;
/// Messages of which pieces are awaited at once; older ones are given up at the receiver.
const AWAITED: usize = 512;

/// Offers `bytes` in pieces that the transport can send: whole to a byte stream, else one packet
/// each. Returns the bytes taken; fewer than offered when the transport refused one.
pub(super) fn offer_bytes(now: Instant, port: &mut dyn AppPort, bytes: u32) -> u32 {
    let most = match port.keeps_boundaries() {
        true => (port.max_payload() as u32).max(1),
        false => bytes,
    };
    let mut taken = 0;
    while taken < bytes {
        let piece = most.min(bytes - taken);
        match port.send(now, Message::new(Payload::Zeros(piece))) {
            SendOutcome::Accepted => taken += piece,
            SendOutcome::Full(_) | SendOutcome::Closed(_) => break,
        }
    }
    taken
}

/// A message of which the transport has not taken everything.
#[derive(Clone, Debug)]
pub(super) struct Partly {
    pub(super) id: u32,
    pub(super) made: Instant,
    pub(super) bytes: u32,
    pub(super) taken: u32,
    /// The last instant at which it is of use, if there is one.
    pub(super) deadline: Option<Instant>,
    pieces_taken: u16,
    pieces: u16,
}

impl Partly {
    /// A message of `bytes`; one that is shorter than a mark becomes as long as that.
    pub(super) fn new(id: u32, made: Instant, bytes: u32, deadline: Option<Instant>) -> Self {
        let bytes = bytes.max(MARK as u32);
        Self { id, made, bytes, taken: 0, deadline, pieces_taken: 0, pieces: 0 }
    }

    /// Offers what is left; returns whether the transport has it all now.
    pub(super) fn offer(&mut self, now: Instant, port: &mut dyn AppPort) -> bool {
        let marked = port.keeps_boundaries();
        if self.pieces == 0 {
            let most = (port.max_payload() as u32).max(2 * MARK as u32);
            self.pieces = self.bytes.div_ceil(most).min(u32::from(u16::MAX)) as u16;
        }
        while self.taken < self.bytes && port.is_writable() {
            // Equal pieces, the first ones longer by one where that is needed.
            let left = u32::from(self.pieces - self.pieces_taken).max(1);
            let piece = (self.bytes - self.taken).div_ceil(left);
            let payload = if marked { self.mark(piece) } else { Payload::Zeros(piece) };
            let message = Message { deadline: self.deadline, ..Message::new(payload) };
            match port.send(now, message) {
                SendOutcome::Accepted => {
                    self.taken += piece;
                    self.pieces_taken += 1;
                }
                SendOutcome::Full(_) | SendOutcome::Closed(_) => break,
            }
        }
        self.taken == self.bytes
    }

    fn mark(&self, bytes: u32) -> Payload {
        let mut piece = BytesMut::zeroed(bytes as usize);
        let mut head = &mut piece[..MARK];
        head.put_u32(self.id);
        head.put_u64(self.made.as_nanos());
        head.put_u16(self.pieces_taken);
        head.put_u16(self.pieces);
        Payload::Bytes(piece.freeze())
    }
}

/// Puts messages together again at the other end. A byte stream delivers lengths only, so there
/// the order of sending says what has arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct Assembly {
    /// Of a stream: messages sent, with the stream's length at their ends.
    sent: VecDeque<(u64, u32, Instant)>,
    sent_bytes: u64,
    got_bytes: u64,
    /// Of datagrams: pieces that arrived.
    pieces: BTreeMap<u32, BTreeSet<u16>>,
}

impl Assembly {
    /// A message is on its way.
    pub(super) fn expect(&mut self, message: &Partly) {
        self.sent_bytes += u64::from(message.bytes);
        self.sent.push_back((self.sent_bytes, message.id, message.made));
    }

    /// Data arrived; `whole` is told each message (its number, and when it was made) that is
    /// complete with it, once.
    pub(super) fn take(&mut self, payload: &Payload, mut whole: impl FnMut(u32, Instant)) {
        let bytes = match payload {
            Payload::Bytes(bytes) => bytes,
            Payload::Zeros(n) => {
                self.got_bytes += u64::from(*n);
                while self.sent.front().is_some_and(|(end, ..)| *end <= self.got_bytes) {
                    if let Some((_, id, made)) = self.sent.pop_front() {
                        whole(id, made);
                    }
                }
                return;
            }
        };
        let Some((mark, _)) = bytes.split_first_chunk::<MARK>() else { return };
        let [i0, i1, i2, i3, made @ .., p0, p1, n0, n1] = *mark;
        let (id, made) = (u32::from_be_bytes([i0, i1, i2, i3]), u64::from_be_bytes(made));
        let (piece, pieces) = (u16::from_be_bytes([p0, p1]), u16::from_be_bytes([n0, n1]));
        let arrived = self.pieces.entry(id).or_default();
        if arrived.insert(piece) && arrived.len() == usize::from(pieces) {
            whole(id, Instant::from_nanos(made));
        }
        while self.pieces.len() > AWAITED {
            self.pieces.pop_first();
        }
    }
}

/// How long something had taken.
pub(super) fn since(now: Instant, made: Instant) -> (Instant, Duration) {
    (now, now.saturating_since(made))
}
