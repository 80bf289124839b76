//! A scenario from its begin to its record: hosts, agents on them, the network, what all saw.

use std::path::{self, PathBuf};
use std::process::Command;
use std::time;

use rustix::process::setpriority_process;
use udccp_agent::{
    AgentProcess, AgentReport, AgentSpec, HostError, OurTransport, PlayDccp, Role, both_ends,
};
use udccp_base::{Duration, Seed};
use udccp_scenario::schema::{Flow, Scenario};
use udccp_scenario::{Family, Record, RunOptions, TimingRecord, record_of};
use udccp_sim::{End, IpVersion};

use crate::clock::Clock;
use crate::error::EmuError;
use crate::host_namespace;
use crate::steal_time::Processors;
use crate::sys;
use crate::testnet::{PORT, Testnet};
use crate::timing::{DEADLINE, Timing};

/// From the word to go until time zero.
const LEAD: Duration = Duration::from_millis(100);
/// How long agents may take to bind their sockets, and to report after the end.
const PATIENCE: time::Duration = time::Duration::from_secs(20);

/// The niceness of agents, where that is all that is allowed.
const NICE: i32 = -15;

/// How to emulate.
#[derive(Clone, Debug)]
pub struct EmuOptions<'a> {
    /// Captures.
    pub run: RunOptions<'a>,
    /// The program `udccp`, whose agents play the flows.
    pub program: PathBuf,
    /// How packets of our DCCP travel.
    pub dccp: OurTransport,
    /// Which addresses hosts have; with [`Path::Netem`] only IPv4.
    pub ip: IpVersion,
    /// What makes the path.
    pub path: Path,
}

/// What makes the path between hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Path {
    /// The simulator's links, in step with the clock.
    #[default]
    Own,
    /// `tbf`, `netem` and queues of this machine's kernel. There are no captures.
    Netem,
}

/// An emulated run.
#[derive(Clone, Debug)]
pub struct Emulation {
    /// What was found out.
    pub record: Record,
    /// Why it is no measurement, where it is none.
    pub invalid: Option<String>,
    /// What agents could not do as asked, and what went wrong on the way.
    pub notes: Vec<String>,
}

/// Plays a scenario in real time between programs on hosts of their own. It takes as long as the
/// scenario says. The caller has [acquired](crate::acquire) the right to it.
///
/// # Errors
/// What the machine lacks, what it cannot keep up with, what an agent says.
pub fn emulate(
    name: &str,
    scenario: &Scenario,
    seed: u64,
    options: &EmuOptions<'_>,
) -> Result<Emulation, EmuError> {
    check_congestion_controls(scenario)?;
    let before = Processors::now();
    let mut emulation = match options.path {
        Path::Own => on_own_links(name, scenario, seed, options)?,
        Path::Netem => crate::kernel::emulate(name, scenario, seed, options)?,
    };
    if emulation.invalid.is_some() {
        emulation.notes.extend(before.stolen_until(Processors::now()));
    }
    Ok(emulation)
}

fn on_own_links(
    name: &str,
    scenario: &Scenario,
    seed: u64,
    options: &EmuOptions<'_>,
) -> Result<Emulation, EmuError> {
    let begun = cpu_time::ThreadTime::now();
    let testnet = Testnet::with_ip(scenario, options.ip)?;
    let mut agents = start(scenario, seed, &testnet, options)?;
    let clock = Clock::in_future(LEAD);
    agents.iter_mut().flatten().for_each(|agent| agent.go(clock.zero_ns()));
    let mut all_play = || agents.iter_mut().flatten().all(|agent| !agent.has_failed());
    let run = testnet.run(seed, options.run, clock, &mut all_play);
    let (mut result, timing) = match run {
        // Somebody gave up: they will say why.
        Err(EmuError::Stopped) => {
            let said = reports(scenario, &mut agents, time::Duration::ZERO);
            return Err(said.err().unwrap_or(EmuError::Stopped));
        }
        other => other?,
    };
    let reports = reports(scenario, &mut agents, PATIENCE)?;
    let mut notes: Vec<String> = scenario.flows.iter().flat_map(host_namespace::gaps).collect();
    for ((flow, found), ends) in scenario.flows.iter().zip(&mut result.flows).zip(&reports) {
        both_ends(found, &scenario.time.measure, &ends[0], &ends[1]);
        let warnings = ends.iter().flat_map(|end| &end.warnings);
        notes.extend(warnings.map(|warning| format!("flow \"{}\": {warning}", flow.name)));
    }
    notes.dedup();
    let cpu_s = begun.elapsed().as_secs_f64();
    let invalid = timing
        .invalid_reason()
        .or_else(|| udccp_testbed::short_of_buffers(reports.iter().flatten()));
    let timing = timing_record(&timing, invalid.clone());
    let record = record_of(name, scenario, seed, &result, cpu_s);
    let record = Record { timing: Some(timing), backend: crate::ID.to_owned(), ..record };
    Ok(Emulation { record, invalid, notes })
}

