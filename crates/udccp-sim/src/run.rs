//! From a configuration to a running engine, and from there to a result.

use udccp_base::{Duration, Instant, Seed};
use udccp_link::Link;

use crate::address::PairAddresses;
use crate::config::{PairConfig, RunConfig};
use crate::dumbbell::Dumbbell;
use crate::engine::{Engine, Parts};
use crate::error::SimError;
use crate::events::EventQueue;
use crate::fabric::{Fabric, RunningLink};
use crate::hash::EventHash;
use crate::host::{App, Host};
use crate::network::{self, LinkSpec, Network};
use crate::observe::Observer;
use crate::packet::PacketStore;
use crate::record::{LinkRecorder, PathRecorder};
use crate::result::{Cost, FlowResult, LinkResult, RunResult, SystemResult};
use crate::source::SourceStats;
use crate::validate::validate;

/// What is known of a flow before it runs.
struct FlowPlan {
    name: String,
    start: Duration,
    stop: Option<Duration>,
}

/// Builds, runs, and reports.
pub(crate) fn run(net: Dumbbell, mut run: RunConfig<'_>) -> Result<RunResult, SimError> {
    validate(&net, &run)?;
    let Dumbbell { config, pairs } = net;
    let plans = plan(&pairs, run.seed);
    let network = Network::dumbbell(&config, &pairs);
    let names: Vec<String> = plans.iter().map(|p| p.name.clone()).collect();
    let observer = Observer::new(&network, &names, run.capture.take(), run.check)?;
    let hosts = hosts(&network, pairs, &plans);
    let fabric = fabric(&network, run.seed, observer);
    let mut engine =
        Engine::new(Parts { hosts, fabric, names: components(&network, &names) }, &run);
    let end = Instant::ZERO + run.duration;
    engine.run(end)?;
    report(engine, plans, &network, end)
}

/// Draws the phases; each flow has a stream of its own.
fn plan(pairs: &[PairConfig], seed: Seed) -> Vec<FlowPlan> {
    let plan_of = |pair: &PairConfig| {
        let jitter = pair.start_jitter.as_nanos();
        let mut rng = seed.stream(&format!("phase/{}", pair.name));
        let phase = if jitter == 0 { 0 } else { rng.below(jitter) };
        let start = pair.start + Duration::from_nanos(phase);
        FlowPlan { name: pair.name.clone(), start, stop: pair.stop }
    };
    pairs.iter().map(plan_of).collect()
}

fn hosts(network: &Network, pairs: Vec<PairConfig>, plans: &[FlowPlan]) -> Vec<Host> {
    let uplinks = network.uplinks();
    let mut hosts = Vec::with_capacity(network.hosts);
    for (i, (pair, plan)) in pairs.into_iter().zip(plans).enumerate() {
        let addresses = PairAddresses::of(i);
        let start = Instant::ZERO + plan.start;
        let stop = plan.stop.map_or(Instant::MAX, |stop| Instant::ZERO + stop);
        let app = App::new(pair.source, start, stop);
        let ends =
            [(pair.sender, Some(app), addresses.sender), (pair.receiver, None, addresses.receiver)];
        for (side, (transport, app, address)) in ends.into_iter().enumerate() {
            let number = network::sender_of(i) + side;
            hosts.push(Host {
                transport,
                app,
                address,
                uplink: uplinks[number] as u32,
                path: number as u32,
                last_to: (address, number as u32),
            });
        }
    }
    hosts
}

fn fabric(network: &Network, seed: Seed, observer: Option<Box<Observer>>) -> Fabric {
    let running = |spec: &LinkSpec| RunningLink {
        element: spec.build(seed),
        to: spec.to,
        is_bottleneck: spec.is_bottleneck,
    };
    let path = |host: usize| match host % 2 {
        0 => PathRecorder::with_times(),
        _ => PathRecorder::default(),
    };
    Fabric {
        links: network.links.iter().map(running).collect(),
        routes: network.routes(),
        packets: PacketStore::default(),
        paths: (0..network.hosts).map(path).collect(),
        events: EventQueue::new(network.hosts + network.links.len()),
        hash: EventHash::new(),
        cost: Cost::default(),
        observer,
        drops: Vec::new(),
        first_link: network.hosts,
    }
}

