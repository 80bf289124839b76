//! The common part of the async and the blocking sockets: the endpoint behind a lock, the calls on
//! it as poll functions, and one turn of the driver.

#[cfg(test)]
mod blocked;
mod caller_driver;
mod calls;
mod clock;
mod conns;
mod core;
mod driven_by;
mod driver;
mod fitted;
mod fragments;
mod handle;
#[cfg(test)]
mod handover;
mod invite;
mod lifetime;
mod log;
mod raw;
mod receiving;
mod sending;
mod shutdown;
mod signals;
mod stun;
mod waiters;
mod wakes;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};

use udccp_base::Instant;
use udccp_proto::{Endpoint, EndpointConfig};

pub(crate) use self::caller_driver::{BeforeSleep, CallerDriver};
pub(crate) use self::clock::Clock;
use self::core::Core;
#[cfg(test)]
pub(crate) use self::driven_by::CurrentDriver;
pub(crate) use self::driven_by::{Alarm, DrivenBy, ThreadNumber};
use self::fitted::Fitted;
pub(crate) use self::handle::{Call, ConnHandle, Handle, ListenHandle};
pub(crate) use self::waiters::{Place, Waiter, Waiting};
use crate::blocking::SharedDriver;
use crate::io::{Claims, Io, Receiver};
use crate::process::{self, Open, Process};
use crate::{EndpointOptions, Error};

/// One socket and the endpoint on it.
pub(crate) struct Shared {
    pub(crate) io: Io,
    pub(crate) clock: Clock,
    core: Mutex<Core>,
    starter: Mutex<Option<Starter>>,
    /// For a socket with a thread: lets readers drive instead of it.
    shared_driver: OnceLock<Arc<SharedDriver>>,
    /// The process that opened it. A forked child has a copy of all this, and must not use it.
    process: Process,
    /// Settings that its connections share.
    fitted: Fitted,
    /// The longest linger time of any of its connections.
    linger_nanos: AtomicU64,
    /// CCIDs that its connections can use.
    pub(crate) ccids: Vec<u8>,
    /// Whether the end of the process or runtime closes connections.
    closes_at_exit: bool,
    /// Must be dropped last.
    _open: Open,
}

/// The function that starts the driver.
type Starter = Box<dyn FnOnce(&Arc<Shared>) -> Result<(), Error> + Send>;

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("io", &self.io).finish_non_exhaustive()
    }
}

/// What a turn of the driver leaves to be done.
#[derive(Debug)]
pub(crate) struct Turn {
    /// The socket may hold more.
    pub(crate) more: bool,
    /// Come back after the woken tasks have run.
    pub(crate) holds_acks: bool,
    /// Whether the socket's thread leaves the next turns to readers.
    pub(crate) stands_by: bool,
    /// Also wait for room to send.
    pub(crate) blocked: bool,
    /// Come back at this time at the latest.
    pub(crate) deadline: Option<Instant>,
    /// Whether the driver is no longer needed.
    pub(crate) finished: bool,
}

impl Turn {
    /// Nothing more is to be done by this process.
    const LAST: Self = Self { finished: true, ..Self::FIRST };

    /// Before the first turn: it has to follow at once.
    pub(crate) const FIRST: Self = Self {
        more: true,
        holds_acks: false,
        stands_by: false,
        blocked: false,
        deadline: None,
        finished: false,
    };

    /// Adds the work that a call has left since.
    pub(crate) fn update(&mut self, before_sleep: BeforeSleep) {
        self.more |= before_sleep.more;
        self.holds_acks = before_sleep.holds_acks;
        self.blocked = before_sleep.blocked;
        self.deadline = before_sleep.deadline;
    }
}

impl Shared {
    /// Opens the socket. The caller has to start a driver next.
    pub(crate) fn bind(addr: SocketAddr, options: &EndpointOptions) -> Result<Arc<Self>, Error> {
        let io = Io::open(addr, options).map_err(|e| Error::open(addr, options.raw_ip, e))?;
        Self::on(io, options)
    }

    /// Uses a UDP socket that the caller has bound.
    pub(crate) fn adopt(
        socket: std::net::UdpSocket,
        options: &EndpointOptions,
    ) -> Result<Arc<Self>, Error> {
        let io_error = |source| Error::Io { what: "cannot use this UDP socket", source };
        Self::on(Io::adopt(socket, options).map_err(io_error)?, options)
    }

