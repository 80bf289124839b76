//! Applications: what a sender sends, and when.

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
/// A source is started once, and fed after every event of its host and at its own timeouts, but not
/// after the flow's stop time. After it has offered everything it may close the transport.
///
/// If [`Self::tracks_delivery`] returns true, the source is the application on both sides:
/// deliveries are reported to it, and it may answer from the receiver's side.
pub trait Source: fmt::Debug + Send {
    /// The flow has been opened.
    fn start(&mut self, now: Instant);

    /// Offers the transport what is due. Returns whether anything was accepted.
    fn feed(&mut self, now: Instant, port: &mut dyn AppPort) -> bool;

    /// The next time at which there is something to offer without input from the network; `None`
    /// if there is none.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Counts of what was offered so far.
    fn stats(&self) -> SourceStats;

    /// Whether [`Self::delivered`] and [`Self::answer`] should be called. Called once, before the
    /// run.
    fn tracks_delivery(&self) -> bool {
        false
    }

    /// The application at `end` received this data (for a byte stream, this part of it). At the
    /// receiver, this must not make [`Self::poll_timeout`] earlier.
    fn delivered(&mut self, _now: Instant, _end: End, _payload: &Payload) {}

    /// Offers the receiver's transport the answers that are due. Returns whether any was accepted.
    fn answer(&mut self, _now: Instant, _transport: &mut dyn AppPort) -> bool {
        false
    }

    /// The fate of the offered data.
    fn outcome(&self) -> Outcome {
        Outcome::None
    }
}

/// A side of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The active side.
    Sender,
    /// The passive side.
    Receiver,
}

/// The fate of the data that a source offered, depending on the kind of source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is tracked.
    None,
    /// One transfer.
    Transfer {
        /// Whether all of it was accepted by the transport.
        is_offered: bool,
    },
    /// Messages, each with the time from creation to complete arrival at the receiver.
    Messages(Times),
    /// Requests, each with the time from creation to complete arrival of the response at the
    /// sender.
    Responses(Times),
}

/// Things that started and ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// How many started.
    pub begun: u64,
    /// How many of these the source gave up.
    pub given_up: u64,
    /// For each that completed: when, and how long it took.
    pub done: Vec<(Instant, Duration)>,
}

/// Counters of what a source offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceStats {
    /// Messages that the transport accepted.
    pub accepted: u64,
    /// Bytes that the transport accepted.
    pub accepted_bytes: u64,
    /// Messages given up because the transport was full or closed, or because they waited too
    /// long.
    pub refused: u64,
}

impl SourceStats {
    /// Counts a message of `bytes` of which the transport accepted `taken`.
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
