//! Runs a plan in this kernel.

mod links;
mod queues;
mod setup;
mod tap;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use udccp_agent::{AgentProcess, AgentReport, HostError, monotonic_ns};
use udccp_netns::Namespace;

use crate::error::Error;
use crate::event::PacketEvent;
use crate::observations::{Observations, QueueSample};
use crate::plan::{Plan, Step};
use queues::Queues;
pub(crate) use setup::{batch, in_own_space};
use setup::{current, enter, unshare};
use tap::Tap;

/// Time between the last agent's readiness and time zero.
const LEAD: Duration = Duration::from_millis(100);
/// Time limit for an agent to bind its sockets, and to report after the end.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time between two readings of recorded packets, and how long they are held back for sorting. In a
/// guest, which owns its memory and where time stands still; and elsewhere.
const IN_GUEST_NS: [u64; 2] = [100_000_000, 0];
const ELSEWHERE_NS: [u64; 2] = [5_000_000, 2_000_000];
/// Records are written in chunks of this many bytes.
const WRITE_BYTES: usize = 1 << 20;
/// Time between two progress messages.
const SAY_NS: u64 = 10_000_000_000;

/// The environment for running a plan.
pub struct RunContext<'a> {
    /// The program `udccp`, whose agents run the flows.
    pub program: &'a Path,
    /// Whether the kernel runs nothing else, so that kernel-wide settings may be changed.
    pub owns_kernel: bool,
    /// The destination of the recorded packets.
    pub events: &'a mut dyn Write,
    /// Receives progress messages.
    pub report_line: &'a mut dyn FnMut(&str),
}

impl core::fmt::Debug for RunContext<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RunContext").field("program", &self.program).finish_non_exhaustive()
    }
}

/// Sets up the network of a plan, runs its agents and records their packets. The calling thread
/// moves between namespaces; after an error it may be in any of them.
///
/// # Errors
/// What the kernel, `ip` or `tc` refuses, and errors of agents.
pub fn run(plan: &Plan, context: RunContext<'_>) -> Result<Observations, Error> {
    if context.owns_kernel {
        setup::settings(&plan.files)?;
    }
    let home = current()?;
    let spaces = setup::network(plan)?;
    let mut taps = Vec::new();
    for (i, tap) in plan.taps.iter().enumerate() {
        enter(&spaces[tap.device.namespace])?;
        taps.push(Tap::open(i, &tap.device.name, tap.address, tap.encapsulated)?);
    }
    let mut watched = Vec::new();
    for (number, space) in spaces.iter().enumerate() {
        let mine = plan.queues.iter().enumerate().filter(|(_, d)| d.namespace == number);
        let mine: Vec<(String, usize)> = mine.map(|(i, d)| (d.name.clone(), i)).collect();
        if !mine.is_empty() {
            enter(space)?;
            watched.push(Queues::open(&mine)?);
        }
    }
    let agents = agents(plan, &spaces, context.program)?;
    enter(&home)?;
    (context.report_line)(&format!("{} programs are ready", agents.len()));
    let looks = vec![Vec::new(); plan.queues.len()];
    let (out, recorded) = (Vec::with_capacity(2 * WRITE_BYTES), vec![0; taps.len()]);
    let (events, report_line) = (context.events, context.report_line);
    let t0 = monotonic_ns() + LEAD.as_nanos() as u64;
    let mut recorder = Recorder {
        plan,
        spaces: &spaces,
        t0,
        agents,
        taps,
        watched,
        looks,
        events,
        report_line,
        out,
        recorded,
    };
    let dropped_before = backlog_drops();
    recorder.agents.iter_mut().for_each(|agent| agent.go(t0));
    let has_end = recorder.record(if context.owns_kernel { IN_GUEST_NS } else { ELSEWHERE_NS })?;
    let Recorder { looks, mut agents, .. } = recorder;
    let backlog_drops = backlog_drops().saturating_sub(dropped_before);
    let busy_percent =
        if context.owns_kernel { Vec::new() } else { cpu_percent_of_agents(plan, &agents) };
    enter(&home)?;
    let patience = if has_end { PATIENCE } else { Duration::ZERO };
    let agents = reports(&mut agents, patience)?;
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    Ok(Observations {
        release: read("/proc/sys/kernel/osrelease"),
        agents,
        busy_percent,
        backlog_drops,
        overtakes: !context.owns_kernel,
        looks,
        congestion: read("/proc/sys/net/ipv4/tcp_available_congestion_control"),
        has_dccp: udccp_agent::has_dccp(),
    })
}

