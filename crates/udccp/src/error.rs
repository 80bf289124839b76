//! Errors of sockets, and what to do about each.

use std::io;
use std::net::SocketAddr;

use udccp_proto::ccid::experimental;
use udccp_proto::{CloseReason, ConfigError, ConnectError, ListenError};
use udccp_wire::{FeatureNumber, ResetCode, ServiceCode, option_kind};

use crate::{Address, Outgoing};

/// An error of a socket. Its text says what happened; [`Error::advice`] says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The UDP port is in use.
    #[error("UDP port {} on {} is in use", addr.port(), addr.ip())]
    PortInUse {
        /// The address that was to be bound.
        addr: SocketAddr,
    },
    /// Another listener on the same UDP socket serves this DCCP port and service code; or the
    /// client is already invited.
    #[error("DCCP port {port} already serves service code {service}")]
    ServiceInUse {
        /// The DCCP port.
        port: u16,
        /// The service code.
        service: ServiceCode,
    },
    /// The system does not allow this user to bind this address or port.
    #[error("no permission to bind UDP port {} on {}", addr.port(), addr.ip())]
    BindDenied {
        /// The address that was to be bound.
        addr: SocketAddr,
    },
    /// Raw IP: another program of this host has the DCCP port.
    #[error("DCCP port {port} is used by another program on this host")]
    DccpPortInUse {
        /// The DCCP port.
        port: u16,
    },
    /// The system does not allow this user to open raw sockets.
    #[error("no permission to send and receive DCCP over raw IP (CAP_NET_RAW)")]
    RawDenied,
    /// The IP address does not belong to this machine.
    #[error("{} is not an address of this machine", addr.ip())]
    AddressNotLocal {
        /// The address that was to be bound.
        addr: SocketAddr,
    },
    /// There is no service code to serve, or one is the invalid code 4294967295.
    #[error("a listener needs one or more valid service codes")]
    NoService,
    /// The connection cannot be started with these addresses, ports or data.
    #[error(transparent)]
    Connect(ConnectError),
    /// A setting is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The peer's host answered that no program serves this DCCP port.
    #[error("connection refused: nothing serves DCCP port {} at {}", peer.port, peer.as_named())]
    Refused {
        /// The peer.
        peer: Address,
    },
    /// The peer serves the port, but not with this service code.
    #[error("{peer} does not serve service code {service}")]
    BadServiceCode {
        /// The peer.
        peer: Address,
        /// The service code that was asked for.
        service: ServiceCode,
    },
    /// The server does not allow the congestion control that we asked for.
    #[error("{peer} does not offer CCID {}", named(*ccid))]
    CcidNotOffered {
        /// The peer.
        peer: Address,
        /// The CCID that was asked for. 2 if we asked for none.
        ccid: u8,
    },
    /// The peer's host answered that no program has this UDP port or, over raw IP, that it does not
    /// support DCCP.
    #[error("connection refused: nothing listens on {} at {}", peer.envelope(), peer.ip())]
    PortClosed {
        /// The peer.
        peer: Address,
    },
    /// The server accepts no more connections at the moment.
    #[error("{peer} is too busy for another connection")]
    TooBusy {
        /// The peer.
        peer: Address,
    },
    /// The network reported that the peer's host cannot be reached, or that it rejects such
    /// packets.
    #[error("{peer} is unreachable: the network rejects {}", peer.envelope())]
    Unreachable {
        /// The peer.
        peer: Address,
    },
    /// This machine has no route to the peer: a route forbids it (prohibit, blackhole), or the
    /// address cannot be sent to (a link-local address without its interface, a broadcast address).
    #[error("cannot reach {peer} from here: {source}")]
    NoRoute {
        /// The peer.
        peer: Address,
        /// The system's error, as `connect` of TCP would give it: `EACCES`, `EINVAL` and others.
        source: io::Error,
    },
    /// The peer did not answer, or did not complete the handshake, in time.
    #[error("no answer from {peer}")]
    NoAnswer {
        /// The peer.
        peer: Address,
    },
    /// The message does not fit in one packet of this path.
    #[error("a message of {len} bytes exceeds the maximum of {max} bytes for this path")]
    MessageTooLarge {
        /// Bytes offered.
        len: usize,
        /// Bytes that fit, see `Connection::max_message_size`.
        max: usize,
    },
    /// The connection was closed in order. Nothing more can be sent.
    #[error("the connection is closed")]
    Closed,
    /// The close timed out before all queued messages had left.
    #[error("closed with {messages} queued messages unsent")]
    Unsent {
        /// Messages that were dropped.
        messages: u64,
    },
    /// The connection ended in another way than by an orderly close.
    #[error("connection lost: {0}")]
    Lost(CloseReason),
    /// The process has forked, and the socket belongs to the parent. Nothing was sent, and the
    /// parent's connections are not affected.
    #[error("this socket belongs to the process that opened it, not to its forked child")]
    Forked,
    /// The call timed out. The connection stays open.
    #[error("timed out")]
    TimedOut,
    /// The system refused an operation of the socket, or the thread or runtime that drives it has
    /// ended.
    #[error("{what}: {source}")]
    Io {
        /// The operation.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    /// What to do about it, in one sentence for a user.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::PortInUse { .. } => "choose another port, or stop the program that uses it",
            Self::ServiceInUse { .. } => "use another DCCP port or service code, or one listener",
            Self::BindDenied { .. } => "ports below 1024 need privilege: choose a higher one",
            Self::DccpPortInUse { .. } => "choose another port, or stop the program that uses it",
            Self::RawDenied => {
                "run as root, or once as root: setcap cap_net_raw+ep PROGRAM; or in your own \
                 network namespace: unshare --user --map-root-user --net PROGRAM; or use UDP"
            }
            Self::AddressNotLocal { .. } => {
                "bind to 0.0.0.0, to [::], or to an address of your own"
            }
            Self::NoService => "give at least one service code, for example SC:test",
            Self::Connect(e) => advice_to_connect(*e),
            Self::Config(_) => "change the setting that the message names",
            Self::Refused { .. } => "check the port, and that the server runs",
            Self::BadServiceCode { .. } => "give both sides the same service code",
            Self::CcidNotOffered { .. } => {
                "give both sides the same CCID (`Options::ccid`, --ccid), or leave it to the server"
            }
            Self::PortClosed { .. } => {
                "check host and port, that the server runs, and that both sides use UDP, or both \
                 raw IP"
            }
            Self::TooBusy { .. } => "try again later, or raise the server's backlog",
            Self::Unreachable { .. } => "check the address, and the routes and firewalls between",
            Self::NoRoute { .. } => {
                "check the routes of this machine (ip route get ADDRESS) and the address; a \
                 link-local one needs its interface ([fe80::1%2]:5004)"
            }
            Self::NoAnswer { .. } => {
                "check the address; a firewall may silently drop UDP or raw IP"
            }
            Self::MessageTooLarge { .. } => "split the data into messages that fit into one packet",
            Self::Closed => "open a new connection to send more",
            Self::Unsent { .. } => {
                "allow more time with close_linger, or await `acknowledged` before closing"
            }
            Self::Lost(CloseReason::PeerReset { code: ResetCode::NoConnection, .. }) => {
                "open a new connection; the peer has restarted, or a NAT has given this host \
                 another port, which a shorter keep_alive prevents"
            }
            Self::Lost(_) => "open a new connection; the peer or the path has failed",
            Self::Forked => "open a new socket in the child, after the fork",
            Self::TimedOut => "wait longer, or check whether the peer still works",
            Self::Io { source, .. } => advice_on_system(source),
        }
    }

    /// Whether the peer or its host answered and refused: [`Self::Refused`],
    /// [`Self::BadServiceCode`], [`Self::CcidNotOffered`], [`Self::PortClosed`] or
    /// [`Self::TooBusy`].
    pub const fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Refused { .. }
                | Self::BadServiceCode { .. }
                | Self::CcidNotOffered { .. }
                | Self::PortClosed { .. }
                | Self::TooBusy { .. }
        )
    }

    pub(crate) fn open(addr: SocketAddr, is_raw: bool, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied if is_raw => Self::RawDenied,
            io::ErrorKind::AddrInUse => Self::PortInUse { addr },
            io::ErrorKind::PermissionDenied => Self::BindDenied { addr },
            io::ErrorKind::AddrNotAvailable => Self::AddressNotLocal { addr },
            _ if is_raw => Self::Io { what: "cannot open a raw socket", source },
            _ => Self::Io { what: "cannot open a UDP socket", source },
        }
    }

    pub(crate) fn connect(e: ConnectError) -> Self {
        match e {
            ConnectError::Config(e) => Self::Config(e),
            other => Self::Connect(other),
        }
    }

    /// Why a handshake failed.
    pub(crate) fn handshake(reason: CloseReason, peer: Address, service: ServiceCode) -> Self {
        match reason {
            CloseReason::PeerReset { code, data } => match (code, ccid_asked_for(data)) {
                (ResetCode::MandatoryError | ResetCode::OptionError, Some(ccid)) => {
                    Self::CcidNotOffered { peer, ccid }
                }
                (ResetCode::ConnectionRefused | ResetCode::NoConnection, _) => {
                    Self::Refused { peer }
                }
                (ResetCode::BadServiceCode, _) => Self::BadServiceCode { peer, service },
                (ResetCode::TooBusy, _) => Self::TooBusy { peer },
                _ => Self::Lost(reason),
            },
            CloseReason::ProtocolError { code: ResetCode::MandatoryError, data }
                if ccid_asked_for(data).is_some() =>
            {
                // The server insists on another one. If our Request had asked for a CCID other than
                // the default, the server would have refused it.
                Self::CcidNotOffered { peer, ccid: DEFAULT_CCID }
            }
            CloseReason::ConnectTimeout | CloseReason::HandshakeTimeout => Self::NoAnswer { peer },
            CloseReason::Unreachable => Self::Unreachable { peer },
            CloseReason::PortUnreachable => Self::PortClosed { peer },
            other => Self::ended(other),
        }
    }

    /// Why an open connection ended.
    pub(crate) fn ended(reason: CloseReason) -> Self {
        if reason.is_orderly() { Self::Closed } else { Self::Lost(reason) }
    }
}

