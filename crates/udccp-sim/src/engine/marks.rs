//! Samples of recorders, at the times that the run's schedule names.

use udccp_base::Instant;

use super::Engine;
use crate::record::{self, FlowStep, Interval, Mark};
use crate::result::SenderSample;

impl Engine {
    /// Takes the samples of recorders up to `until`. All events before `until` are done.
    #[cold]
    pub(super) fn process_marks(&mut self, until: Instant) {
        while self.next_mark <= until {
            let at = self.next_mark;
            match self.schedule.take() {
                Some(Mark::Sample(interval)) => self.sample(at, interval),
                Some(Mark::WindowBegins) => {
                    self.fabric.paths.iter_mut().for_each(record::PathRecorder::window_begins);
                    self.fabric.crossings.window_begins();
                    self.events = self.congestion_events();
                    for (link, recorder) in self.fabric.links.iter().zip(&mut self.link_recorders) {
                        recorder.window_begins(at, &link.element);
                    }
                }
                Some(Mark::WindowEnds) => {
                    self.fabric.paths.iter_mut().for_each(|p| p.window_ends(self.window));
                    self.fabric.crossings.window_ends();
                    let now = self.congestion_events();
                    for (events, now) in self.events.iter_mut().zip(now) {
                        *events = events.zip(now).map(|(before, now)| now.saturating_sub(before));
                    }
                    for (link, recorder) in self.fabric.links.iter().zip(&mut self.link_recorders) {
                        recorder.window_ends(at, &link.element);
                    }
                }
                None => return,
            }
            self.next_mark = self.schedule.next();
        }
    }

    /// Congestion events of each flow's sender so far.
    fn congestion_events(&self) -> Vec<Option<u64>> {
        let of = |host: usize| self.hosts[host].transport.probe().congestion_events;
        self.senders.iter().map(|sender| sender.map(of)).collect()
    }

    fn sample(&mut self, at: Instant, interval: Interval) {
        for (flow, series) in self.series.iter_mut().enumerate() {
            let probe = |host: usize| self.hosts[host].transport.probe().into();
            let sender = self.senders[flow].map_or(SenderSample::default(), probe);
            series.push(FlowStep::of(&mut self.fabric.paths[2 * flow], sender));
        }
        self.intervals.push(interval);
        for (link, recorder) in self.fabric.links.iter_mut().zip(&mut self.link_recorders) {
            recorder.sample(at, interval.end, &mut link.element);
        }
    }
}
