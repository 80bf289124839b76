//! Error numbers of the system for the ends of connections, as Linux's DCCP assigned them.
//!
//! C, Python and old programs all use this table.
//!
//! | Reset code | `errno` |
//! |---|---|
//! | 0 Unspecified, 1 Closed, 12 and up | 0 |
//! | 2 Aborted | `ECONNRESET` |
//! | 3 No Connection, 7 Connection Refused | `ECONNREFUSED` |
//! | 4 Packet Error | `ENOMSG` |
//! | 5 Option Error | `EILSEQ` |
//! | 6 Mandatory Error | `EOPNOTSUPP` |
//! | 8 Bad Service Code | `EBADRQC` |
//! | 9 Too Busy | `EUSERS` |
//! | 10 Bad Init Cookie | `EBADR` |
//! | 11 Aggression Penalty | `EDQUOT` |
//!
//! Systems without `EBADRQC` and `EBADR` have `EINVAL` instead. On Windows the numbers are those of
//! `errno.h`, with `WSAEUSERS` and `WSAEDQUOT` for the two that it lacks.

use std::io;

use udccp_proto::{CloseReason, ConfigError, ConnectError, State};
use udccp_wire::ResetCode;

use crate::{Error, TryRecvError, TrySendError};

#[cfg(target_os = "linux")]
const BAD_REQUEST_CODE: i32 = libc::EBADRQC;
#[cfg(not(target_os = "linux"))]
const BAD_REQUEST_CODE: i32 = libc::EINVAL;
#[cfg(target_os = "linux")]
const BAD_REQUEST: i32 = libc::EBADR;
#[cfg(not(target_os = "linux"))]
const BAD_REQUEST: i32 = libc::EINVAL;

/// Error number of Too Busy: `EUSERS`, or `WSAEUSERS` of `winsock2.h`.
#[cfg(not(windows))]
pub const EUSERS: i32 = libc::EUSERS;
/// Error number of Too Busy: `EUSERS`, or `WSAEUSERS` of `winsock2.h`.
#[cfg(windows)]
pub const EUSERS: i32 = 10_068;
/// Error number of Aggression Penalty: `EDQUOT`, or `WSAEDQUOT` of `winsock2.h`.
#[cfg(not(windows))]
pub const EDQUOT: i32 = libc::EDQUOT;
/// Error number of Aggression Penalty: `EDQUOT`, or `WSAEDQUOT` of `winsock2.h`.
#[cfg(windows)]
pub const EDQUOT: i32 = 10_069;

/// Reset codes that have an error number. Of several with the same number, the first is the one
/// that `to_reset` returns.
const RESETS: [(ResetCode, i32); 10] = [
    (ResetCode::Aborted, libc::ECONNRESET),
    (ResetCode::ConnectionRefused, libc::ECONNREFUSED),
    (ResetCode::NoConnection, libc::ECONNREFUSED),
    (ResetCode::PacketError, libc::ENOMSG),
    (ResetCode::OptionError, libc::EILSEQ),
    (ResetCode::MandatoryError, libc::EOPNOTSUPP),
    (ResetCode::BadServiceCode, BAD_REQUEST_CODE),
    (ResetCode::TooBusy, EUSERS),
    (ResetCode::BadInitCookie, BAD_REQUEST),
    (ResetCode::AggressionPenalty, EDQUOT),
];

/// The error number for a Reset that the peer sent; 0 if the code has none.
pub fn of_reset(code: ResetCode) -> i32 {
    RESETS.iter().find(|(known, _)| *known == code).map_or(0, |(_, errno)| *errno)
}

/// The Reset code for an error number; `None` if no code has it.
pub fn to_reset(errno: i32) -> Option<ResetCode> {
    RESETS.iter().find(|(_, known)| *known == errno).map(|(code, _)| *code)
}

/// The error number for the end of a connection, as in `SO_ERROR`; 0 for an orderly close, and for
/// a Reset whose code has no number.
pub fn of_close_reason(reason: CloseReason) -> i32 {
    match reason {
        CloseReason::LocalClose | CloseReason::PeerClose => 0,
        CloseReason::LocalAbort => libc::ECONNRESET,
        CloseReason::PeerReset { code, .. } => of_reset(code),
        CloseReason::Unreachable => libc::EHOSTUNREACH,
        CloseReason::PortUnreachable => libc::ECONNREFUSED,
        CloseReason::ConnectTimeout
        | CloseReason::HandshakeTimeout
        | CloseReason::PeerSilent
        | CloseReason::CloseTimeout => libc::ETIMEDOUT,
        // We found a violation by the peer.
        _ => libc::EPROTO,
    }
}

