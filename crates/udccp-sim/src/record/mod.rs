//! Recorders: events of each flow and each bottleneck, per interval and in the measured window.

mod crossing;
mod jitter;
mod path;
mod schedule;

pub(crate) use crossing::Crossings;
pub use path::PathRecorder;
use path::Step;
pub use schedule::{Mark, Schedule};

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

/// Adds the sample of one interval to a flow's series.
pub fn sample_flow(
    series: &mut Vec<FlowSample>,
    forward: &mut PathRecorder,
    interval: Interval,
    sender: SenderSample,
) {
    series.push(FlowStep::of(forward, sender).over(interval));
}

/// A flow in one interval, which is the same for all flows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowStep {
    delivered: Step,
    sender: SenderSample,
}

impl FlowStep {
    /// What happened since the last one.
    pub(crate) fn of(forward: &mut PathRecorder, sender: SenderSample) -> Self {
        Self { delivered: forward.step(), sender }
    }

    /// The sample of this interval.
    pub(crate) fn over(self, Interval { end, span }: Interval) -> FlowSample {
        let Self { delivered: Step { wire_bytes, goodput_bytes }, sender } = self;
        FlowSample { end, span, wire_bytes, goodput_bytes, sender }
    }
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
