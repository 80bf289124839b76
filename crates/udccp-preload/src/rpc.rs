//! One request to the broker: connect, send, read the reply, disconnect.

use core::ffi::{c_int, c_void};

use crate::abi::*;
use crate::protocol::{HEADER_BYTES, MAX_PAYLOAD, Op, Reply, Request, Unreadable};
use crate::{start, sys};

/// Time to wait for a new broker, in steps of [`STEP_MS`].
const START_STEPS: usize = 1000;
const STEP_MS: i64 = 5;
/// Seconds after which a broker that does not reply counts as dead.
const REPLY_LIMIT_S: i64 = 30;
/// The same for a ring: without it, messages take the pair, and the call must not wait for long.
const RING_LIMIT_S: i64 = 1;

/// The broker's reply.
#[derive(Debug)]
pub struct Answer {
    /// The header, whose errno is 0.
    pub reply: Reply,
    /// The payload.
    pub payload: [u8; MAX_PAYLOAD],
    /// The descriptor, or -1.
    pub fd: c_int,
}

impl Answer {
    /// The payload.
    pub fn bytes(&self) -> &[u8] {
        &self.payload[..self.reply.len as usize]
    }
}

/// Sends a request and returns the reply. A request for a socket starts a broker if none runs.
///
/// # Errors
/// The broker's errno; ECONNRESET if it has died.
pub fn call(op: Op, cookie: u64, a: i32, b: i32, payload: &[u8]) -> Result<Answer, c_int> {
    let request = Request { op, cookie, a, b, len: payload.len() as u32 };
    let is_first = op == Op::Socket && cookie == 0;
    let mut tries = 0;
    let mut was_started = false;
    loop {
        match call_once(&request, payload) {
            Err(CallError::NoBroker) if is_first && tries < START_STEPS => {
                if !was_started {
                    was_started = true;
                    if !start::broker() {
                        sys::write_stderr(b"udccp: cannot start the broker\n");
                        return Err(ESOCKTNOSUPPORT);
                    }
                } else {
                    sys::sleep_ms(STEP_MS);
                }
                tries += 1;
                // The broker may just be exiting, because its last program did; start another one.
                if tries % 100 == 0 {
                    was_started = false;
                }
            }
            Err(CallError::NoBroker) if is_first => {
                sys::write_stderr(b"udccp: the broker does not start\n");
                return Err(ESOCKTNOSUPPORT);
            }
            Err(CallError::Silent) if is_first => {
                sys::write_stderr(b"udccp: the broker does not answer\n");
                return Err(ESOCKTNOSUPPORT);
            }
            Err(CallError::NoBroker | CallError::Silent) => return Err(ECONNRESET),
            Err(CallError::Version) => {
                sys::write_stderr(
                    b"udccp: a broker of another version is running: stop the programs that use \
                      it\n",
                );
                return Err(EPROTO);
            }
            Err(CallError::Errno(e)) => return Err(e),
            Ok(answer) if answer.reply.errno != 0 => return Err(answer.reply.errno),
            // The descriptor was sent, but this process had no room for it.
            Ok(answer) if answer.fd < 0 && op.gives_descriptor() => return Err(EMFILE),
            Ok(answer) => return Ok(answer),
        }
    }
}

enum CallError {
    NoBroker,
    Silent,
    Version,
    Errno(c_int),
}

fn call_once(request: &Request, payload: &[u8]) -> Result<Answer, CallError> {
    let fd = sys::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if fd < 0 {
        return Err(CallError::Errno(-fd as c_int));
    }
    let fd = fd as c_int;
    let answer = exchange(fd, request, payload);
    sys::close(fd);
    answer
}

