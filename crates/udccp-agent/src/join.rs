//! Combines the reports of both ends of a flow into one result.

use udccp_base::{Duration, Instant, Probe};
use udccp_link::Tally;
use udccp_scenario::schema::{Flow, Measure, Scenario};
use udccp_sim::{Completions, FlowResult, FlowSample, PathCounts, PathWindow, SourceStats};

use crate::report::{AgentReport, AgentSample, TimesReport};

/// Adds what the ends of a flow measured (goodput, congestion state, messages and transfers) to a
/// result whose network was measured elsewhere, by the emulator's links. The measurements of the
/// network are kept; what its hosts, which have no congestion control, counted as events is not.
pub fn both_ends(
    flow: &mut FlowResult,
    measure: &Measure,
    sender: &AgentReport,
    receiver: &AgentReport,
) {
    for (i, sample) in flow.series.iter_mut().enumerate() {
        let at = |report: &AgentReport| report.samples.get(i).copied().unwrap_or_default();
        sample.goodput_bytes = at(receiver).app_bytes;
        sample.sender = probe(&at(sender)).into();
    }
    flow.goodput_bytes = receiver.app_bytes_in;
    flow.measured.goodput_bytes = sum(receiver, measure, |s| s.app_bytes);
    flow.source = SourceStats {
        accepted: sender.offered.accepted,
        accepted_bytes: sender.offered.accepted_bytes,
        refused: sender.offered.refused,
    };
    flow.measured_events = None;
    flow.last_probe = sender.samples.last().map(probe).unwrap_or_default();
    flow.messages = times(measure, sender.messages.as_ref(), receiver.messages.as_ref());
    flow.responses = times(measure, sender.responses.as_ref(), None);
    flow.transfers = transfers(sender, receiver);
}

/// Computes the result of a flow from the reports of its ends alone. Wire rates are those of the
/// hosts' devices, and what the receiver did not get counts as lost. There are no delays and no
/// crossings.
///
/// Rates in the measured part come from the samples that end in it.
pub fn from_ends(
    scenario: &Scenario,
    flow: &Flow,
    start: Duration,
    sender: &AgentReport,
    receiver: &AgentReport,
) -> FlowResult {
    let measure = &scenario.time.measure;
    let mut result = FlowResult {
        name: flow.name.clone(),
        start,
        stop: flow.stop,
        forward: path_counts(sender, receiver),
        reverse: path_counts(receiver, sender),
        measured: window(measure, sender, receiver),
        measured_reverse: window(measure, receiver, sender),
        goodput_bytes: 0,
        source: SourceStats::default(),
        messages: None,
        responses: None,
        transfers: None,
        crossings: Vec::new(),
        series: Vec::new(),
        measured_events: None,
        last_probe: Probe::default(),
    };
    let mut begin = Duration::ZERO;
    for here in receiver.samples.iter().take(sender.samples.len()) {
        let end = Duration::from_nanos(here.end_ns);
        let (span, wire_bytes) = (end - begin, here.wire_bytes);
        result.series.push(FlowSample { end, span, wire_bytes, ..FlowSample::default() });
        begin = end;
    }
    both_ends(&mut result, measure, sender, receiver);
    result
}

/// Counts of the whole run in one direction.
fn path_counts(from: &AgentReport, to: &AgentReport) -> PathCounts {
    let sum =
        |report: &AgentReport, of: fn(&AgentSample) -> u64| report.samples.iter().map(of).sum();
    let sent: u64 = sum(from, |s| s.sent_packets);
    let delivered: u64 = sum(to, |s| s.wire_packets);
    PathCounts {
        sent: Tally { packets: sent, bytes: sum(from, |s| s.sent_bytes) },
        sent_data: sent,
        delivered: Tally { packets: delivered, bytes: sum(to, |s| s.wire_bytes) },
        delivered_data: delivered,
        ..PathCounts::default()
    }
}

/// Counts of the measured part in one direction.
fn window(measure: &Measure, from: &AgentReport, to: &AgentReport) -> PathWindow {
    let sent = Tally {
        packets: sum(from, measure, |s| s.sent_packets),
        bytes: sum(from, measure, |s| s.sent_bytes),
    };
    let delivered = Tally {
        packets: sum(to, measure, |s| s.wire_packets),
        bytes: sum(to, measure, |s| s.wire_bytes),
    };
    PathWindow {
        span: measure.to - measure.from,
        sent,
        delivered,
        dropped: sent.packets.saturating_sub(delivered.packets),
        goodput_bytes: sum(to, measure, |s| s.app_bytes),
        ..PathWindow::default()
    }
}

/// Sums a value over the samples that end in the measured part.
fn sum(report: &AgentReport, measure: &Measure, of: fn(&AgentSample) -> u64) -> u64 {
    let (from, to) = (measure.from.as_nanos(), measure.to.as_nanos());
    report.samples.iter().filter(|s| s.end_ns > from && s.end_ns <= to).map(of).sum()
}

