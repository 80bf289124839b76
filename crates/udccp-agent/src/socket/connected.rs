//! Connects and accepts without blocking, for both TCP and the kernel's DCCP.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};

use socket2::Socket;

use crate::error::AgentError;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    Connecting,
    Open,
    Over,
}

/// Starts to connect; [`is_connected`] returns the outcome.
pub(super) fn connect(socket: &Socket, peer: SocketAddr) -> Result<(), AgentError> {
    match socket.connect(&peer.into()) {
        Ok(()) => Ok(()),
        Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
        Err(e) => Err(AgentError::connect(peer, e)),
    }
}

/// Whether the connection is open. Returns an error if it has failed.
pub(super) fn is_connected(socket: &Socket, peer: SocketAddr) -> Result<bool, AgentError> {
    if socket.peer_addr().is_ok() {
        return Ok(true);
    }
    match socket.take_error() {
        Ok(Some(e)) => Err(AgentError::connect(peer, e)),
        _ => Ok(false),
    }
}

/// Accepts a waiting connection and returns its peer. `what` names the two operations for errors:
/// to accept it, and to prepare its socket.
pub(super) fn accept(
    listener: &Socket,
    what: [&'static str; 2],
) -> Result<Option<(Socket, SocketAddr)>, AgentError> {
    let io = |what| move |source| AgentError::Io { what, source };
    let (socket, peer) = match listener.accept() {
        Ok((socket, peer)) => (socket, peer.as_socket()),
        Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(None),
        Err(e) => return Err(io(what[0])(e)),
    };
    socket.set_nonblocking(true).map_err(io(what[1]))?;
    let nobody = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    Ok(Some((socket, peer.unwrap_or(nobody))))
}

/// The port that a socket is bound to, or 0 if it is not bound.
pub(super) fn local_port(socket: &Socket) -> u16 {
    let local = socket.local_addr().ok().and_then(|a| a.as_socket());
    local.map_or(0, |a| a.port())
}