fn exchange(fd: c_int, request: &Request, payload: &[u8]) -> Result<Answer, CallError> {
    let Some(address) = start::address() else { return Err(CallError::NoBroker) };
    loop {
        match sys::connect_unix(fd, &address) {
            0 => break,
            e if e == -EINTR as isize => {}
            e if [ENOENT, ECONNREFUSED].contains(&(-e as c_int)) => {
                return Err(CallError::NoBroker);
            }
            e => return Err(CallError::Errno(-e as c_int)),
        }
    }
    let limit_s = if request.op == Op::Ring { RING_LIMIT_S } else { REPLY_LIMIT_S };
    sys::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, [limit_s, 0].as_ptr().cast(), 16);
    let until_s = sys::monotonic().sec + limit_s;
    let mut header = request.encode();
    let mut pieces = [
        IoVec { base: header.as_mut_ptr().cast(), len: HEADER_BYTES },
        IoVec { base: payload.as_ptr().cast_mut().cast(), len: payload.len() },
    ];
    let message = MsgHdr::of(pieces.as_mut_ptr(), 2);
    loop {
        // The request is smaller than any send buffer, so it is sent whole.
        match sys::sendmsg(fd, &message, MSG_NOSIGNAL) {
            e if e == -EINTR as isize => {}
            e if e < 0 => return Err(CallError::NoBroker),
            _ => break,
        }
    }
    read_answer(fd, until_s)
}

/// Reads the reply until this second of the monotonic clock.
fn read_answer(fd: c_int, until_s: i64) -> Result<Answer, CallError> {
    let mut header = [0u8; HEADER_BYTES];
    let passed = read_exactly(fd, &mut header, until_s)?;
    let reply = match Reply::decode(&header) {
        Ok(reply) => reply,
        Err(Unreadable::Version(_)) => return Err(CallError::Version),
        Err(Unreadable::Garbage) => return Err(CallError::Errno(EPROTO)),
    };
    let mut answer = Answer { reply, payload: [0; MAX_PAYLOAD], fd: passed };
    read_exactly(fd, &mut answer.payload[..reply.len as usize], until_s)?;
    Ok(answer)
}

/// Fills a buffer. Returns the descriptor that came with the data, or -1.
fn read_exactly(fd: c_int, into: &mut [u8], until_s: i64) -> Result<c_int, CallError> {
    let mut passed = -1;
    let mut at = 0;
    while at < into.len() {
        let rest = &mut into[at..];
        let mut piece = IoVec { base: rest.as_mut_ptr().cast(), len: rest.len() };
        let mut control = Control::new();
        let mut message = MsgHdr::of(&raw mut piece, 1);
        control.attach(&mut message);
        match sys::recvmsg(fd, &mut message, MSG_CMSG_CLOEXEC) {
            // The kernel's timeout begins again, so signals could extend it for ever.
            e if e == -EINTR as isize && sys::monotonic().sec <= until_s => {}
            e if [EINTR, EAGAIN].contains(&(-e as c_int)) => return Err(CallError::Silent),
            n if n <= 0 => return Err(CallError::NoBroker),
            n => at += n as usize,
        }
        passed = control.descriptor(&message).unwrap_or(passed);
    }
    Ok(passed)
}

/// Control data with room for one descriptor.
#[repr(C, align(8))]
pub struct Control {
    header: CMsgHdr,
    fd: c_int,
    pad: c_int,
}

impl Control {
    /// Empty.
    pub fn new() -> Self {
        Self { header: CMsgHdr { len: 0, level: 0, kind: 0 }, fd: -1, pad: 0 }
    }

    /// Makes a message receive its descriptor here.
    pub fn attach(&mut self, message: &mut MsgHdr) {
        message.control = core::ptr::from_mut(self).cast::<c_void>();
        message.control_len = size_of::<Self>();
    }

    /// The received descriptor.
    pub fn descriptor(&self, message: &MsgHdr) -> Option<c_int> {
        let came = message.control_len >= size_of::<CMsgHdr>() + size_of::<c_int>();
        let is_ours = self.header.level == SOL_SOCKET && self.header.kind == SCM_RIGHTS;
        (came && is_ours).then_some(self.fd)
    }
}

impl Default for Control {
    fn default() -> Self {
        Self::new()
    }
}
