//! Settings of CCID 3. Defaults are the RFCs' values.

use udccp_base::Duration;

/// The segment size s of the throughput equation (RFC 4342 section 5.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SegmentSizeRule {
    /// The mean over the last four loss intervals (RFC 5348 section 4.1).
    #[default]
    Mean,
    //= 4342-5.3-2
    /// The largest data size of a packet: every packet counts as a full one.
    Maximum,
}

/// Settings of CCID 3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ccid3Config {
    /// Lower the rate while the round-trip time is above its mean (default true, RFC 5348 section
    /// 4.5).
    pub oscillation_reduction: bool,
    /// Reduce the weight of old loss intervals during a long one without loss (default true, RFC
    /// 5348 section 5.5).
    pub history_discounting: bool,
    /// The segment size in the throughput equation (default the mean).
    pub segment_size: SegmentSizeRule,
    /// Granularity of the driver's timers, t_gran (default 1 ms): a packet may be sent up to half
    /// of it early (RFC 5348 section 8.3).
    pub granularity: Duration,
    /// How long missed send times may be made up for, never more than a round-trip time (the
    /// default, RFC 5348 section 4.6). A sender that wakes up later loses rate, and with it the
    /// receive rate that limits it. Two packets may always be made up for.
    pub max_credit: Duration,
    /// Shortest nofeedback timer (default 10 ms): hosts pause for longer than four round-trip times
    /// of a path whose round-trip time is microseconds. If this applies, the data in flight is
    /// limited to what is sent in four round-trip times, but at least 100 packets.
    pub min_nofeedback_timeout: Duration,
    /// Accept feedback with a Loss Event Rate instead of Loss Intervals (default true). Linux sends
    /// no other.
    pub accept_loss_event_rate: bool,
}

impl Default for Ccid3Config {
    //= 4342-3.1-2
    fn default() -> Self {
        Self {
            oscillation_reduction: true,
            history_discounting: true,
            segment_size: SegmentSizeRule::Mean,
            granularity: Duration::from_millis(1),
            max_credit: Duration::MAX,
            min_nofeedback_timeout: Duration::from_millis(10),
            accept_loss_event_rate: true,
        }
    }
}
