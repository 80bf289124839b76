//! A connection's own timers. Those of its congestion control and feature negotiation are queried
//! separately.

use udccp_base::{Duration, Instant};

/// Longest time between retransmissions (RFC 4340 sections 8.1.1 and 8.3).
const LONGEST_BACK_OFF: Duration = Duration::from_secs(64);

/// Counts retransmissions of a packet, and spaces them: each wait is twice the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Retries(u32);

impl Retries {
    /// Counts another one. Returns false if there were `most`.
    pub(super) fn another(&mut self, most: u32) -> bool {
        let may = self.0 < most;
        self.0 += u32::from(may);
        may
    }

    /// Counts another one.
    pub(super) fn add(&mut self) {
        self.0 += 1;
    }

    /// Whether there was no retransmission yet.
    pub(super) const fn is_first(self) -> bool {
        self.0 == 0
    }

    /// The next wait, if the first one was `first`.
    pub(super) fn wait(self, first: Duration) -> Duration {
        backed_off(first, self.0)
    }
}

/// `first`, doubled `times` times, at most 64 s.
pub(super) fn backed_off(first: Duration, times: u32) -> Duration {
    (first * (1 << times.min(32))).min(LONGEST_BACK_OFF)
}

/// Purpose of a timer.
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
    /// A queued message reaches its deadline.
    Deadline,
    /// The time is over for delivering the queue after `close`, or for the peer's confirmation.
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

/// Timers that run at the same time in most connections.
const FEW: usize = 4;

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
#[derive(Clone, Debug)]
pub(crate) struct Timers {
    /// The earliest time of all, which is read after every packet.
    earliest: Instant,
    /// When the first few fire. An unused slot never does.
    at: [Instant; FEW],
    of: [Timer; FEW],
    /// The times of all timers, once more than a few ran at a time.
    all: Option<Box<[Instant; COUNT]>>,
}

impl Timers {
    /// No timer runs.
    pub(crate) const fn new() -> Self {
        let (never, of) = (Instant::MAX, [Timer::Request; FEW]);
        Self { earliest: never, at: [never; FEW], of, all: None }
    }

    /// Starts or moves a timer.
    pub(crate) fn set(&mut self, timer: Timer, at: Instant) {
        if let Some(all) = &mut self.all {
            all[timer as usize] = at;
            self.earliest = all.iter().copied().min().unwrap_or(Instant::MAX);
            return;
        }
        let runs = |n: &usize| self.at[*n] != Instant::MAX && self.of[*n] == timer;
        let place = (0..FEW).find(runs);
        if at == place.map_or(Instant::MAX, |n| self.at[n]) {
            return;
        }
        match place.or_else(|| self.at.iter().position(|at| *at == Instant::MAX)) {
            Some(n) => (self.at[n], self.of[n]) = (at, timer),
            None => return self.set_another(timer, at),
        }
        self.earliest = self.at.into_iter().min().unwrap_or(Instant::MAX);
    }

    /// Starts one more timer than the few slots hold.
    #[cold]
    fn set_another(&mut self, timer: Timer, at: Instant) {
        let mut all = Box::new([Instant::MAX; COUNT]);
        for (timer, at) in self.of.into_iter().zip(self.at) {
            all[timer as usize] = at;
        }
        self.all = Some(all);
        self.set(timer, at);
    }

    /// When `timer` fires.
    fn at(&self, timer: Timer) -> Instant {
        if let Some(all) = &self.all {
            return all[timer as usize];
        }
        let running = self.of.into_iter().zip(self.at);
        let this = running.filter(|(of, _)| *of == timer).map(|(_, at)| at);
        this.min().unwrap_or(Instant::MAX)
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

    /// Whether any runs.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.earliest != Instant::MAX
    }

    /// The earliest time; `Instant::MAX` if no timer runs.
    pub(crate) fn next(&self) -> Instant {
        self.earliest
    }

    /// Takes a timer that is due.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Timer> {
        if self.earliest > now {
            return None;
        }
        let due = Timer::ALL.into_iter().find(|&t| self.at(t) <= now)?;
        self.stop(due);
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use udccp_base::Seed;

    use super::*;

    #[test]
    fn few_and_many_timers_fire_in_the_order_of_their_times_and_kinds() {
        let mut rng = Seed(11).stream("timers");
        for most in [1, 2, FEW, FEW + 1, COUNT] {
            let (mut timers, mut model) = (Timers::new(), [Instant::MAX; COUNT]);
            for _ in 0..3000 {
                let n = rng.below(COUNT as u64) as usize;
                let running = model.iter().filter(|at| **at != Instant::MAX).count();
                let stops = rng.chance(0.3) || (running == most && model[n] == Instant::MAX);
                let at = if stops { Instant::MAX } else { Instant::from_nanos(rng.below(50)) };
                timers.set(Timer::ALL[n], at);
                model[n] = at;
                if rng.chance(0.2) {
                    let now = Instant::from_nanos(rng.below(50));
                    let due = (0..COUNT).find(|n| model[*n] <= now);
                    assert_eq!(timers.take_due(now), due.map(|n| Timer::ALL[n]));
                    due.into_iter().for_each(|n| model[n] = Instant::MAX);
                }
                assert_eq!(timers.next(), *model.iter().min().unwrap());
            }
            assert_eq!(timers.all.is_some(), most > FEW);
        }
    }

    #[test]
    fn timers_that_were_many_are_few_again_once_all_are_stopped() {
        let mut timers = Timers::new();
        Timer::ALL.into_iter().for_each(|timer| timers.set(timer, Instant::ZERO));
        assert!(timers.all.is_some());
        timers.stop_all();
        assert!(timers.all.is_none() && timers.next() == Instant::MAX);
    }
}
