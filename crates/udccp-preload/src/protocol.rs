//! The protocol between the preload library and the broker.
//!
//! - Requests: each uses one stream connection to the broker's socket, with one [`Request`] and its
//!   payload, answered by one [`Reply`] with its payload and at most one descriptor.
//! - Frames: packets that the program sends over its socket pair. Those with a message are all
//!   [`FRAME_BYTES`] long. A bell is only a header, and both sides send it.
//! - The region: shared memory that the broker writes and programs read, with one slot per socket.
//!
//! Numbers are in native byte order: both ends run on the same machine. [`VERSION`] changes with
//! any of this, and both ends refuse another version.

/// Version of this module's protocol.
pub const VERSION: u16 = 9;
/// First bytes of requests, replies and the region.
pub const MAGIC: u32 = u32::from_ne_bytes(*b"uDCP");
/// Bytes of a request or a reply without payload.
pub const HEADER_BYTES: usize = 32;
/// Largest payload of a request or a reply in bytes.
pub const MAX_PAYLOAD: usize = 1024;

/// Bytes of a frame. With this size, the kernel charges the same for every message up to
/// [`MAX_MESSAGE`], and a page holds two frames.
pub const FRAME_BYTES: usize = 1700;
/// Bytes of a frame before its data.
pub const FRAME_HEADER: usize = 24;
/// Largest message in a frame in bytes. The path MTU of the sockets is smaller.
pub const MAX_MESSAGE: usize = FRAME_BYTES - FRAME_HEADER;
/// A frame that carries a message.
pub const FRAME_DATA: u32 = 1;
/// A plug: a frame that only keeps the socket from being writable.
pub const FRAME_PLUG: u32 = 2;
/// A bell: a frame without data that announces news in the shared memory of the [`crate::ring`]. In
/// a bell from the broker, a number replaces the priority.
pub const FRAME_BELL: u32 = 3;
/// Bytes of a plug where messages go through the ring. The kernel charges more for it than for a
/// frame.
pub const RING_PLUG_BYTES: usize = 6000;
/// Capacity of the socket pair in frames where messages go through the ring.
pub const RING_PAIR_FRAMES: usize = 2;
/// Largest capacity of a socket pair in frames.
pub const MAX_PAIR_FRAMES: usize = 40;

/// Environment variable: the folder of the broker's sockets.
pub const ENV_DIR: &str = "UDCCP_RUN_DIR";
/// Environment variable: the program that runs as the broker.
pub const ENV_BROKER: &str = "UDCCP_RUN_BROKER";
/// Environment variable: settings of new sockets, written by `udccp run`.
pub const ENV_SETTINGS: &str = "UDCCP_RUN_SETTINGS";

/// Sockets of a region.
pub const SLOTS: usize = 8192;
/// Bytes of the region before its slots.
pub const REGION_HEADER: usize = 64;
/// Bytes of a slot.
pub const SLOT_BYTES: usize = 128;
/// Bytes of the region.
pub const REGION_BYTES: usize = REGION_HEADER + SLOTS * SLOT_BYTES;
/// Offset in the region: magic and version, as one number.
pub const REGION_MAGIC_AT: usize = 0;
/// Offset in the region: the key at the start of frames.
pub const REGION_KEY_AT: usize = 8;
/// Offset in the region: what the kernel charges for a frame, in bytes of send buffer.
pub const REGION_CHARGE_AT: usize = 16;
/// Offset in a slot: the cookie of the program's end, 0 in a free slot.
pub const SLOT_COOKIE_AT: usize = 0;
/// Offset in a slot: one of the states below.
pub const SLOT_STATE_AT: usize = 8;
/// Offset in a slot: largest message in bytes.
pub const SLOT_MPS_AT: usize = 12;
/// Offset in a slot: the pending error, or 0.
pub const SLOT_ERROR_AT: usize = 16;
/// Offset in a slot: faults of Linux to copy, as the bits below.
pub const SLOT_FAULTS_AT: usize = 20;
/// Offset in a slot: whether the family is IPv6.
pub const SLOT_V6_AT: usize = 24;
/// Offset in a slot: whether the queue policy has priorities.
pub const SLOT_PRIO_AT: usize = 28;
/// Offset in a slot: length of the local address, then the address.
pub const SLOT_LOCAL_AT: usize = 32;
/// Offset in a slot: length of the peer's address, then the address.
pub const SLOT_PEER_AT: usize = 64;
/// Offset in a slot: capacity of the socket pair in frames.
pub const SLOT_FRAMES_AT: usize = 96;
/// Bytes of the largest address (IPv6).
pub const ADDRESS_BYTES: usize = 28;

