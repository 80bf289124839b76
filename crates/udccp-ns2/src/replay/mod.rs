//! Converts a trace to a result like the simulator's, so that the same code computes all metrics.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};
use udccp_agent::start_of;
use udccp_base::{Duration, Instant, Probe, Seed};
use udccp_link::{DropReason, QueueConfig};
use udccp_scenario::schema::{Flow, Scenario};
use udccp_scenario::{Family, hop_configs};
use udccp_sim::{
    Cost, Crossing, FlowResult, FlowSample, Mark, PathRecorder, RunResult, Schedule, SenderSample,
    SourceStats, SystemResult, link_name, sample_flow,
};

use crate::flow::payload_bytes;
use crate::links::SampledLink;
use crate::script::host;
use crate::trace::{EventKind, Line, Packet, Sender};

/// A run, as far as its trace has been read.
pub(crate) struct Replay<'a> {
    scenario: &'a Scenario,
    flows: Vec<FlowReplay>,
    links: [SampledLink; 2],
    schedule: Schedule,
    hash: Sha256,
    lines: u64,
    /// The drop reason for a host's packets that the network loses.
    lost: DropReason,
    pub(crate) is_over: bool,
}

impl<'a> Replay<'a> {
    pub(crate) fn new(scenario: &'a Scenario) -> Self {
        let time = &scenario.time;
        let measure = &time.measure;
        let hop = hop_configs(scenario).swap_remove(0);
        let lost = match hop.forward.queue {
            QueueConfig::DropTail => DropReason::QueueFull,
            _ => DropReason::EarlyDrop,
        };
        let watched =
            |link, config| SampledLink::new(link_name(link, 1), config, measure, time.duration);
        Self {
            scenario,
            flows: scenario.flows.iter().enumerate().map(FlowReplay::of).collect(),
            links: [watched(0, hop.forward), watched(1, hop.reverse)],
            schedule: Schedule::new(time.duration, measure.every, &(measure.from..measure.to)),
            hash: Sha256::new(),
            lines: 0,
            lost,
            is_over: false,
        }
    }

    /// Processes the next line.
    pub(crate) fn line(&mut self, line: &Line) -> Result<(), String> {
        self.lines += 1;
        match line {
            Line::Packet(packet) => self.packet(packet),
            Line::Flow(sender) => self.sender(sender),
            Line::Queue(counters) => {
                let link = self.links.get_mut(counters.link);
                link.ok_or_else(|| format!("no link {}", counters.link))?.sample(counters);
                Ok(())
            }
            Line::End => {
                self.is_over = true;
                Ok(())
            }
        }
    }

    fn packet(&mut self, packet: &Packet) -> Result<(), String> {
        self.until(Instant::from_nanos(packet.at_ns));
        self.hash.update(packet.at_ns.to_le_bytes());
        let [flow, bytes] = [packet.flow as u64, packet.bytes.into()];
        let more = [flow, packet.happened as u64, bytes, packet.number];
        more.iter().for_each(|number| self.hash.update(number.to_le_bytes()));
        let flow = self.flows.get_mut(packet.flow);
        flow.ok_or_else(|| format!("no flow {}", packet.flow))?.packet(packet, self.lost)
    }

    fn sender(&mut self, sender: &Sender) -> Result<(), String> {
        let time = &self.scenario.time;
        let end = time.measure.every * (sender.interval as u64 + 1);
        self.until(Instant::ZERO + end.min(time.duration));
        let flow = self.flows.get_mut(sender.flow);
        let flow = flow.filter(|flow| sender.interval < flow.series.len());
        let flow = flow.ok_or_else(|| format!("no interval {}", sender.interval))?;
        flow.last_probe = Probe {
            cwnd_packets: sender.cwnd_packets,
            srtt: sender.srtt_s.map(Duration::from_secs_f64),
            congestion_events: sender.cuts,
            timeouts: sender.timeouts,
            retransmits: sender.retransmits,
            ..Probe::default()
        };
        flow.series[sender.interval].sender = flow.last_probe.into();
        Ok(())
    }

    /// Runs the recorders up to a time.
    fn until(&mut self, at: Instant) {
        let measure = &self.scenario.time.measure;
        let span = measure.to - measure.from;
        while self.schedule.next() <= at && self.schedule.next() < Instant::MAX {
            let Some(mark) = self.schedule.take() else { return };
            self.flows.iter_mut().for_each(|flow| flow.mark(mark, span));
        }
    }

