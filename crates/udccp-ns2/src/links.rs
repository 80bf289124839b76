//! The queues between the routers: converts samples of their counters to results like the
//! simulator's.

use udccp_base::Duration;
use udccp_link::{Backlog, DropReason, LinkConfig, LinkStats, QueueConfig, Tally};
use udccp_scenario::schema::Measure;
use udccp_sim::{LinkResult, LinkSample};

use crate::trace::Counters;

/// Counters of ns-2 wrap around at this value.
const WRAP: i64 = 1 << 32;

/// One direction of a link, as sampled so far.
#[derive(Debug)]
pub(crate) struct SampledLink {
    name: String,
    config: LinkConfig,
    measure: Measure,
    duration: Duration,
    stats: LinkStats,
    last: Counters,
    at_from: LinkStats,
    at_to: Option<LinkStats>,
    series: Vec<LinkSample>,
    next: Duration,
    sampled: (Tally, u64),
}

impl SampledLink {
    pub(crate) fn new(
        name: String,
        config: LinkConfig,
        measure: &Measure,
        duration: Duration,
    ) -> Self {
        Self {
            name,
            config,
            measure: measure.clone(),
            duration,
            stats: LinkStats::default(),
            last: Counters::default(),
            at_from: LinkStats::default(),
            at_to: None,
            series: Vec::new(),
            next: measure.every.min(duration),
            sampled: (Tally::default(), 0),
        }
    }

    /// Adds a sample of the queue. Its delay is the queue's length divided by the rate, counted
    /// once for each packet that left since the previous sample.
    pub(crate) fn sample(&mut self, now: &Counters) {
        let rate = self.config.rate.unwrap_or(udccp_base::DataRate::from_mbps(1));
        let departed = since(now.departed, self.last.departed);
        let full = match self.config.queue {
            QueueConfig::DropTail | QueueConfig::DropHead => DropReason::QueueFull,
            _ => DropReason::EarlyDrop,
        };
        let stats = &mut self.stats;
        stats.arrived += since(now.arrived, self.last.arrived);
        stats.departed += departed;
        stats.dropped[full as usize] += since(now.dropped, self.last.dropped);
        stats.busy += rate.time_for(departed.bytes);
        let waiting = since(now.waiting, [0; 2]);
        let delay = rate.time_for(waiting.bytes);
        (0..departed.packets).for_each(|_| stats.queue_delay.record(delay));
        self.last = *now;
        self.keep(Duration::from_nanos(now.at_ns), waiting);
    }

    fn keep(&mut self, at: Duration, waiting: Tally) {
        if at <= self.measure.from {
            self.at_from = self.stats.clone();
        }
        if at <= self.measure.to {
            self.at_to = Some(self.stats.clone());
        }
        if at < self.next {
            return;
        }
        let dropped = self.stats.dropped_total().packets;
        self.series.push(LinkSample {
            end: self.next,
            departed: self.stats.departed - self.sampled.0,
            dropped: dropped - self.sampled.1,
            backlog: Backlog { packets: waiting.packets, bytes: waiting.bytes },
        });
        self.sampled = (self.stats.departed, dropped);
        let after = (self.next + self.measure.every).min(self.duration);
        self.next = if self.next >= self.duration { Duration::MAX } else { after };
    }

    pub(crate) fn finish(self) -> LinkResult {
        let span = self.measure.to - self.measure.from;
        let measured = self.at_to.unwrap_or_else(|| self.stats.clone()).since(&self.at_from);
        let utilisation = measured.utilisation(span);
        let (name, whole, series) = (self.name, self.stats, self.series);
        LinkResult { name, whole, measured, utilisation, series }
    }
}

/// Packets and bytes since an earlier sample.
fn since(now: [i64; 2], before: [i64; 2]) -> Tally {
    let step = |i: usize| (now[i] - before[i]).rem_euclid(WRAP) as u64;
    Tally { packets: step(0), bytes: step(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_counters_keep_increasing() {
        let before = [10, i64::from(i32::MAX) - 100];
        let now = [11, i64::from(i32::MIN) + 1399];
        assert_eq!(since(now, before), Tally { packets: 1, bytes: 1500 });
    }
}