/// What to do about a connection that cannot be started.
const fn advice_to_connect(e: ConnectError) -> &'static str {
    match e {
        ConnectError::FamilyMismatch | ConnectError::BadAddress => {
            "give the address of one host that this socket can reach: IPv4 or IPv6, UDP or raw IP"
        }
        ConnectError::InUse => "use another local port, or wait until that connection is over",
        ConnectError::NoFreePort | ConnectError::TooManyConnections => {
            "close connections that are done, or connect from another socket"
        }
        _ => "change the setting that the message names",
    }
}

/// What to do about an error of the system.
fn advice_on_system(e: &io::Error) -> &'static str {
    match e.raw_os_error() {
        #[cfg(not(windows))]
        Some(libc::EMFILE) => "close sockets, or raise the limit of open files (ulimit -n)",
        #[cfg(not(windows))]
        Some(libc::ENFILE) => "the system has no free files: close sockets, or stop other programs",
        _ => "see the system's error",
    }
}

/// The CCID of a connection if neither side requests one (RFC 4340 section 10).
const DEFAULT_CCID: u8 = 2;

/// The CCID that a Reset complains about, if it does: its data contains the type and first bytes of
/// the option that the peer could not process (RFC 4340 section 5.6).
fn ccid_asked_for(data: [u8; 3]) -> Option<u8> {
    const CCID: u8 = FeatureNumber::CCID.0;
    match data {
        [option_kind::CHANGE_L | option_kind::CHANGE_R, CCID, ccid] => Some(ccid),
        _ => None,
    }
}

