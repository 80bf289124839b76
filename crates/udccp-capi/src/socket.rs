//! Sockets: one connection each.

use std::ffi::{c_char, c_int};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use libc::ssize_t;
#[cfg(not(windows))]
use udccp::Readiness;
use udccp::blocking::{Connecting, Connection, wait};
use udccp::{Address, Process, ServiceCode, State, errno};

use crate::error::{Failure, count, number, or_return};
use crate::pointer::{self, Owned};
use crate::text;

/// No connection, or one that has ended. These are the states of RFC 4340 section 4.3.
pub const UDCCP_CLOSED: c_int = 0;
/// Client: Request sent.
pub const UDCCP_REQUEST: c_int = 1;
/// Server: Response sent.
pub const UDCCP_RESPOND: c_int = 2;
/// Client: data can flow, though the server may not know it yet.
pub const UDCCP_PARTOPEN: c_int = 3;
/// Data flows.
pub const UDCCP_OPEN: c_int = 4;
/// Server: waiting for the client's Close.
pub const UDCCP_CLOSEREQ: c_int = 5;
/// Close sent.
pub const UDCCP_CLOSING: c_int = 6;
/// The connection has ended; its addresses and ports stay in use for a while.
pub const UDCCP_TIMEWAIT: c_int = 7;

/// One connection. Threads may share it: concurrent calls are safe. `udccp_socket_free` must be the
/// last call.
pub struct Socket {
    process: Process,
    peer: Address,
    service: ServiceCode,
    connection: OnceLock<Connection>,
    handshake: Mutex<Handshake>,
    /// The descriptor that the program uses. It is kept after a failed handshake: if it were
    /// closed, the program might wait on another file that has got its number.
    #[cfg(not(windows))]
    readiness: OnceLock<Readiness>,
}

enum Handshake {
    PendingHandshake(PendingHandshake),
    Done,
    Failed(Failure),
}

struct PendingHandshake {
    connecting: Connecting,
    /// Threads that wait for the handshake, to be woken if it is cancelled.
    waiting: Vec<Waker>,
}

impl PendingHandshake {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Connection, udccp::Error>> {
        let polled = self.connecting.poll_connect(cx);
        if polled.is_pending() && !self.waiting.iter().any(|w| w.will_wake(cx.waker())) {
            self.waiting.push(cx.waker().clone());
        }
        polled
    }
}

impl Owned for Socket {
    fn process(&self) -> Process {
        self.process
    }
}

impl Socket {
    pub(crate) fn connected(connection: Connection) -> Self {
        let (peer, service) = (connection.peer_addr(), connection.service_code());
        let socket = Self::new(peer, service, Handshake::Done);
        Self { connection: OnceLock::from(connection), ..socket }
    }

    pub(crate) fn connecting(connecting: Connecting, peer: Address, service: ServiceCode) -> Self {
        let underway = PendingHandshake { connecting, waiting: Vec::new() };
        Self::new(peer, service, Handshake::PendingHandshake(underway))
    }

    fn new(peer: Address, service: ServiceCode, handshake: Handshake) -> Self {
        Self {
            process: Process::current(),
            peer,
            service,
            connection: OnceLock::new(),
            handshake: Mutex::new(handshake),
            #[cfg(not(windows))]
            readiness: OnceLock::new(),
        }
    }

    fn handshake(&self) -> MutexGuard<'_, Handshake> {
        self.handshake.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection, once its handshake is complete.
    pub(crate) fn connection(&self, timeout: Option<Duration>) -> Result<&Connection, Failure> {
        if let Some(connection) = self.connection.get() {
            return Ok(connection);
        }
        let done = wait(timeout, |cx| {
            let mut handshake = self.handshake();
            let Handshake::PendingHandshake(underway) = &mut *handshake else {
                return Poll::Ready(Ok(()));
            };
            let connected = ready!(underway.poll(cx));
            *handshake = match connected {
                Ok(connection) => {
                    // Only this code sets it, and it holds the lock.
                    let _ = self.connection.set(connection);
                    Handshake::Done
                }
                Err(e) => Handshake::Failed(e.into()),
            };
            Poll::Ready(Ok(()))
        });
        done?;
        self.connection.get().ok_or_else(|| match &*self.handshake() {
            Handshake::Failed(failure) => failure.clone(),
            _ => Failure::AGAIN,
        })
    }

    /// Cancels the handshake if it is in progress, and wakes the threads that wait for it. Returns
    /// whether it was in progress.
    pub(crate) fn cancel(&self) -> bool {
        let waiting = {
            let mut handshake = self.handshake();
            let Handshake::PendingHandshake(underway) = &mut *handshake else { return false };
            let waiting = std::mem::take(&mut underway.waiting);
            *handshake = Handshake::Failed(udccp::Error::Closed.into());
            waiting
        };
        waiting.into_iter().for_each(Waker::wake);
        true
    }