/// Moves this thread to an empty namespace, which it can leave and return to. Root of a user
/// namespace cannot return to the machine's namespace.
///
/// # Errors
/// Namespaces are not available.
pub fn enter_empty_namespace() -> Result<(), Error> {
    unshare().map(drop)
}

/// Starts a plan's agents and waits until they are ready.
fn agents(plan: &Plan, spaces: &[Namespace], program: &Path) -> Result<Vec<AgentProcess>, Error> {
    let mut agents = Vec::new();
    for agent in &plan.agents {
        enter(&spaces[agent.namespace])?;
        let mut command = Command::new(program);
        command.arg("agent").stderr(Stdio::inherit());
        let mut host = AgentProcess::spawn(command, &agent.spec)?;
        host.wait_ready(PATIENCE)?;
        agents.push(host);
    }
    Ok(agents)
}

/// Packets that the kernel dropped between devices because they were not processed in time: the
/// second column of each processor's line.
fn backlog_drops() -> u64 {
    let text = fs::read_to_string("/proc/net/softnet_stat").unwrap_or_default();
    let dropped = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    text.lines().filter_map(dropped).sum()
}

/// The processor time that each agent has used, in percent of the run.
fn cpu_percent_of_agents(plan: &Plan, agents: &[AgentProcess]) -> Vec<f64> {
    /// Clock ticks of `/proc` a second.
    const TICKS: f64 = 100.0;
    let of = |agent: &AgentProcess| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", agent.id())).ok()?;
        // Fields after the name: the state first, then user and system time from the twelfth on
        // (proc(5)).
        let mut fields = stat.rsplit(") ").next()?.split(' ').skip(11);
        let mut ticks = || fields.next()?.parse::<f64>().ok();
        let used_s = (ticks()? + ticks()?) / TICKS;
        Some(100.0 * used_s * 1e9 / plan.duration_ns as f64)
    };
    agents.iter().map(|agent| of(agent).unwrap_or(0.0)).collect()
}

/// Collects all reports. If one agent fails, others fail or wait; the error with the most
/// information is returned.
fn reports(agents: &mut [AgentProcess], patience: Duration) -> Result<Vec<AgentReport>, Error> {
    let mut all = Vec::new();
    let mut failed: Option<HostError> = None;
    for agent in agents {
        match agent.report(patience) {
            Ok(report) => all.push(report),
            Err(said @ HostError::Agent { .. }) => return Err(said.into()),
            Err(other) => failed = failed.or(Some(other)),
        }
    }
    failed.map_or(Ok(all), |error| Err(error.into()))
}

/// Packets in and out of a device, from the device's counter.
fn device_packets(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let counts = text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'));
    let counts: Vec<u64> =
        counts.unwrap_or_default().split_whitespace().filter_map(|n| n.parse().ok()).collect();
    counts.get(1).copied().unwrap_or(0) + counts.get(9).copied().unwrap_or(0)
}

/// The difference between the clock of packet times and that of agents. Of several readings, the
/// one with the least delay between both clocks counts.
fn real_minus_monotonic() -> Result<u64, Error> {
    let read = || clock_gettime(ClockId::CLOCK_REALTIME).map_err(std::io::Error::from);
    let mut best = (u64::MAX, 0);
    for _ in 0..5 {
        let (before, real, after) = (monotonic_ns(), read()?, monotonic_ns());
        let real_ns = real.tv_sec() as u64 * 1_000_000_000 + real.tv_nsec() as u64;
        let took = after.saturating_sub(before);
        if took < best.0 {
            best = (took, real_ns.saturating_sub(before + took / 2));
        }
    }
    Ok(best.1)
}

/// Makes the plan's changes when due, samples queues and stores packets.
struct Recorder<'a> {
    plan: &'a Plan,
    spaces: &'a [Namespace],
    t0: u64,
    agents: Vec<AgentProcess>,
    taps: Vec<Tap>,
    watched: Vec<Queues>,
    looks: Vec<Vec<QueueSample>>,
    events: &'a mut dyn Write,
    report_line: &'a mut dyn FnMut(&str),
    out: Vec<u8>,
    /// Number of packets recorded by each tap.
    recorded: Vec<u64>,
}