/// Neither connected nor listening.
pub const STATE_CLOSED: u32 = 0;
/// Connecting.
pub const STATE_CONNECTING: u32 = 1;
/// Connected.
pub const STATE_OPEN: u32 = 2;
/// Listening.
pub const STATE_LISTENING: u32 = 3;
/// Was connected, and has ended.
pub const STATE_ENDED: u32 = 4;

/// A blocking send returns EAGAIN if the queue is full.
pub const FAULT_EAGAIN: u32 = 1;
/// Reading from a reset connection returns end-of-file; the error stays in SO_ERROR.
pub const FAULT_RESET_IS_END: u32 = 2;
/// recvfrom returns no address.
pub const FAULT_NO_SOURCE: u32 = 4;
/// close discards queued messages, unless SO_LINGER sets a time.
pub const FAULT_CLOSE_DROPS: u32 = 8;
/// The faults by name.
pub const FAULTS: [(&str, u32); 4] = [
    ("send-eagain", FAULT_EAGAIN),
    ("reset-is-end", FAULT_RESET_IS_END),
    ("no-source", FAULT_NO_SOURCE),
    ("close-drops", FAULT_CLOSE_DROPS),
];

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Op {
    /// Get the region. Reply: its descriptor.
    Region = 1,
    /// Open a socket of family `a`; payload: settings. If a cookie is given, its socket's options
    /// are copied. Reply: descriptor; `value` is the slot.
    Socket = 2,
    /// Get the slot of a socket that another process opened. Reply: `value`.
    Attach = 3,
    /// Bind. Payload: address.
    Bind = 4,
    /// Listen; `a` is the backlog.
    Listen = 5,
    /// Connect. Payload: address. Reply: EINPROGRESS or another error.
    Connect = 6,
    /// Get option `b` of level `a`; payload: buffer length as `u32`. Reply: the value; `value` is
    /// its full length.
    GetOption = 7,
    /// Set option `b` of level `a`; payload: value. Reply: `value` is the send buffer to set, or 0.
    SetOption = 8,
    /// Take the pending error. Reply: `value`.
    TakeError = 9,
    /// `shutdown` of a connection; `a` says whether for reading, sending or both.
    Shutdown = 10,
    /// Get the number of unsent bytes. Reply: `value`.
    Unsent = 11,
    /// Get the shared memory for a connection's messages. Reply: descriptor; `value` is the send
    /// buffer to set.
    Ring = 12,
    /// Abort a handshake, which fails with ECONNRESET, or stop listening.
    Disconnect = 13,
}

impl Op {
    /// Whether a descriptor comes with the reply.
    pub const fn gives_descriptor(self) -> bool {
        matches!(self, Op::Region | Op::Socket | Op::Ring)
    }

    /// The operation with a number.
    pub fn of(number: u16) -> Option<Self> {
        const ALL: [Op; 13] = [
            Op::Region,
            Op::Socket,
            Op::Attach,
            Op::Bind,
            Op::Listen,
            Op::Connect,
            Op::GetOption,
            Op::SetOption,
            Op::TakeError,
            Op::Shutdown,
            Op::Unsent,
            Op::Ring,
            Op::Disconnect,
        ];
        ALL.into_iter().find(|op| *op as u16 == number)
    }
}

/// A request without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The operation.
    pub op: Op,
    /// The program's end of the socket, by its SO_COOKIE.
    pub cookie: u64,
    /// First argument.
    pub a: i32,
    /// Second argument.
    pub b: i32,
    /// Bytes of payload that follow.
    pub len: u32,
}

/// A reply without its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The error, or 0.
    pub errno: i32,
    /// Result.
    pub value: i32,
    /// Bytes of payload that follow.
    pub len: u32,
}

/// Why a header is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It does not belong to this protocol, or is too long.
    Garbage,
    /// The other end has another version.
    Version(u16),
}

fn header(number: u16) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..4].copy_from_slice(&MAGIC.to_ne_bytes());
    bytes[4..6].copy_from_slice(&VERSION.to_ne_bytes());
    bytes[6..8].copy_from_slice(&number.to_ne_bytes());
    bytes
}

fn check(bytes: &[u8; HEADER_BYTES]) -> Result<u32, Unreadable> {
    let len = u32_at(bytes, 24);
    let version = u16::from_ne_bytes([bytes[4], bytes[5]]);
    if u32_at(bytes, 0) != MAGIC || len as usize > MAX_PAYLOAD {
        return Err(Unreadable::Garbage);
    }
    if version != VERSION { Err(Unreadable::Version(version)) } else { Ok(len) }
}

/// Reads a number.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(number)
}

/// Reads a number.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(number)
}

