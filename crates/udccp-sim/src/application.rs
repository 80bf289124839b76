//! Starts, feeds and stops the source of a flow, on simulated hosts and on agents on real hosts.

use udccp_base::{AppPort, Instant};

use crate::source::Source;

/// The application on the active side of a flow: a source that runs from its start to its stop.
#[derive(Debug)]
pub struct Application {
    source: Box<dyn Source>,
    start: Instant,
    stop: Instant,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Running,
    Over,
}

/// A step that is due in the flow of an [`Application`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowStep {
    /// Open the flow, and then call [`Source::start`].
    Open,
    /// Close the flow. The source is not fed any more.
    Close,
}

impl Application {
    /// An application that opens its flow at `start` and closes it at `stop`.
    pub const fn new(source: Box<dyn Source>, start: Instant, stop: Instant) -> Self {
        Self { source, start, stop, phase: Phase::Waiting }
    }

    /// The next step that is due at `now`. Call it until it returns `None`.
    #[inline]
    pub fn poll_step(&mut self, now: Instant) -> Option<FlowStep> {
        match self.phase {
            Phase::Waiting if self.start <= now => {
                self.phase = Phase::Running;
                Some(FlowStep::Open)
            }
            Phase::Running if self.stop <= now => {
                self.phase = Phase::Over;
                Some(FlowStep::Close)
            }
            _ => None,
        }
    }

    /// The next time at which there is something to do without input from the network;
    /// [`Instant::MAX`] if there is none.
    #[inline]
    pub fn poll_timeout(&self) -> Instant {
        match self.phase {
            Phase::Waiting => self.start,
            Phase::Running => self.source.poll_timeout().unwrap_or(Instant::MAX).min(self.stop),
            Phase::Over => Instant::MAX,
        }
    }

    /// Offers the port what is due while the flow runs. Returns whether anything was accepted.
    #[inline]
    pub fn feed(&mut self, now: Instant, port: &mut dyn AppPort) -> bool {
        self.phase == Phase::Running && self.source.feed(now, port)
    }

    /// Whether the flow has been opened.
    pub fn has_started(&self) -> bool {
        self.phase != Phase::Waiting
    }

    /// When the flow opens.
    pub const fn start(&self) -> Instant {
        self.start
    }

    /// When the flow closes.
    pub const fn stop(&self) -> Instant {
        self.stop
    }

    /// The source.
    pub fn source(&self) -> &dyn Source {
        self.source.as_ref()
    }

    /// The source, to start it and to report deliveries to it.
    pub fn source_mut(&mut self) -> &mut dyn Source {
        self.source.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use udccp_base::{Message, SendOutcome};

    use super::*;
    use crate::source::Bulk;

    /// A port that accepts everything.
    struct Taker;

    impl AppPort for Taker {
        fn send(&mut self, _now: Instant, _message: Message) -> SendOutcome {
            SendOutcome::Accepted
        }

        fn is_writable(&self) -> bool {
            false
        }

        fn close(&mut self, _now: Instant) {}

        fn max_payload(&self) -> usize {
            1000
        }
    }

    #[test]
    fn a_flow_opens_and_closes_once_and_is_fed_between() {
        let at = |s: u64| Instant::from_nanos(s * 1_000_000_000);
        let mut app = Application::new(Box::new(Bulk::new()), at(1), at(3));
        assert_eq!((app.poll_step(at(0)), app.poll_timeout()), (None, at(1)));
        assert!(!app.feed(at(0), &mut Taker) && !app.has_started());
        assert_eq!(app.poll_step(at(1)), Some(FlowStep::Open));
        assert_eq!((app.poll_step(at(2)), app.has_started()), (None, true));
        assert_eq!(app.poll_timeout(), at(3));
        assert_eq!(app.poll_step(at(3)), Some(FlowStep::Close));
        assert_eq!((app.poll_step(at(9)), app.poll_timeout()), (None, Instant::MAX));
        assert!(!app.feed(at(9), &mut Taker));
        let mut late = Application::new(Box::new(Bulk::new()), at(1), at(3));
        let steps = [late.poll_step(at(5)), late.poll_step(at(5)), late.poll_step(at(5))];
        assert_eq!(steps, [Some(FlowStep::Open), Some(FlowStep::Close), None]);
    }
}
