//! How much work a run is, before it was ever run.

use crate::schema::Scenario;

/// Processor seconds of a packet, where no run has been measured yet.
pub(crate) const SECONDS_PER_PACKET: f64 = 1.1e-6;

/// About how many packets a run moves: what its bottleneck carries from begin to end. Enough to
/// order tasks, and to tell minutes from hours.
pub(crate) fn packets(scenario: &Scenario) -> f64 {
    let duration_s = scenario.time.duration.as_secs_f64();
    let bytes = scenario.topology.bottleneck.rate.as_mbps() * 1e6 / 8.0 * duration_s;
    let sizes = scenario.flows.iter().map(|f| f.packet.bytes() as f64);
    let mean_size = sizes.sum::<f64>() / scenario.flows.len().max(1) as f64;
    bytes / mean_size.max(1.0)
}