impl Request {
    /// Encodes the header.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = header(self.op as u16);
        bytes[8..16].copy_from_slice(&self.cookie.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.a.to_ne_bytes());
        bytes[20..24].copy_from_slice(&self.b.to_ne_bytes());
        bytes[24..28].copy_from_slice(&self.len.to_ne_bytes());
        bytes
    }

    /// Decodes a header.
    ///
    /// # Errors
    /// Another version, or not a request.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Unreadable> {
        let len = check(bytes)?;
        let op = Op::of(u16::from_ne_bytes([bytes[6], bytes[7]])).ok_or(Unreadable::Garbage)?;
        let (a, b) = (u32_at(bytes, 16).cast_signed(), u32_at(bytes, 20).cast_signed());
        Ok(Self { op, cookie: u64_at(bytes, 8), a, b, len })
    }
}

impl Reply {
    /// Encodes the header.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = header(0);
        bytes[8..12].copy_from_slice(&self.errno.to_ne_bytes());
        bytes[12..16].copy_from_slice(&self.value.to_ne_bytes());
        bytes[24..28].copy_from_slice(&self.len.to_ne_bytes());
        bytes
    }

    /// Decodes a header.
    ///
    /// # Errors
    /// Another version, or not a reply.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Unreadable> {
        let len = check(bytes)?;
        let errno = u32_at(bytes, 8).cast_signed();
        Ok(Self { errno, value: u32_at(bytes, 12).cast_signed(), len })
    }
}

/// The header of a frame: key, kind, priority, length of the data.
pub fn frame_header(key: u64, kind: u32, priority: u32, len: usize) -> [u8; FRAME_HEADER] {
    let mut bytes = [0; FRAME_HEADER];
    bytes[..8].copy_from_slice(&key.to_ne_bytes());
    bytes[8..12].copy_from_slice(&kind.to_ne_bytes());
    bytes[12..16].copy_from_slice(&priority.to_ne_bytes());
    bytes[16..20].copy_from_slice(&(len as u32).to_ne_bytes());
    bytes
}

/// A packet from the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A message with its priority.
    Data(&'a [u8], u32),
    /// Only keeps the socket from being writable.
    Plug,
    /// The ring has news.
    Bell,
}

/// Parses a packet from the program. Without our key, it was not written by the library (but by
/// io_uring or the C library's buffered streams), and the whole packet is a message.
pub fn read_frame(key: u64, packet: &[u8]) -> Frame<'_> {
    if packet.len() < FRAME_HEADER || u64_at(packet, 0) != key {
        return Frame::Data(packet, 0);
    }
    match u32_at(packet, 8) {
        FRAME_PLUG => Frame::Plug,
        FRAME_BELL => Frame::Bell,
        _ => {
            let end = FRAME_HEADER + (u32_at(packet, 16) as usize).min(packet.len() - FRAME_HEADER);
            Frame::Data(&packet[FRAME_HEADER..end], u32_at(packet, 12))
        }
    }
}

/// The number of a bell from the broker; `None` for any other packet.
pub fn read_bell(key: u64, packet: &[u8]) -> Option<u32> {
    let is_bell =
        packet.len() == FRAME_HEADER && u64_at(packet, 0) == key && u32_at(packet, 8) == FRAME_BELL;
    is_bell.then(|| u32_at(packet, 12))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_replies_round_trip() {
        let request = Request { op: Op::GetOption, cookie: 7, a: -1, b: 269, len: 4 };
        assert_eq!(Request::decode(&request.encode()), Ok(request));
        let reply = Reply { errno: 111, value: -5, len: 9 };
        assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
    }

    #[test]
    fn other_versions_are_distinguished_from_garbage() {
        let mut bytes = Reply::default().encode();
        bytes[4] = 99;
        assert_eq!(Reply::decode(&bytes), Err(Unreadable::Version(99)));
        bytes[0] = 0;
        assert_eq!(Reply::decode(&bytes), Err(Unreadable::Garbage));
        let long = Reply { errno: 0, value: 0, len: 1 << 20 };
        assert_eq!(Reply::decode(&long.encode()), Err(Unreadable::Garbage));
    }

    #[test]
    fn a_packet_without_the_key_is_a_message() {
        let mut packet = [0; FRAME_BYTES];
        packet[..FRAME_HEADER].copy_from_slice(&frame_header(5, FRAME_DATA, 9, 3));
        packet[FRAME_HEADER..FRAME_HEADER + 3].copy_from_slice(b"abc");
        assert_eq!(read_frame(5, &packet), Frame::Data(b"abc", 9));
        assert_eq!(read_frame(6, &packet), Frame::Data(&packet, 0));
        assert_eq!(read_frame(5, b"raw"), Frame::Data(b"raw", 0));
    }
}
