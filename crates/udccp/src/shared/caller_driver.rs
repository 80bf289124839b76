//! A thread that waits for a message, and drives the socket meanwhile if nobody else does. It
//! starts to drive, goes to sleep and ends under the lock that its calls hold anyway.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use udccp_base::Instant;

use super::core::Core;
use super::driven_by::ThreadNumber;

/// Whether such a thread drives, over one call.
#[derive(Debug)]
pub(crate) struct CallerDriver<'a> {
    thread: ThreadNumber,
    /// The number of the thread that drives, 0 for none. That thread need not be woken for its own
    /// changes.
    driving: &'a AtomicU64,
    drives: Cell<bool>,
    before_sleep: Cell<Option<BeforeSleep>>,
}

/// What a driving thread has to check before it sleeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BeforeSleep {
    pub(crate) now: Instant,
    /// Whether work was left to the driver.
    pub(crate) more: bool,
    /// As in [`super::Turn`].
    pub(crate) holds_acks: bool,
    pub(crate) blocked: bool,
    pub(crate) deadline: Option<Instant>,
}

impl<'a> CallerDriver<'a> {
    /// For the calling thread, which does not drive yet.
    pub(crate) fn new(driving: &'a AtomicU64) -> Self {
        let (drives, before_sleep) = (Cell::new(false), Cell::new(None));
        Self { thread: ThreadNumber::current(), driving, drives, before_sleep }
    }

    /// Whether the thread drives.
    pub(crate) fn drives(&self) -> bool {
        self.drives.get()
    }

    /// The state that the last call left, if it has to wait and the thread drives.
    pub(crate) fn before_sleep(&self) -> Option<BeforeSleep> {
        self.before_sleep.take()
    }

    /// A call has to wait: the thread drives from now on, if nobody does.
    pub(super) fn start_driving(&self, core: &mut Core) {
        if !self.drives() && core.driver.enter(self.thread) {
            self.drives.set(true);
            self.driving.store(self.thread.get(), Ordering::Relaxed);
        }
    }

    /// The changes of the call have been passed on.
    pub(super) fn end_call(&self, core: &mut Core, now: Instant, waits: bool) {
        if !waits {
            self.leave(core, now);
        } else if self.drives() {
            self.before_sleep.set(Some(core.before_sleep(now)));
        }
    }

    /// The thread stops driving, if it does.
    pub(super) fn leave(&self, core: &mut Core, now: Instant) {
        if self.drives() {
            self.drives.set(false);
            self.driving.store(0, Ordering::Relaxed);
            core.leave(now);
        }
    }
}
