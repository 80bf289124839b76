//! Delivery-rate samples, for algorithms that look at time and rate and not only at growth.

use udccp_base::{Duration, Instant};

/// What a window algorithm asks of its sender beyond [`crate::CongestionControl::on_ack`].
/// Asked once, when the flow begins; a sender does nothing for what is not asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// [`crate::CongestionControl::on_delivery`] for every acknowledgement, in recovery too.
    pub deliveries: bool,
    /// [`Delivery::rate`] in it.
    pub rates: bool,
    /// [`Delivery::one_way_ticks`] in it.
    pub one_way: bool,
    /// The algorithm moves its window in recovery itself: the sender sends what it allows.
    pub own_recovery: bool,
}

impl Needs {
    /// Every acknowledgement, without rates.
    pub const DELIVERIES: Self =
        Self { deliveries: true, rates: false, one_way: false, own_recovery: false };
}

/// One acknowledgement, whether it lets the window grow or not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delivery {
    /// When it arrived.
    pub now: Instant,
    /// Packets newly acknowledged in order.
    pub acked: u32,
    /// Packets that the cumulative acknowledgement moved over, reported before or not; 0 where
    /// there is none (DCCP).
    pub advanced: u32,
    /// Packets newly reported to have arrived, in order or not.
    pub delivered: u32,
    /// Packets newly found lost.
    pub lost: u32,
    /// The round-trip time of the newest packet acknowledged, without a receiver's delay.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Smallest round-trip time of the connection.
    pub min_rtt: Option<Duration>,
    /// The receiver's clock at the acknowledgement less our clock at the newest packet that it
    /// acknowledges,
    /// in ticks of a millisecond, wrapping: a one-way delay with an unknown constant in it.
    pub one_way_ticks: Option<u32>,
    /// Bytes of data in a full packet.
    pub packet_bytes: u32,
    /// Packets in flight after this acknowledgement.
    pub in_flight: u32,
    /// Packets in flight before it.
    pub prior_in_flight: u32,
    /// When pacing lets the next packet leave; `now` or before where nothing holds it.
    pub departure: Instant,
    /// Nothing was lost or out of order before.
    pub was_in_order: bool,
    /// A loss recovery is under way.
    pub in_recovery: bool,
    /// All packets are acknowledged that had been sent when the last round began, and one sent
    /// later, outside of recovery: a round trip is over, and the gap behind its packets too.
    pub round_start: bool,
    /// Whether the acknowledged packets filled the window.
    pub cwnd_limited: bool,
    /// The delivery rate that this acknowledgement measured.
    pub rate: Option<RateSample>,
}

/// A sample of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation, section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered in `interval`.
    pub delivered_bytes: u64,
    /// The longer of the times in which these were sent and acknowledged.
    pub interval: Duration,
    /// Bytes delivered in all when the packet that this sample is of was sent.
    pub prior_delivered: u64,
    /// Bytes delivered in all by now.
    pub total_delivered: u64,
    /// Whether the application had nothing more to send for part of the interval.
    pub app_limited: bool,
}
