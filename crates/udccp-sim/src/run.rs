//! Builds an engine from a configuration, runs it, and collects the result.

use std::collections::BTreeMap;

use udccp_base::{Duration, Instant, Seed};
use udccp_link::Link;

use crate::application::Application;
use crate::chain::{Chain, FlowOf};
use crate::config::{PairConfig, RunConfig};
use crate::ends::Ends;
use crate::engine::{Engine, Parts};
use crate::error::SimError;
use crate::events::EventQueue;
use crate::fabric::{Fabric, RunningLink, Special};
use crate::hash::EventHash;
use crate::host::{Destination, Host, Lifetime};
use crate::names::Names;
use crate::network::{self, LinkSpec, Network};
use crate::observe::Observer;
use crate::pace::Pace;
use crate::packet::PacketStore;
use crate::record::{Crossings, LinkRecorder, PathRecorder};
use crate::result::{Cost, FlowResult, HopResult, RunResult, SystemResult};
use crate::route::{FlowPlan, Route};
use crate::validate::validate;

/// Builds, runs (in step with a clock, if there is one), and reports.
pub(crate) fn run(
    chain: Chain,
    mut run: RunConfig<'_>,
    pace: Option<&mut dyn Pace>,
) -> Result<RunResult, SimError> {
    validate(&chain, &run)?;
    let names = Names::new(chain.hops.len(), &chain.pairs);
    let network = Network::chain(&chain);
    let starts = starts(&chain.pairs, run.seed);
    let points = if run.capture.is_some() { observed(&chain) } else { Vec::new() };
    let link_name = |link: usize| names.link(link);
    let observer = Observer::new(&network, &link_name, &points, run.capture.take(), run.check)?;
    let routes: Vec<Route> = chain.flows.iter().map(|flow| Route::of(&chain, flow)).collect();
    let (quick_start, ip) = (chain.quick_start, chain.ip);
    let Chain { pairs, flows, makers, .. } = chain;
    let flows: Vec<FlowPlan> =
        flows.into_iter().zip(routes).map(|(of, route)| FlowPlan { of, route }).collect();
    let is_late = |flow: usize| makers.contains_key(&flow);
    let hosts = hosts(&network, pairs, starts, &flows, &is_late);
    let fabric = fabric((&network, &names), &flows, run.seed, (observer, quick_start));
    // Of many flows it is a large part of all memory.
    drop(network);
    let senders = flows.iter().map(FlowPlan::sender).collect();
    let mut engine = Engine::new(Parts { hosts, fabric, names, senders, makers, ip }, &run);
    let end = Instant::ZERO + run.duration;
    match pace {
        None => engine.run(end, run.stop)?,
        Some(pace) => engine.run_paced(end, pace)?,
    }
    report(engine, flows, &run)
}

/// Draws the start phases, and returns when the pairs start. Each pair has its own random stream.
fn starts(pairs: &[PairConfig], seed: Seed) -> Vec<Duration> {
    let start_of = |pair: &PairConfig| {
        let jitter = pair.start_jitter.as_nanos();
        let mut rng = seed.stream(&format!("phase/{}", pair.name));
        let phase = if jitter == 0 { 0 } else { rng.below(jitter) };
        pair.start + Duration::from_nanos(phase)
    };
    pairs.iter().map(start_of).collect()
}

/// The names under which hosts are captured. Only flows of a single pair have them.
fn observed(chain: &Chain) -> Vec<Option<String>> {
    let of = |flow: &FlowOf| {
        let name = (flow.pairs == 1).then(|| flow.name.to_string());
        core::iter::repeat_n(name, flow.pairs)
    };
    chain.flows.iter().flat_map(of).collect()
}

fn hosts(
    network: &Network,
    pairs: Vec<PairConfig>,
    starts: Vec<Duration>,
    flows: &[FlowPlan],
    is_late: &dyn Fn(usize) -> bool,
) -> Vec<Host> {
    let uplinks = network.uplinks();
    let flow_of = |(i, flow): (usize, &FlowPlan)| core::iter::repeat_n(i, flow.of.pairs);
    let flow_of = flows.iter().enumerate().flat_map(flow_of);
    let mut hosts = Vec::with_capacity(network.hosts);
    for (i, ((pair, start), flow)) in pairs.into_iter().zip(starts).zip(flow_of).enumerate() {
        let start = Instant::ZERO + start;
        let stop = pair.stop.map_or(Instant::MAX, |stop| Instant::ZERO + stop);
        let tracks_delivery = pair.source.tracks_delivery();
        let app = Box::new(Application::new(pair.source, start, stop));
        let ends = [(pair.sender, Some(app)), (pair.receiver, None)];
        for (side, (transport, app)) in ends.into_iter().enumerate() {
            let number = network::sender_of(i) + side;
            let uses_quick_start = transport.uses_quick_start();
            let watches_device = transport.watches_device();
            hosts.push(Host {
                transport,
                app,
                uplink: uplinks[number] as u32,
                path: (2 * flow + side) as u32,
                last_to: Destination::NOWHERE,
                tracks_delivery,
                uses_quick_start,
                watches_device,
                lifetime: if is_late(flow) { Lifetime::NotStarted } else { Lifetime::Run },
                sent: 0,
                arrived: 0,
                delivered_bytes: 0,
                last_delivery: Instant::ZERO,
            });
        }
    }
    hosts
}

