//! Applications: what a sender has to say, and when.

mod bulk;
mod constant_rate;

use core::fmt;

use udccp_base::{Instant, Transport};

pub use bulk::Bulk;
pub use constant_rate::ConstantRate;

/// A source of application data for one sender.
///
/// It is started once, fed after everything that happens to its host and when its own timeout
/// comes, and never again after the flow's stop time.
pub trait Source: fmt::Debug + Send {
    /// The flow has been opened.
    fn start(&mut self, now: Instant);

    /// Offers the transport what is due. Returns whether anything was taken.
    fn feed(&mut self, now: Instant, transport: &mut dyn Transport) -> bool;

    /// When there is something new to offer whatever the network does; `None` when never.
    fn poll_timeout(&self) -> Option<Instant>;

    /// What was offered so far.
    fn stats(&self) -> SourceStats;
}

/// What a source offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceStats {
    /// Messages that the transport took.
    pub accepted: u64,
    /// Bytes that the transport took.
    pub accepted_bytes: u64,
    /// Messages that found the transport full or closed, and were given up.
    pub refused: u64,
}