/// A CCID with its name.
fn named(ccid: u8) -> String {
    match ccid {
        experimental::CUBIC => format!("{ccid} (cubic)"),
        experimental::BBR => format!("{ccid} (bbr)"),
        _ => ccid.to_string(),
    }
}

impl Error {
    pub(crate) fn listen(e: ListenError) -> Self {
        match e {
            ListenError::InUse { port, service } => Self::ServiceInUse { port, service },
            ListenError::NoService | ListenError::InvalidService => Self::NoService,
            ListenError::Config(e) => Self::Config(e),
            ListenError::BadAddress => Self::Connect(ConnectError::BadAddress),
        }
    }
}

impl From<Error> for io::Error {
    fn from(e: Error) -> Self {
        use io::ErrorKind as Kind;
        let e = match e {
            // It has a system error number, which our text would hide.
            Error::Io { source, .. } if source.raw_os_error().is_some() => return source,
            other => other,
        };
        let kind = match &e {
            Error::PortInUse { .. } | Error::ServiceInUse { .. } | Error::DccpPortInUse { .. } => {
                Kind::AddrInUse
            }
            Error::BindDenied { .. } | Error::RawDenied => Kind::PermissionDenied,
            Error::AddressNotLocal { .. } => Kind::AddrNotAvailable,
            Error::NoService | Error::Connect(_) | Error::Config(_) => Kind::InvalidInput,
            Error::Refused { .. }
            | Error::BadServiceCode { .. }
            | Error::CcidNotOffered { .. }
            | Error::PortClosed { .. }
            | Error::TooBusy { .. } => Kind::ConnectionRefused,
            Error::Forked => Kind::Unsupported,
            Error::Unreachable { .. } => Kind::HostUnreachable,
            Error::NoRoute { source, .. } => source.kind(),
            Error::NoAnswer { .. } | Error::TimedOut | Error::Unsent { .. } => Kind::TimedOut,
            Error::MessageTooLarge { .. } => Kind::InvalidInput,
            Error::Closed => Kind::NotConnected,
            Error::Lost(_) => Kind::ConnectionReset,
            Error::Io { source, .. } => source.kind(),
        };
        Self::new(kind, e)
    }
}

