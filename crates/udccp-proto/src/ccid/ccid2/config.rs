//! Settings of CCID 2. Defaults are the RFCs' values.

use udccp_base::Duration;
use udccp_cc::{Algorithm, InitialWindow, RtoConfig};

/// What becomes of a window that was not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdlePolicy {
    /// Keep it while it was validated recently, else for five minutes at most (RFC 7661).
    #[default]
    Rfc7661,
    /// Halve it for every timeout spent idle, and decay it while it is not filled (RFC 2861).
    Rfc2861,
    /// Back to the initial window after one idle timeout (RFC 5681 section 4.1).
    Restart,
    /// Keep it for ever. For experiments.
    Keep,
}

/// Congestion control on acknowledgements (RFC 4341 section 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRatioConfig {
    /// Follows losses and marks of acknowledgements.
    Adaptive {
        /// The smallest ratio used: 2, or 1 which applies while the window is under four packets.
        min: u16,
    },
    /// Always this ratio (within RFC 4341's bounds for the window).
    Fixed(u16),
}

/// Settings of CCID 2.
#[derive(Clone, Debug, PartialEq)]
pub struct Ccid2Config {
    /// The window algorithm (default NewReno, halving).
    pub algorithm: Algorithm,
    /// The first window (default RFC 3390).
    pub initial_window: InitialWindow,
    /// The window never exceeds this, packets (default 1,000,000).
    pub max_window: u32,
    /// Transmit timeout bounds (default: first 1 s, at least 200 ms, at most 60 s).
    pub rto: RtoConfig,
    /// Later packets that must be acknowledged before one counts as lost (default 3, section 5).
    pub numdupack: u32,
    /// What becomes of a window that was not used (default RFC 7661).
    pub idle: IdlePolicy,
    /// Congestion control on acknowledgements (default adaptive, at least 2).
    pub ack_ratio: AckRatioConfig,
    /// Longest time that an acknowledgement is delayed (default 200 ms, RFC 4340 section 11.3).
    pub delayed_ack: Duration,
}

impl Default for Ccid2Config {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::NEW_RENO,
            initial_window: InitialWindow::Rfc3390,
            max_window: 1_000_000,
            rto: RtoConfig::default(),
            numdupack: 3,
            idle: IdlePolicy::Rfc7661,
            ack_ratio: AckRatioConfig::Adaptive { min: 2 },
            delayed_ack: Duration::from_millis(200),
        }
    }
}