/// Names of all components for errors.
fn components(network: &Network, flows: &[String]) -> Vec<String> {
    let hosts = flows.iter().flat_map(|f| ["sender", "receiver"].map(|end| format!("{f} {end}")));
    hosts.chain(network.links.iter().map(|l| l.name.clone())).collect()
}

fn report(
    engine: Engine,
    plans: Vec<FlowPlan>,
    network: &Network,
    end: Instant,
) -> Result<RunResult, SimError> {
    let Engine { hosts, fabric, watched, series, window, .. } = engine;
    let mut in_flight = vec![0; hosts.len()];
    for packet in fabric.packets.iter() {
        in_flight[packet.path as usize] += 1;
    }
    let mut paths = fabric.paths.into_iter().zip(in_flight).map(|(p, n)| p.finish(n));
    let mut hosts = hosts.into_iter();
    let mut flows = Vec::with_capacity(plans.len());
    for (plan, series) in plans.into_iter().zip(series) {
        let (Some(forward), Some(reverse)) = (paths.next(), paths.next()) else { break };
        let (Some(sender), Some(_receiver)) = (hosts.next(), hosts.next()) else { break };
        flows.push(FlowResult {
            name: plan.name,
            start: plan.start,
            stop: plan.stop,
            forward: forward.0,
            reverse: reverse.0,
            measured: forward.2,
            measured_reverse: reverse.2,
            goodput_bytes: forward.1,
            source: sender.app.map_or(SourceStats::default(), |a| a.source.stats()),
            series,
            last_probe: sender.transport.probe(),
        });
    }
    let links = links(&fabric.links, watched, network, end, window);
    let result = RunResult { flows, system: links?, cost: fabric.cost, hash: fabric.hash.finish() };
    conserved(&result, &fabric.links, end)?;
    Ok(result)
}

fn links(
    running: &[RunningLink],
    watched: Vec<LinkRecorder>,
    network: &Network,
    end: Instant,
    window: Duration,
) -> Result<SystemResult, SimError> {
    let one = |((link, recorder), spec): ((&RunningLink, LinkRecorder), &LinkSpec)| {
        recorder.finish(spec.name.clone(), end, &link.element, window)
    };
    let mut all: Vec<LinkResult> =
        running.iter().zip(watched).zip(&network.links).map(one).collect();
    let access = all.split_off(2);
    let [forward, reverse] = <[LinkResult; 2]>::try_from(all)
        .map_err(|_| SimError::config("a dumbbell has two bottlenecks"))?;
    Ok(SystemResult { forward, reverse, access })
}

/// Every packet is somewhere.
fn conserved(result: &RunResult, links: &[RunningLink], at: Instant) -> Result<(), SimError> {
    for flow in &result.flows {
        for (way, c) in [("forward", &flow.forward), ("reverse", &flow.reverse)] {
            let known = c.delivered.packets + c.dropped_total() + c.in_flight;
            if c.sent.packets != known {
                let what = format!("{} {way}: {} sent, {known} known", flow.name, c.sent.packets);
                return Err(SimError::Invariant { at, what });
            }
        }
    }
    let system = &result.system;
    let results = [&system.forward, &system.reverse].into_iter().chain(&system.access);
    for (link, result) in links.iter().zip(results) {
        let stats = &result.whole;
        let inside = link.element.packets_inside() as u64;
        let known = stats.departed.packets + stats.dropped_total().packets + inside;
        if stats.arrived.packets != known {
            let arrived = stats.arrived.packets;
            let what = format!("{}: {arrived} arrived, {known} known", result.name);
            return Err(SimError::Invariant { at, what });
        }
    }
    Ok(())
}
