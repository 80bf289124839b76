//! Lets a thread that waits for a message drive the socket itself, so that no other thread has to
//! be woken to read it, and none to hand it over.
//!
//! The socket's thread steps aside when it has woken a reader, and nobody else waits for anything.
//! While the reader, and others after it, come back for more within a short time, they drive. When
//! they stay away, or others wait, the socket's thread goes on.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use udccp_base::{Duration, Instant};

use super::driver::{Bell, wait_for_socket};
use super::park;
use crate::Error;
use crate::io::Receiver;
use crate::shared::{Shared, Turn};

/// After a reader has stayed away for this long, the socket's thread drives.
const AWAY: Duration = Duration::from_millis(1);

/// What threads share of which one at a time drives a socket.
pub(crate) struct SharedDriver {
    parts: Mutex<DriverParts>,
    state: Mutex<State>,
    changed: Condvar,
    bell: Arc<Bell>,
    wakeups: UnixStream,
    /// The thread that drives as a reader, 0 for none.
    reader: AtomicU64,
}

/// What a thread needs to drive.
struct DriverParts {
    rx: Receiver,
    /// What the last turn left to be done.
    turn: Turn,
    errors: bool,
}

#[derive(Default)]
struct State {
    /// The socket's thread has stepped aside.
    is_free: bool,
    has_reader: bool,
    /// How many readers there were.
    readers: u64,
    /// The socket's thread waits for the reader to leave.
    is_awaited: bool,
    /// The reader left, and others wait.
    is_handed_back: bool,
    left: Instant,
}

impl SharedDriver {
    pub(super) fn new(shared: &Shared, bell: Arc<Bell>, wakeups: UnixStream) -> Self {
        let parts = DriverParts { rx: Receiver::new(&shared.io), turn: Turn::FIRST, errors: false };
        let (state, changed, reader) = (Mutex::default(), Condvar::new(), AtomicU64::new(0));
        Self { parts: Mutex::new(parts), state, changed, bell, wakeups, reader }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn parts(&self) -> MutexGuard<'_, DriverParts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drives until nobody needs it any more: the work of the socket's thread.
    pub(super) fn drive(&self, shared: &Shared) {
        loop {
            let mut parts = self.parts();
            while !parts.take_turn(shared) {
                if parts.turn.finished {
                    return;
                }
                parts.wait(shared, &self.wakeups, None);
            }
            drop(parts);
            self.stand_by(shared);
        }
    }

    /// Leaves the driving to readers for as long as they come.
    fn stand_by(&self, shared: &Shared) {
        let mut state = self.lock();
        (state.is_free, state.left) = (true, shared.clock.now());
        let mut seen = state.readers;
        loop {
            // One that leaves wakes this thread only where it has stayed: those that come and go
            // are to have no more to do than to drive.
            if state.has_reader && state.readers == seen {
                state.is_awaited = true;
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.is_awaited = false;
                continue;
            }
            seen = state.readers;
            let away = shared.clock.now().saturating_since(state.left);
            let left = if state.has_reader { AWAY } else { AWAY.saturating_sub(away) };
            if !state.has_reader && (state.is_handed_back || left.is_zero()) {
                break;
            }
            let waited = self.changed.wait_timeout(state, left.to_std());
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        (state.is_free, state.is_handed_back) = (false, false);
    }

    /// Starts to drive as a reader, if nobody else does.
    fn enter<'a>(&'a self, shared: &'a Shared) -> Option<Driving<'a>> {
        let mut state = self.lock();
        if !state.is_free || state.has_reader {
            return None;
        }
        state.has_reader = true;
        state.readers += 1;
        drop(state);
        self.reader.store(this_thread(), Ordering::Relaxed);
        Some(Driving { shared_driver: self, shared })
    }
}

/// A reader that drives.
struct Driving<'a> {
    shared_driver: &'a SharedDriver,
    shared: &'a Shared,
}

impl Drop for Driving<'_> {
    fn drop(&mut self) {
        self.shared_driver.reader.store(0, Ordering::Relaxed);
        let others_wait = self.shared.has_waiters();
        let mut state = self.shared_driver.lock();
        state.has_reader = false;
        state.left = self.shared.clock.now();
        state.is_handed_back = others_wait;
        let wakes = others_wait || state.is_awaited;
        // Not before: the woken thread would wait for the lock.
        drop(state);
        if wakes {
            self.shared_driver.changed.notify_one();
        }
    }
}

impl DriverParts {
    /// Takes one turn; whether it woke a reader and nobody else waits.
    fn take_turn(&mut self, shared: &Shared) -> bool {
        let errors = std::mem::take(&mut self.errors);
        self.turn = shared.turn(&mut self.rx, Receiver::read, errors);
        self.turn.woke_lone_reader && !self.turn.finished
    }

    fn wait(&mut self, shared: &Shared, wakeups: &UnixStream, until: Option<Instant>) {
        if !self.turn.more {
            self.errors = wait_for_socket(shared, wakeups, &self.turn, until);
        }
    }
}

impl Wake for SharedDriver {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    /// What the reader does itself it sees itself.
    fn wake_by_ref(self: &Arc<Self>) {
        if self.reader.load(Ordering::Relaxed) != this_thread() {
            self.bell.wake_by_ref();
        }
    }
}

/// A number that no other thread has, and not 0.
fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}

/// Calls `poll`, which waits for a message, until it is ready: drives the socket if nobody else
/// does, or sleeps until woken. [`Error::TimedOut`] after `timeout`.
pub(super) fn wait_to_read<T>(
    shared: &Shared,
    timeout: Option<std::time::Duration>,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<Result<T, Error>>,
) -> Result<T, Error> {
    // A forked child must touch no lock of its parent's.
    let Some(shared_driver) = shared.shared_driver().filter(|_| shared.is_at_home()) else {
        return park::wait(timeout, poll);
    };
    let Some(_driving) = shared_driver.enter(shared) else { return park::wait(timeout, poll) };
    let waker = Waker::from(Arc::clone(shared_driver));
    let mut cx = Context::from_waker(&waker);
    let mut parts = shared_driver.parts();
    let until = timeout.map(|timeout| shared.clock.now() + timeout.into());
    loop {
        if let Poll::Ready(result) = poll(&mut cx) {
            return result;
        }
        if until.is_some_and(|until| until <= shared.clock.now()) {
            return Err(Error::TimedOut);
        }
        parts.wait(shared, &shared_driver.wakeups, until);
        parts.take_turn(shared);
    }
}
