//! Drives one connection and its application.

use udccp_base::{Instant, Payload};
use udccp_sim::{Application, End, FlowStep, Outcome, Responder, Source, Times};

use crate::error::AgentError;
use crate::report::{AgentReport, ConnectionReport, TimesReport};
use crate::socket::{FlowSocket, Interest};

/// A connection with its application.
pub(super) struct FlowDriver {
    flow: Option<Box<dyn FlowSocket>>,
    app: App,
    counts: ConnectionReport,
    /// Bytes received since the last sample.
    pub(super) fresh_bytes: u64,
}

/// An application.
enum App {
    Sends(Application),
    Receives(Receiver),
}

/// What a receiver does with received data.
pub(super) enum Receiver {
    /// Counts bytes.
    Counts,
    /// Tracks messages of live media.
    Tracks(Box<dyn Source>),
    /// Answers requests.
    Answers(Box<Responder>),
}

impl FlowDriver {
    /// A sender that opens at `start`. Without a `flow`, its socket is created then.
    pub(super) fn sender(
        flow: Option<Box<dyn FlowSocket>>,
        source: Box<dyn Source>,
        start: Instant,
        stop: Instant,
    ) -> Self {
        let app = App::Sends(Application::new(source, start, stop));
        let counts = ConnectionReport { opened_ns: start.as_nanos(), ..Default::default() };
        Self { flow, app, counts, fresh_bytes: 0 }
    }

    /// A connection that was accepted.
    pub(super) fn accepted(now: Instant, flow: Box<dyn FlowSocket>, receiver: Receiver) -> Self {
        let counts = ConnectionReport { opened_ns: now.as_nanos(), ..Default::default() };
        Self { flow: Some(flow), app: App::Receives(receiver), counts, fresh_bytes: 0 }
    }

    /// Moves data. `socket` creates the socket of a sender that has none. Returns whether the
    /// application offered something, in which case it may offer more.
    pub(super) fn exchange(
        &mut self,
        now: Instant,
        socket: impl FnMut() -> Result<Box<dyn FlowSocket>, AgentError>,
    ) -> Result<bool, AgentError> {
        self.step(now, socket)?;
        let Some(flow) = &mut self.flow else { return Ok(false) };
        flow.exchange(now)?;
        self.read(now);
        let Some(flow) = &mut self.flow else { return Ok(false) };
        let taken = match &mut self.app {
            App::Sends(app) => app.feed(now, flow.as_mut()),
            App::Receives(Receiver::Answers(responder)) => responder.answer(now, flow.as_mut()),
            App::Receives(_) => false,
        };
        if taken {
            flow.exchange(now)?;
        }
        Ok(taken)
    }

    /// Opens and closes the flow when due.
    fn step(
        &mut self,
        now: Instant,
        mut socket: impl FnMut() -> Result<Box<dyn FlowSocket>, AgentError>,
    ) -> Result<(), AgentError> {
        let App::Sends(app) = &mut self.app else { return Ok(()) };
        while let Some(step) = app.poll_step(now) {
            match step {
                FlowStep::Open => {
                    let flow = match &mut self.flow {
                        Some(flow) => flow,
                        none => none.insert(socket()?),
                    };
                    flow.open(now)?;
                    let start = app.start();
                    app.source_mut().start(start);
                }
                FlowStep::Close => {
                    let Some(flow) = &mut self.flow else { continue };
                    let stop = app.stop();
                    let source = app.source_mut();
                    // Even if this process is late, the source offers what was due before the stop.
                    if source.poll_timeout().is_some_and(|due| due < stop) {
                        let before = Instant::from_nanos(stop.as_nanos() - 1);
                        source.feed(before, flow.as_mut());
                        flow.exchange(now)?;
                    }
                    flow.close(now);
                }
            }
        }
        Ok(())
    }

