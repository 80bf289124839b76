//! Messages longer than a packet, and their recognition at the receiver.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::{BufMut, BytesMut};
use udccp_base::{AppPort, Duration, Instant, Message, Payload, SendOutcome};

/// Bytes that identify a piece: message, time, number of the piece, number of pieces.
pub(super) const MARK: usize = 16;
/// Messages awaited at once; the receiver gives up older ones.
const AWAITED: usize = 512;

/// Offers `bytes` in pieces that the transport can send: whole to a byte stream, otherwise one
/// packet each. Returns the bytes accepted, which are fewer if the transport refused a piece.
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

/// A message that the transport has not accepted completely.
#[derive(Clone, Debug)]
pub(super) struct Partly {
    pub(super) id: u32,
    pub(super) made: Instant,
    pub(super) bytes: u32,
    pub(super) taken: u32,
    /// The last time at which the message is useful, if there is one.
    pub(super) deadline: Option<Instant>,
    pieces_taken: u16,
    pieces: u16,
}

impl Partly {
    /// A message of `bytes`, extended to the length of a mark if shorter.
    pub(super) fn new(id: u32, made: Instant, bytes: u32, deadline: Option<Instant>) -> Self {
        let bytes = bytes.max(MARK as u32);
        Self { id, made, bytes, taken: 0, deadline, pieces_taken: 0, pieces: 0 }
    }

    /// Offers the rest. Returns whether the transport has now accepted the whole message.
    pub(super) fn offer(&mut self, now: Instant, port: &mut dyn AppPort) -> bool {
        let marked = port.keeps_boundaries();
        if self.pieces == 0 {
            let most = (port.max_payload() as u32).max(2 * MARK as u32);
            self.pieces = self.bytes.div_ceil(most).min(u32::from(u16::MAX)) as u16;
        }
        while self.taken < self.bytes && port.is_writable() {
            // Equal pieces; the first ones are a byte longer if there is a remainder.
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

/// Reassembles messages at the receiver. A byte stream delivers only lengths, so there messages are
/// recognised by the order of sending.
#[derive(Clone, Debug, Default)]
pub(super) struct Assembly {
    /// For a stream: messages sent, with the stream's length at the end of each.
    sent: VecDeque<(u64, u32, Instant)>,
    sent_bytes: u64,
    got_bytes: u64,
    /// For datagrams: the pieces that have arrived.
    pieces: BTreeMap<u32, BTreeSet<u16>>,
}

impl Assembly {
    /// A message was sent.
    pub(super) fn expect(&mut self, message: &Partly) {
        self.sent_bytes += u64::from(message.bytes);
        self.sent.push_back((self.sent_bytes, message.id, message.made));
    }

    /// Data arrived. Calls `whole` once for each message that it completes, with the message's
    /// number and its time of creation.
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

/// The completion time `now`, and how long it took from `made`.
pub(super) fn since(now: Instant, made: Instant) -> (Instant, Duration) {
    (now, now.saturating_since(made))
}
