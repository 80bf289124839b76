//! When the timers of a host fire that does not wake up at any instant.

use udccp_base::{Duration, Instant};

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
    /// down, and the difference is waited for from now on, and the slack.
    Epoll { asleep_from: Instant },
}

impl Timers {
    /// As the options say.
    pub(super) fn new(options: &DccpOptions) -> Self {
        let wait = match (options.timers, options.timer_tick) {
            (Some(HostTimers::Epoll), _) => Wait::Epoll { asleep_from: Instant::ZERO },
            (None, Some(tick)) => Wait::Ticks(tick),
            (None, None) => Wait::Exact,
        };
        Self { wait, wakes_every: options.wakes_every }
    }

    /// The host has nothing to do from now on.
    #[inline]
    pub(super) fn asleep_from(&mut self, now: Instant) {
        if let Wait::Epoll { asleep_from } = &mut self.wait {
            *asleep_from = now;
        }
    }

    /// When the host wakes for a timer that is due then.
    #[inline]
    pub(super) fn fire(&self, due: Instant) -> Instant {
        let at = match self.wait {
            Wait::Exact => due,
            Wait::Ticks(tick) => up(due, tick),
            Wait::Epoll { asleep_from } if due <= asleep_from => due,
            Wait::Epoll { asleep_from } => {
                asleep_from + (up(due, MILLISECOND) - down(asleep_from, MILLISECOND)) + SLACK
            }
        };
        self.wakes_every.map_or(at, |every| at.min(up(due, every)))
    }
}

fn up(at: Instant, unit: Duration) -> Instant {
    let units = at.as_nanos().div_ceil(unit.as_nanos());
    Instant::from_nanos(units.saturating_mul(unit.as_nanos()))
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
}