    fn read(&mut self, now: Instant) {
        let Some(flow) = &mut self.flow else { return };
        while let Some(delivered) = flow.poll_delivered() {
            self.fresh_bytes += delivered.bytes;
            match &self.app {
                App::Receives(_) => {
                    self.counts.bytes += delivered.bytes;
                    self.counts.last_ns = Some(now.as_nanos());
                }
                App::Sends(_) => {}
            }
            let Some(mark) = delivered.mark.map(Payload::Bytes) else { continue };
            match &mut self.app {
                App::Sends(app) => app.source_mut().delivered(now, End::Sender, &mark),
                App::Receives(Receiver::Tracks(source)) => {
                    source.delivered(now, End::Receiver, &mark)
                }
                App::Receives(Receiver::Answers(responder)) => responder.take(now, &mark),
                App::Receives(Receiver::Counts) => {}
            }
        }
    }

    /// The next time at which the application has something to do, whatever the network does.
    pub(super) fn poll_timeout(&self) -> Instant {
        match &self.app {
            App::Sends(app) => app.poll_timeout(),
            App::Receives(_) => Instant::MAX,
        }
    }

    /// What to wait for.
    pub(super) fn interest(&self) -> Interest<'_> {
        self.flow.as_ref().map(|flow| flow.interest()).unwrap_or_default()
    }

    /// The sender's congestion state now.
    pub(super) fn probe(&mut self) -> Option<udccp_base::Probe> {
        match self.app {
            App::Sends(_) => self.flow.as_mut().map(|flow| flow.probe()),
            App::Receives(_) => None,
        }
    }

    /// Adds this connection's results.
    pub(super) fn add_to(&mut self, report: &mut AgentReport) {
        let mut counts = self.counts;
        if let Some(flow) = &mut self.flow {
            counts.port = flow.port();
            counts.is_closed = flow.is_closed();
            report.buffer_drops += flow.buffer_drops();
            report.warnings.extend(flow.take_warnings());
        }
        match &self.app {
            App::Sends(app) => {
                let (source, stats) = (app.source(), app.source().stats());
                report.app_bytes_out += stats.accepted_bytes;
                report.offered.accepted += stats.accepted;
                report.offered.accepted_bytes += stats.accepted_bytes;
                report.offered.refused += stats.refused;
                counts.bytes = stats.accepted_bytes;
                match source.outcome() {
                    Outcome::None => {}
                    Outcome::Transfer { is_offered } => counts.is_offered = Some(is_offered),
                    Outcome::Messages(times) => add(&mut report.messages, &times),
                    Outcome::Responses(times) => add(&mut report.responses, &times),
                }
                if !app.has_started() {
                    return;
                }
            }
            App::Receives(receiver) => {
                report.app_bytes_in += counts.bytes;
                if let Receiver::Tracks(source) = receiver
                    && let Outcome::Messages(times) = source.outcome()
                {
                    add(&mut report.messages, &times);
                }
            }
        }
        report.connections.push(counts);
    }
}

fn add(all: &mut Option<TimesReport>, times: &Times) {
    let all = all.get_or_insert_default();
    all.begun += times.begun;
    all.given_up += times.given_up;
    let done = times.done.iter().map(|(at, took)| [at.as_nanos(), took.as_nanos()]);
    all.done.extend(done);
}

#[cfg(test)]
mod tests {
    use socket2::{SockRef, Socket};

    use super::*;
    use crate::socket::linux::{Linux, LinuxSettings};

    #[test]
    fn report_counts_packets_dropped_by_a_full_socket_buffer() {
        // UDP stands in for DCCP, which kernels from 6.16 on lack. `SO_MEMINFO` counts for any
        // socket.
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        SockRef::from(&receiver).set_recv_buffer_size(4096).unwrap();
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        for _ in 0..100 {
            sender.send(&[0; 1000]).unwrap();
        }
        let peer = sender.local_addr().unwrap();
        let mut flow = Linux::accepted(LinuxSettings::PLAIN, Socket::from(receiver), peer);
        flow.exchange(Instant::ZERO).unwrap();
        let mut driver = FlowDriver::accepted(Instant::ZERO, Box::new(flow), Receiver::Counts);
        driver.read(Instant::ZERO);
        let mut report: AgentReport = serde_json::from_str(
            r#"{"flow":"a","role":"receiver","samples":[],"app_bytes_out":0,"app_bytes_in":0}"#,
        )
        .unwrap();
        driver.add_to(&mut report);
        assert!(report.buffer_drops > 0);
        assert_eq!(report.app_bytes_in / 1000 + report.buffer_drops, 100);
    }
}