    /// The descriptor that shows whether a call would wait; created at the first call.
    #[cfg(not(windows))]
    pub(crate) fn readiness(&self) -> Result<&Readiness, Failure> {
        if let Some(readiness) = self.readiness.get() {
            return Ok(readiness);
        }
        let readiness = self.new_readiness()?;
        Ok(self.readiness.get_or_init(|| readiness))
    }

    #[cfg(not(windows))]
    fn new_readiness(&self) -> Result<Readiness, Failure> {
        if let Some(connection) = self.connection.get() {
            return Ok(connection.readiness()?);
        }
        match &*self.handshake() {
            Handshake::PendingHandshake(underway) => return Ok(underway.connecting.readiness()?),
            Handshake::Failed(failure) => return Err(failure.clone()),
            Handshake::Done => {}
        }
        self.new_readiness()
    }

    fn state(&self) -> State {
        if let Some(connection) = self.connection.get() {
            return connection.state();
        }
        match &*self.handshake() {
            Handshake::PendingHandshake(underway) => underway.connecting.state(),
            _ => self.connection.get().map_or(State::Closed, Connection::state),
        }
    }

    fn local(&self) -> Result<Address, Failure> {
        if let Some(connection) = self.connection.get() {
            return Ok(connection.local_addr());
        }
        match &*self.handshake() {
            Handshake::PendingHandshake(underway) => {
                underway.connecting.local_addr().ok_or(Failure::AGAIN)
            }
            Handshake::Failed(failure) => Err(failure.clone()),
            Handshake::Done => self.connection(None).map(Connection::local_addr),
        }
    }
}

const fn state_number(state: State) -> c_int {
    match state {
        State::Closed | State::Listen => UDCCP_CLOSED,
        State::Request => UDCCP_REQUEST,
        State::Respond => UDCCP_RESPOND,
        State::PartOpen => UDCCP_PARTOPEN,
        State::Open => UDCCP_OPEN,
        State::CloseReq => UDCCP_CLOSEREQ,
        State::Closing => UDCCP_CLOSING,
        State::TimeWait => UDCCP_TIMEWAIT,
    }
}

/// The state of the connection: one of `UDCCP_CLOSED` to `UDCCP_TIMEWAIT`, or `-EBADF`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_state(socket: *const Socket) -> c_int {
    number(|| Ok(state_number(pointer::handle(socket)?.state())))
}

/// How the connection ended, as in `SO_ERROR`: 0 while it is open and after an orderly close,
/// otherwise a negative error, such as `-ECONNRESET` (aborted), `-ETIMEDOUT` (the peer fell
/// silent), or that of the handshake. Reading it does not clear it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_error(socket: *const Socket) -> c_int {
    number(|| {
        let socket = pointer::handle(socket)?;
        match socket.connection(Some(Duration::ZERO)) {
            Ok(connection) => Ok(-connection.close_reason().map_or(0, errno::of_close_reason)),
            Err(failure) if failure.is_again() => Ok(0),
            Err(failure) => Err(failure),
        }
    })
}

/// Writes the text with which the peer explained its Reset (RFC 4340 section 5.6). Returns the
/// length as `udccp_service_text` does; 0 if it sent none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_reset_text(
    socket: *const Socket,
    buffer: *mut c_char,
    size: usize,
) -> ssize_t {
    count(|| {
        let connection = pointer::handle(socket)?.connection(Some(Duration::ZERO))?;
        text::write(&connection.reset_text().unwrap_or_default(), buffer, size)
    })
}

/// Writes the peer's address and ports in the form that `udccp_connect` takes. Returns the length
/// as `udccp_service_text` does; 80 bytes are enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_peer(
    socket: *const Socket,
    buffer: *mut c_char,
    size: usize,
) -> ssize_t {
    count(|| text::write(&pointer::handle(socket)?.peer.to_string(), buffer, size))
}

/// Writes our address and ports in the same form.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_local(
    socket: *const Socket,
    buffer: *mut c_char,
    size: usize,
) -> ssize_t {
    count(|| text::write(&pointer::handle(socket)?.local()?.to_string(), buffer, size))
}

/// The service code that client and server agreed on; 0 for NULL and in a forked child.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_service(socket: *const Socket) -> u32 {
    or_return(0, || Ok(pointer::handle(socket)?.service.0))
}

/// The largest message that fits in one packet of this path now, in bytes; 0 before the handshake
/// is complete, for NULL, and in a forked child.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_max_message_size(socket: *const Socket) -> usize {
    or_return(0, || {
        let socket = pointer::handle(socket)?;
        Ok(socket.connection(Some(Duration::ZERO)).map_or(0, Connection::max_message_size))
    })
}

/// Frees a socket. An open connection closes in order in the background, or at the end of the
/// process: what is queued is still sent, within the linger time. A handshake is cancelled. NULL is
/// allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_free(socket: *mut Socket) {
    or_return((), || {
        drop(pointer::take_back(socket));
        Ok(())
    });
}