impl Recorder<'_> {
    /// Returns whether the run reached its end. If an agent fails, waiting for the others is
    /// pointless.
    fn record(&mut self, [drain_ns, held_ns]: [u64; 2]) -> Result<bool, Error> {
        let end = self.plan.duration_ns;
        let mut steps = self.plan.steps.iter().peekable();
        let (mut next_look, mut next_drain, mut next_word) = (0, 0, SAY_NS);
        let mut packets = Vec::new();
        loop {
            let next_step = steps.peek().map_or(u64::MAX, |step| step.at_ns);
            let due = next_look.min(next_drain).min(next_step).min(end);
            self.sleep_until(due);
            while let Some(step) = steps.next_if(|step| step.at_ns <= due) {
                self.change(step)?;
            }
            if next_look <= due || due == end {
                self.sample(due)?;
                next_look += self.plan.look_ns;
            }
            if next_drain <= due || due == end {
                // With several processors, records are in order only after a moment.
                let held_ns = if due == end { 0 } else { held_ns };
                self.drain(&mut packets, held_ns)?;
                next_drain += drain_ns;
                if self.agents.iter_mut().any(AgentProcess::has_failed) {
                    return Ok(false);
                }
            }
            if next_word <= due {
                (self.report_line)(&format!("{} s", due / 1_000_000_000));
                next_word += SAY_NS;
            }
            if due == end {
                self.events.write_all(&self.out)?;
                self.check_recorded(&mut packets)?;
                return Ok(true);
            }
        }
    }

    #[expect(clippy::disallowed_methods, reason = "real programs run in real time")]
    fn sleep_until(&self, due_ns: u64) {
        let now = monotonic_ns();
        if let Some(rest) = (self.t0 + due_ns).checked_sub(now) {
            std::thread::sleep(Duration::from_nanos(rest));
        }
    }

    fn change(&self, step: &Step) -> Result<(), Error> {
        let home = current()?;
        enter(&self.spaces[step.namespace])?;
        let outcome = batch(&step.tc);
        enter(&home)?;
        outcome
    }

    /// Checks that no packets are missing from the record. `left` are packets that came after the
    /// end.
    fn check_recorded(&mut self, left: &mut Vec<PacketEvent>) -> Result<(), Error> {
        let zero = self.t0 + real_minus_monotonic()?;
        let mut counted = 0;
        for (tap, planned) in self.taps.iter_mut().zip(&self.plan.taps) {
            enter(&self.spaces[planned.device.namespace])?;
            counted += device_packets(&planned.device.name);
            tap.read(zero, left)?;
        }
        let missing = counted.saturating_sub(self.recorded.iter().sum::<u64>() + left.len() as u64);
        // A few packets may just be between the device and its tap.
        if missing > 64 {
            return Err(Error::Holes(missing));
        }
        Ok(())
    }

    fn sample(&mut self, at_ns: u64) -> Result<(), Error> {
        for queues in &mut self.watched {
            let really_ns = monotonic_ns().saturating_sub(self.t0);
            for (queue, sample) in queues.sample(at_ns)? {
                self.looks[queue].push(QueueSample { really_ns, ..sample });
            }
        }
        Ok(())
    }

    /// Stores recorded packets in order of time. What came after the reading of the first device is
    /// kept for the next turn: another device may have an earlier packet.
    fn drain(&mut self, packets: &mut Vec<PacketEvent>, held_ns: u64) -> Result<(), Error> {
        // Read again each time: the two clocks drift apart if one is being corrected.
        let zero = self.t0 + real_minus_monotonic()?;
        let now = monotonic_ns().saturating_sub(self.t0);
        for tap in &mut self.taps {
            tap.read(zero, packets)?;
        }
        packets.sort_by_key(|packet| packet.at_ns);
        let known = packets.partition_point(|packet| packet.at_ns + held_ns <= now);
        for packet in packets.drain(..known) {
            self.recorded[usize::from(packet.tap)] += 1;
            self.out.extend_from_slice(&packet.emit());
        }
        if self.out.len() >= WRITE_BYTES {
            self.events.write_all(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }
}
