//! Applications: what a sender has to say, and when.

mod arrivals;
mod bulk;
mod constant_rate;
mod distribution;
mod live;
mod on_off;
mod periods;
mod pieces;
mod request_response;
mod responder;
mod transfer;
mod video;
mod voip;

use core::fmt;

use udccp_base::{AppPort, Duration, Instant, Payload};

pub use arrivals::{Arrival, poisson};
pub use bulk::Bulk;
pub use constant_rate::ConstantRate;
pub use distribution::Distribution;
pub use on_off::OnOff;
pub use request_response::{Dialogue, RequestResponse};
pub use responder::{DialogueSizes, Responder};
pub use transfer::Transfer;
pub use video::{Frames, Video};
pub use voip::{Codec, Speech, Voip};

/// A source of application data for one sender.
///
/// It is started once, fed after everything that happens to its host and when its own timeout
/// comes, and never again after the flow's stop time. A source that has offered all it has may
/// close the transport.
///
/// One that [`Self::hears`] is the application at both ends: it is told what is delivered, and may
/// answer from the receiver's end.
pub trait Source: fmt::Debug + Send {
    /// The flow has been opened.
    fn start(&mut self, now: Instant);

    /// Offers the transport what is due. Returns whether anything was taken.
    fn feed(&mut self, now: Instant, port: &mut dyn AppPort) -> bool;

    /// When there is something new to offer whatever the network does; `None` when never.
    fn poll_timeout(&self) -> Option<Instant>;

    /// What was offered so far.
    fn stats(&self) -> SourceStats;

    /// Whether [`Self::delivered`] and [`Self::answer`] are to be called. Asked once, before the
    /// run.
    fn hears(&self) -> bool {
        false
    }

    /// The application at `end` got this data (of a byte stream: this stretch). What happens at
    /// the receiver must not make [`Self::poll_timeout`] earlier.
    fn delivered(&mut self, _now: Instant, _end: End, _payload: &Payload) {}

    /// Offers the receiver's transport what is due there. Returns whether anything was taken.
    fn answer(&mut self, _now: Instant, _transport: &mut dyn AppPort) -> bool {
        false
    }

    /// What became of what was offered.
    fn outcome(&self) -> Outcome {
        Outcome::None
    }
}

/// An end of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The active side.
    Sender,
    /// The passive side.
    Receiver,
}

/// What became of what a source offered, by the kind of source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is followed.
    None,
    /// One transfer.
    Transfer {
        /// All of it was given to the transport.
        is_offered: bool,
    },
    /// Messages, each with a time from being made to being whole at the receiver.
    Messages(Times),
    /// Requests, each with a time from being made to its response being whole at the sender.
    Responses(Times),
}

/// Things that began and ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Things that began.
    pub begun: u64,
    /// Of these, given up by the source.
    pub given_up: u64,
    /// Of those that ended well: when, and how long it had taken.
    pub done: Vec<(Instant, Duration)>,
}

/// What a source offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceStats {
    /// Messages that the transport took.
    pub accepted: u64,
    /// Bytes that the transport took.
    pub accepted_bytes: u64,
    /// Messages that found the transport full or closed, or waited for too long, and were given up.
    pub refused: u64,
}

impl SourceStats {
    /// Counts a message of `bytes` of which the transport took `taken`.
    fn count(&mut self, taken: u32, bytes: u32) {
        self.accepted_bytes += u64::from(taken);
        if taken == bytes {
            self.accepted += 1;
        } else {
            self.refused += 1;
        }
    }
}

impl core::ops::AddAssign for SourceStats {
    fn add_assign(&mut self, other: Self) {
        self.accepted += other.accepted;
        self.accepted_bytes += other.accepted_bytes;
        self.refused += other.refused;
    }
}
