//! Lets a thread that waits for a message drive the socket itself. No other thread then has to be
//! woken to read the message and to pass it on.
//!
//! The socket's thread stands by when it has woken a reader and no other call waits for anything.
//! From then on, readers drive while they wait. The thread drives again when no reader comes, or
//! when a call needs it. [`DrivenBy`], in the endpoint's core, stores who drives.
//!
//! [`DrivenBy`]: crate::shared::DrivenBy

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Wake, Waker};

use udccp_base::Instant;

use super::alarm::LazyAlarm;
use super::bell::{Bell, BellReceiver};
use super::driver::wait_for_socket;
use super::park;
use crate::Error;
use crate::io::Receiver;
use crate::shared::{CallerDriver, Shared, ThreadNumber, Turn};

/// The state with which threads take turns in driving a socket.
pub(crate) struct SharedDriver {
    parts: Mutex<DriverParts>,
    /// The timer on which the socket's thread sleeps while it does not drive.
    alarm: Arc<LazyAlarm>,
    rings: BellReceiver,
    reading: Arc<Reading>,
    /// The waker of readers that drive.
    waker: Waker,
}

/// Wakes the reader that drives.
struct Reading {
    bell: Arc<Bell>,
    /// The number of its thread, 0 for none.
    thread: AtomicU64,
}

/// The parts that the driving thread needs.
struct DriverParts {
    rx: Receiver,
    /// What the last turn left to be done.
    turn: Turn,
    errors: bool,
}

impl SharedDriver {
    pub(super) fn new(
        shared: &Shared,
        alarm: Arc<LazyAlarm>,
        bell: Arc<Bell>,
        rings: BellReceiver,
    ) -> Self {
        let rx = Receiver::new(&shared.io).looking_again();
        let parts = DriverParts { rx, turn: Turn::FIRST, errors: false };
        let reading = Arc::new(Reading { bell, thread: AtomicU64::new(0) });
        let waker = Waker::from(Arc::clone(&reading));
        Self { parts: Mutex::new(parts), alarm, rings, reading, waker }
    }

    fn parts(&self) -> MutexGuard<'_, DriverParts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The socket's thread: drives until the endpoint is finished.
    pub(super) fn drive(&self, shared: &Shared) {
        loop {
            let mut parts = self.parts();
            loop {
                parts.take(|rx, errors| shared.turn_of_thread(rx, errors));
                if parts.turn.finished {
                    return;
                }
                if parts.turn.stands_by {
                    break;
                }
                parts.wait(shared, &self.rings, None, shared.clock.now());
            }
            // A reader that starts to drive waits for these parts.
            drop(parts);
            loop {
                self.alarm.sleep();
                if shared.resume() {
                    break;
                }
            }
        }
    }
}

/// A reader that may drive. Dropping it, even in a panic, lets others drive.
struct Reader<'a> {
    caller_driver: CallerDriver<'a>,
    shared: &'a Shared,
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.shared.leave(&self.caller_driver);
    }
}

impl DriverParts {
    /// Sleeps until there is a reason for a turn.
    fn wait(
        &mut self,
        shared: &Shared,
        rings: &BellReceiver,
        until: Option<Instant>,
        now: Instant,
    ) {
        if !self.turn.more {
            self.errors = wait_for_socket(shared, rings, &self.turn, until, now);
        }
    }

    /// Takes a turn, with [`Shared::turn`] or a variant of it.
    fn take(&mut self, turn: impl FnOnce(&mut Receiver, bool) -> Turn) {
        let errors = std::mem::take(&mut self.errors);
        self.turn = turn(&mut self.rx, errors);
    }
}

impl Wake for Reading {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    /// A driving reader does not wake itself, because it sees its own changes.
    fn wake_by_ref(self: &Arc<Self>) {
        if self.thread.load(Ordering::Relaxed) != ThreadNumber::current().get() {
            self.bell.wake_by_ref();
        }
    }
}

