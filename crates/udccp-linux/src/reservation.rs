//! Reserves a processor for each guest.
//!
//! A guest's kernel and its programs are processes of the host that alternate thousands of times
//! per second. On one shared processor, a switch takes less than half the time, and results are the
//! same.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// A processor reserved for one guest as long as this value exists. The reservation is a socket
/// with an abstract name: it leaves no file, and ends with the process in any case.
#[derive(Debug)]
pub(crate) struct CpuReservation {
    processor: usize,
    _held: UnixDatagram,
}

impl CpuReservation {
    /// Reserves a free processor among those that this process may use; `None` if each has a guest.
    pub(crate) fn take() -> Option<Self> {
        let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
        let allowed = (0..CpuSet::count()).filter(|n| allowed.is_set(*n).unwrap_or(false));
        Self::take_of(allowed, "udccp/guest-on-processor")
    }

    /// Reserves one of these processors; `of` names the set of reservations.
    fn take_of(mut processors: impl Iterator<Item = usize>, of: &str) -> Option<Self> {
        processors.find_map(|processor| {
            let name = format!("{of}/{processor}");
            let name = SocketAddr::from_abstract_name(name).ok()?;
            let held = UnixDatagram::bind_addr(&name).ok()?;
            Some(Self { processor, _held: held })
        })
    }

    /// Its number.
    pub(crate) fn processor(&self) -> usize {
        self.processor
    }
}

/// Pins this process, and what it starts, to a processor.
pub(crate) fn pin_to(processor: usize) -> nix::Result<()> {
    let mut one = CpuSet::new();
    one.set(processor)?;
    sched_setaffinity(Pid::from_raw(0), &one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_guests_share_a_processor() {
        // Under a separate name, independent of guests that run on this machine now.
        let name = format!("udccp/test-of-seats-{}", std::process::id());
        let take = || CpuReservation::take_of(0..3, &name);
        let mut reservations: Vec<CpuReservation> = std::iter::from_fn(take).collect();
        let numbers: Vec<usize> = reservations.iter().map(CpuReservation::processor).collect();
        assert_eq!(numbers, [0, 1, 2]);
        reservations.remove(1);
        assert_eq!(take().map(|reservation| reservation.processor()), Some(1), "it is free again");
    }
}
