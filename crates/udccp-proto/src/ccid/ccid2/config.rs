//! Settings of CCID 2. Defaults are the RFCs' values.

use udccp_base::Duration;
use udccp_cc::{Algorithm, IdlePolicy, InitialWindow, RtoConfig};

/// When the packets that the window allows are spread over the round-trip time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// Never, unless the window algorithm has a rate of its own.
    Off,
    /// While the window is larger than its use has validated (RFC 7661 section 4.4.2), after a
    /// burst of one initial window.
    #[default]
    NonValidated,
    /// Always, after a burst of one initial window (allowed by RFC 4341 section 5).
    Always,
}

/// Congestion control of acknowledgements (RFC 4341 section 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRatioConfig {
    /// The Ack Ratio follows losses and marks of acknowledgements.
    Adaptive {
        /// The smallest ratio used: 2, or 1, which applies while the window is less than four
        /// packets.
        min: u16,
    },
    /// As `Adaptive`; and in a large window the ratio is a power of two with which the window has
    /// at most `acks` acknowledgements. Linux doubles its ratio if a window has more than 20.
    Thinned {
        /// The smallest ratio used: 2, or 1, which applies while the window is less than three
        /// packets.
        min: u16,
        /// Most acknowledgements per window.
        acks: u16,
    },
    /// Always this ratio, within the bounds of RFC 4341 for the window.
    Fixed(u16),
}

/// How fast the window grows in slow start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowStartGrowth {
    /// By one packet for every two acknowledged, and by at most Ack Ratio / 2 per acknowledgement
    /// (RFC 4341 section 5).
    #[default]
    HalfOfPackets,
    /// By one packet for every packet acknowledged, as in TCP (RFC 3465 with unlimited L, because
    /// an Ack Vector reports each packet).
    EveryPacket,
}

/// Settings of CCID 2.
#[derive(Clone, Debug, PartialEq)]
pub struct Ccid2Config {
    /// The window algorithm (default [`Algorithm::CCID2`]).
    pub algorithm: Algorithm,
    /// How the window grows in slow start (default as in RFC 4341).
    pub slow_start: SlowStartGrowth,
    /// The initial window (default RFC 3390).
    pub initial_window: InitialWindow,
    /// Largest window in packets (default 6144, or 8.8 MB of full packets: 700 Mbit/s over 100 ms).
    /// State is kept for each packet in flight, about 21 bytes, so a connection takes less than 256
    /// KiB whatever its peer does. A window algorithm that samples delivery rates (BBR) uses a
    /// quarter of this. Raise it for longer and faster paths.
    pub max_window: u32,
    /// Transmit timeout (default: first 1 s, at least 200 ms, at most 60 s).
    pub rto: RtoConfig,
    /// What happens to a window that the application does not use (default RFC 7661).
    pub idle: IdlePolicy,
    /// When packets are paced (default: while the window is not validated).
    pub pacing: Pacing,
    /// Most packets in one burst, which drivers write in one call (default 1; simulation does not
    /// need bursts). With more than 1, a full window waits until an eighth of it is free, or a
    /// quarter of a round-trip time is over; what a window has left behind a full burst waits for
    /// acknowledgements if it is less than that. Pacing sends as many packets at once as leave in 1
    /// ms, as Linux does.
    pub max_train: u32,
    /// Congestion control of acknowledgements (default: an adaptive Ack Ratio, at least 2).
    pub ack_ratio: AckRatioConfig,
    /// Longest delay of an acknowledgement (default 200 ms, RFC 4340 section 11.3). The sender half
    /// allows the peer the same, up to 64 s.
    pub delayed_ack: Duration,
    /// Most data packets without an acknowledgement of the peer's acknowledgements (default 512, or
    /// half a window if that is less). If the window is large, this limits the peer's Ack Vectors
    /// to little more than a window.
    pub ack_of_ack_after: u16,
}

impl Default for Ccid2Config {
    //= 4341-3.1-1
    /// What the RFCs of CCID 2 specify. Later improvements of TCP are optional.
    fn default() -> Self {
        Self {
            algorithm: Algorithm::CCID2,
            slow_start: SlowStartGrowth::HalfOfPackets,
            initial_window: InitialWindow::Rfc3390,
            max_window: 6144,
            rto: RtoConfig::default(),
            idle: IdlePolicy::Rfc7661,
            pacing: Pacing::NonValidated,
            max_train: 1,
            ack_ratio: AckRatioConfig::Adaptive { min: 2 },
            delayed_ack: Duration::from_millis(200),
            ack_of_ack_after: 512,
        }
    }
}
