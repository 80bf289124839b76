//! Settings of CCID 2. Defaults are the RFCs' values.

use udccp_base::Duration;
use udccp_cc::{Algorithm, IdlePolicy, InitialWindow, RtoConfig};

/// When packets that the window allows are spread over the round-trip time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// Never, unless the window algorithm has a rate of its own.
    Off,
    /// While the window is larger than what its use has validated (RFC 7661 section 4.4.2), beyond
    /// a burst of one initial window.
    #[default]
    NonValidated,
    /// Always, beyond a burst of one initial window (allowed by RFC 4341 section 5).
    Always,
}

/// Congestion control on acknowledgements (RFC 4341 section 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRatioConfig {
    /// Follows losses and marks of acknowledgements.
    Adaptive {
        /// The smallest ratio used: 2, or 1 which applies while the window is under four packets.
        min: u16,
    },
    /// The same, and in a large window a power of two with which the window has no more than this
    /// many acknowledgements. Linux doubles its ratio where a window has more than 20.
    Thinned {
        /// The smallest ratio used: 2, or 1 which applies while the window is under three packets.
        min: u16,
        /// Most acknowledgements of a window.
        acks: u16,
    },
    /// Always this ratio (within RFC 4341's bounds for the window).
    Fixed(u16),
}

/// How fast the window grows in slow start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowStartGrowth {
    /// By one packet for every two that are acknowledged, and by Ack Ratio / 2 at most for one
    /// acknowledgement (RFC 4341 section 5).
    #[default]
    HalfOfPackets,
    /// By every packet that is acknowledged, as in TCP (RFC 3465 with L unbounded, since an Ack
    /// Vector distinguishes packets).
    EveryPacket,
}

/// Settings of CCID 2.
#[derive(Clone, Debug, PartialEq)]
pub struct Ccid2Config {
    /// The window algorithm (default [`Algorithm::CCID2`]).
    pub algorithm: Algorithm,
    /// Growth in slow start (default RFC 4341's).
    pub slow_start: SlowStartGrowth,
    /// The first window (default RFC 3390).
    pub initial_window: InitialWindow,
    /// The window never exceeds this, packets (default 6144, or 8.8 MB of full packets: 700 Mbit/s
    /// over 100 ms). What is in flight is remembered packet by packet, in some 21 bytes for each
    /// packet of this, which keeps a connection under 256 KiB whatever its peer does. A window
    /// algorithm that samples delivery rates (BBR) uses a quarter of it. Raise it where the path is
    /// longer and faster.
    pub max_window: u32,
    /// Transmit timeout bounds (default: first 1 s, at least 200 ms, at most 60 s).
    pub rto: RtoConfig,
    /// What becomes of a window that was not used (default RFC 7661).
    pub idle: IdlePolicy,
    /// When packets are paced (default: while the window is not validated).
    pub pacing: Pacing,
    /// Packets that leave in one train at most, as drivers write them in one call (default 1: none;
    /// simulation has no calls to spare). More than 1 has a full window wait until an eighth of it
    /// is free, or a quarter of a round-trip time is over, and paces by what leaves in 1 ms, as
    /// Linux does.
    pub max_train: u32,
    /// Congestion control on acknowledgements (default adaptive, at least 2).
    pub ack_ratio: AckRatioConfig,
    /// Longest time that an acknowledgement is delayed (default 200 ms, RFC 4340 section 11.3). The
    /// sender half leaves the peer as much.
    pub delayed_ack: Duration,
}

impl Default for Ccid2Config {
    //= 4341-3.1-1
    /// What CCID 2's own documents specify; what TCP learned since is there for the asking.
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
        }
    }
}
