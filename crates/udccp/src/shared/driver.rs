//! The callers' view of the driver, and the work they leave to it.

use std::task::Waker;

use udccp_base::{Instant, Machine};

use super::caller_driver::BeforeSleep;
use super::core::Core;
use super::driven_by::{CurrentDriver, DrivenBy, ThreadNumber};

/// The callers' view of the driver.
#[derive(Debug, Default)]
pub(crate) struct Driver {
    pub(crate) waker: Option<Waker>,
    /// Whether it has been woken and has not run since.
    pub(super) notified: bool,
    /// Whether there is work that only the driver does.
    pub(super) wanted: bool,
    /// When it wakes by itself (`None`: never).
    pub(super) armed: Option<Instant>,
    /// Whether it has ended, so that nothing happens any more.
    pub(crate) stopped: bool,
    /// For a socket with a thread: who drives it.
    pub(crate) driven_by: Option<DrivenBy>,
    /// Messages sent at once since the last turn, because nobody drives or an answer is expected.
    pub(super) sent_at_once: u32,
}

impl Driver {
    /// Whether nobody drives because a reader is expected.
    pub(super) fn is_away(&self) -> bool {
        self.driven_by.as_ref().is_some_and(|driven_by| driven_by.who() == CurrentDriver::Nobody)
    }

    /// Makes the calling thread the driver, if nobody drives.
    pub(super) fn enter(&mut self, caller: ThreadNumber) -> bool {
        self.driven_by.as_mut().is_some_and(|driven_by| driven_by.enter(caller))
    }

    /// Whether the calling thread drives.
    fn is_caller(&self) -> bool {
        let who = self.driven_by.as_ref().map(DrivenBy::who);
        who == Some(CurrentDriver::Caller(ThreadNumber::current()))
    }
}

impl Core {
    /// Makes the driver run as soon as it can.
    pub(crate) fn request_driver(&mut self) {
        self.driver.wanted = true;
    }

    /// Wakes the driver if the change left work to it.
    pub(super) fn wake_driver(&mut self, now: Instant) {
        let wanted = std::mem::take(&mut self.driver.wanted);
        let due = self.endpoint.poll_timeout();
        if self.driver.is_away() {
            return self.wake_thread(now, due, wanted || self.has_waiters());
        }
        if self.driver.is_caller() {
            // It checks before it sleeps or leaves.
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

    /// The same if nobody drives.
    fn wake_thread(&mut self, now: Instant, due: Option<Instant>, is_needed: bool) {
        self.driver.notified |= is_needed;
        match &mut self.driver.driven_by {
            Some(driven_by) if is_needed => driven_by.wake_thread(),
            Some(driven_by) => driven_by.wake_at(now, due),
            None => {}
        }
    }

    /// The socket's thread ends a turn. If it woke exactly one reader and nobody else needs a
    /// driver, that reader takes the next turns. Returns whether it does.
    pub(crate) fn stand_by(&mut self, now: Instant) -> bool {
        if self.readers_woken != 1 || self.needs_driver() || self.is_finished() {
            return false;
        }
        let due = self.endpoint.poll_timeout();
        self.driver.driven_by.as_mut().is_some_and(|driven_by| driven_by.stand_by(now, due))
    }

    /// The driving caller is about to sleep.
    pub(crate) fn before_sleep(&mut self, now: Instant) -> BeforeSleep {
        self.driver.armed = self.endpoint.poll_timeout();
        BeforeSleep {
            now,
            more: self.driver.notified,
            blocked: self.blocked,
            deadline: self.driver.armed,
            // It has sent its own acknowledgement already.
            holds_acks: self.holds_acks && self.conns.len() > 1,
        }
    }

    /// The driving caller ends its wait.
    pub(crate) fn leave(&mut self, now: Instant) {
        let (due, is_needed) = (self.endpoint.poll_timeout(), self.needs_driver());
        self.driver.notified |= is_needed;
        if let Some(driven_by) = &mut self.driver.driven_by {
            driven_by.leave(now, due, is_needed);
        }
    }

    /// Whether a task waits for the driver, or has left work to it.
    fn needs_driver(&self) -> bool {
        self.driver.notified || self.blocked || self.has_waiters()
    }
}
