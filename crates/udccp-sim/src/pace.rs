//! Runs in step with a clock.

use udccp_base::Instant;

/// Keeps a run in step with a clock, and brings in what hosts say that live outside of the run.
///
/// The network is the same as in a run without it: an event that is due at a time happens *as of*
/// that time, however late it is handled, so that delays of the clock's owner do not add up.
pub trait Pace {
    /// Comes back when it is `due` (the next event, or the next look of the recorders) or later;
    /// before that, as soon as a host has packets for the network.
    fn wait(&mut self, due: Instant) -> Turn;
}

/// What a run does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// What was waited for is due.
    Due,
    /// A host has packets for the network, which leave it at `at`: its transport is asked for them.
    Input {
        /// Number of the host: twice that of its pair, and one more for the receiver.
        host: usize,
        /// The time now. It is not after what was waited for, nor before any earlier time; a time
        /// that is, is moved.
        at: Instant,
    },
    /// The run ends here, without a result.
    Stop,
}
