//! Samples all connections at a fixed interval.

use udccp_base::{Duration, Instant, Probe};

use super::driver::FlowDriver;
use crate::device::{Device, TcpCounters, Traffic, buffer_drops};
use crate::report::{AgentReport, AgentSample};
use crate::spec::{AgentProtocol, AgentSpec};

/// Samples of a run.
pub(super) struct Sampler {
    every: Duration,
    end: Instant,
    due: Instant,
    device: Option<Device>,
    seen: Traffic,
    /// TCP counters of the host at the start, if the flow uses the kernel's TCP.
    tcp: Option<TcpCounters>,
    /// The host's count of buffer drops at the start.
    drops_before: u64,
    samples: Vec<AgentSample>,
}

impl Sampler {
    pub(super) fn new(spec: &AgentSpec) -> Self {
        let device = Device::of(spec.local);
        let every = Duration::from_nanos(spec.every_ns);
        let end = Instant::from_nanos(spec.duration_ns);
        let is_tcp = matches!(spec.protocol, AgentProtocol::Tcp { .. });
        Self {
            every,
            end,
            due: (Instant::ZERO + every).min(end),
            seen: device.as_ref().map(Device::traffic).unwrap_or_default(),
            device,
            tcp: is_tcp.then(TcpCounters::read),
            drops_before: buffer_drops(),
            samples: Vec::new(),
        }
    }

    /// When to take the next sample; never after the end.
    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// Takes a sample.
    pub(super) fn take(&mut self, drivers: &mut [FlowDriver]) {
        let traffic = self.device.as_ref().map(Device::traffic).unwrap_or_default();
        let went = traffic.since(self.seen);
        self.seen = traffic;
        let probe = probe(drivers);
        let mut sample = AgentSample {
            end_ns: self.due.as_nanos(),
            app_bytes: drivers.iter_mut().map(|l| std::mem::take(&mut l.fresh_bytes)).sum(),
            wire_bytes: went.in_bytes,
            wire_packets: went.in_packets,
            sent_bytes: went.out_bytes,
            sent_packets: went.out_packets,
            cwnd_packets: probe.cwnd_packets,
            ssthresh_packets: probe.ssthresh_packets,
            srtt_ns: probe.srtt.map(Duration::as_nanos),
            x_bytes_per_sec: probe.x_bytes_per_sec,
            loss_event_rate: probe.loss_event_rate,
            retransmits: probe.retransmits,
            timeouts: probe.timeouts,
            congestion_events: probe.congestion_events,
        };
        if let Some(begun) = self.tcp {
            let now = TcpCounters::read();
            sample.timeouts = now.timeouts.saturating_sub(begun.timeouts);
            sample.congestion_events = now.recoveries.saturating_sub(begun.recoveries);
        }
        self.samples.push(sample);
        self.due =
            if self.due >= self.end { Instant::MAX } else { (self.due + self.every).min(self.end) };
    }

    pub(super) fn add_to(self, report: &mut AgentReport) {
        report.samples = self.samples;
        if let Some(begun) = self.tcp {
            let now = TcpCounters::read().memory_pressures;
            report.memory_pressures = now.saturating_sub(begun.memory_pressures);
        }
        report.buffer_drops += buffer_drops().saturating_sub(self.drops_before);
        if self.device.is_none() {
            report.warnings.push("no network device has this host's address".to_owned());
        }
    }
}

/// The state of the only connection; of several connections, only the counters that can be added.
fn probe(drivers: &mut [FlowDriver]) -> Probe {
    if let [driver] = drivers {
        return driver.probe().unwrap_or_default();
    }
    let mut all = Probe::default();
    for probe in drivers.iter_mut().filter_map(FlowDriver::probe) {
        all.congestion_events += probe.congestion_events;
        all.timeouts += probe.timeouts;
        all.retransmits += probe.retransmits;
    }
    all
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use udccp_scenario::schema::Traffic;

    use super::*;
    use crate::spec::{Role, SCHEMA};

    #[test]
    fn host_drops_are_added_to_socket_drops() {
        let spec = AgentSpec {
            schema: SCHEMA,
            flow: "a".to_owned(),
            role: Role::Receiver,
            protocol: AgentProtocol::Udp,
            local: Ipv4Addr::LOCALHOST.into(),
            remote: Ipv4Addr::LOCALHOST.into(),
            port: 5001,
            traffic: Traffic::Bulk,
            frames: Vec::new(),
            packet_bytes: 1500,
            prompt: false,
            source_seed: 1,
            start_ns: 0,
            stop_ns: None,
            duration_ns: 1,
            every_ns: 1,
        };
        let mut report: AgentReport = serde_json::from_str(
            r#"{"flow":"a","role":"receiver","samples":[],"app_bytes_out":0,"app_bytes_in":0,
                "buffer_drops":1000000}"#,
        )
        .unwrap();
        Sampler::new(&spec).add_to(&mut report);
        // Tests that run in parallel add some hundred drops to the host's counter.
        assert!(report.buffer_drops >= 1_000_000);
    }
}
