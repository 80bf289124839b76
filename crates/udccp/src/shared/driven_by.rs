//! Records who drives a socket that has a thread of its own: that thread, a thread that waits for a
//! message, or temporarily nobody.
//!
//! ```text
//!            stand_by                    enter
//!   Thread ------------> Nobody <----------------> Caller
//!     ^                    |      leave, nothing      |
//!     |   wake_thread, or  |      is to be done       |
//!     +---- its alarm -----+                          |
//!     +------------------ leave, something is to be done
//! ```
//!
//! While a caller drives, the socket's thread sleeps without a deadline. While nobody drives, an
//! alarm is set. All this is protected by the endpoint's lock, like the state that it depends on.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use udccp_base::{Duration, Instant};

/// If nobody has driven for this long, the socket's thread does, for callers that do not come back.
/// The peer waits up to this long for its acknowledgements.
const AWAY: Duration = Duration::from_millis(1);
/// The same for a caller that has repeatedly come back in time. Setting an alarm costs more than a
/// message, especially on a virtual machine.
const MOST_AWAY: Duration = Duration::from_millis(8);

/// The timer on which the socket's thread sleeps while it does not drive.
pub(crate) trait Alarm: fmt::Debug + Send + Sync {
    /// Whether the system provides it.
    fn is_there(&self) -> bool;
    /// Wakes the thread after this time, instead of the time set before.
    fn set(&self, after: Duration);
    /// Wakes the thread at once.
    fn ring(&self);
}

/// A non-zero number that is unique to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ThreadNumber(u64);

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static NUMBER: Cell<u64> = Cell::new(NEXT_NUMBER.fetch_add(1, Ordering::Relaxed));
}

impl ThreadNumber {
    /// The number of the calling thread.
    pub(crate) fn current() -> Self {
        Self(NUMBER.get())
    }

    pub(crate) fn get(self) -> u64 {
        self.0
    }

    /// Lets the calling thread act as another one.
    #[cfg(test)]
    pub(super) fn pretend(number: u64) -> Self {
        NUMBER.set(number);
        Self(number)
    }
}

/// Who drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CurrentDriver {
    /// The socket's thread.
    Thread,
    /// A thread that waits for a message.
    Caller(ThreadNumber),
    /// A caller has left and is expected back, or was woken and is expected.
    Nobody,
}

/// Who drives, and when the socket's thread checks whether nobody does.
#[derive(Debug)]
pub(crate) struct DrivenBy {
    who: CurrentDriver,
    /// When the alarm goes off, unless it already has.
    alarm_at: Option<Instant>,
    /// How long callers may currently be away.
    away: Duration,
    alarm: Arc<dyn Alarm>,
}

impl DrivenBy {
    /// Driven by the socket's thread.
    pub(crate) fn new(alarm: Arc<dyn Alarm>) -> Self {
        Self { who: CurrentDriver::Thread, alarm_at: None, away: AWAY, alarm }
    }

    pub(crate) fn who(&self) -> CurrentDriver {
        self.who
    }

    /// Time until the alarm goes off.
    #[cfg(test)]
    pub(super) fn alarm_in(&self, now: Instant) -> Option<Duration> {
        self.alarm_at.map(|at| at.saturating_since(now))
    }

    /// The socket's thread stops driving and leaves it to callers. Returns whether it may.
    pub(crate) fn stand_by(&mut self, now: Instant, due: Option<Instant>) -> bool {
        if self.who != CurrentDriver::Thread || !self.alarm.is_there() {
            return false;
        }
        self.who = CurrentDriver::Nobody;
        self.alarm_at = None;
        self.wake_by(now, due);
        true
    }

    /// A caller starts to drive, if nobody else does.
    pub(crate) fn enter(&mut self, caller: ThreadNumber) -> bool {
        let is_free = self.who == CurrentDriver::Nobody;
        if is_free {
            self.who = CurrentDriver::Caller(caller);
        }
        is_free
    }

    /// The driving caller ends its wait. If something has to be done, the thread does it.
    pub(crate) fn leave(&mut self, now: Instant, due: Option<Instant>, is_needed: bool) {
        self.who = CurrentDriver::Nobody;
        if is_needed {
            self.wake_thread();
        } else {
            self.wake_by(now, due);
        }
    }

    /// Makes the socket's thread drive if nobody does.
    pub(crate) fn wake_thread(&mut self) {
        if self.who == CurrentDriver::Nobody {
            self.who = CurrentDriver::Thread;
            self.alarm_at = None;
            self.alarm.ring();
        }
    }

    /// If nobody drives, makes the thread check by `due` at the latest. A call that does not drive
    /// must not postpone the alarm, because repeated calls would postpone it for ever.
    pub(crate) fn wake_at(&mut self, now: Instant, due: Option<Instant>) {
        let Some(due) = due.filter(|_| self.who == CurrentDriver::Nobody) else { return };
        if self.alarm_at.is_none_or(|at| due < at) {
            self.alarm_at = Some(due);
            self.alarm.set(due.saturating_since(now));
        }
    }

    /// The driver has stopped: makes the thread check by `due` at the latest, and soon.
    fn wake_by(&mut self, now: Instant, due: Option<Instant>) {
        let latest = due.map_or(now + self.away, |due| due.min(now + self.away));
        // An alarm that is at least half of the time away is kept, so that it need not be set for
        // each message.
        let earliest = latest.min(now + self.away / 2);
        match self.alarm_at {
            Some(at) if (earliest..=latest).contains(&at) => return,
            Some(at) if at < earliest => self.away = MOST_AWAY.min(self.away * 2),
            _ => {}
        }
        self.alarm_at = Some(latest);
        self.alarm.set(latest.saturating_since(now));
    }

    /// The socket's thread has woken up. Returns whether it drives from now on.
    pub(crate) fn resume(&mut self, now: Instant) -> bool {
        match (self.who, self.alarm_at) {
            (CurrentDriver::Thread, _) => true,
            // The caller sets the alarm again when it leaves.
            (CurrentDriver::Caller(_), _) => {
                self.alarm_at = None;
                false
            }
            (CurrentDriver::Nobody, Some(at)) if now < at => {
                self.alarm.set(at.saturating_since(now));
                false
            }
            (CurrentDriver::Nobody, _) => {
                self.who = CurrentDriver::Thread;
                (self.alarm_at, self.away) = (None, AWAY);
                true
            }
        }
    }
}
