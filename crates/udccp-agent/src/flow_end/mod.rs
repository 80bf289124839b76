//! Runs one end of one flow.

mod driver;
mod factory;
mod sample;

use nix::poll::{PollFd, ppoll};
use nix::sys::time::TimeSpec;
use udccp_base::{Duration, Instant};

use crate::clock::Clock;
use crate::error::AgentError;
use crate::report::{AgentReport, OfferedReport};
use crate::socket::{Interest, Listen};
use crate::spec::{AgentProtocol, AgentSpec, DccpStack, Role};
use driver::FlowDriver;
use factory::SocketFactory;
use sample::Sampler;

/// A run whose sockets are bound and that has not started.
pub(crate) struct FlowEnd {
    spec: AgentSpec,
    listener: Option<Box<dyn Listen>>,
    factory: SocketFactory,
    drivers: Vec<FlowDriver>,
}

impl FlowEnd {
    /// Binds the sockets of this end.
    ///
    /// # Errors
    /// The system lacks something or denies it.
    pub(crate) fn prepare(spec: AgentSpec) -> Result<Self, AgentError> {
        let mut factory = SocketFactory::new(&spec)?;
        let (mut listener, mut drivers) = (None, Vec::new());
        match spec.role {
            Role::Receiver => listener = Some(factory.listener()?),
            Role::Sender => drivers = factory.senders()?,
        }
        Ok(Self { spec, listener, factory, drivers })
    }

    /// Runs to the end of the scenario.
    ///
    /// # Errors
    /// A connection that cannot be opened. The report notes a connection that is lost later.
    pub(crate) fn run(mut self, clock: Clock) -> Result<AgentReport, AgentError> {
        let before = clock.time_to_start();
        if !before.is_zero() {
            wait_for(&mut [], before)?;
        }
        let end = Instant::from_nanos(self.spec.duration_ns);
        let mut sampler = Sampler::new(&self.spec);
        loop {
            let now = clock.now();
            self.accept(now)?;
            let mut taken = false;
            for driver in &mut self.drivers {
                taken |= driver.exchange(now, || self.factory.sender())?;
            }
            while sampler.due() <= now {
                sampler.take(&mut self.drivers);
            }
            if now >= end {
                return Ok(self.report(sampler));
            }
            if !taken {
                self.wait(now, sampler.due())?;
            }
        }
    }

    fn accept(&mut self, now: Instant) -> Result<(), AgentError> {
        if let Some(listener) = &mut self.listener {
            while let Some(flow) = listener.accept(now)? {
                self.drivers.push(FlowDriver::accepted(now, flow, self.factory.receiver()));
            }
        }
        Ok(())
    }

    /// Waits for a socket or for the earliest timer.
    fn wait(&self, now: Instant, sample: Instant) -> Result<(), AgentError> {
        let mut until =
            self.drivers.iter().map(FlowDriver::poll_timeout).fold(sample, Instant::min);
        let mut fds = Vec::new();
        let listening = self.listener.as_ref().map(|l| l.interest());
        let interests = self.drivers.iter().map(FlowDriver::interest).chain(listening);
        for Interest { socket, within } in interests {
            fds.extend(socket.map(|(fd, flags)| PollFd::new(fd, flags)));
            until = within.map_or(until, |within| until.min(now + within));
        }
        wait_for(&mut fds, until.saturating_since(now))
    }

    fn report(mut self, sampler: Sampler) -> AgentReport {
        let mut report = AgentReport {
            flow: self.spec.flow.clone(),
            role: self.spec.role,
            samples: Vec::new(),
            app_bytes_out: 0,
            app_bytes_in: 0,
            offered: OfferedReport::default(),
            messages: None,
            responses: None,
            connections: Vec::new(),
            memory_pressures: 0,
            buffer_drops: 0,
            unknown: unknown(&self.spec.protocol),
            warnings: Vec::new(),
        };
        for driver in &mut self.drivers {
            driver.add_to(&mut report);
        }
        sampler.add_to(&mut report);
        report.warnings.sort();
        report.warnings.dedup();
        report
    }
}

/// Names of the sample values that a protocol does not report.
fn unknown(protocol: &AgentProtocol) -> Vec<String> {
    let names: &[&str] = match protocol {
        AgentProtocol::Tcp { .. } | AgentProtocol::Dccp { stack: DccpStack::Ours { .. } } => &[],
        AgentProtocol::Udp => &["cwnd_packets", "srtt_ns"],
        AgentProtocol::Dccp { stack: DccpStack::Linux { ccid: 3, .. } } => {
            &["cwnd_packets", "timeouts", "congestion_events"]
        }
        AgentProtocol::Dccp { .. } => &["cwnd_packets", "srtt_ns", "timeouts", "congestion_events"],
    };
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Waits for any of these descriptors, for at most `time`.
fn wait_for(fds: &mut [PollFd<'_>], time: Duration) -> Result<(), AgentError> {
    match ppoll(fds, Some(TimeSpec::from_duration(time.to_std())), None) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(e) => Err(AgentError::Io { what: "cannot wait for sockets", source: e.into() }),
    }
}
