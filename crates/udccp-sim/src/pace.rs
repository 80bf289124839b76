//! Keeps a run in step with a clock.

use udccp_base::Instant;

/// Keeps a run in step with a clock, and brings in packets of hosts outside the run.
///
/// The network behaves as in a run without it: an event counts as happening at the time when it is
/// due, however late it is processed, so that delays of the clock's owner do not accumulate.
pub trait Pace {
    /// Returns when it is `due` (the next event or sample) or later; earlier if a host has packets
    /// for the network.
    fn wait(&mut self, due: Instant) -> Turn;
}

/// What a run does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The time is due.
    Due,
    /// A host has packets for the network, which are sent at `at`. Its transport is asked for them.
    Input {
        /// Number of the host: twice that of its pair, plus one for the receiver.
        host: usize,
        /// The current time, which is adjusted if it is after the due time or before an earlier
        /// one.
        at: Instant,
    },
    /// End the run without a result.
    Stop,
}
