//! Samples of recorders, at the times that the run's schedule names.

use udccp_base::Instant;

use super::Engine;
use crate::host::Host;
use crate::record::{self, Interval, Mark};
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
                    let Self { hosts, senders, events, .. } = self;
                    let of = |sender: &Option<u32>| sender.map(|at| congestion_events(hosts, at));
                    *events = senders.iter().map(of).collect();
                    for (link, recorder) in self.fabric.links.iter().zip(&mut self.link_recorders) {
                        recorder.window_begins(at, &link.element);
                    }
                }
                Some(Mark::WindowEnds) => {
                    // At the end of the run nothing more is counted, and each path gets its
                    // numbers with its result.
                    if at < self.end {
                        self.fabric.paths.iter_mut().for_each(|p| p.window_ends(self.window));
                        self.fabric.crossings.window_ends();
                    }
                    let Self { hosts, senders, events, .. } = self;
                    for (events, sender) in events.iter_mut().zip(senders) {
                        let now = sender.map(|host| congestion_events(hosts, host));
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

    fn sample(&mut self, at: Instant, interval: Interval) {
        for (flow, sender) in self.senders.iter().enumerate() {
            let probe = |host: u32| self.hosts[host as usize].transport.probe().into();
            let sender = sender.map_or(SenderSample::default(), probe);
            self.series[flow].push(&self.fabric.paths[2 * flow], sender);
        }
        self.intervals.push(interval);
        for (link, recorder) in self.fabric.links.iter_mut().zip(&mut self.link_recorders) {
            recorder.sample(at, interval.end, &mut link.element);
        }
    }
}

/// Congestion events of a sender so far.
fn congestion_events(hosts: &[Host], sender: u32) -> u64 {
    hosts[sender as usize].transport.probe().congestion_events
}
