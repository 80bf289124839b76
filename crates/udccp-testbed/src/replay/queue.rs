//! From looks at a queue to what the simulator tells of a link.

use udccp_base::{DataRate, Duration, Instant};
use udccp_link::{Backlog, Change, DropReason, LinkConfig, LinkStats, QueueConfig, Tally};
use udccp_scenario::schema::Measure;
use udccp_sim::{LinkResult, LinkSample};

use crate::observations::QueueSample;

/// The result of one direction of a link. Its queueing delay is what waits over the rate, once for
/// each packet that left since the look before.
pub(super) fn link(
    name: &str,
    config: &LinkConfig,
    looks: &[QueueSample],
    measure: &Measure,
    duration: Duration,
) -> LinkResult {
    let mut stats = LinkStats::default();
    let mut last = QueueSample::default();
    let (mut at_from, mut at_to) = (LinkStats::default(), None);
    let mut series = Vec::new();
    let mut sampled = (Tally::default(), 0);
    let every = measure.every;
    let mut next = every.min(duration);
    for look in looks {
        let at = Duration::from_nanos(look.at_ns);
        step(&mut stats, config, &last, look);
        last = *look;
        if at <= measure.from {
            at_from = stats.clone();
        }
        if at <= measure.to {
            at_to = Some(stats.clone());
        }
        if at >= next {
            let dropped = stats.dropped_total().packets;
            let departed = stats.departed - sampled.0;
            let backlog = Backlog { packets: look.waiting, bytes: look.waiting_bytes };
            series.push(LinkSample { end: next, departed, dropped: dropped - sampled.1, backlog });
            sampled = (stats.departed, dropped);
            next = if next >= duration { Duration::MAX } else { (next + every).min(duration) };
        }
    }
    let measured = at_to.unwrap_or_else(|| stats.clone()).since(&at_from);
    let utilisation = measured.utilisation(measure.to - measure.from);
    LinkResult { name: name.to_owned(), whole: stats, measured, utilisation, series }
}

/// A link that nobody looked at.
pub(super) fn unseen(measure: &Measure) -> LinkResult {
    link("", &LinkConfig::default(), &[], measure, measure.to)
}

fn step(stats: &mut LinkStats, config: &LinkConfig, last: &QueueSample, look: &QueueSample) {
    let rate = rate_at(config, look.at_ns);
    let bytes = look.sent_bytes.saturating_sub(last.sent_bytes);
    let packets = look.sent_packets.saturating_sub(last.sent_packets);
    stats.departed = Tally { packets: look.sent_packets, bytes: look.sent_bytes };
    stats.busy += rate.time_for(bytes);
    let delay = rate.time_for(look.waiting_bytes);
    for _ in 0..packets {
        stats.queue_delay.record(delay);
    }
    let mean = look.sent_bytes.checked_div(look.sent_packets).unwrap_or(0);
    let tally = |packets: u64| Tally { packets, bytes: packets * mean };
    // Those of the queue are counted by all above it; what netem has beyond that is its own.
    let below = look.bucket_drops.max(look.queue_drops);
    let chance = look.line_drops.unwrap_or(below).saturating_sub(below);
    let full = match config.queue {
        QueueConfig::DropTail | QueueConfig::DropHead => DropReason::QueueFull,
        _ => DropReason::EarlyDrop,
    };
    stats.dropped[full as usize] = tally(below);
    stats.dropped[DropReason::RandomLoss as usize] = tally(chance);
    let waiting = Tally { packets: look.waiting, bytes: look.waiting_bytes };
    stats.arrived = stats.departed;
    stats.arrived += waiting;
    stats.arrived += stats.dropped_total();
}

/// The rate of a link at a time.
fn rate_at(config: &LinkConfig, at_ns: u64) -> DataRate {
    let now = Instant::from_nanos(at_ns);
    let past = config.changes.iter().filter(|(at, _)| *at < now);
    let rates = past.filter_map(|(at, change)| match change {
        Change::Rate(rate) => Some((*at, *rate)),
        _ => None,
    });
    let last = rates.max_by_key(|(at, _)| *at).map(|(_, rate)| rate);
    last.or(config.rate).unwrap_or(DataRate::from_mbps(1))
}
