//! The timer on which a socket's thread sleeps while other threads drive the socket.

use std::sync::OnceLock;

use udccp_base::Duration;

use crate::shared::Alarm;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
use by_condition::Timer;
#[cfg(any(target_os = "linux", target_os = "android"))]
use by_descriptor::Timer;

/// A timer that is created when first needed. A socket that no call waits on needs none.
#[derive(Debug, Default)]
pub(super) struct LazyAlarm(OnceLock<Option<Timer>>);

impl LazyAlarm {
    /// The timer; `None` if the system has none left.
    fn timer(&self) -> Option<&Timer> {
        self.0.get_or_init(Timer::new).as_ref()
    }

    /// Sleeps until it expires.
    pub(super) fn sleep(&self) {
        if let Some(timer) = self.timer() {
            timer.sleep();
        }
    }
}

impl Alarm for LazyAlarm {
    fn is_there(&self) -> bool {
        self.timer().is_some()
    }

    fn set(&self, after: Duration) {
        if let Some(timer) = self.timer() {
            timer.set(after);
        }
    }

    fn ring(&self) {
        self.set(Duration::ZERO);
    }
}

/// A timer of Linux. Setting it wakes no thread.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod by_descriptor {
    use std::os::fd::OwnedFd;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use udccp_base::Duration;

    #[derive(Debug)]
    pub(super) struct Timer(OwnedFd);

    impl Timer {
        pub(super) fn new() -> Option<Self> {
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).ok().map(Self)
        }

        pub(super) fn set(&self, after: Duration) {
            // Zero would disarm it.
            let after = after.max(Duration::from_nanos(1)).to_std();
            let it_value = Timespec {
                tv_sec: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(after.subsec_nanos()) as _,
            };
            let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
            let once = Itimerspec { it_interval, it_value };
            let _ = timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once);
        }

        pub(super) fn sleep(&self) {
            // A signal that interrupts the read is harmless: the thread checks, and sleeps again.
            let _ = rustix::io::read(&self.0, &mut [0; 8]);
        }
    }
}

/// A timer for any system. Setting it wakes the thread, which sleeps again.
#[cfg(any(test, not(any(target_os = "linux", target_os = "android"))))]
mod by_condition {
    use std::sync::{Condvar, Mutex, PoisonError};
    use std::time::Instant;

    use udccp_base::Duration;

    #[derive(Debug)]
    pub(super) struct Timer {
        at: Mutex<Option<Instant>>,
        changed: Condvar,
    }

    #[expect(clippy::disallowed_methods, reason = "a socket driver owns the clock")]
    fn now() -> Instant {
        Instant::now()
    }

    impl Timer {
        pub(super) fn new() -> Option<Self> {
            Some(Self { at: Mutex::new(None), changed: Condvar::new() })
        }

        pub(super) fn set(&self, after: Duration) {
            let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
            *at = now().checked_add(after.to_std());
            self.changed.notify_one();
        }

        pub(super) fn sleep(&self) {
            let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                let left = at.map(|at| at.saturating_duration_since(now()));
                at = match left {
                    Some(left) if left.is_zero() => break,
                    Some(left) => {
                        let waited = self.changed.wait_timeout(at, left);
                        waited.unwrap_or_else(PoisonError::into_inner).0
                    }
                    None => self.changed.wait(at).unwrap_or_else(PoisonError::into_inner),
                };
            }
            *at = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration as StdDuration;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);
    const PATIENCE: StdDuration = StdDuration::from_secs(30);

    /// A thread that sleeps repeatedly and reports each time it wakes.
    macro_rules! wakes_when_it_should {
        ($timer:expr) => {{
            let timer = std::sync::Arc::new($timer);
            let (woken, wakes) = channel();
            let theirs = std::sync::Arc::clone(&timer);
            let _thread = std::thread::Builder::new().spawn(move || {
                loop {
                    theirs.sleep();
                    if woken.send(()).is_err() {
                        return;
                    }
                }
            });
            let woke = |within| wakes.recv_timeout(within).is_ok();
            for _ in 0..100 {
                timer.set(LONG);
                timer.set(Duration::ZERO);
                assert!(woke(PATIENCE), "rung");
                timer.set(Duration::from_micros(200));
                assert!(woke(PATIENCE), "after a time");
            }
            timer.set(Duration::from_millis(30));
            timer.set(LONG);
            assert!(!woke(StdDuration::from_millis(60)), "the time was put off");
            drop(wakes);
            timer.set(Duration::ZERO);
        }};
    }

    #[test]
    fn alarm_goes_off_once_at_the_time_set_last() {
        wakes_when_it_should!(Timer::new().unwrap());
    }

    #[test]
    fn portable_alarm_goes_off_once_at_the_time_set_last() {
        wakes_when_it_should!(by_condition::Timer::new().unwrap());
    }
}
