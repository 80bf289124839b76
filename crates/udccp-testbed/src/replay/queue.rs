//! Converts samples of a queue to a link's result like the simulator's.

use udccp_base::{DataRate, Duration, Instant};
use udccp_link::{Backlog, Change, DropReason, LinkConfig, LinkStats, QueueConfig, Tally};
use udccp_scenario::schema::Measure;
use udccp_sim::{LinkResult, LinkSample};

use crate::observations::QueueSample;

/// The result of one direction of a link. Its queueing delay is the queue's length divided by the
/// rate, counted once for each packet that left since the previous sample.
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
    for sample in looks {
        let at = Duration::from_nanos(sample.at_ns);
        step(&mut stats, config, &last, sample);
        last = *sample;
        if at <= measure.from {
            at_from = stats.clone();
        }
        if at <= measure.to {
            at_to = Some(stats.clone());
        }
        if at >= next {
            let dropped = stats.dropped_total().packets;
            let departed = stats.departed - sampled.0;
            let backlog = Backlog { packets: sample.waiting, bytes: sample.waiting_bytes };
            series.push(LinkSample { end: next, departed, dropped: dropped - sampled.1, backlog });
            sampled = (stats.departed, dropped);
            next = if next >= duration { Duration::MAX } else { (next + every).min(duration) };
        }
    }
    let measured = at_to.unwrap_or_else(|| stats.clone()).since(&at_from);
    let utilisation = measured.utilisation(measure.to - measure.from);
    LinkResult { name: name.to_owned(), whole: stats, measured, utilisation, series }
}

/// The result of a link that was not sampled.
pub(super) fn unsampled_link(measure: &Measure) -> LinkResult {
    link("", &LinkConfig::default(), &[], measure, measure.to)
}

fn step(stats: &mut LinkStats, config: &LinkConfig, last: &QueueSample, sample: &QueueSample) {
    let rate = rate_at(config, sample.at_ns);
    let bytes = sample.sent_bytes.saturating_sub(last.sent_bytes);
    let packets = sample.sent_packets.saturating_sub(last.sent_packets);
    stats.departed = Tally { packets: sample.sent_packets, bytes: sample.sent_bytes };
    stats.busy += rate.time_for(bytes);
    let delay = rate.time_for(sample.waiting_bytes);
    for _ in 0..packets {
        stats.queue_delay.record(delay);
    }
    let mean = sample.sent_bytes.checked_div(sample.sent_packets).unwrap_or(0);
    let tally = |packets: u64| Tally { packets, bytes: packets * mean };
    // Disciplines above the queue count its drops too. What netem counts in addition is its own.
    let below = sample.bucket_drops.max(sample.queue_drops);
    let chance = sample.line_drops.unwrap_or(below).saturating_sub(below);
    let full = match config.queue {
        QueueConfig::DropTail | QueueConfig::DropHead => DropReason::QueueFull,
        _ => DropReason::EarlyDrop,
    };
    stats.dropped[full as usize] = tally(below);
    stats.dropped[DropReason::RandomLoss as usize] = tally(chance);
    let waiting = Tally { packets: sample.waiting, bytes: sample.waiting_bytes };
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