fn timing_record(timing: &Timing, invalid: Option<String>) -> TimingRecord {
    TimingRecord {
        delay_p50_ms: Some(timing.delay_p50.as_millis_f64()),
        delay_p99_ms: Some(timing.delay_p99.as_millis_f64()),
        delay_max_ms: Some(timing.delay_max.as_millis_f64()),
        rate_error_percent: Some(timing.rate_error_percent),
        packets: timing.packets,
        deadline_ms: Some(DEADLINE.as_millis_f64()),
        late: Some(timing.late),
        valid: invalid.is_none(),
        why: invalid,
    }
}

/// Before anything is set up: what no agent could have.
fn check_congestion_controls(scenario: &Scenario) -> Result<(), EmuError> {
    let there = udccp_agent::available_congestion();
    let of_tcp = scenario.flows.iter().filter(|f| f.protocol.family == Family::Tcp);
    for flow in of_tcp {
        let protocol = flow.protocol.name;
        let wanted = udccp_agent::kernel_congestion(protocol);
        if wanted.is_some_and(|wanted| there.iter().any(|name| name == wanted)) {
            continue;
        }
        let wanted = wanted.unwrap_or_else(|| protocol.trim_start_matches("tcp/")).to_owned();
        let flow = flow.name.clone();
        return Err(EmuError::CongestionControl { flow, protocol, wanted, there });
    }
    Ok(())
}

/// The agents of all flows, ready: sender and receiver of each.
fn start(
    scenario: &Scenario,
    seed: u64,
    testnet: &Testnet,
    options: &EmuOptions<'_>,
) -> Result<Vec<[AgentProcess; 2]>, EmuError> {
    let mut agents = Vec::new();
    for (number, flow) in scenario.flows.iter().enumerate() {
        let specs = specs(scenario, flow, seed, testnet, number, options.dccp)?;
        let [sender, receiver] = specs;
        let sender = spawn(testnet, number, End::Sender, sender, &options.program)?;
        agents.push([sender, spawn(testnet, number, End::Receiver, receiver, &options.program)?]);
    }
    for (flow, ends) in scenario.flows.iter().zip(&mut agents) {
        for (role, agent) in ROLES.into_iter().zip(ends) {
            agent.wait_ready(PATIENCE).map_err(|e| failed(&flow.name, role, e))?;
        }
    }
    Ok(agents)
}

const ROLES: [Role; 2] = [Role::Sender, Role::Receiver];

fn specs(
    scenario: &Scenario,
    flow: &Flow,
    seed: u64,
    testnet: &Testnet,
    number: usize,
    transport: OurTransport,
) -> Result<[AgentSpec; 2], EmuError> {
    let at = [End::Sender, End::Receiver].map(|end| testnet.address(number, end));
    // The first device cuts what the kernel hands on in one piece.
    let dccp = PlayDccp::Ours { transport, offload: true };
    let mut specs = AgentSpec::pair(scenario, flow, Seed(seed), at, PORT, dccp)
        .map_err(|error| EmuError::Flow { flow: flow.name.clone(), why: error.to_string() })?;
    specs.iter_mut().for_each(|spec| spec.prompt = true);
    Ok(specs)
}

/// A process on a host of the network; it dies with this one.
fn spawn(
    testnet: &Testnet,
    number: usize,
    end: End,
    spec: AgentSpec,
    program: &path::Path,
) -> Result<AgentProcess, EmuError> {
    let mut command = Command::new(program);
    command.arg("agent");
    let (flow, role) = (spec.flow.clone(), spec.role);
    let spawned = testnet.on_host(number, end, move || {
        // What a thread is, its children are. A host that waits for programs of this machine is
        // none: our DCCP is a program, and a kernel's TCP acknowledges what programs have read.
        if sys::run_first(1).is_err() {
            let _ = setpriority_process(None, NICE);
        }
        Ok(AgentProcess::spawn(command, &spec))
    });
    let spawned =
        spawned.map_err(|error| EmuError::Host { flow: flow.clone(), role: role.word(), error })?;
    spawned.map_err(|error| failed(&flow, role, error))
}

fn reports(
    scenario: &Scenario,
    agents: &mut [[AgentProcess; 2]],
    patience: time::Duration,
) -> Result<Vec<[AgentReport; 2]>, EmuError> {
    let mut all = Vec::new();
    let mut silent = None;
    for (flow, ends) in scenario.flows.iter().zip(agents) {
        let [sender, receiver] = ends;
        let of = |role, agent: &mut AgentProcess| {
            agent.report(patience).map_err(|error| failed(&flow.name, role, error))
        };
        match (of(Role::Sender, sender), of(Role::Receiver, receiver)) {
            (Ok(sender), Ok(receiver)) => all.push([sender, receiver]),
            // One end that fails makes the other fail or wait: who says most is right.
            (Err(error), other) | (other, Err(error)) => {
                let others = other.err();
                silent = silent.or(Some(match others {
                    Some(said @ EmuError::Agent { hint: Some(_), .. }) => said,
                    _ => error,
                }));
            }
        }
    }
    silent.map_or(Ok(all), Err)
}

fn failed(flow: &str, role: Role, error: HostError) -> EmuError {
    let (flow, role) = (flow.to_owned(), role.word());
    let hint = error.hint().map(str::to_owned);
    let code = error.exit_code();
    let message = match error {
        HostError::Agent { message, .. } => message,
        other => other.to_string(),
    };
    EmuError::Agent { flow, role, message, hint, code }
}
