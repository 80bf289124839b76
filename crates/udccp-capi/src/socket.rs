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

use crate::error::{Failure, count, number, otherwise};
use crate::pointer::{self, Owned};
use crate::text;

/// Where a connection stands (RFC 4340 section 4.3).
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
/// Over.
pub const UDCCP_TIMEWAIT: c_int = 7;

/// One connection. Threads may share it: calls of several at once are safe, but for
/// `udccp_socket_free`, which has to be the last one.
pub struct Socket {
    process: Process,
    peer: Address,
    service: ServiceCode,
    connection: OnceLock<Connection>,
    handshake: Mutex<Handshake>,
    /// The descriptor that the program has. It stays although a handshake has failed: closed, its
    /// number would soon be that of another file, on which the program waits.
    #[cfg(not(windows))]
    readiness: OnceLock<Readiness>,
}

enum Handshake {
    Underway(Underway),
    Done,
    Failed(Failure),
}

struct Underway {
    connecting: Connecting,
    /// Threads that wait for it, to be told if it is cancelled.
    waiting: Vec<Waker>,
}

impl Underway {
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
        let underway = Underway { connecting, waiting: Vec::new() };
        Self::new(peer, service, Handshake::Underway(underway))
    }

    fn new(peer: Address, service: ServiceCode, handshake: Handshake) -> Self {
        Self {
            process: Process::this(),
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

    /// The connection, once its handshake is done.
    pub(crate) fn connection(&self, timeout: Option<Duration>) -> Result<&Connection, Failure> {
        if let Some(connection) = self.connection.get() {
            return Ok(connection);
        }
        let done = wait(timeout, |cx| {
            let mut handshake = self.handshake();
            let Handshake::Underway(underway) = &mut *handshake else {
                return Poll::Ready(Ok(()));
            };
            let connected = ready!(underway.poll(cx));
            *handshake = match connected {
                Ok(connection) => {
                    // Nobody else sets it: the lock is held.
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

    /// Ends the handshake, if it is under way, and what waits for it. Returns whether it was.
    pub(crate) fn cancel(&self) -> bool {
        let waiting = {
            let mut handshake = self.handshake();
            let Handshake::Underway(underway) = &mut *handshake else { return false };
            let waiting = std::mem::take(&mut underway.waiting);
            *handshake = Handshake::Failed(udccp::Error::Closed.into());
            waiting
        };
        waiting.into_iter().for_each(Waker::wake);
        true
    }

    /// What shows whether a call would wait, from the first time on that somebody asks.
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
            Handshake::Underway(underway) => return Ok(underway.connecting.readiness()?),
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
            Handshake::Underway(underway) => underway.connecting.state(),
            _ => self.connection.get().map_or(State::Closed, Connection::state),
        }
    }

    fn local(&self) -> Result<Address, Failure> {
        if let Some(connection) = self.connection.get() {
            return Ok(connection.local_addr());
        }
        match &*self.handshake() {
            Handshake::Underway(underway) => underway.connecting.local_addr().ok_or(Failure::AGAIN),
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

/// Where the connection stands: one of `UDCCP_CLOSED` to `UDCCP_TIMEWAIT`, or `-EBADF`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_state(socket: *const Socket) -> c_int {
    number(|| Ok(state_number(pointer::handle(socket)?.state())))
}

/// What the connection ended with, as `SO_ERROR` gives it: 0 while it lives or after an orderly
/// end, else a negative error: `-ECONNRESET` (aborted), `-ETIMEDOUT` (the peer fell silent) and so
/// on, or that of the handshake. Asking does not change it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_error(socket: *const Socket) -> c_int {
    number(|| {
        let socket = pointer::handle(socket)?;
        match socket.connection(Some(Duration::ZERO)) {
            Ok(connection) => Ok(-connection.close_reason().map_or(0, errno::of_end)),
            Err(failure) if failure.is_again() => Ok(0),
            Err(failure) => Err(failure),
        }
    })
}

/// Writes what the peer said in words when it reset the connection (RFC 4340 section 5.6). Returns
/// the length as `udccp_service_text` does; 0 where it said nothing.
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

/// Writes the peer's address and ports as `udccp_connect` takes them. Returns the length as
/// `udccp_service_text` does; 80 bytes are enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_peer(
    socket: *const Socket,
    buffer: *mut c_char,
    size: usize,
) -> ssize_t {
    count(|| text::write(&pointer::handle(socket)?.peer.to_string(), buffer, size))
}

/// Writes our address and ports, as `udccp_socket_peer` does.
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
    otherwise(0, || Ok(pointer::handle(socket)?.service.0))
}

/// The largest message in bytes that fits in one packet of this path now; 0 before the handshake is
/// done, after the end and in a forked child.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_max_message_size(socket: *const Socket) -> usize {
    otherwise(0, || {
        let socket = pointer::handle(socket)?;
        Ok(socket.connection(Some(Duration::ZERO)).map_or(0, Connection::max_message_size))
    })
}

/// Frees a socket. A connection that is open closes in order in the background: what is queued is
/// still sent, within the time to linger, and so at the end of the process. A handshake is
/// cancelled. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_free(socket: *mut Socket) {
    otherwise((), || {
        drop(pointer::take_back(socket));
        Ok(())
    });
}
