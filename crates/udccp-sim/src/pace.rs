//! Keeps a run in step with a clock.

use udccp_base::Instant;

/// Keeps a run in step with a clock, and adds packets from hosts outside the run.
///
/// The network behaves as without it: an event takes the time when it was due, however late it is
/// processed, so delays of the clock's owner do not accumulate.
pub trait Pace {
    /// Returns when it is `due` (the next event or sample) or later, or earlier if a host has
    /// packets for the network.
    fn wait(&mut self, due: Instant) -> Turn;
}

/// What a run does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The due time has come.
    Due,
    /// A host has packets for the network, sent at `at`. The run polls its transport for them.
    Input {
        /// Number of the host: twice that of its pair, plus one for the receiver.
        host: usize,
        /// The current time. It is adjusted if it is after the due time or before an earlier one.
        at: Instant,
    },
    /// End the run without a result.
    Stop,
}
