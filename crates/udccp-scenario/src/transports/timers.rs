//! When timers fire on a host that cannot wake at any instant.

use udccp_base::{Duration, Instant, MaybeInstant};

use crate::schema::{DccpOptions, HostTimers};

const MILLISECOND: Duration = Duration::from_millis(1);

/// The wake-up times of a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    wait: Wait,
    /// Its application also wakes at multiples of this.
    wakes_every: Option<Duration>,
}

/// How the host waits for a timer.
#[derive(Clone, Copy, Debug)]
enum Wait {
    /// Exactly until the deadline.
    Exact,
    /// Until a multiple of this.
    Ticks(Duration),
    /// Like tokio with `epoll_wait`.
    Epoll(Epoll),
}

/// A driver on tokio. Deadlines are rounded up to milliseconds and the current time down, and the
/// wait is their difference, from now. An application that wakes sends what is due, and fills the
/// send queue. If it adds a second message it wakes the driver, which starts a new wait. Otherwise
/// the driver waits until `pending`, although nothing is due then.
#[derive(Clone, Copy, Debug)]
struct Epoll {
    asleep_from: Instant,
    pending: MaybeInstant,
    /// Messages sent since the application last woke; it will add as many to the queue.
    left: u32,
    /// The time of the last event here.
    last: Instant,
}

impl Timers {
    /// The wait that the options describe.
    pub(super) fn new(options: &DccpOptions) -> Self {
        let wait = match (options.timers, options.timer_tick) {
            (Some(HostTimers::Epoll), _) => Wait::Epoll(Epoll {
                asleep_from: Instant::ZERO,
                pending: MaybeInstant::NONE,
                left: 0,
                last: Instant::ZERO,
            }),
            (Some(HostTimers::Exact) | None, Some(tick)) => Wait::Ticks(tick),
            (Some(HostTimers::Exact) | None, None) => Wait::Exact,
        };
        Self { wait, wakes_every: options.wakes_every }
    }

    /// The timers that the options describe; `None` if the host wakes exactly when a timer is due.
    pub(super) fn unless_exact(options: &DccpOptions) -> Option<Self> {
        let timers = Self::new(options);
        let is_exact = matches!(timers.wait, Wait::Exact) && timers.wakes_every.is_none();
        (!is_exact).then_some(timers)
    }

    /// Whether the time at which a timer fires depends only on its deadline.
    pub(super) const fn are_fixed(&self) -> bool {
        !matches!(self.wait, Wait::Epoll(_))
    }

    /// The host wakes. `due` returns its next timer; it is called only if needed.
    #[inline]
    pub(super) fn wake(&mut self, now: Instant, due: impl FnOnce() -> Option<Instant>) {
        if let Wait::Epoll(epoll) = &mut self.wait {
            epoll.catch_up(now, self.wakes_every);
            epoll.wake(now, due);
        }
    }

    /// A packet arrived, so the driver starts a new wait.
    #[inline]
    pub(super) fn arrived(&mut self, now: Instant) {
        if let Wait::Epoll(epoll) = &mut self.wait {
            epoll.catch_up(now, self.wakes_every);
            epoll.pending = MaybeInstant::NONE;
        }
    }

    /// A message of the application was sent.
    #[inline]
    pub(super) fn message_left(&mut self) {
        if let Wait::Epoll(epoll) = &mut self.wait {
            epoll.left = epoll.left.saturating_add(1);
        }
    }

    /// The host has nothing to do from now on.
    #[inline]
    pub(super) fn asleep_from(&mut self, now: Instant) {
        if let Wait::Epoll(epoll) = &mut self.wait {
            epoll.catch_up(now, self.wakes_every);
            let looks = self.wakes_every.is_some_and(|every| now == now.next_multiple_of(every));
            if looks && epoll.wakes_driver() {
                epoll.pending = MaybeInstant::NONE;
            }
            if epoll.pending.get().is_none() {
                epoll.asleep_from = now;
            }
        }
    }

    /// When the host wakes for a timer with this deadline.
    #[inline]
    pub(super) fn fire(&self, due: Instant) -> Instant {
        let at = match &self.wait {
            Wait::Exact => due,
            Wait::Ticks(tick) => due.next_multiple_of(*tick),
            Wait::Epoll(epoll) => epoll.fire(due, self.wakes_every),
        };
        self.wakes_every.map_or(at, |every| at.min(due.next_multiple_of(every)))
    }
}

impl Epoll {
    /// Accounts for wake-ups of the application at which nothing was due.
    fn catch_up(&mut self, now: Instant, wakes_every: Option<Duration>) {
        let Some(every) = wakes_every else { return };
        let look = self.last.next_multiple_of(every);
        if look < now {
            if self.last < look && self.wakes_driver() {
                self.asleep_from = look;
                self.pending = MaybeInstant::NONE;
            }
            self.left = 0;
        }
        self.last = now;
    }

    /// The first message is sent by its call; the next ones are left to the driver.
    fn wakes_driver(&self) -> bool {
        self.left > 1
    }

    fn wake(&mut self, now: Instant, due: impl FnOnce() -> Option<Instant>) {
        let passed = || due().filter(|due| *due <= now);
        let waited = self.pending.get().or_else(|| passed().map(|due| wait(self.asleep_from, due)));
        self.pending = waited.filter(|at| *at > now).into();
    }

