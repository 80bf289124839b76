//! Blocks a thread on a poll function.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crate::Error;
use crate::shared::{Call, Waiter};

/// The timeout of one handle's calls. A clone has its own.
#[derive(Debug)]
pub(super) struct Timeout(AtomicU64);

/// For ever.
const NEVER: u64 = u64::MAX;

impl Timeout {
    pub(super) fn get(&self) -> Option<Duration> {
        match self.0.load(Ordering::Relaxed) {
            NEVER => None,
            nanos => Some(Duration::from_nanos(nanos)),
        }
    }

    pub(super) fn set(&self, timeout: Option<Duration>) {
        let nanos = timeout.and_then(|t| u64::try_from(t.as_nanos()).ok());
        self.0.store(nanos.unwrap_or(NEVER), Ordering::Relaxed);
    }
}

impl Default for Timeout {
    fn default() -> Self {
        Self(AtomicU64::new(NEVER))
    }
}

impl Clone for Timeout {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    static WAKER: Waker = Waker::from(Arc::new(Unpark(std::thread::current())));
}

/// Calls a `poll_` function until it is ready, with the thread asleep in between, for at most
/// `timeout` if given. With a timeout of zero it polls once.
///
/// ```no_run
/// use std::time::Duration;
/// use udccp::blocking::{Connection, wait};
///
/// # fn example(connection: &Connection) -> Result<(), udccp::Error> {
/// wait(Some(Duration::from_secs(1)), |cx| connection.poll_flushed(cx))?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::TimedOut`]; any error of `poll`.
pub fn wait<T>(
    timeout: Option<Duration>,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<Result<T, Error>>,
) -> Result<T, Error> {
    WAKER.with(|waker| {
        let mut cx = Context::from_waker(waker);
        if let Poll::Ready(result) = poll(&mut cx) {
            return result;
        }
        let deadline = timeout.and_then(|t| now().checked_add(t));
        loop {
            // A wake-up before this makes it return at once. A spurious one costs one poll.
            match deadline {
                None => std::thread::park(),
                Some(at) => {
                    let left = at.saturating_duration_since(now());
                    if left.is_zero() {
                        return Err(Error::TimedOut);
                    }
                    std::thread::park_timeout(left);
                }
            }
            if let Poll::Ready(result) = poll(&mut cx) {
                return result;
            }
        }
    })
}

/// The same for a call that removes its waker if it times out.
pub(super) fn wait_for<T, H>(
    timeout: Option<Duration>,
    mut call: Call<'_, H>,
    mut poll: impl FnMut(&H, Waiter<'_>) -> Poll<Result<T, Error>>,
) -> Result<T, Error> {
    wait(timeout, |cx| call.poll(cx, &mut poll))
}

#[expect(clippy::disallowed_methods, reason = "a blocking call owns its timeout")]
pub(super) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_begins_with_the_same_timeout_and_has_its_own() {
        let (first, time) = (Timeout::default(), Some(Duration::from_millis(5)));
        first.set(time);
        let other = first.clone();
        assert_eq!(other.get(), time);
        other.set(None);
        assert_eq!((first.get(), other.get()), (time, None));
    }

    #[test]
    fn waiting_ends_at_the_timeout() {
        let e = wait(Some(Duration::from_millis(5)), |_| Poll::<Result<(), Error>>::Pending);
        assert!(matches!(e, Err(Error::TimedOut)));
    }
}
