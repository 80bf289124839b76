//! What calls know of the driver, and what they leave to it.

use std::task::Waker;

use udccp_base::{Instant, Machine};

use super::core::Core;
use super::driven_by::{DrivenBy, ThreadNumber, Who};
use super::seat::BeforeSleep;

/// What the callers know about the driver.
#[derive(Debug, Default)]
pub(crate) struct Driver {
    pub(crate) waker: Option<Waker>,
    /// It has been woken and has not run since.
    pub(super) notified: bool,
    /// There is work that only the driver does.
    pub(super) wanted: bool,
    /// When it wakes by itself (`None`: never).
    pub(super) armed: Option<Instant>,
    /// It has ended, and nothing will happen any more.
    pub(crate) stopped: bool,
    /// Of a socket with a thread, which others may drive instead.
    pub(crate) driven_by: Option<DrivenBy>,
    /// Messages that left at once because nobody drives or an answer is expected, since the last
    /// turn.
    pub(super) sent_at_once: u32,
}

impl Driver {
    /// Nobody drives: a reader is expected.
    pub(super) fn is_away(&self) -> bool {
        self.driven_by.as_ref().is_some_and(|driven_by| driven_by.who() == Who::Nobody)
    }

    /// The calling thread drives from now on, if nobody does.
    pub(super) fn enter(&mut self, caller: ThreadNumber) -> bool {
        self.driven_by.as_mut().is_some_and(|driven_by| driven_by.enter(caller))
    }

    /// The calling thread drives.
    fn is_caller(&self) -> bool {
        let who = self.driven_by.as_ref().map(DrivenBy::who);
        who == Some(Who::Caller(ThreadNumber::this()))
    }
}

impl Core {
    /// Has the driver look as soon as it can.
    pub(crate) fn want_driver(&mut self) {
        self.driver.wanted = true;
    }

    /// Has the driver do what the change left to it.
    pub(super) fn call_driver(&mut self, now: Instant) {
        let wanted = std::mem::take(&mut self.driver.wanted);
        let due = self.endpoint.poll_timeout();
        if self.driver.is_away() {
            return self.call_thread(now, due, wanted || self.has_waiters());
        }
        if self.driver.is_caller() {
            // It looks before it sleeps or leaves.
            self.driver.notified |= wanted;
            return;
        }
        let sooner = match (due, self.driver.armed) {
            (Some(due), Some(armed)) => due < armed,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if (wanted || sooner) && !self.driver.notified {
            self.driver.notified = true;
            self.wake.extend(self.driver.waker.clone());
        }
    }

    /// The same where nobody drives.
    fn call_thread(&mut self, now: Instant, due: Option<Instant>, is_needed: bool) {
        self.driver.notified |= is_needed;
        match &mut self.driver.driven_by {
            Some(driven_by) if is_needed => driven_by.call_thread(),
            Some(driven_by) => driven_by.wake_at(now, due),
            None => {}
        }
    }

    /// The socket's thread ends a turn: leaves the next ones to the reader that it woke, if it woke
    /// just one and nobody else needs a driver; whether it does.
    pub(crate) fn stand_by(&mut self, now: Instant) -> bool {
        if self.readers_woken != 1 || self.needs_driver() || self.is_finished() {
            return false;
        }
        let due = self.endpoint.poll_timeout();
        self.driver.driven_by.as_mut().is_some_and(|driven_by| driven_by.stand_by(now, due))
    }

    /// A caller that drives is about to sleep.
    pub(crate) fn before_sleep(&mut self, now: Instant) -> BeforeSleep {
        self.driver.armed = self.endpoint.poll_timeout();
        BeforeSleep {
            now,
            more: self.driver.notified,
            blocked: self.blocked,
            deadline: self.driver.armed,
            // Its own acknowledgement it has released.
            holds_acks: self.holds_acks && self.conns.len() > 1,
        }
    }

    /// A caller that drives ends its wait.
    pub(crate) fn leave(&mut self, now: Instant) {
        let (due, is_needed) = (self.endpoint.poll_timeout(), self.needs_driver());
        self.driver.notified |= is_needed;
        if let Some(driven_by) = &mut self.driver.driven_by {
            driven_by.leave(now, due, is_needed);
        }
    }

    /// Whether somebody waits for the driver, or has left it work.
    fn needs_driver(&self) -> bool {
        self.driver.notified || self.blocked || self.has_waiters()
    }
}