    fn on(io: Io, options: &EndpointOptions) -> Result<Arc<Self>, Error> {
        tracing::debug!(
            local = %io.local_addr(),
            raw = io.is_raw(),
            gso_segments = io.max_gso_segments(),
            gro_segments = io.gro_segments(),
            recv_buffer_bytes = io.recv_buffer_bytes(),
            "socket open"
        );
        let mut secret = [0; 32];
        match options.secret {
            Some(given) => secret = given,
            //= 4340-3.1-1
            None => getrandom::fill(&mut secret).map_err(|e| Error::Io {
                what: "cannot draw a random secret",
                source: io::Error::other(e),
            })?,
        }
        let mut config = EndpointConfig::new(secret);
        config.ephemeral_ports = options.ephemeral_ports;
        config.max_connections = options.max_connections;
        config.max_timewaits = options.max_timewaits;
        config.ccids = options.ccids.clone();
        config.out_of_the_blue_resets_per_sec = options.out_of_the_blue_resets_per_sec;
        let quiet_ends = udccp_base::Instant::ZERO + options.quiet_time.into();
        config.quiet_until = (!options.quiet_time.is_zero()).then_some(quiet_ends);
        let claims = || Claims::new(io.local_addr().is_ipv4(), options.answer_for_host);
        let claims = io.is_raw().then(claims);
        let ccids = config.ccids.numbers().collect();
        let core = Core::new(Endpoint::new(config), claims, options.ephemeral_ports);
        let core = Mutex::new(core);
        let shared = Arc::new(Self {
            io,
            clock: Clock::start(),
            core,
            starter: Mutex::new(None),
            shared_driver: OnceLock::new(),
            process: Process::current(),
            fitted: Fitted::default(),
            linger_nanos: AtomicU64::new(0),
            ccids,
            closes_at_exit: options.close_at_exit,
            _open: Open::new(),
        });
        process::remember(&shared);
        Ok(shared)
    }

