//! Parameters of BBR v1.

use udccp_base::Duration;

/// Parameters of BBR v1. The defaults are those of the paper and of the kernels.
#[derive(Clone, Debug, PartialEq)]
pub struct BbrConfig {
    /// Gain of rate and window in STARTUP: 2 / ln 2, the smallest that doubles the rate per round.
    /// Like all gains, it is used in units of 1/256.
    pub high_gain: f64,
    /// Gain of the rate in DRAIN: ln 2 / 2.
    pub drain_gain: f64,
    /// Gain of the window in PROBE_BW, which leaves room for delayed and stretched
    /// acknowledgements.
    pub cwnd_gain: f64,
    /// Gains of the rate in the phases of PROBE_BW, each of which lasts one smallest round-trip
    /// time.
    pub cycle: [f64; 8],
    /// Number of rounds of the bandwidth's maximum filter.
    pub bandwidth_rounds: u64,
    /// Length of the round-trip time's minimum filter.
    pub min_rtt_window: Duration,
    /// Shortest time in PROBE_RTT.
    pub probe_rtt_duration: Duration,
    /// The window in PROBE_RTT and the smallest window, in packets.
    pub min_cwnd: u32,
    /// Growth factor of the bandwidth per round of STARTUP that shows that more is available.
    pub full_growth: f64,
    /// Rounds without such growth after which the pipe counts as full.
    pub full_rounds: u32,
    /// How far the pacing rate stays below the estimate, as a fraction (0.01 is 1 %).
    pub pacing_margin: f64,
    /// Packets added to the gain times the path's capacity, for packets queued in the hosts.
    pub quantum: u32,
    /// Whether the window has room for bursts of acknowledgements beyond what the path delivers in
    /// that time (kernels since 5.1).
    pub allows_bursts: bool,
    /// Whether packets in flight are counted at the departure time of the next packets, including
    /// these if the rate is to increase the number in flight (kernels since 4.20).
    pub counts_departures: bool,
    /// Tick of the clock that times PROBE_RTT; zero for continuous time.
    pub tick: Duration,
}

impl BbrConfig {
    /// The defaults of Linux 6.1.
    pub fn linux_6_1() -> Self {
        Self {
            allows_bursts: true,
            counts_departures: true,
            tick: Duration::from_millis(4),
            ..Self::default()
        }
    }
}

impl Default for BbrConfig {
    fn default() -> Self {
        Self {
            high_gain: 739.0 / 256.0,
            drain_gain: 88.0 / 256.0,
            cwnd_gain: 2.0,
            cycle: [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
            bandwidth_rounds: 10,
            min_rtt_window: Duration::from_secs(10),
            probe_rtt_duration: Duration::from_millis(200),
            min_cwnd: 4,
            full_growth: 1.25,
            full_rounds: 3,
            pacing_margin: 0.01,
            quantum: 3,
            allows_bursts: false,
            counts_departures: false,
            tick: Duration::ZERO,
        }
    }
}
