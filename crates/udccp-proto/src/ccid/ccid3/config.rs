//! Settings of CCID 3. Defaults are the RFCs' values.

use udccp_base::Duration;

/// Where the segment size s of the throughput equation comes from (RFC 4342 section 5.3).
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
    /// Lowers the rate while the round-trip time is above its mean (default true, RFC 5348
    /// section 4.5).
    pub oscillation_reduction: bool,
    /// Lets old loss intervals count less during a long one (default true, RFC 5348 section 5.5).
    pub history_discounting: bool,
    /// Which segment size the equation takes (default the mean).
    pub segment_size: SegmentSizeRule,
    /// How coarsely the driver's timers fire, t_gran (default 1 ms): a packet may leave up to half
    /// of it early (RFC 5348 section 8.3).
    pub granularity: Duration,
    /// For how long unused send times may be made up for, and never longer than a round-trip time
    /// (the default, RFC 5348 section 4.6): a sender that wakes up later than that loses rate, and
    /// with it the receive rate that allows it to send. Two packets always may.
    pub max_credit: Duration,
    /// The nofeedback timer is never shorter (default 10 ms): hosts pause for longer than four
    /// round-trip times of a path that has microseconds. What leaves in these, but at least 100
    /// packets, is then the most that may be in flight.
    pub least_timeout: Duration,
    /// Takes feedback that has a Loss Event Rate in place of Loss Intervals (default true): Linux
    /// sends no other.
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
            least_timeout: Duration::from_millis(10),
            accept_loss_event_rate: true,
        }
    }
}
