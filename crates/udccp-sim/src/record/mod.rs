//! Recorders: events of each flow and each bottleneck, per interval and in the measured window.

mod crossing;
mod jitter;
mod path;
mod schedule;
mod series;

pub(crate) use crossing::Crossings;
pub use path::PathRecorder;
use path::Step;
#[cfg(test)]
pub(crate) use path::{Rare, Times};
pub use schedule::{Mark, Schedule};
pub(crate) use series::Series;
#[cfg(test)]
pub(crate) use series::{FlowStep, SenderRate};

use udccp_base::{Duration, Instant};
use udccp_link::{Link, LinkStats, Tally};

use crate::packet::PacketHandle;
use crate::result::{FlowSample, LinkResult, LinkSample, SenderSample};

/// The time between two marks.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// Its end, since the start of the run.
    pub end: Duration,
    /// Its length.
    pub span: Duration,
}

/// Adds the sample of one interval to a flow's series, which has those of all intervals before.
pub fn sample_flow(
    series: &mut Vec<FlowSample>,
    forward: &PathRecorder,
    interval: Interval,
    sender: SenderSample,
) {
    let before = Step {
        wire_bytes: series.iter().map(|sample| sample.wire_bytes).sum(),
        goodput_bytes: series.iter().map(|sample| sample.goodput_bytes).sum(),
    };
    series.push(sample(forward.step(), before, interval, sender));
}

/// The sample of an interval, from what was delivered until its end and before it.
fn sample(delivered: Step, before: Step, at: Interval, sender: SenderSample) -> FlowSample {
    let wire_bytes = delivered.wire_bytes - before.wire_bytes;
    let goodput_bytes = delivered.goodput_bytes - before.goodput_bytes;
    FlowSample { end: at.end, span: at.span, wire_bytes, goodput_bytes, sender }
}

/// Records one link.
#[derive(Debug, Default)]
pub(crate) struct LinkRecorder {
    at_from: LinkStats,
    measured: LinkStats,
    last: (Tally, Tally),
    series: Vec<LinkSample>,
}

impl LinkRecorder {
    /// The measured window begins.
    pub(crate) fn window_begins(&mut self, now: Instant, link: &dyn Link<PacketHandle>) {
        self.at_from = link.stats(now);
    }

    /// The measured window ends.
    pub(crate) fn window_ends(&mut self, now: Instant, link: &dyn Link<PacketHandle>) {
        self.measured = link.stats(now).since(&self.at_from);
    }

    /// An interval ends.
    pub(crate) fn sample(
        &mut self,
        now: Instant,
        end: Duration,
        link: &mut dyn Link<PacketHandle>,
    ) {
        let stats = link.counters(now);
        let all = (stats.departed, stats.dropped_total());
        let (departed, dropped) = (all.0 - self.last.0, (all.1 - self.last.1).packets);
        let backlog = link.backlog(now);
        self.series.push(LinkSample { end, departed, dropped, backlog });
        self.last = all;
    }

    pub(crate) fn finish(
        self,
        name: String,
        end: Instant,
        link: &dyn Link<PacketHandle>,
        window: Duration,
    ) -> LinkResult {
        LinkResult {
            name,
            whole: link.stats(end),
            utilisation: self.measured.utilisation(window),
            measured: self.measured,
            series: self.series,
        }
    }
}