    /// The result of the run.
    pub(crate) fn finish(mut self, seed: u64) -> RunResult {
        self.until(Instant::MAX);
        let digest = self.hash.finalize();
        let both = self.scenario.flows.iter().zip(self.flows);
        let finish = |(flow, replay): (&Flow, FlowReplay)| {
            Box::new(replay.finish(self.scenario, flow, Seed(seed)))
        };
        let flows: Vec<_> = both.map(finish).collect();
        let packets = flows.iter().map(|f| f.forward.sent.packets + f.reverse.sent.packets).sum();
        let [forward, reverse] = self.links.map(SampledLink::finish);
        RunResult {
            flows,
            system: SystemResult { forward, reverse, further: Vec::new() },
            cost: Cost { events: self.lines, packets, hops: 0 },
            hash: digest.first_chunk().map_or(0, |first| u64::from_be_bytes(*first)),
        }
    }
}

struct FlowReplay {
    sender_node: usize,
    forward: DirectionReplay,
    reverse: DirectionReplay,
    payload_bytes: u64,
    /// Counts segments of a TCP that are delivered in order.
    in_order: Option<InOrder>,
    series: Vec<FlowSample>,
    /// The last known state of the sender.
    last_probe: Probe,
}

/// One direction of a flow.
#[derive(Default)]
struct DirectionReplay {
    recorder: PathRecorder,
    /// When the packets in flight were sent, by their numbers.
    travelling: BTreeMap<u64, Instant>,
}

/// Counts the segments that a receiver can deliver to its application.
#[derive(Debug)]
struct InOrder {
    /// The first missing segment; the SYN has number 0.
    next: u64,
    /// Received segments beyond it.
    beyond: BTreeSet<u64>,
}

impl InOrder {
    /// Records a received segment. Returns how many more can be delivered.
    fn arrived(&mut self, segment: u64) -> u64 {
        if segment < self.next {
            return 0;
        }
        self.beyond.insert(segment);
        let before = self.next;
        while self.beyond.remove(&self.next) {
            self.next += 1;
        }
        self.next - before
    }
}

impl FlowReplay {
    fn of((i, flow): (usize, &Flow)) -> Self {
        let is_tcp = flow.protocol.family == Family::Tcp;
        Self {
            sender_node: host(i, false),
            forward: DirectionReplay {
                recorder: PathRecorder::with_times(),
                ..DirectionReplay::default()
            },
            reverse: DirectionReplay::default(),
            payload_bytes: payload_bytes(flow),
            in_order: is_tcp.then(|| InOrder { next: 1, beyond: BTreeSet::new() }),
            series: Vec::new(),
            last_probe: Probe::default(),
        }
    }

    fn packet(&mut self, packet: &Packet, lost: DropReason) -> Result<(), String> {
        let is_forward = packet.source == self.sender_node;
        let way = if is_forward { &mut self.forward } else { &mut self.reverse };
        let now = Instant::from_nanos(packet.at_ns);
        if packet.happened == EventKind::Sent {
            way.travelling.insert(packet.number, now);
            way.recorder.sent(packet.bytes, packet.has_data);
            return Ok(());
        }
        let unsent = || format!("packet {} never left", packet.number);
        let sent = way.travelling.remove(&packet.number).ok_or_else(unsent)?;
        if packet.happened == EventKind::Dropped {
            way.recorder.dropped(lost);
            return Ok(());
        }
        way.recorder.delivered(sent, now, packet.bytes, packet.has_data);
        if is_forward && packet.has_data {
            way.recorder.numbered(packet.number, now - sent);
            let packets = match &mut self.in_order {
                Some(order) => order.arrived(packet.segment),
                None => 1,
            };
            way.recorder.goodput(packets * self.payload_bytes);
        }
        Ok(())
    }

    fn mark(&mut self, mark: Mark, span: Duration) {
        let ways = [&mut self.forward.recorder, &mut self.reverse.recorder];
        match mark {
            Mark::WindowBegins => ways.into_iter().for_each(PathRecorder::window_begins),
            Mark::WindowEnds => ways.into_iter().for_each(|way| way.window_ends(span)),
            Mark::Sample(interval) => {
                let [forward, _] = ways;
                sample_flow(&mut self.series, forward, interval, SenderSample::default());
            }
        }
    }

    /// The result of the flow. On a path of one hop, what crosses it is what arrives.
    fn finish(self, scenario: &Scenario, flow: &Flow, seed: Seed) -> FlowResult {
        let travelling = [&self.forward, &self.reverse].map(|way| way.travelling.len() as u64);
        let (forward, goodput_bytes, measured) = self.forward.recorder.finish(travelling[0]);
        let (reverse, _, measured_reverse) = self.reverse.recorder.finish(travelling[1]);
        let (data, acks) = (measured.delivered, measured_reverse.delivered);
        FlowResult {
            name: flow.name.clone(),
            start: start_of(scenario, flow, seed),
            stop: flow.stop,
            forward,
            reverse,
            measured,
            measured_reverse,
            goodput_bytes,
            source: SourceStats::default(),
            messages: None,
            responses: None,
            transfers: None,
            crossings: vec![Crossing { hop: 0, data, acks }],
            series: self.series,
            measured_events: None,
            last_probe: self.last_probe,
        }
    }
}

#[cfg(test)]
mod tests;