fn fabric(
    (network, names): (&Network, &Names),
    flows: &[FlowPlan],
    seed: Seed,
    (observer, quick_start): (Option<Box<Observer>>, bool),
) -> Fabric {
    let special = |(i, spec)| Special::of(spec, quick_start).map(|special| (i, special));
    let special_links: BTreeMap<usize, Special> =
        network.links.iter().enumerate().filter_map(special).collect();
    let running = |(i, spec): (usize, &LinkSpec)| RunningLink {
        element: spec.build(
            seed,
            &names.link(i),
            observer.is_some() || special_links.contains_key(&i),
        ),
        to: spec.to,
    };
    let path = |path: usize| match path % 2 {
        0 => PathRecorder::with_times(),
        _ => PathRecorder::default(),
    };
    let between_routers = 2 * (network.routers - 1);
    let paths = 2 * flows.len();
    Fabric {
        links: network.links.iter().enumerate().map(running).collect(),
        between_routers,
        routes: network.routes(),
        packets: PacketStore::default(),
        paths: (0..paths).map(path).collect(),
        crossings: Crossings::new(between_routers / 2, paths),
        events: EventQueue::new(network.hosts + network.links.len()),
        hash: EventHash::new(network.hosts),
        cost: Cost::default(),
        net_losses: vec![0; network.hosts / 2],
        is_simple: observer.is_none() && special_links.is_empty(),
        special_links,
        observer,
        drops: Vec::new(),
        horizon: Instant::ZERO,
        first_departure: Instant::MAX,
        first_link: network.hosts,
    }
}

fn report(
    engine: Engine,
    flows: Vec<FlowPlan>,
    run: &RunConfig<'_>,
) -> Result<RunResult, SimError> {
    let Engine { hosts, fabric, names, link_recorders, series, intervals, events, window, .. } =
        engine;
    let Fabric { links, packets, paths, crossings, hash, cost, .. } = fabric;
    let end = Instant::ZERO + run.duration;
    links_conserve(&links, &names, end)?;
    let mut hops = hops(&links, link_recorders, &names, end, window);
    let first = hops.next().ok_or_else(|| SimError::config("there is no hop"))?;
    let system =
        SystemResult { forward: first.forward, reverse: first.reverse, further: hops.collect() };
    let mut in_flight = vec![0_u32; paths.len()];
    for packet in packets.iter() {
        in_flight[packet.path as usize] += 1;
    }
    // Freed before the results are made, like the hosts below: of many flows, links and hosts are
    // the larger part of all memory.
    drop((links, packets));
    let mut hosts = hosts.into_iter();
    let is_open = run.measure.end == run.duration;
    let mut paths = paths.into_iter().zip(in_flight).map(|(mut path, in_flight)| {
        if is_open {
            path.window_ends(window);
        }
        path.finish(in_flight.into())
    });
    let mut found = Vec::with_capacity(flows.len());
    for (i, (flow, series)) in flows.into_iter().zip(series).enumerate() {
        let (Some(forward), Some(reverse)) = (paths.next(), paths.next()) else { break };
        let of_flow: Vec<Host> = hosts.by_ref().take(2 * flow.of.pairs).collect();
        let mut ends = Ends::of(&of_flow, run);
        drop(of_flow);
        found.push(Box::new(FlowResult {
            crossings: flow.route.crossings(&crossings, i),
            name: flow.of.name.into(),
            start: ends.start.unwrap_or_default() - Instant::ZERO,
            stop: ends.stop.map(|stop| stop - Instant::ZERO),
            forward: forward.0,
            reverse: reverse.0,
            measured: forward.2,
            measured_reverse: reverse.2,
            goodput_bytes: forward.1,
            source: ends.source,
            messages: ends.messages.take(),
            responses: ends.responses.take(),
            transfers: ends.transfers.take(),
            series: series.samples(&intervals),
            measured_events: events.get(i).copied().flatten(),
            last_probe: ends.probe,
        }));
    }
    flows_conserve(&found, end)?;
    Ok(RunResult { flows: found, system, cost, hash: hash.finish() })
}

/// Both directions of each hop; their links come first.
fn hops(
    running: &[RunningLink],
    link_recorders: Vec<LinkRecorder>,
    names: &Names,
    end: Instant,
    window: Duration,
) -> impl Iterator<Item = HopResult> {
    let one = move |(i, (recorder, link)): (usize, (LinkRecorder, &RunningLink))| {
        recorder.finish(names.link(i), end, &link.element, window)
    };
    let mut all = link_recorders.into_iter().zip(running).enumerate().map(one);
    core::iter::from_fn(move || Some(HopResult { forward: all.next()?, reverse: all.next()? }))
}

/// Checks that every packet of every flow is accounted for.
fn flows_conserve(flows: &[Box<FlowResult>], at: Instant) -> Result<(), SimError> {
    for flow in flows {
        for (way, c) in [("forward", &flow.forward), ("reverse", &flow.reverse)] {
            let known = c.delivered.packets + c.dropped_total() + c.in_flight;
            let made = c.sent.packets + c.duplicated;
            if made != known {
                let what = format!("{} {way}: {made} sent, {known} known", flow.name);
                return Err(SimError::Invariant { at, what });
            }
        }
    }
    Ok(())
}

/// The same for every link.
fn links_conserve(links: &[RunningLink], names: &Names, at: Instant) -> Result<(), SimError> {
    for (i, link) in links.iter().enumerate() {
        let stats = link.element.counters(at);
        let inside = link.element.packets_inside() as u64;
        let known = stats.departed.packets + stats.dropped_total().packets + inside;
        let arrived = stats.arrived.packets + stats.duplicated.packets;
        if arrived != known {
            let what = format!("{}: {arrived} arrived, {known} known", names.link(i));
            return Err(SimError::Invariant { at, what });
        }
    }
    Ok(())
}