fn probe(sample: &AgentSample) -> Probe {
    Probe {
        cwnd_packets: sample.cwnd_packets,
        ssthresh_packets: sample.ssthresh_packets,
        pipe_packets: None,
        srtt: sample.srtt_ns.map(Duration::from_nanos),
        rto: None,
        x_bytes_per_sec: sample.x_bytes_per_sec,
        loss_event_rate: sample.loss_event_rate,
        congestion_events: sample.congestion_events,
        timeouts: sample.timeouts,
        retransmits: sample.retransmits,
    }
}

/// Combines the things begun at one end with those completed at either end.
fn times(
    measure: &Measure,
    sender: Option<&TimesReport>,
    receiver: Option<&TimesReport>,
) -> Option<Completions> {
    let sender = sender?;
    let done = receiver.map_or(&sender.done, |r| &r.done);
    let inside = measure.from.as_nanos()..measure.to.as_nanos();
    let times = done.iter().filter(|[at, _]| inside.contains(at));
    let mut times: Vec<Duration> = times.map(|[_, took]| Duration::from_nanos(*took)).collect();
    times.sort_unstable();
    Some(Completions {
        begun: sender.begun,
        completed: done.len() as u64,
        given_up: sender.given_up,
        times,
    })
}

/// Combines the two ends of each transfer, matched by the sender's port.
fn transfers(sender: &AgentReport, receiver: &AgentReport) -> Option<Completions> {
    let has_end = sender.connections.iter().any(|c| c.is_offered.is_some());
    if !has_end {
        return None;
    }
    let mut all = Completions::default();
    for begun in &sender.connections {
        all.begun += 1;
        let end = receiver.connections.iter().find(|c| c.port == begun.port);
        let Some(end) = end.filter(|_| begun.is_offered == Some(true)) else { continue };
        let is_whole = end.bytes >= begun.bytes;
        if !is_whole && !begun.is_closed {
            continue;
        }
        let last = Instant::from_nanos(end.last_ns.unwrap_or(end.opened_ns));
        all.completed += 1;
        all.given_up += u64::from(!is_whole);
        all.times.push(last.saturating_since(Instant::from_nanos(begun.opened_ns)));
    }
    all.times.sort_unstable();
    Some(all)
}

#[cfg(test)]
mod tests {
    use udccp_scenario::document;

    use super::*;
    use crate::Role;

    const ONE_FLOW: &str = r#"
        schema = 1
        [topology]
        shape = "dumbbell"
        access = { rate = "100 Mbit/s", delay = "1 ms" }
        bottleneck = { rate = "10 Mbit/s", rtt = "20 ms", limit = "50 packets" }
        [time]
        duration = "3 s"
        measure = { from = "1 s", to = "3 s", every = "1 s" }
        [[flow]]
        name = "first"
        protocol = "dccp/ccid2"
        traffic = "bulk"
    "#;

    /// What an end reports whose sender had had these congestion events after each second.
    fn report(role: Role, events: [u64; 3]) -> AgentReport {
        let sample = |(second, congestion_events): (u64, u64)| AgentSample {
            end_ns: second * 1_000_000_000,
            congestion_events,
            cwnd_packets: Some(10.0),
            sent_packets: 100,
            ..AgentSample::default()
        };
        AgentReport {
            flow: "first".to_owned(),
            role,
            samples: (1..).zip(events).map(sample).collect(),
            app_bytes_out: 0,
            app_bytes_in: 0,
            offered: crate::OfferedReport::default(),
            messages: None,
            responses: None,
            connections: Vec::new(),
            memory_pressures: 0,
            buffer_drops: 0,
            unknown: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Regression: every emulated flow had 0 % of loss events.
    #[test]
    fn events_are_those_of_the_ends_and_not_of_the_emulators_hosts() {
        let document = document::parse("one", ONE_FLOW.to_owned()).unwrap();
        let scenario = Scenario::read(&document).unwrap();
        let ends = [report(Role::Sender, [2, 3, 7]), report(Role::Receiver, [0; 3])];
        let (flow, measure) = (&scenario.flows[0], &scenario.time.measure);
        let of_network = from_ends(&scenario, flow, Duration::ZERO, &ends[0], &ends[1]);
        let mut found = FlowResult { measured_events: Some(0), ..of_network };
        both_ends(&mut found, measure, &ends[0], &ends[1]);
        let events = found.series.iter().map(|sample| sample.sender.congestion_events);
        assert_eq!(events.collect::<Vec<_>>(), [2, 3, 7]);
        assert_eq!((found.measured_events, found.last_probe.congestion_events), (None, 7));
    }
}
