//! When the timers of a host fire that does not wake up at any instant.

use udccp_base::{Duration, Instant, MaybeInstant};

use crate::schema::{DccpOptions, HostTimers};

const MILLISECOND: Duration = Duration::from_millis(1);
/// Linux lets a program that waits sleep so much longer (its timer slack).
const SLACK: Duration = Duration::from_micros(50);

/// When the host wakes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    wait: Wait,
    /// It also wakes at multiples of this.
    wakes_every: Option<Duration>,
}

/// How the host waits for a timer.
#[derive(Clone, Copy, Debug)]
enum Wait {
    /// For as long as the timer says.
    Exact,
    /// Until a multiple of this.
    Ticks(Duration),
    /// As tokio does with `epoll_wait`: deadlines are rounded up to milliseconds and the present
    /// down, and the difference is waited for from now on, and the slack. An application that is
    /// ahead of it does what is due, and does not wake the driver, which waits until `pending`.
    Epoll { asleep_from: Instant, pending: MaybeInstant },
}

impl Timers {
    /// As the options say.
    pub(super) fn new(options: &DccpOptions) -> Self {
        let wait = match (options.timers, options.timer_tick) {
            (Some(HostTimers::Epoll), _) => {
                Wait::Epoll { asleep_from: Instant::ZERO, pending: MaybeInstant::NONE }
            }
            (None, Some(tick)) => Wait::Ticks(tick),
            (None, None) => Wait::Exact,
        };
        Self { wait, wakes_every: options.wakes_every }
    }

    /// The host wakes. `due` is its next timer, asked for where it counts.
    #[inline]
    pub(super) fn wake(&mut self, now: Instant, due: impl FnOnce() -> Option<Instant>) {
        if let Wait::Epoll { asleep_from, pending } = &mut self.wait {
            let passed = || due().filter(|due| *due <= now);
            let waited = pending.get().or_else(|| passed().map(|due| epoll(*asleep_from, due)));
            *pending = waited.filter(|at| *at > now).into();
        }
    }

    /// Something arrived, so that the driver waits anew.
    #[inline]
    pub(super) fn arrived(&mut self) {
        if let Wait::Epoll { pending, .. } = &mut self.wait {
            *pending = MaybeInstant::NONE;
        }
    }

    /// The host has nothing to do from now on.
    #[inline]
    pub(super) fn asleep_from(&mut self, now: Instant) {
        if let Wait::Epoll { asleep_from, pending: MaybeInstant::NONE } = &mut self.wait {
            *asleep_from = now;
        }
    }

    /// When the host wakes for a timer that is due then.
    #[inline]
    pub(super) fn fire(&self, due: Instant) -> Instant {
        let at = match self.wait {
            Wait::Exact => due,
            Wait::Ticks(tick) => due.next_multiple_of(tick),
            Wait::Epoll { asleep_from, pending } => {
                pending.get().unwrap_or_else(|| epoll(asleep_from, due))
            }
        };
        self.wakes_every.map_or(at, |every| at.min(due.next_multiple_of(every)))
    }
}

/// When `epoll_wait` returns that has been called at `asleep_from` for a timer that is due then.
fn epoll(asleep_from: Instant, due: Instant) -> Instant {
    if due <= asleep_from {
        return due;
    }
    asleep_from + (due.next_multiple_of(MILLISECOND) - down(asleep_from, MILLISECOND)) + SLACK
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
    fn a_program_with_epoll_waits_whole_milliseconds_from_now_and_a_little_longer() {
        let options = DccpOptions { timers: Some(HostTimers::Epoll), ..DccpOptions::default() };
        let fire = |asleep_from, due| {
            let mut timers = Timers::new(&options);
            timers.asleep_from(at(asleep_from));
            timers.fire(at(due))
        };
        assert_eq!(fire(500, 800), at(500 + 1000 + 50));
        assert_eq!(fire(500, 1700), at(500 + 2000 + 50));
        assert_eq!(fire(900, 2100), at(900 + 3000 + 50));
        assert_eq!(fire(1000, 2000), at(1000 + 1000 + 50));
        assert_eq!(fire(1000, 900), at(900), "due already");
    }

    #[test]
    fn ticks_are_multiples() {
        let tick = Some(Duration::from_millis(4));
        let timers = Timers::new(&DccpOptions { timer_tick: tick, ..DccpOptions::default() });
        assert_eq!([timers.fire(at(1)), timers.fire(at(4000))], [at(4000), at(4000)]);
        assert_eq!(Timers::new(&DccpOptions::default()).fire(at(1)), at(1));
    }

    #[test]
    fn a_host_that_wakes_by_itself_fires_what_is_due() {
        let wakes_every = Some(Duration::from_micros(1200));
        let timers = Some(HostTimers::Epoll);
        let options = DccpOptions { timers, wakes_every, ..DccpOptions::default() };
        let timers = Timers::new(&options);
        assert_eq!(timers.fire(at(900)), at(1050));
        assert_eq!(timers.fire(at(1100)), at(1200));
        assert_eq!(timers.fire(at(1210)), at(2050));
    }

    #[test]
    fn the_driver_waits_on_for_a_timer_that_the_application_was_ahead_of() {
        let wakes_every = Some(Duration::from_micros(1200));
        let timers = Some(HostTimers::Epoll);
        let options = DccpOptions { timers, wakes_every, ..DccpOptions::default() };
        let mut timers = Timers::new(&options);
        timers.asleep_from(at(500));
        assert_eq!(timers.fire(at(900)), at(1200), "the application; the driver waits until 1550");
        timers.wake(at(1200), || Some(at(900)));
        timers.asleep_from(at(1200));
        assert_eq!(timers.fire(at(1900)), at(1550));
        let mut reached = timers;
        // Something arrives before: the driver waits from then on.
        timers.arrived();
        timers.asleep_from(at(1300));
        assert_eq!(timers.fire(at(1900)), at(1300 + 1000 + 50));
        // Nothing arrives: it finds nothing due, and waits again.
        reached.wake(at(1550), || Some(at(1900)));
        reached.asleep_from(at(1550));
        assert_eq!(reached.fire(at(1900)), at(2400), "the application; the driver at 2600");
        // A wake before anything is due is none of the application's.
        reached.wake(at(1800), || Some(at(1900)));
        reached.asleep_from(at(1800));
        assert_eq!(Timers { wakes_every: None, ..reached }.fire(at(1900)), at(1800 + 1000 + 50));
    }
}