    /// Sets the function that starts the driver, which the first listener or connection calls. A
    /// client that connects between bind and listen waits in the kernel's buffer and is not
    /// refused.
    pub(crate) fn set_starter(
        &self,
        starter: impl FnOnce(&Arc<Self>) -> Result<(), Error> + Send + 'static,
    ) {
        *self.starter.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(starter));
    }

    /// Lets readers drive too.
    pub(crate) fn set_shared_driver(&self, shared_driver: Arc<SharedDriver>) {
        let _ = self.shared_driver.set(shared_driver);
    }

    /// The shared driver, if readers may drive.
    pub(crate) fn shared_driver(&self) -> Option<&Arc<SharedDriver>> {
        self.shared_driver.get()
    }

    /// Allows the socket's thread to stand by; it then sleeps on `alarm`.
    pub(crate) fn set_alarm(&self, alarm: Arc<dyn Alarm>) {
        self.lock().driver.driven_by = Some(DrivenBy::new(alarm));
    }

    /// Who drives.
    #[cfg(test)]
    pub(crate) fn who(&self) -> Option<CurrentDriver> {
        self.lock().driver.driven_by.as_ref().map(DrivenBy::who)
    }

    /// Makes further messages part of a burst.
    #[cfg(test)]
    pub(crate) fn begin_burst(&self) {
        let now = self.clock.now();
        self.lock().begin_burst(now);
    }

    /// Whether any task waits for anything.
    #[cfg(test)]
    pub(crate) fn has_waiters(&self) -> bool {
        self.lock().has_waiters()
    }

    /// The calling thread stops driving, if it does.
    pub(crate) fn leave(&self, caller_driver: &CallerDriver<'_>) {
        if caller_driver.drives() {
            let mut core = self.lock();
            caller_driver.leave(&mut core, self.clock.now());
        }
    }

    /// The socket's thread has woken up from standing by. Returns whether it has to drive.
    pub(crate) fn resume(&self) -> bool {
        let mut core = self.lock();
        let now = self.clock.now();
        core.driver.driven_by.as_mut().is_none_or(|driven_by| driven_by.resume(now))
    }

    /// Starts the driver if that has not been done yet.
    fn start(self: &Arc<Self>) -> Result<(), Error> {
        self.check_process()?;
        let starter = self.starter.lock().unwrap_or_else(PoisonError::into_inner).take();
        starter.map_or(Ok(()), |start| start(self))
    }

    /// Whether this is the process that opened the socket.
    pub(crate) fn is_own_process(&self) -> bool {
        self.process.is_current()
    }

    /// Fails in a forked child, before it touches a lock that a thread of its parent may hold.
    fn check_process(&self) -> Result<(), Error> {
        if self.is_own_process() { Ok(()) } else { Err(Error::Forked) }
    }

    /// Sets the waker for work that only the driver can do.
    pub(crate) fn set_driver(&self, waker: Waker) {
        self.lock().driver.waker = Some(waker);
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        // A panic elsewhere leaves the endpoint between two calls, which is a valid state.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change to the endpoint. Tasks are woken after the lock is released. The only error
    /// is [`Error::Forked`].
    fn with<R>(&self, change: impl FnOnce(&mut Core, &Io, Instant) -> R) -> Result<R, Error> {
        self.with_then(change, |_, _, _| ())
    }

    /// The same, followed by `then`, which runs after the change is settled.
    fn with_then<R>(
        &self,
        change: impl FnOnce(&mut Core, &Io, Instant) -> R,
        then: impl FnOnce(&mut Core, Instant, &R),
    ) -> Result<R, Error> {
        self.check_process()?;
        let mut core = self.lock();
        // Read under the lock, so that time never goes backwards for the endpoint.
        let now = self.clock.now();
        let result = change(&mut core, &self.io, now);
        let wake = core.settle(now);
        then(&mut core, now, &result);
        drop(core);
        wake.wake();
        Ok(result)
    }

    /// The same for calls that wait at a place.
    fn poll_at<T>(
        &self,
        place: Place,
        waiter: Waiter<'_>,
        change: impl FnOnce(&mut Core, &Io, Instant) -> Poll<Result<T, Error>>,
    ) -> Poll<Result<T, Error>> {
        let change = |core: &mut Core, io: &Io, now| {
            let before = waiter.number();
            if let Some(call) = waiter.call.filter(|_| before.is_none()) {
                call.store(core.next_call().get(), Ordering::Relaxed);
            }
            let result = change(core, io, now);
            if let Some(caller_driver) = waiter.caller_driver.filter(|_| result.is_pending()) {
                caller_driver.start_driving(core);
            }
            // A call that is answered at once has not waited.
            let answered = before.filter(|_| result.is_ready());
            (result, answered.and_then(|call| core.waiting_at(place)?.remove(call)))
        };
        let changed = self.with_then(change, |core, now, (result, _)| {
            if let Some(caller_driver) = waiter.caller_driver {
                caller_driver.end_call(core, now, result.is_pending());
            }
        });
        // The task is dropped here, without the lock.
        changed.map_or_else(|e| Poll::Ready(Err(e)), |(result, _task)| result)
    }

    /// Removes a task that waits at a place.
    pub(crate) fn remove_waker(&self, place: Place, task: &Waker) {
        drop(self.with(|core, _, _| core.waiting_at(place)?.forget(task)));
    }

    /// One turn of the driver: processes everything that arrived, then sends everything that may be
    /// sent, so that one acknowledgement answers a batch. `read` reads once.
    pub(crate) fn turn(
        &self,
        rx: &mut Receiver,
        read: impl FnMut(&mut Receiver, &Io) -> io::Result<usize>,
        check_errors: bool,
    ) -> Turn {
        self.turn_with(rx, read, check_errors, |_, _| false)
    }

    /// The same for the socket's thread, which stands by afterwards if a reader may drive.
    pub(crate) fn turn_of_thread(&self, rx: &mut Receiver, check_errors: bool) -> Turn {
        self.turn_with(rx, Receiver::read, check_errors, Core::stand_by)
    }

    fn turn_with(
        &self,
        rx: &mut Receiver,
        mut read: impl FnMut(&mut Receiver, &Io) -> io::Result<usize>,
        check_errors: bool,
        stand_by: impl FnOnce(&mut Core, Instant) -> bool,
    ) -> Turn {
        if !self.is_own_process() {
            return Turn::LAST;
        }
        rx.let_gather(|| self.clock.now());
        let mut arrived = read(rx, &self.io);
        let mut core = self.lock();
        let now = self.clock.now();
        let mut more;
        loop {
            match arrived {
                Ok(count) => {
                    core.note_backlog(&self.io, rx.kernel_bytes(count));
                    rx.deliver(&self.io, count, |d| core.take_train(now, d));
                    more = rx.was_full(count);
                }
                Err(ref e) if e.kind() == io::ErrorKind::WouldBlock => more = false,
                Err(_) => {
                    core.take_reports(&self.io, now);
                    more = true;
                }
            }
            if !core.continues_reading(more) {
                break;
            }
            arrived = read(rx, &self.io);
        }
        if check_errors {
            core.take_reports(&self.io, now);
        }
        core.begin_turn(now);
        core.dispatch_arrived(now);
        core.blocked = false;
        core.flush(&self.io, now);
        let (wake, deadline) = core.end_turn();
        let stands_by = !more && wake.len() == 1 && stand_by(&mut core, now);
        let (blocked, holds_acks) = (core.blocked, core.holds_acks());
        let finished = core.is_finished();
        let turn = Turn { more, holds_acks, stands_by, blocked, deadline, finished };
        drop(core);
        wake.wake();
        turn
    }

    /// Whether acknowledgements still wait after the tasks that the last turn woke have run.
    #[cfg(feature = "tokio")]
    pub(crate) fn still_holds_acks(&self) -> bool {
        self.lock().endpoint.holds_acks()
    }

    /// The driver has ended, so nobody may wait for it. Open connections are closed in the
    /// background.
    fn stop(self: &Arc<Self>) {
        if !self.is_own_process() {
            return;
        }
        let mut core = self.lock();
        let wake = core.stop();
        let is_busy = self.closes_at_exit && !core.is_idle();
        drop(core);
        wake.wake();
        if is_busy && self.spawn_close_thread(()).is_err() {
            let _ = self.with(|core, io, now| {
                core.endpoint.abort_all(now);
                core.flush(io, now);
            });
        }
    }
}

/// Held by a driver as long as it runs. Dropping it, in whatever way it ends, stops the endpoint.
pub(crate) struct Running(pub(crate) Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.stop();
    }
}