    fn fire(&self, due: Instant, wakes_every: Option<Duration>) -> Instant {
        let at = self.pending.get().unwrap_or_else(|| wait(self.asleep_from, due));
        let look = wakes_every.map(|every| self.last.next_multiple_of(every));
        match look.filter(|look| self.last < *look && *look < due && self.wakes_driver()) {
            Some(look) if look < at => wait(look, due),
            _ => at,
        }
    }
}

/// When `epoll_wait` returns if it was called at `asleep_from` for a timer with this deadline.
fn wait(asleep_from: Instant, due: Instant) -> Instant {
    if due <= asleep_from {
        return due;
    }
    asleep_from + (due.next_multiple_of(MILLISECOND) - down(asleep_from, MILLISECOND))
}

fn down(at: Instant, unit: Duration) -> Instant {
    Instant::from_nanos(at.as_nanos() / unit.as_nanos() * unit.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1000)
    }

    #[test]
    fn a_program_with_epoll_waits_whole_milliseconds_from_now() {
        let options = DccpOptions { timers: Some(HostTimers::Epoll), ..DccpOptions::default() };
        let fire = |asleep_from, due| {
            let mut timers = Timers::new(&options);
            timers.asleep_from(at(asleep_from));
            timers.fire(at(due))
        };
        assert_eq!(fire(500, 800), at(500 + 1000));
        assert_eq!(fire(500, 1700), at(500 + 2000));
        assert_eq!(fire(900, 2100), at(900 + 3000));
        assert_eq!(fire(1000, 2000), at(1000 + 1000));
        assert_eq!(fire(1000, 900), at(900), "due already");
    }

    #[test]
    fn ticks_are_multiples() {
        let tick = Some(Duration::from_millis(4));
        let timers = Timers::new(&DccpOptions { timer_tick: tick, ..DccpOptions::default() });
        assert_eq!([timers.fire(at(1)), timers.fire(at(4000))], [at(4000), at(4000)]);
        assert_eq!(Timers::new(&DccpOptions::default()).fire(at(1)), at(1));
    }

    fn looking_every(us: u64) -> Timers {
        let (timers, wakes_every) = (Some(HostTimers::Epoll), Some(Duration::from_micros(us)));
        Timers::new(&DccpOptions { timers, wakes_every, ..DccpOptions::default() })
    }

    #[test]
    fn a_host_that_wakes_by_itself_fires_what_is_due() {
        let timers = looking_every(1200);
        assert_eq!(timers.fire(at(900)), at(1000));
        assert_eq!(timers.fire(at(1100)), at(1200));
        assert_eq!(timers.fire(at(1210)), at(2000));
    }

    #[test]
    fn the_driver_waits_on_for_a_timer_that_the_application_was_ahead_of() {
        let mut timers = looking_every(1200);
        timers.asleep_from(at(500));
        assert_eq!(timers.fire(at(900)), at(1200), "the application; the driver waits until 1500");
        timers.wake(at(1200), || Some(at(900)));
        timers.message_left();
        timers.asleep_from(at(1200));
        assert_eq!(timers.fire(at(1900)), at(1500));
        let mut reached = timers;
        // A packet arrives before: the driver's wait starts then.
        timers.arrived(at(1300));
        timers.asleep_from(at(1300));
        assert_eq!(timers.fire(at(1900)), at(1300 + 1000));
        // No packet arrives: the driver finds nothing due, and waits again.
        reached.wake(at(1500), || Some(at(1900)));
        reached.asleep_from(at(1500));
        assert_eq!(reached.fire(at(1900)), at(2400), "the application; the driver at 2500");
        // A wake-up before anything is due is not the application's.
        reached.wake(at(1800), || Some(at(1900)));
        reached.asleep_from(at(1800));
        assert_eq!(Timers { wakes_every: None, ..reached }.fire(at(1900)), at(1800 + 1000));
    }

    #[test]
    fn an_application_that_fills_the_queue_with_two_messages_wakes_the_driver() {
        // Messages left at the application's wake-up and before: the driver's new wait starts
        // there.
        let mut timers = looking_every(1200);
        timers.asleep_from(at(500));
        timers.message_left();
        timers.wake(at(1200), || Some(at(900)));
        timers.message_left();
        timers.asleep_from(at(1200));
        assert_eq!(timers.fire(at(1900)), at(1200 + 1000));
        // The same if nothing is due at the wake-up. It fills the queue, so a later wake-up finds
        // it full.
        let mut timers = looking_every(1200);
        timers.asleep_from(at(900));
        timers.message_left();
        timers.message_left();
        assert_eq!(timers.fire(at(1300)), at(2200), "not 900 + 2000 as without the look");
        timers.arrived(at(1250));
        timers.asleep_from(at(1250));
        assert_eq!(timers.fire(at(2900)), at(1250 + 2000), "not from the look at 2400 on");
        // A wake-up before the timer that the driver started at the previous wake-up.
        let mut timers = looking_every(1200);
        timers.asleep_from(at(900));
        timers.message_left();
        timers.message_left();
        assert_eq!(timers.fire(at(2399)), at(2400));
        timers.wake(at(2400), || Some(at(2399)));
        timers.message_left();
        timers.asleep_from(at(2400));
        assert_eq!(timers.fire(at(3500)), at(1200 + 2000));
    }
}