/// The error number of a second `connect` in this state: `EALREADY` during a handshake, `EISCONN`
/// after it, 0 if there is no connection.
pub const fn of_connect(state: State) -> i32 {
    match state {
        State::Closed => 0,
        State::Listen => libc::EINVAL,
        State::Request | State::Respond => libc::EALREADY,
        _ => libc::EISCONN,
    }
}

/// The error number of a non-blocking `send` in this state: `EAGAIN` during a handshake, 0 while
/// data can flow, otherwise `EPIPE`.
pub const fn of_send(state: State) -> i32 {
    match state {
        State::Request | State::Respond => libc::EAGAIN,
        State::PartOpen | State::Open => 0,
        _ => libc::EPIPE,
    }
}

/// The error number of a `recv` in this state: `ENOTCONN` if there was never a connection,
/// otherwise 0.
pub const fn of_recv(state: State) -> i32 {
    match state {
        State::Closed | State::Listen => libc::ENOTCONN,
        _ => 0,
    }
}

impl Error {
    /// The system's error number for this error, as Linux's DCCP gave it (see
    /// [`errno`](crate::errno)). Never 0: a Reset whose code has no number is `EPIPE`, the error of
    /// the next send.
    ///
    /// [`Error::TimedOut`] is `EAGAIN`, as for socket timeouts; a peer that does not answer is
    /// `ETIMEDOUT`.
    pub fn errno(&self) -> i32 {
        match self {
            Self::PortInUse { .. } | Self::ServiceInUse { .. } | Self::DccpPortInUse { .. } => {
                libc::EADDRINUSE
            }
            Self::BindDenied { .. } => libc::EACCES,
            Self::RawDenied => libc::EPERM,
            Self::AddressNotLocal { .. } => libc::EADDRNOTAVAIL,
            Self::NoService => libc::EINVAL,
            Self::Connect(e) => of_connect_error(*e),
            Self::Config(e) => of_config_error(*e),
            Self::Refused { .. } | Self::PortClosed { .. } => libc::ECONNREFUSED,
            Self::BadServiceCode { .. } => BAD_REQUEST_CODE,
            Self::CcidNotOffered { .. } => libc::EOPNOTSUPP,
            Self::TooBusy { .. } => EUSERS,
            Self::Unreachable { .. } => libc::EHOSTUNREACH,
            Self::NoRoute { source, .. } => of_system(source).unwrap_or(libc::EHOSTUNREACH),
            Self::NoAnswer { .. } | Self::Unsent { .. } => libc::ETIMEDOUT,
            Self::MessageTooLarge { .. } => libc::EMSGSIZE,
            Self::Closed => libc::EPIPE,
            Self::Lost(reason) => match of_close_reason(*reason) {
                0 => libc::EPIPE,
                errno => errno,
            },
            Self::Forked => libc::EBADF,
            Self::TimedOut => libc::EAGAIN,
            Self::Io { source, .. } => of_system(source).unwrap_or(libc::EIO),
        }
    }

    /// This error as one of the operating system, with its error number and the system's text.
    /// `std::io::Error::from` keeps the text of this crate. Not on Windows, whose error numbers
    /// differ.
    #[cfg(not(windows))]
    pub fn to_os_error(&self) -> std::io::Error {
        std::io::Error::from_raw_os_error(self.errno())
    }
}

impl TrySendError {
    /// The error number: `EAGAIN` for `Full`, otherwise that of the error.
    pub fn errno(&self) -> i32 {
        match self {
            Self::Full(_) => libc::EAGAIN,
            Self::Failed(e) => e.errno(),
        }
    }
}

impl TryRecvError {
    /// The error number: `EAGAIN` for `Empty`, otherwise that of the error.
    pub fn errno(&self) -> i32 {
        match self {
            Self::Empty => libc::EAGAIN,
            Self::Ended(e) => e.errno(),
        }
    }
}

