//! Translates the ends of connections into error numbers of the system, as Linux's DCCP did.
//!
//! One table for every face that speaks in `errno`: C, Python, old programs.
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
//! Systems without `EBADRQC` and `EBADR` have `EINVAL` there. On Windows the numbers are those of
//! `errno.h`, with `WSAEUSERS` and `WSAEDQUOT` for what it lacks.

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

/// The number of Too Busy: `EUSERS`, or `WSAEUSERS` of `winsock2.h`.
#[cfg(not(windows))]
pub const EUSERS: i32 = libc::EUSERS;
/// The number of Too Busy: `EUSERS`, or `WSAEUSERS` of `winsock2.h`.
#[cfg(windows)]
pub const EUSERS: i32 = 10_068;
/// The number of Aggression Penalty: `EDQUOT`, or `WSAEDQUOT` of `winsock2.h`.
#[cfg(not(windows))]
pub const EDQUOT: i32 = libc::EDQUOT;
/// The number of Aggression Penalty: `EDQUOT`, or `WSAEDQUOT` of `winsock2.h`.
#[cfg(windows)]
pub const EDQUOT: i32 = 10_069;

/// Reset codes that have an error number, with it. The first code of a number is the one that
/// stands for it.
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

/// The error number of a Reset that the peer sent; 0 where the code stands for none.
pub fn of_reset(code: ResetCode) -> i32 {
    RESETS.iter().find(|(known, _)| *known == code).map_or(0, |(_, errno)| *errno)
}

/// The Reset code that stands for an error number, if one does.
pub fn to_reset(errno: i32) -> Option<ResetCode> {
    RESETS.iter().find(|(_, known)| *known == errno).map(|(code, _)| *code)
}

/// The error number of a connection's end, as `SO_ERROR` has it; 0 for an orderly one, and for a
/// Reset whose code stands for none.
pub fn of_end(reason: CloseReason) -> i32 {
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
        // We found the peer at fault.
        _ => libc::EPROTO,
    }
}

/// What a second `connect` gives in this state: `EALREADY` during a handshake, `EISCONN` after;
/// 0 where there is no connection.
pub const fn of_connect(state: State) -> i32 {
    match state {
        State::Closed => 0,
        State::Listen => libc::EINVAL,
        State::Request | State::Respond => libc::EALREADY,
        _ => libc::EISCONN,
    }
}

/// What a `send` that does not wait gives in this state: `EAGAIN` during a handshake, 0 while data
/// flows, `EPIPE` otherwise.
pub const fn of_send(state: State) -> i32 {
    match state {
        State::Request | State::Respond => libc::EAGAIN,
        State::PartOpen | State::Open => 0,
        _ => libc::EPIPE,
    }
}

/// What a `recv` gives in this state: `ENOTCONN` where there never was a connection, else 0.
pub const fn of_recv(state: State) -> i32 {
    match state {
        State::Closed | State::Listen => libc::ENOTCONN,
        _ => 0,
    }
}

impl Error {
    /// The error number of the system that says the same, as Linux's DCCP gave it (see
    /// [`errno`](crate::errno)). Never 0. Where a Reset's code stands for no number: `EPIPE`, which
    /// is what sending then gives.
    ///
    /// [`Error::TimedOut`] is `EAGAIN`, as the timeouts of sockets give it; a peer that does not
    /// answer is `ETIMEDOUT`.
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
            Self::Lost(reason) => match of_end(*reason) {
                0 => libc::EPIPE,
                errno => errno,
            },
            Self::Forked => libc::EBADF,
            Self::TimedOut => libc::EAGAIN,
            Self::Io { source, .. } => of_system(source).unwrap_or(libc::EIO),
        }
    }

    /// The same as an error of the operating system, for who asks it for its number. The text is
    /// then the system's; `std::io::Error::from` keeps ours. Windows has other numbers for them.
    #[cfg(not(windows))]
    pub fn to_os_error(&self) -> std::io::Error {
        std::io::Error::from_raw_os_error(self.errno())
    }
}

impl TrySendError {
    /// The error number: `EAGAIN`, or that of the error.
    pub fn errno(&self) -> i32 {
        match self {
            Self::Full(_) => libc::EAGAIN,
            Self::Failed(e) => e.errno(),
        }
    }
}

impl TryRecvError {
    /// The error number: `EAGAIN`, or that of the error.
    pub fn errno(&self) -> i32 {
        match self {
            Self::Empty => libc::EAGAIN,
            Self::Ended(e) => e.errno(),
        }
    }
}

/// The number of an error that the system gave.
#[cfg(not(windows))]
fn of_system(e: &io::Error) -> Option<i32> {
    e.raw_os_error()
}

/// The number of an error that the system gave, whose own numbers are not those of `errno.h`.
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
            assert_eq!(of_end(CloseReason::PeerReset { code, data: [0; 3] }), errno);
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
