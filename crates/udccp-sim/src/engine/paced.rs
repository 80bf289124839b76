//! The event loop, synchronized with a clock.

use udccp_base::Instant;

use super::{Engine, Stop};
use crate::error::SimError;
use crate::hash::Kind;
use crate::pace::{Pace, Turn};

impl Engine {
    /// Like [`Engine::run`], but each event waits for its time.
    pub(crate) fn run_paced(&mut self, end: Instant, pace: &mut dyn Pace) -> Result<(), SimError> {
        self.paced_event_loop(end, pace).map_err(|stop| *stop)?;
        self.finish(end)
    }

    fn paced_event_loop(&mut self, end: Instant, pace: &mut dyn Pace) -> Result<(), Stop> {
        // A packet never crosses the next link in the same step: it would be ahead of the clock.
        self.fabric.horizon = Instant::ZERO;
        loop {
            let (due, component) = self.fabric.events.earliest();
            let mark = self.next_mark.min(end);
            match pace.wait(due.min(mark)) {
                Turn::Stop => return Err(Box::new(SimError::Stopped { at: self.now })),
                Turn::Input { host, at } => {
                    let at = at.min(due).min(mark).max(self.now);
                    self.input(at, host);
                }
                Turn::Due if due >= mark => {
                    if mark == end {
                        return Ok(());
                    }
                    self.process_marks(mark);
                }
                Turn::Due => {
                    if self.advance(due, component) {
                        self.dispatch(component);
                    }
                }
            }
            self.check()?;
        }
    }

    /// A host has data to send that came from outside, not by an event of the network.
    fn input(&mut self, at: Instant, host: usize) {
        if self.advance(at, host) {
            self.fabric.cost.events += 1;
            self.fabric.hash.log(at, host, Kind::Wake, 0);
            self.drain_later(host);
        }
    }
}
