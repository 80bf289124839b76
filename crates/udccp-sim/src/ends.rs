//! Adds up the counters of a flow's applications, over all its pairs.

use udccp_base::{Duration, Instant, Probe};

use crate::config::RunConfig;
use crate::host::Host;
use crate::result::Completions;
use crate::source::{Outcome, SourceStats, Times};

/// Sums over the pairs of a flow.
#[derive(Default)]
pub(crate) struct Ends {
    /// When the first pair starts.
    pub(crate) start: Option<Instant>,
    /// When the pair that was added first stops, if it does.
    pub(crate) stop: Option<Instant>,
    pub(crate) source: SourceStats,
    pub(crate) messages: Option<Completions>,
    pub(crate) responses: Option<Completions>,
    pub(crate) transfers: Option<Completions>,
    pub(crate) probe: Probe,
}

impl Ends {
    /// Sums over these hosts (sender, receiver, sender...).
    pub(crate) fn of(hosts: &[Host], run: &RunConfig<'_>) -> Self {
        let apps = || hosts.iter().filter_map(|host| host.app.as_ref());
        let start = apps().map(|app| app.start()).min();
        let stop = apps().next().map(|app| app.stop()).filter(|stop| *stop < Instant::MAX);
        let mut all = Self { start, stop, ..Self::default() };
        for ends in hosts.chunks_exact(2) {
            all.add(&ends[0], &ends[1], run);
        }
        if let Some([sender, _]) = hosts.first_chunk::<2>().filter(|_| hosts.len() == 2) {
            all.probe = sender.transport.probe();
        }
        for times in [&mut all.messages, &mut all.responses, &mut all.transfers] {
            times.iter_mut().for_each(|t| t.times.sort_unstable());
        }
        all
    }

    fn add(&mut self, sender: &Host, receiver: &Host, run: &RunConfig<'_>) {
        let Some(app) = &sender.app else { return };
        let stats = app.source().stats();
        self.source += stats;
        let probe = sender.transport.probe();
        self.probe.congestion_events += probe.congestion_events;
        self.probe.timeouts += probe.timeouts;
        self.probe.retransmits += probe.retransmits;
        match app.source().outcome() {
            Outcome::None => {}
            Outcome::Messages(times) => add(&mut self.messages, &times, run),
            Outcome::Responses(times) => add(&mut self.responses, &times, run),
            Outcome::Transfer { is_offered } => {
                let all = self.transfers.get_or_insert_default();
                let is_whole = receiver.delivered_bytes >= stats.accepted_bytes;
                all.begun += u64::from(app.start() < Instant::ZERO + run.duration);
                if is_offered && (is_whole || sender.transport.is_closed()) {
                    all.completed += 1;
                    all.given_up += u64::from(!is_whole);
                    all.times.push(receiver.last_delivery.saturating_since(app.start()));
                }
            }
        }
    }
}

/// Adds the times of a pair. Counts cover the whole run, times only the measured window.
fn add(all: &mut Option<Completions>, times: &Times, run: &RunConfig<'_>) {
    let all = all.get_or_insert_default();
    all.begun += times.begun;
    all.given_up += times.given_up;
    all.completed += times.done.len() as u64;
    let [from, to] = [run.measure.start, run.measure.end].map(|t| Instant::ZERO + t);
    let inside = times.done.iter().filter(|(at, _)| (from..to).contains(at));
    all.times.extend(inside.map(|(_, took): &(Instant, Duration)| *took));
}
