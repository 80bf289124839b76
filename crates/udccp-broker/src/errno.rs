//! Errors of the sockets as Linux's DCCP reports them.

use rustix::io::Errno;
use udccp::{CloseReason, Error, ResetCode};

/// The errno of a Reset, by Linux's table; `None` where Linux reports none.
fn of_reset(code: ResetCode) -> Option<Errno> {
    Some(match code {
        ResetCode::Aborted => Errno::CONNRESET,
        ResetCode::NoConnection | ResetCode::ConnectionRefused => Errno::CONNREFUSED,
        ResetCode::PacketError => Errno::NOMSG,
        ResetCode::OptionError => Errno::ILSEQ,
        ResetCode::MandatoryError => Errno::OPNOTSUPP,
        ResetCode::BadServiceCode => Errno::BADRQC,
        ResetCode::TooBusy => Errno::USERS,
        ResetCode::BadInitCookie => Errno::BADR,
        ResetCode::AggressionPenalty => Errno::DQUOT,
        _ => return None,
    })
}

fn of_reason(reason: CloseReason) -> Option<Errno> {
    match reason {
        CloseReason::PeerReset { code, .. } => of_reset(code),
        CloseReason::ProtocolError { code, .. } => Some(of_reset(code).unwrap_or(Errno::PROTO)),
        CloseReason::ConnectTimeout
        | CloseReason::HandshakeTimeout
        | CloseReason::PeerSilent
        | CloseReason::CloseTimeout => Some(Errno::TIMEDOUT),
        CloseReason::Unreachable => Some(Errno::HOSTUNREACH),
        CloseReason::PortUnreachable => Some(Errno::CONNREFUSED),
        CloseReason::LocalAbort => Some(Errno::CONNRESET),
        _ => None,
    }
}

/// The errno of an error; `None` for an end in order.
pub(crate) fn of(error: &Error) -> Option<Errno> {
    Some(match error {
        Error::Closed | Error::Unsent { .. } => return None,
        Error::Lost(reason) => return of_reason(*reason),
        Error::PortInUse { .. } | Error::ServiceInUse { .. } | Error::DccpPortInUse { .. } => {
            Errno::ADDRINUSE
        }
        Error::BindDenied { .. } | Error::RawDenied => Errno::ACCESS,
        Error::AddressNotLocal { .. } => Errno::ADDRNOTAVAIL,
        Error::Config(_) => Errno::PROTO,
        Error::NoService | Error::Connect(_) => Errno::INVAL,
        Error::Refused { .. } | Error::PortClosed { .. } => Errno::CONNREFUSED,
        Error::BadServiceCode { .. } => Errno::BADRQC,
        Error::CcidNotOffered { .. } => Errno::OPNOTSUPP,
        Error::TooBusy { .. } => Errno::USERS,
        Error::Unreachable { .. } => Errno::HOSTUNREACH,
        Error::NoAnswer { .. } | Error::TimedOut => Errno::TIMEDOUT,
        Error::MessageTooLarge { .. } => Errno::MSGSIZE,
        Error::Io { source, .. } => {
            source.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
        }
        _ => Errno::IO,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resets_have_linux_errnos() {
        let of = |code| of_reason(CloseReason::PeerReset { code, data: [0; 3] });
        assert_eq!(of(ResetCode::Closed), None);
        assert_eq!(of(ResetCode::Aborted), Some(Errno::CONNRESET));
        assert_eq!(of(ResetCode::BadServiceCode), Some(Errno::BADRQC));
        assert_eq!(of(ResetCode::AggressionPenalty), Some(Errno::DQUOT));
    }
}
