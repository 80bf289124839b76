//! Runs a scenario from start to record: creates hosts, agents and the network, and collects
//! results.

use std::path;
use std::process::Command;
use std::time;

use rustix::process::setpriority_process;
use udccp_agent::{
    AgentProcess, AgentReport, AgentSpec, DccpImplementation, HostError, OurTransport, Role,
    both_ends,
};
use udccp_base::{Duration, Seed};
use udccp_scenario::schema::{Flow, Scenario};
use udccp_scenario::{Family, Record, TimingRecord, record_of};
use udccp_sim::End;

use crate::clock::Clock;
use crate::error::EmuError;
use crate::host_namespace;
use crate::options::{EmuOptions, Emulation, Path};
use crate::steal_time::Processors;
use crate::sys;
use crate::testnet::{PORT, Testnet};
use crate::timing::{DEADLINE, Timing};

/// Time between the start order and time zero.
const LEAD: Duration = Duration::from_millis(100);
/// Time limit for agents to bind their sockets, and to report after the end.
const TIMEOUT: time::Duration = time::Duration::from_secs(20);

/// The niceness of agents if real-time scheduling is not permitted.
const NICE: i32 = -15;

/// Runs a scenario in real time between programs on separate hosts. It takes as long as the
/// scenario specifies. The caller has [acquired](crate::acquire) the required privileges.
///
/// # Errors
/// What the machine lacks or cannot keep up with; errors of agents.
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
        // An agent failed; its report has the reason.
        Err(EmuError::Stopped) => {
            let said = reports(scenario, &mut agents, time::Duration::ZERO);
            return Err(said.err().unwrap_or(EmuError::Stopped));
        }
        other => other?,
    };
    let reports = reports(scenario, &mut agents, TIMEOUT)?;
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
    let record = record_of(name, scenario, seed, result, cpu_s);
    let record =
        Record { timing: Some(timing), backend: options.path.backend_id().to_owned(), ..record };
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

/// Checks, before anything is set up, that the kernel has the flows' congestion controls.
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

/// Starts the sender and receiver of each flow and waits until they are ready.
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
            agent.wait_ready(TIMEOUT).map_err(|e| failed(&flow.name, role, e))?;
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
    // Offload is fine: the first device splits large packets.
    let dccp = DccpImplementation::Ours { transport, offload: true };
    let mut specs = AgentSpec::pair(scenario, flow, Seed(seed), at, PORT, dccp)
        .map_err(|error| EmuError::Flow { flow: flow.name.clone(), why: error.to_string() })?;
    specs.iter_mut().for_each(|spec| spec.prompt = true);
    Ok(specs)
}

/// Starts a process on a host of the network; it dies with this one.
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
        // Child processes inherit a thread's priority. Agents need it: a host that waits for other
        // programs of this machine is not realistic, since our DCCP is a program and a kernel's TCP
        // acknowledges what programs have read.
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
            // If one end fails, the other fails or waits; the error with the most information is
            // returned.
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
