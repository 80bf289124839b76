//! One connection with its application.

use udccp_base::{Instant, Payload};
use udccp_sim::{End, Outcome, Responder, Source, Times};

use super::make::Maker;
use crate::error::AgentError;
use crate::line::{AsTransport, Interest, Line};
use crate::report::{AgentReport, ConnectionReport, TimesReport};

/// One connection with its application.
pub(super) struct Lane {
    line: Option<Box<dyn Line>>,
    app: App,
    counts: ConnectionReport,
    /// Bytes that came since the last sample.
    pub(super) fresh_bytes: u64,
}

/// An application.
enum App {
    /// It sends.
    Speaks { source: Box<dyn Source>, start: Instant, stop: Instant, phase: Phase },
    /// It receives.
    Hears(Ear),
}

/// What a receiver does with data.
pub(super) enum Ear {
    /// It counts them.
    Counts,
    /// It follows messages of live media.
    Follows(Box<dyn Source>),
    /// It answers requests.
    Answers(Box<Responder>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Running,
    Over,
}

impl Lane {
    /// A sender that opens at `start`; without a line one is made then.
    pub(super) fn sender(
        line: Option<Box<dyn Line>>,
        source: Box<dyn Source>,
        start: Instant,
        stop: Instant,
    ) -> Self {
        let app = App::Speaks { source, start, stop, phase: Phase::Waiting };
        let counts = ConnectionReport { opened_ns: start.as_nanos(), ..Default::default() };
        Self { line, app, counts, fresh_bytes: 0 }
    }

    /// A connection that came.
    pub(super) fn accepted(now: Instant, line: Box<dyn Line>, ear: Ear) -> Self {
        let counts = ConnectionReport { opened_ns: now.as_nanos(), ..Default::default() };
        Self { line: Some(line), app: App::Hears(ear), counts, fresh_bytes: 0 }
    }

    /// Moves data. Returns whether the application gave something, so that there may be more.
    pub(super) fn turn(&mut self, now: Instant, maker: &mut Maker) -> Result<bool, AgentError> {
        self.step(now, maker)?;
        let Some(line) = &mut self.line else { return Ok(false) };
        line.turn(now)?;
        self.hear(now);
        let Some(line) = &mut self.line else { return Ok(false) };
        let transport = &mut AsTransport(line.as_mut());
        let taken = match &mut self.app {
            App::Speaks { source, phase: Phase::Running, .. } => source.feed(now, transport),
            App::Hears(Ear::Answers(responder)) => responder.answer(now, transport),
            App::Speaks { .. } | App::Hears(_) => false,
        };
        if taken {
            line.turn(now)?;
        }
        Ok(taken)
    }

    /// Opens and closes.
    fn step(&mut self, now: Instant, maker: &mut Maker) -> Result<(), AgentError> {
        let App::Speaks { source, start, stop, phase } = &mut self.app else { return Ok(()) };
        if *phase == Phase::Waiting && *start <= now {
            *phase = Phase::Running;
            let line = match &mut self.line {
                Some(line) => line,
                none => none.insert(maker.sender()?),
            };
            line.open(now)?;
            source.start(*start);
        }
        if *phase == Phase::Running && *stop <= now {
            *phase = Phase::Over;
            if let Some(line) = &mut self.line {
                // A late process still says what was due before.
                if source.poll_timeout().is_some_and(|due| due < *stop) {
                    let before = Instant::from_nanos(stop.as_nanos() - 1);
                    source.feed(before, &mut AsTransport(line.as_mut()));
                    line.turn(now)?;
                }
                line.close(now);
            }
        }
        Ok(())
    }

    fn hear(&mut self, now: Instant) {
        let Some(line) = &mut self.line else { return };
        while let Some(delivered) = line.poll_delivered() {
            self.fresh_bytes += delivered.bytes;
            match &self.app {
                App::Hears(_) => {
                    self.counts.bytes += delivered.bytes;
                    self.counts.last_ns = Some(now.as_nanos());
                }
                App::Speaks { .. } => {}
            }
            let Some(mark) = delivered.mark.map(Payload::Bytes) else { continue };
            match &mut self.app {
                App::Speaks { source, .. } => source.delivered(now, End::Sender, &mark),
                App::Hears(Ear::Follows(source)) => source.delivered(now, End::Receiver, &mark),
                App::Hears(Ear::Answers(responder)) => responder.take(now, &mark),
                App::Hears(Ear::Counts) => {}
            }
        }
    }

    /// When there is something to do whatever the network does.
    pub(super) fn poll_timeout(&self) -> Instant {
        match &self.app {
            App::Speaks { start, phase: Phase::Waiting, .. } => *start,
            App::Speaks { source, stop, phase: Phase::Running, .. } => {
                source.poll_timeout().unwrap_or(Instant::MAX).min(*stop)
            }
            App::Speaks { .. } | App::Hears(_) => Instant::MAX,
        }
    }

    /// What to wait for.
    pub(super) fn interest(&self) -> Interest<'_> {
        self.line.as_ref().map(|line| line.interest()).unwrap_or_default()
    }

    /// Congestion state of the sender now.
    pub(super) fn probe(&mut self) -> Option<udccp_base::Probe> {
        match self.app {
            App::Speaks { .. } => self.line.as_mut().map(|line| line.probe()),
            App::Hears(_) => None,
        }
    }

    /// Adds what this connection saw.
    pub(super) fn add_to(&mut self, report: &mut AgentReport) {
        let mut counts = self.counts;
        if let Some(line) = &mut self.line {
            counts.port = line.port();
            counts.is_closed = line.is_closed();
            report.faults.extend(line.take_faults());
        }
        match &self.app {
            App::Speaks { source, phase, .. } => {
                let stats = source.stats();
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
                if *phase == Phase::Waiting {
                    return;
                }
            }
            App::Hears(ear) => {
                report.app_bytes_in += counts.bytes;
                if let Ear::Follows(source) = ear
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