/// Why [`Connection::try_send`](crate::Connection::try_send) did not take a message.
#[derive(Debug, thiserror::Error)]
pub enum TrySendError {
    /// The send queue is full. Contains the message; `writable` waits for room.
    #[error("the send queue is full")]
    Full(Outgoing),
    /// The message can never be sent.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// Why [`Connection::try_recv`](crate::Connection::try_recv) gave no message.
#[derive(Debug, thiserror::Error)]
pub enum TryRecvError {
    /// No message has arrived; `readable` waits for one.
    #[error("nothing to read yet")]
    Empty,
    /// Everything was read, and the connection has ended: with [`Error::Closed`] in order,
    /// otherwise with [`Error::Lost`], or with [`Error::Io`] if the runtime that drives it ended
    /// first.
    #[error(transparent)]
    Ended(#[from] Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_does_not_know_the_connection_hints_at_nats() {
        let advice =
            |code| Error::Lost(CloseReason::PeerReset { code, data: [0; 3] }).advice().to_owned();
        assert!(advice(ResetCode::NoConnection).contains("keep_alive"));
        assert!(!advice(ResetCode::Aborted).contains("keep_alive"));
    }

    #[test]
    fn too_few_descriptors_are_a_limit_to_raise() {
        let at = "127.0.0.1:0".parse().unwrap();
        let advice = |number| Error::open(at, false, io::Error::from_raw_os_error(number)).advice();
        #[cfg(not(windows))]
        for (number, word) in [(libc::EMFILE, "ulimit -n"), (libc::ENFILE, "other programs")] {
            assert!(advice(number).contains(word), "{}", advice(number));
        }
        assert_eq!(advice(libc::ENOSPC), "see the system's error");
    }

    #[test]
    fn errors_have_the_kinds_of_those_of_other_sockets() {
        let peer: Address = "127.0.0.1:1".parse().unwrap();
        let prohibited = || io::ErrorKind::PermissionDenied.into();
        for (error, kind) in [
            (Error::Closed, io::ErrorKind::NotConnected),
            (Error::Lost(CloseReason::CloseTimeout), io::ErrorKind::ConnectionReset),
            (Error::NoRoute { peer, source: prohibited() }, io::ErrorKind::PermissionDenied),
            (Error::Unreachable { peer }, io::ErrorKind::HostUnreachable),
            (Error::TooBusy { peer }, io::ErrorKind::ConnectionRefused),
            (Error::NoAnswer { peer }, io::ErrorKind::TimedOut),
            (Error::Unsent { messages: 1 }, io::ErrorKind::TimedOut),
            (Error::MessageTooLarge { len: 2, max: 1 }, io::ErrorKind::InvalidInput),
            (Error::DccpPortInUse { port: 1 }, io::ErrorKind::AddrInUse),
        ] {
            let text = error.to_string();
            assert_eq!(io::Error::from(error).kind(), kind, "{text}");
        }
    }

    #[test]
    fn a_reset_of_the_handshake_says_who_refused_what() {
        let peer: Address = "192.0.2.1:5004".parse().unwrap();
        let service: ServiceCode = "SC:test".parse().unwrap();
        let text = |code| {
            let reason = CloseReason::PeerReset { code, data: [0; 3] };
            Error::handshake(reason, peer, service).to_string()
        };
        assert!(text(ResetCode::BadServiceCode).contains("SC:test"));
        assert!(text(ResetCode::ConnectionRefused).contains("DCCP port 5004"));
        assert!(text(ResetCode::TooBusy).contains("192.0.2.1:5004"));
    }

    #[test]
    fn a_reset_about_the_ccid_names_it_and_others_do_not() {
        let peer: Address = "192.0.2.1:5004".parse().unwrap();
        let service: ServiceCode = "SC:test".parse().unwrap();
        let text = |data| {
            let reason = CloseReason::PeerReset { code: ResetCode::MandatoryError, data };
            Error::handshake(reason, peer, service).to_string()
        };
        assert_eq!(text([32, 1, 250]), "192.0.2.1:5004 does not offer CCID 250 (bbr)");
        assert_eq!(text([34, 1, 3]), "192.0.2.1:5004 does not offer CCID 3");
        // The feature Sequence Window, and an option that is not a feature's.
        assert!(text([32, 3, 250]).contains("reset by the peer"));
        assert!(text([41, 1, 250]).contains("reset by the peer"));
    }
}
