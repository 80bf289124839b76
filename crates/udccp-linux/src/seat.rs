//! A processor for each guest.
//!
//! A guest's kernel and its programs are processes of the host that take turns, thousands of times
//! a second. Where they share one processor a turn takes less than half the time, and results are
//! the same.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// A processor that no other guest of this machine is given while this lives. What holds it is a
/// socket of an abstract name: it leaves no file, and is gone with the process, however that ends.
#[derive(Debug)]
pub(crate) struct Seat {
    processor: usize,
    _held: UnixDatagram,
}

impl Seat {
    /// A free one of those that this process may use; none where each has a guest.
    pub(crate) fn take() -> Option<Self> {
        let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
        let mut allowed = (0..CpuSet::count()).filter(|n| allowed.is_set(*n).unwrap_or(false));
        allowed.find_map(|processor| {
            let name = format!("udccp/guest-on-processor/{processor}");
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

/// Keeps this process, and what it starts, to a processor.
pub(crate) fn stay_on(processor: usize) -> nix::Result<()> {
    let mut one = CpuSet::new();
    one.set(processor)?;
    sched_setaffinity(Pid::from_raw(0), &one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_guests_share_a_processor() {
        // Others may hold some meanwhile: what is taken here is taken once.
        let seats: Vec<Seat> = std::iter::from_fn(Seat::take).collect();
        let mut numbers: Vec<usize> = seats.iter().map(Seat::processor).collect();
        numbers.dedup();
        assert_eq!(numbers.len(), seats.len());
    }
}