/// The error number in an error of the system.
#[cfg(not(windows))]
fn of_system(e: &io::Error) -> Option<i32> {
    e.raw_os_error()
}

/// The error number in an error of the system. On Windows, none of those are from `errno.h`.
#[cfg(windows)]
fn of_system(e: &io::Error) -> Option<i32> {
    Some(match e.kind() {
        io::ErrorKind::AddrInUse => libc::EADDRINUSE,
        io::ErrorKind::AddrNotAvailable => libc::EADDRNOTAVAIL,
        io::ErrorKind::PermissionDenied => libc::EACCES,
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::NetworkDown => libc::ENETUNREACH,
        io::ErrorKind::HostUnreachable => libc::EHOSTUNREACH,
        io::ErrorKind::InvalidInput => libc::EINVAL,
        io::ErrorKind::OutOfMemory => libc::ENOMEM,
        _ => return None,
    })
}

fn of_connect_error(e: ConnectError) -> i32 {
    match e {
        ConnectError::FamilyMismatch => libc::EAFNOSUPPORT,
        ConnectError::BadAddress => libc::ENETUNREACH,
        ConnectError::InUse => libc::EADDRINUSE,
        ConnectError::NoFreePort => libc::EADDRNOTAVAIL,
        ConnectError::TooManyConnections => libc::ENOBUFS,
        ConnectError::DataTooLong { .. } => libc::EMSGSIZE,
        ConnectError::Config(e) => of_config_error(e),
        // `InvalidService`
        _ => libc::EINVAL,
    }
}

fn of_config_error(e: ConfigError) -> i32 {
    match e {
        ConfigError::UnknownCcid(_) | ConfigError::QuickStartOverUdp => libc::EOPNOTSUPP,
        _ => libc::EINVAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn reset_codes_have_the_numbers_of_linux() {
        // linux-6.12, net/dccp/input.c, dccp_reset_code_convert.
        let expected = [
            0,
            0,
            libc::ECONNRESET,
            libc::ECONNREFUSED,
            libc::ENOMSG,
            libc::EILSEQ,
            libc::EOPNOTSUPP,
            libc::ECONNREFUSED,
            libc::EBADRQC,
            libc::EUSERS,
            libc::EBADR,
            libc::EDQUOT,
            0,
            0,
        ];
        for (number, errno) in expected.into_iter().enumerate() {
            let code = ResetCode::from_number(number as u8);
            assert_eq!(of_reset(code), errno, "{code:?}");
            assert_eq!(of_close_reason(CloseReason::PeerReset { code, data: [0; 3] }), errno);
        }
    }

    #[test]
    fn numbers_and_codes_translate_both_ways() {
        assert_eq!(to_reset(libc::ECONNREFUSED), Some(ResetCode::ConnectionRefused));
        assert_eq!(to_reset(libc::ENOENT), None);
        for (code, errno) in RESETS {
            assert_eq!(to_reset(errno).map(of_reset), Some(of_reset(code)));
        }
    }

    #[test]
    fn an_error_always_has_a_number() {
        let reset = |code| Error::Lost(CloseReason::PeerReset { code, data: [0; 3] });
        assert_eq!(reset(ResetCode::TooBusy).errno(), EUSERS);
        assert_eq!(reset(ResetCode::Unspecified).errno(), libc::EPIPE);
        assert_eq!(Error::Closed.errno(), libc::EPIPE);
        #[cfg(not(windows))]
        assert_eq!(Error::TimedOut.to_os_error().raw_os_error(), Some(libc::EAGAIN));
        assert_eq!(TryRecvError::Empty.errno(), libc::EAGAIN);
        assert_eq!(TrySendError::Full("x".into()).errno(), libc::EAGAIN);
    }

    #[test]
    fn states_have_the_numbers_of_their_calls() {
        assert_eq!(of_connect(State::Request), libc::EALREADY);
        assert_eq!(of_connect(State::Open), libc::EISCONN);
        assert_eq!(of_send(State::Request), libc::EAGAIN);
        assert_eq!((of_send(State::Open), of_send(State::TimeWait)), (0, libc::EPIPE));
        assert_eq!((of_recv(State::Listen), of_recv(State::Closing)), (libc::ENOTCONN, 0));
    }
}
