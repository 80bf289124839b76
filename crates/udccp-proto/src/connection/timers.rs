//! A connection's own timers. Those of its congestion control and feature negotiation are asked
//! for separately.

use udccp_base::Instant;

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
