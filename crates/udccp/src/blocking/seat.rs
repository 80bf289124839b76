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

/// So long after a reader has left, the socket's thread goes on.
const AWAY: Duration = Duration::from_millis(1);

/// The place of whoever drives a socket.
pub(crate) struct Seat {
    chair: Mutex<Chair>,
    state: Mutex<State>,
    changed: Condvar,
    bell: Arc<Bell>,
    ear: UnixStream,
    /// The thread that drives as a reader, 0 for none.
    reader: AtomicU64,
}

/// What one needs to drive.
struct Chair {
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
    /// The socket's thread waits for the reader to leave.
    is_awaited: bool,
    /// The reader left, and others wait.
    is_handed_back: bool,
    left: Instant,
}

impl Seat {
    pub(super) fn new(shared: &Shared, bell: Arc<Bell>, ear: UnixStream) -> Self {
        let chair = Chair { rx: Receiver::new(&shared.io), turn: Turn::FIRST, errors: false };
        let (state, changed, reader) = (Mutex::default(), Condvar::new(), AtomicU64::new(0));
        Self { chair: Mutex::new(chair), state, changed, bell, ear, reader }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn chair(&self) -> MutexGuard<'_, Chair> {
        self.chair.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drives until nobody needs it any more: the work of the socket's thread.
    pub(super) fn drive(&self, shared: &Shared) {
        loop {
            let mut chair = self.chair();
            while !chair.take_turn(shared) {
                if chair.turn.finished {
                    return;
                }
                chair.wait(shared, &self.ear, None);
            }
            drop(chair);
            self.stand_by(shared);
        }
    }

    /// Leaves the seat to readers for as long as they come.
    fn stand_by(&self, shared: &Shared) {
        let mut state = self.lock();
        (state.is_free, state.left) = (true, shared.clock.now());
        loop {
            if state.has_reader {
                state.is_awaited = true;
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.is_awaited = false;
                continue;
            }
            let until = state.left + AWAY;
            let left = until.saturating_since(shared.clock.now());
            if state.is_handed_back || left.is_zero() {
                break;
            }
            let waited = self.changed.wait_timeout(state, left.to_std());
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        (state.is_free, state.is_handed_back) = (false, false);
    }

    /// Takes the seat as a reader, if it is free.
    fn enter<'a>(&'a self, shared: &'a Shared) -> Option<Seated<'a>> {
        let mut state = self.lock();
        if !state.is_free || state.has_reader {
            return None;
        }
        state.has_reader = true;
        drop(state);
        self.reader.store(this_thread(), Ordering::Relaxed);
        Some(Seated { seat: self, shared })
    }
}

/// A reader in the seat.
struct Seated<'a> {
    seat: &'a Seat,
    shared: &'a Shared,
}

impl Drop for Seated<'_> {
    fn drop(&mut self) {
        self.seat.reader.store(0, Ordering::Relaxed);
        let others_wait = self.shared.has_waiters();
        let mut state = self.seat.lock();
        state.has_reader = false;
        state.left = self.shared.clock.now();
        state.is_handed_back = others_wait;
        if others_wait || state.is_awaited {
            self.seat.changed.notify_one();
        }
    }
}

impl Chair {
    /// Takes one turn; whether it woke a reader and nobody else waits.
    fn take_turn(&mut self, shared: &Shared) -> bool {
        let errors = std::mem::take(&mut self.errors);
        self.turn = shared.turn(&mut self.rx, Receiver::read, errors);
        self.turn.woke_lone_reader && !self.turn.finished
    }

    fn wait(&mut self, shared: &Shared, ear: &UnixStream, until: Option<Instant>) {
        if !self.turn.more {
            self.errors = wait_for_socket(shared, ear, &self.turn, until);
        }
    }
}

impl Wake for Seat {
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
    let Some(seat) = shared.seat().filter(|_| shared.is_at_home()) else {
        return park::wait(timeout, poll);
    };
    let Some(_seated) = seat.enter(shared) else { return park::wait(timeout, poll) };
    let waker = Waker::from(Arc::clone(seat));
    let mut cx = Context::from_waker(&waker);
    let mut chair = seat.chair();
    let until = timeout.map(|timeout| shared.clock.now() + timeout.into());
    loop {
        if let Poll::Ready(result) = poll(&mut cx) {
            return result;
        }
        if until.is_some_and(|until| until <= shared.clock.now()) {
            return Err(Error::TimedOut);
        }
        chair.wait(shared, &seat.ear, until);
        chair.take_turn(shared);
    }
}
