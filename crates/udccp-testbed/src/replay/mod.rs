//! Converts recorded packets to a result like the simulator's, so that the same code computes all
//! metrics.

mod queue;
mod route;

use std::io::{BufReader, Read};

use sha2::{Digest, Sha256};
use udccp_agent::{both_ends, start_of};
use udccp_base::{Duration, Instant, Probe, Seed};
use udccp_link::{DropReason, LinkConfig, LossConfig};
use udccp_scenario::routers_of;
use udccp_scenario::schema::{Flow, Measure, Scenario};
use udccp_sim::{
    Cost, Crossing, FlowResult, FlowSample, HopResult, Mark, PathRecorder, RunResult, Schedule,
    SenderSample, SourceStats, SystemResult, link_name, sample_flow,
};

use crate::error::Error;
use crate::event::{BYTES, PacketEvent};
use crate::observations::Observations;
use route::Route;

/// The result of a run, from its recorded packets and other observations.
///
/// # Errors
/// Packets cannot be read, or an agent's report is missing.
pub fn result(
    scenario: &Scenario,
    seed: u64,
    links: &[LinkConfig],
    observations: &Observations,
    events: impl Read,
) -> Result<RunResult, Error> {
    let in_order =
        !observations.overtakes && links.iter().all(keeps_order) && access_keeps_order(scenario);
    let lost = if links.iter().any(|l| l.loss != LossConfig::None) {
        DropReason::RandomLoss
    } else {
        DropReason::QueueFull
    };
    let flows = scenario.flows.iter().map(|_| FlowReplay::new(in_order, lost)).collect();
    let mut replay =
        Replay { flows, schedule: schedule(scenario), span: measured_span(scenario), last_ns: 0 };
    let mut hash = Sha256::new();
    let mut count = 0;
    let mut events = BufReader::with_capacity(1 << 20, events);
    let mut record = [0; BYTES];
    while fill(&mut events, &mut record)? {
        hash.update(record);
        count += 1;
        replay.packet(PacketEvent::parse(&record));
    }
    replay.until(Instant::MAX);
    for look in observations.looks.iter().flatten() {
        hash.update(look.at_ns.to_le_bytes());
        hash.update(look.sent_bytes.to_le_bytes());
    }
    let digest = hash.finalize();
    let mut packets = 0;
    let mut results = Vec::new();
    for (i, (flow, replay)) in scenario.flows.iter().zip(replay.flows).enumerate() {
        let mut found = replay.finish(scenario, flow, Seed(seed));
        // The plan lists the receiver's program before the sender's.
        let [receiver, sender] = [2 * i, 2 * i + 1].map(|k| observations.agents.get(k));
        let both = receiver.zip(sender);
        let (receiver, sender) = both.ok_or_else(|| Error::new("not all programs reported"))?;
        both_ends(&mut found, &scenario.time.measure, sender, receiver);
        packets += found.forward.sent.packets + found.reverse.sent.packets;
        results.push(Box::new(found));
    }
    Ok(RunResult {
        flows: results,
        system: system(scenario, links, observations),
        cost: Cost { events: count, packets, hops: 0 },
        hash: digest.first_chunk().map_or(0, |first| u64::from_be_bytes(*first)),
    })
}

/// Reads one record; `false` at the end of the file.
fn fill(file: &mut impl Read, record: &mut [u8; BYTES]) -> std::io::Result<bool> {
    match file.read_exact(record) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn keeps_order(link: &LinkConfig) -> bool {
    !link.free_order && link.reorder.is_none()
}

fn access_keeps_order(scenario: &Scenario) -> bool {
    let flows = scenario.flows.iter().flat_map(|f| [&f.access, &f.receiver_access]);
    let own = flows.flatten().map(|link| &link.config);
    core::iter::once(&scenario.topology.access.config).chain(own).all(keeps_order)
}

fn schedule(scenario: &Scenario) -> Schedule {
    let Measure { from, to, every } = scenario.time.measure.clone();
    Schedule::new(scenario.time.duration, every, &(from..to))
}

fn measured_span(scenario: &Scenario) -> Duration {
    scenario.time.measure.to - scenario.time.measure.from
}

/// All flows, with the schedule of the recorders.
struct Replay {
    flows: Vec<FlowReplay>,
    schedule: Schedule,
    span: Duration,
    last_ns: u64,
}

impl Replay {
    fn packet(&mut self, mut packet: PacketEvent) {
        // The packets' clock may have been set back slightly.
        self.last_ns = self.last_ns.max(packet.at_ns);
        packet.at_ns = self.last_ns;
        self.until(Instant::from_nanos(packet.at_ns));
        let (flow, is_receiver) = (usize::from(packet.tap / 2), packet.tap % 2 == 1);
        let Some(flow) = self.flows.get_mut(flow) else { return };
        match (is_receiver, packet.is_out) {
            (false, true) => flow.forward.sent(packet),
            (true, false) => flow.forward.arrived(packet),
            (true, true) => flow.reverse.sent(packet),
            (false, false) => flow.reverse.arrived(packet),
        }
    }

    /// Runs the recorders up to a time.
    fn until(&mut self, at: Instant) {
        while self.schedule.next() <= at && self.schedule.next() < Instant::MAX {
            let Some(mark) = self.schedule.take() else { return };
            self.flows.iter_mut().for_each(|flow| flow.mark(mark, self.span));
        }
    }
}

struct FlowReplay {
    forward: Route,
    reverse: Route,
    series: Vec<FlowSample>,
}

impl FlowReplay {
    fn new(in_order: bool, lost: DropReason) -> Self {
        Self {
            forward: Route::new(PathRecorder::with_times(), in_order, lost),
            reverse: Route::new(PathRecorder::default(), in_order, lost),
            series: Vec::new(),
        }
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

    /// The network's part of a flow's result. On a path of one hop, what crosses it is what
    /// arrives.
    fn finish(self, scenario: &Scenario, flow: &Flow, seed: Seed) -> FlowResult {
        let (travelling, returning) = (self.forward.travelling(), self.reverse.travelling());
        let (forward, _, measured) = self.forward.recorder.finish(travelling);
        let (reverse, _, measured_reverse) = self.reverse.recorder.finish(returning);
        let (enters, leaves) = routers_of(scenario, flow);
        let mut crossings = Vec::new();
        if enters.abs_diff(leaves) == 1 {
            let (data, acks) = (measured.delivered, measured_reverse.delivered);
            crossings.push(Crossing { hop: enters.min(leaves), data, acks });
        }
        FlowResult {
            name: flow.name.clone(),
            start: start_of(scenario, flow, seed),
            stop: flow.stop,
            forward,
            reverse,
            measured,
            measured_reverse,
            goodput_bytes: 0,
            source: SourceStats::default(),
            messages: None,
            responses: None,
            transfers: None,
            crossings,
            series: self.series,
            measured_events: None,
            last_probe: Probe::default(),
        }
    }
}

/// The links between routers. Access links are not watched.
fn system(scenario: &Scenario, links: &[LinkConfig], observations: &Observations) -> SystemResult {
    let hops = scenario.topology.hops().count();
    let time = &scenario.time;
    let mut results =
        links.iter().zip(&observations.looks).enumerate().map(|(i, (config, looks))| {
            queue::link(&link_name(i, hops), config, looks, &time.measure, time.duration)
        });
    let mut next = || results.next().unwrap_or_else(|| queue::unsampled_link(&time.measure));
    let (forward, reverse) = (next(), next());
    let further = (1..hops).map(|_| HopResult { forward: next(), reverse: next() }).collect();
    SystemResult { forward, reverse, further }
}