/// Calls `poll`, which waits for a message, until it is ready. Meanwhile it drives the socket if
/// no other thread does, or sleeps until woken. [`Error::TimedOut`] after `timeout`.
pub(super) fn wait_to_read<T>(
    shared: &Shared,
    timeout: Option<std::time::Duration>,
    mut poll: impl FnMut(&Waker, Option<&CallerDriver<'_>>) -> Poll<Result<T, Error>>,
) -> Result<T, Error> {
    // A forked child must not touch any lock of its parent.
    let Some(shared_driver) = shared.shared_driver().filter(|_| shared.is_own_process()) else {
        return park::wait(timeout, |cx| poll(cx.waker(), None));
    };
    let reader = Reader { caller_driver: CallerDriver::new(&shared_driver.reading.thread), shared };
    // Moved here to be dropped before `reader`: its call must not wait when others start to drive.
    let mut poll = poll;
    let (mut parts, mut ends) = (None, None);
    loop {
        if let Poll::Ready(result) = poll(&shared_driver.waker, Some(&reader.caller_driver)) {
            return result;
        }
        // If another thread drives, this one sleeps until it is woken.
        let Some(before_sleep) = reader.caller_driver.before_sleep() else {
            return park::wait(timeout, |cx| poll(cx.waker(), None));
        };
        let now = before_sleep.now;
        let until = *ends.get_or_insert_with(|| timeout.map(|timeout| now + timeout.into()));
        if until.is_some_and(|until| until <= now) {
            return Err(Error::TimedOut);
        }
        let parts = parts.get_or_insert_with(|| shared_driver.parts());
        parts.turn.update(before_sleep);
        parts.wait(shared, &shared_driver.rings, until, now);
        parts.take(|rx, errors| shared.turn(rx, Receiver::read, errors));
    }
}

#[cfg(test)]
mod tests {
    use std::task::Context;
    use std::time::Duration as StdDuration;

    use super::super::park::wait;
    use super::*;
    use crate::shared::{ConnHandle, CurrentDriver, Handle};
    use crate::{Address, EndpointOptions, Options, Outgoing, ServiceCode};

    const SERVICE: ServiceCode = ServiceCode(0x7465_7374);
    const PATIENCE: Option<StdDuration> = Some(StdDuration::from_secs(30));

    fn endpoint() -> Handle {
        let at = "127.0.0.1:0".parse().unwrap();
        let shared = Shared::bind(at, &EndpointOptions::default()).unwrap();
        super::super::driver::prepare(&shared).unwrap();
        Handle::new(shared)
    }

    /// Both ends of a connection, each on an endpoint of its own.
    fn pair() -> (ConnHandle, ConnHandle) {
        let (here, there) = (endpoint(), endpoint());
        let port = there.shared().io.local_addr().port();
        let listener = there.listen(port, vec![SERVICE], &Options::default()).unwrap();
        let peer: Address = there.shared().io.local_addr().into();
        let client = here.connect(peer, SERVICE, &Options::default()).unwrap();
        wait(PATIENCE, |cx| client.poll_connected(cx.into())).unwrap();
        let server = wait(PATIENCE, |cx| listener.poll_accept(cx.into())).unwrap();
        (client, server)
    }

    fn send(from: &ConnHandle, message: &str) {
        let mut slot = Some(Outgoing::new(message.to_owned()));
        wait(PATIENCE, |cx| from.poll_send(cx.into(), &mut slot)).unwrap();
    }

    fn recv(to: &ConnHandle) {
        let mut call = to.call();
        let read = wait_to_read(to.shared(), PATIENCE, |waker, caller_driver| {
            call.poll_from(waker, caller_driver, ConnHandle::poll_recv)
        });
        assert!(read.unwrap().is_some());
    }

    /// Exchanges messages until only a reader of the client's socket drives it. Then calls `look`,
    /// and returns its result if nobody else has driven meanwhile.
    fn with_nobody_driving<T>(
        (client, server): &(ConnHandle, ConnHandle),
        look: impl Fn() -> T,
    ) -> T {
        let is_away = || client.shared().who() == Some(CurrentDriver::Nobody);
        for _ in 0..100_000 {
            send(server, "question");
            recv(client);
            if is_away() {
                let seen = look();
                if is_away() {
                    return seen;
                }
            }
            send(client, "answer");
            recv(server);
            while server.next_len().is_some() {
                recv(server);
            }
        }
        panic!("a reader never drove");
    }

    #[test]
    fn an_answer_of_few_packets_leaves_at_once() {
        let both = pair();
        let waits = || both.0.stats().unwrap().send_queue_packets;
        let left = || {
            with_nobody_driving(&both, || {
                both.0.shared().begin_burst();
                send(&both.0, "first");
                send(&both.0, "second");
                waits() == 0
            })
        };
        // On a busy machine the window may be full because the peer has not acknowledged yet.
        assert!((0..100).any(|_| left()), "the second waits for the thread");
    }

    #[test]
    fn a_burst_and_a_wait_for_something_else_wake_the_thread() {
        let both = pair();
        let client = &both.0;
        let poll = |cx: &mut Context<'_>| client.poll_ended(cx.into());
        let is_called = |call: &dyn Fn()| {
            for _ in 0..100 {
                with_nobody_driving(&both, || ());
                call();
                if client.shared().who() == Some(CurrentDriver::Thread) {
                    return true;
                }
            }
            false
        };
        assert!(is_called(&|| (0..20).for_each(|_| send(client, "burst"))));
        assert!(is_called(&|| drop(wait(Some(StdDuration::ZERO), poll))));
    }

    #[test]
    fn panicking_reader_hands_driving_to_others() {
        let both = pair();
        let (client, server) = &both;
        with_nobody_driving(&both, || ());
        let panics = std::panic::AssertUnwindSafe(|| {
            let mut calls = 0;
            let mut call = client.call();
            wait_to_read(client.shared(), PATIENCE, |waker, caller_driver| {
                calls += 1;
                assert!(calls < 2, "on purpose, while it drives");
                call.poll_from(waker, caller_driver, ConnHandle::poll_recv)
            })
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        for _ in 0..100 {
            send(client, "still here");
            recv(server);
            send(server, "so am I");
            recv(client);
        }
    }
}
