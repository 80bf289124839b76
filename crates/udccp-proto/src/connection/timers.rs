//! Runs a connection's own timers. Those of its congestion control and feature negotiation are
//! asked for separately.

use udccp_base::{Duration, Instant};

/// Retransmissions are never further apart (RFC 4340 sections 8.1.1 and 8.3).
const LONGEST_BACK_OFF: Duration = Duration::from_secs(64);

/// Counts how often a packet has been sent again, and spaces that: each wait is twice the one
/// before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Retries(u32);

impl Retries {
    /// Counts another one; false where there were `most`.
    pub(super) fn another(&mut self, most: u32) -> bool {
        let may = self.0 < most;
        self.0 += u32::from(may);
        may
    }

    /// Counts another one.
    pub(super) fn add(&mut self) {
        self.0 += 1;
    }

    /// Whether there was none.
    pub(super) const fn is_first(self) -> bool {
        self.0 == 0
    }

    /// The wait that follows, where `first` was the first one.
    pub(super) fn wait(self, first: Duration) -> Duration {
        backed_off(first, self.0)
    }
}

/// `first`, doubled `times` times, at most 64 s.
pub(super) fn backed_off(first: Duration, times: u32) -> Duration {
    (first * (1 << times.min(32))).min(LONGEST_BACK_OFF)
}

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// Send the Request again, or give up.
    Request,
    /// Send another Ack in PARTOPEN.
    PartOpen,
    /// The handshake has taken too long.
    Handshake,
    /// Probe a silent peer.
    KeepAlive,
    /// A queued message grows too old.
    Deadline,
    /// What `close` found in the queue has had its time.
    Linger,
    /// Send Close or CloseReq again, or give up.
    Close,
    /// TIMEWAIT is over.
    TimeWait,
    /// A probe of the path's MTU was not answered, or another is due.
    Pmtu,
    /// The Quick-Start Mode, or its validation, ends.
    QuickStart,
}

const COUNT: usize = 10;

impl Timer {
    /// All timers, in the order in which they fire at one instant.
    pub(crate) const ALL: [Self; COUNT] = [
        Self::Request,
        Self::PartOpen,
        Self::Handshake,
        Self::KeepAlive,
        Self::Deadline,
        Self::Linger,
        Self::Close,
        Self::TimeWait,
        Self::Pmtu,
        Self::QuickStart,
    ];
}

/// When each timer fires.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timers {
    at: [Instant; COUNT],
    /// The earliest of them, which is asked for after every packet.
    earliest: Instant,
}

impl Timers {
    /// No timer runs.
    pub(crate) const fn new() -> Self {
        Self { at: [Instant::MAX; COUNT], earliest: Instant::MAX }
    }

    /// Starts or moves a timer.
    pub(crate) fn set(&mut self, timer: Timer, at: Instant) {
        if core::mem::replace(&mut self.at[timer as usize], at) != at {
            self.earliest = self.at.into_iter().min().unwrap_or(Instant::MAX);
        }
    }

    /// Starts or moves a timer, or stops it.
    pub(crate) fn set_or_stop(&mut self, timer: Timer, at: Option<Instant>) {
        self.set(timer, at.unwrap_or(Instant::MAX));
    }

    /// Stops a timer.
    pub(crate) fn stop(&mut self, timer: Timer) {
        self.set(timer, Instant::MAX);
    }

    /// Stops all timers.
    pub(crate) fn stop_all(&mut self) {
        *self = Self::new();
    }

    /// The earliest; `Instant::MAX` where none runs.
    pub(crate) fn next(&self) -> Instant {
        self.earliest
    }

    /// Takes a timer that is due.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Timer> {
        if self.earliest > now {
            return None;
        }
        let due = Timer::ALL.into_iter().find(|&t| self.at[t as usize] <= now)?;
        self.stop(due);
        Some(due)
    }
}
