//! Estimates the work of a run before its first run.

use udccp_scenario::protocol::Family;
use udccp_sim::LossConfig;

use crate::schema::{CodecName, Flow, Scenario, Traffic};

/// Processor seconds per packet, before any run has been measured.
pub(crate) const SECONDS_PER_PACKET: f64 = 0.3e-6;

/// Approximate number of packets in a run: what the applications offer, limited by the bottleneck
/// and its losses. Accurate enough to order tasks and to tell minutes from hours.
pub(crate) fn packets(scenario: &Scenario) -> f64 {
    let link = &scenario.topology.bottleneck;
    let carried = link.rate.as_mbps() * 1e6 / 8.0;
    // What a loss-driven sender gets at most: the square root law, sqrt(3/2) / (R sqrt(p)).
    let loss = match &link.config.loss {
        LossConfig::Random(share) => *share,
        _ => 0.0,
    };
    let rtt_s = scenario.topology.rtt().as_secs_f64().max(1e-6);
    let lossy = if loss > 0.0 { 1.22 / (rtt_s * loss.sqrt()) } else { f64::INFINITY };
    let (mut responsive, mut pushed) = (0.0, 0.0);
    let mut room = carried;
    for flow in &scenario.flows {
        let size = (flow.packet.bytes() as f64).max(1.0);
        match offered(flow) {
            // Datagrams without congestion control are sent whether or not they arrive.
            Some(packets) if flow.protocol.family == Family::Udp => pushed += packets,
            Some(packets) => {
                let packets = packets.min(lossy).min(carried / size);
                responsive += packets;
                room -= packets * size;
            }
            None => {}
        }
    }
    let bulk: Vec<&Flow> = scenario.flows.iter().filter(|f| offered(f).is_none()).collect();
    let sizes = bulk.iter().map(|f| f.packet.bytes() as f64);
    let mean_size = (sizes.sum::<f64>() / bulk.len().max(1) as f64).max(1.0);
    if !bulk.is_empty() {
        // Other flows get less beside bulk ones, but the bulk ones never get the whole link.
        responsive += (room.max(carried / 2.0) / mean_size).min(lossy * bulk.len() as f64);
    }
    (responsive + pushed) * scenario.time.duration.as_secs_f64()
}

/// Packets per second that an application offers; `None` if it uses all it can get.
fn offered(flow: &Flow) -> Option<f64> {
    let packet = (flow.packet.bytes() as f64).max(1.0);
    let of_rate = |rate: f64, size: f64| rate * 1e6 / 8.0 / size.max(1.0);
    Some(match &*flow.traffic {
        Traffic::Bulk | Traffic::Transfer { .. } => return None,
        Traffic::ConstantRate { rate, size } | Traffic::OnOff { rate, size, .. } => {
            of_rate(rate.as_mbps(), size.bytes() as f64)
        }
        Traffic::Video { rate, .. } => of_rate(rate.as_mbps(), packet),
        Traffic::VideoTrace { trace, every, .. } => {
            let frames = trace.bytes.len().max(1) as f64;
            let bytes = trace.bytes.iter().map(|b| f64::from(*b)).sum::<f64>() / frames;
            (bytes / packet).max(1.0) / every.as_secs_f64().max(1e-6)
        }
        Traffic::Voip { codec, packet, .. } => {
            let bits = match codec {
                CodecName::G711 => 64e3,
                CodecName::G729 => 8e3,
            };
            let every_s = packet.as_secs_f64().max(1e-3);
            (bits * every_s / 8.0 / 1000.0).max(1.0) / every_s
        }
        Traffic::Poisson { every, .. } => 40.0 / every.as_secs_f64().max(1e-3),
        Traffic::RequestResponse { .. } => 40.0,
    })
}
