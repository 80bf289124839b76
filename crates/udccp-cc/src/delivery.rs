//! Delivery-rate samples, for algorithms that use times and rates.

use udccp_base::{Duration, Instant};

/// What a window algorithm needs from its sender in addition to
/// [`crate::CongestionControl::on_ack`]. The sender reads it once, when the flow begins, and
/// provides only this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// [`crate::CongestionControl::on_delivery`] for every acknowledgement, in recovery too.
    pub deliveries: bool,
    /// [`Delivery::rate`] in it.
    pub rates: bool,
    /// [`Delivery::one_way_ticks`] in it.
    pub one_way: bool,
    /// The algorithm sets its window in recovery itself, and the sender follows it.
    pub own_recovery: bool,
}

impl Needs {
    /// Every acknowledgement, without rates.
    pub const DELIVERIES: Self =
        Self { deliveries: true, rates: false, one_way: false, own_recovery: false };
}

/// An acknowledgement, including those that do not let the window grow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delivery {
    /// When it arrived.
    pub now: Instant,
    /// Packets newly acknowledged in order.
    pub acked: u32,
    /// Packets by which the cumulative acknowledgement advanced, whether or not they were reported
    /// before; 0 without cumulative acknowledgements (DCCP).
    pub advanced: u32,
    /// Packets newly reported to have arrived, in order or not.
    pub delivered: u32,
    /// Packets newly considered lost.
    pub lost: u32,
    /// The round-trip time of the newest packet acknowledged, without the receiver's delay.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Smallest round-trip time of the connection.
    pub min_rtt: Option<Duration>,
    /// The receiver's clock at the acknowledgement minus our clock when the newest packet that it
    /// acknowledges was sent, in ticks of a millisecond, wrapping: a one-way delay plus an unknown
    /// constant.
    pub one_way_ticks: Option<u32>,
    /// Bytes of data in a full packet. Where the window counts packets of any size (DCCP) and rates
    /// are sampled, in one packet on average over the last round.
    pub packet_bytes: u32,
    /// Packets in flight after this acknowledgement.
    pub in_flight: u32,
    /// Packets in flight before it.
    pub prior_in_flight: u32,
    /// When pacing lets the next packet leave; at most `now` if pacing does not delay it.
    pub departure: Instant,
    /// Nothing was lost or out of order before this acknowledgement.
    pub was_in_order: bool,
    /// Loss recovery is in progress.
    pub in_recovery: bool,
    /// A round trip is over, including the gap after its packets: all packets sent when the last
    /// round began have been acknowledged, and one sent later, outside recovery.
    pub round_start: bool,
    /// Whether the acknowledged packets filled the window.
    pub cwnd_limited: bool,
    /// The delivery rate that this acknowledgement measured; `None` if none.
    pub rate: Option<RateSample>,
}

/// A sample of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation, section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered in `interval`.
    pub delivered_bytes: u64,
    /// The longer of the times in which these bytes were sent and acknowledged.
    pub interval: Duration,
    /// Total bytes delivered when the packet of this sample was sent.
    pub prior_delivered: u64,
    /// Total bytes delivered now.
    pub total_delivered: u64,
    /// Whether the application had nothing more to send for part of the interval.
    pub app_limited: bool,
}
