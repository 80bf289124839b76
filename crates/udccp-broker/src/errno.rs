//! Errors of the sockets, as Linux's DCCP reports them.

use std::io;

use rustix::io::Errno;
use udccp::{Error, errno};

/// The errno of an error, from the table of the sockets. `None` for an orderly end and for a Reset
/// whose code has no errno.
pub(crate) fn of(error: &Error) -> Option<Errno> {
    let number = match error {
        Error::Closed | Error::Unsent { .. } => 0,
        Error::Lost(reason) => errno::of_close_reason(*reason),
        other => other.errno(),
    };
    (number != 0).then(|| of_programs(Errno::from_raw_os_error(number)))
}

/// The errno of a failed system call.
pub(crate) fn of_io(error: io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

/// Maps the error for the program: if the broker is out of descriptors, that is ENFILE for the
/// program.
pub(crate) fn of_programs(error: Errno) -> Errno {
    if error == Errno::MFILE { Errno::NFILE } else { error }
}

#[cfg(test)]
mod tests {
    use udccp::{CloseReason, ResetCode};

    use super::*;

    #[test]
    fn orderly_close_has_no_errno_and_other_ends_map_by_the_table() {
        let of = |code| of(&Error::Lost(CloseReason::PeerReset { code, data: [0; 3] }));
        assert_eq!(of(ResetCode::Closed), None);
        assert_eq!(of(ResetCode::BadServiceCode), Some(Errno::BADRQC));
        assert_eq!(super::of(&Error::Closed), None);
        assert_eq!(super::of(&Error::NoService), Some(Errno::INVAL));
    }
}
