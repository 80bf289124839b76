//! The interface between window algorithms and senders.

use core::fmt;

use udccp_base::{DataRate, Duration, Instant};

use crate::delivery::{Delivery, Needs};

/// One acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckSample {
    /// When it arrived.
    pub now: Instant,
    /// Packets newly acknowledged that count for growth. The caller leaves out what must not count:
    /// packets of a window that was cut already, and in CCID 2's slow start every second packet
    /// (RFC 4341 section 5).
    pub newly_acked: u32,
    /// The round-trip time that this acknowledgement measured; `None` if it measured none.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Smallest round-trip time of the connection; `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// Packets in flight before this acknowledgement.
    pub in_flight: u32,
    /// Whether the acknowledged packets filled the window. A window that is not used must not grow.
    pub cwnd_limited: bool,
}

impl AckSample {
    /// A sample of `newly_acked` packets of a full window, without times.
    pub fn full_window(now: Instant, newly_acked: u32) -> Self {
        Self { now, newly_acked, cwnd_limited: true, ..Self::default() }
    }
}

/// A window algorithm that can be copied, as all that derive `Clone` can.
pub trait CloneAlgorithm {
    /// A copy in a box.
    fn boxed(&self) -> Box<dyn CongestionControl>;
}

impl<T: CongestionControl + Clone + 'static> CloneAlgorithm for T {
    fn boxed(&self) -> Box<dyn CongestionControl> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn CongestionControl> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

/// A window algorithm. Windows are in packets; `cwnd` is at least 1 and `ssthresh` at least 2.
/// Implementations derive `Clone`.
pub trait CongestionControl: CloneAlgorithm + Send + fmt::Debug {
    /// A short name for reports: `newreno`, `cubic`.
    fn name(&self) -> &'static str;

    /// The congestion window in packets.
    fn cwnd(&self) -> u32;

    /// The slow start threshold in packets; `u32::MAX` while it is unlimited.
    fn ssthresh(&self) -> u32;

    /// New packets were acknowledged. Not called for an acknowledgement that only signals
    /// congestion.
    fn on_ack(&mut self, ack: &AckSample);

    /// What the sender has to provide in addition to [`CongestionControl::on_ack`]. Read once.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// An acknowledgement arrived, in recovery or not. Called before `on_ack`, if that is called
    /// too, and only if [`CongestionControl::needs`] asks for it.
    fn on_delivery(&mut self, _delivery: &Delivery) {}

    /// Whether packets sent before the last cut count for growth if they are acknowledged after it.
    /// The result must not change.
    fn grows_in_recovery(&self) -> bool {
        false
    }

    /// A congestion event: losses or marks in one window of data. The caller reports it once per
    /// window.
    fn on_congestion_event(&mut self, now: Instant, in_flight: u32);

    /// The retransmission (or transmit) timer expired: the window becomes one packet. A TCP sender
    /// that keeps ssthresh over repeated timeouts of one segment (RFC 5681 section 3.1) restores it
    /// with [`CongestionControl::set_window`].
    fn on_rto(&mut self, now: Instant, in_flight: u32);

    /// Replaces window and threshold for a reason outside the algorithm: window validation, packets
    /// dropped by the receiver, a timeout that proved spurious. Growth starts again from here.
    fn set_window(&mut self, now: Instant, cwnd: u32, ssthresh: u32);

    /// Packets are sent in bursts of up to `max_packets`. A window that holds little more than the
    /// path has to leave room for them.
    fn set_trains(&mut self, max_packets: u32) {
        let _ = max_packets;
    }

    /// Limits the window to `max_cwnd` packets from now on.
    fn clamp(&mut self, max_cwnd: u32);

    /// Whether the window is below the threshold.
    fn in_slow_start(&self) -> bool {
        self.cwnd() < self.ssthresh()
    }

    /// Ends slow start at the current window.
    fn exit_slow_start(&mut self, now: Instant) {
        if self.in_slow_start() {
            self.set_window(now, self.cwnd(), self.cwnd());
        }
    }

    /// The sender was idle for longer than the timeout: restart from at most `restart_window`
    /// packets (RFC 5681 section 4.1). The threshold stays.
    fn on_idle_restart(&mut self, now: Instant, restart_window: u32) {
        if restart_window < self.cwnd() {
            self.set_window(now, restart_window, self.ssthresh());
        }
    }

    /// The rate at which the algorithm wants packets paced; `None`: the window alone limits
    /// sending.
    fn pacing_rate(&self) -> Option<DataRate> {
        None
    }

    /// Whether [`CongestionControl::pacing_rate`] may ever give a rate; a sender need not ask one
    /// that never does. Read once.
    fn may_pace(&self) -> bool {
        true
    }
}
