//! Every order in which threads can pass on the driving of a socket: its own thread, two that read,
//! and one that sends and waits. Each step is one critical section, one sleep or one wake-up of the
//! real code, whose parts under the lock ([`Core`]) are run. The network, the socket and time are
//! simulated.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use udccp_base::{Duration, Instant};
use udccp_proto::{ConnectOptions, ConnectionConfig, ConnectionId, Endpoint, EndpointConfig};

use super::Turn;
use super::caller_driver::CallerDriver;
use super::core::Core;
use super::driven_by::{Alarm, CurrentDriver, DrivenBy, ThreadNumber};
use super::waiters::{Conn, WaitFor, Waiter};

const READERS: usize = 2;

/// Where the real code stores who drives. The model uses [`Marks::now_runs`] instead.
static SOMEBODY: AtomicU64 = AtomicU64::new(0);

/// The flags that sleepers check.
#[derive(Debug, Default)]
struct Marks {
    /// When the alarm goes off, in ns from now.
    alarm: Mutex<Option<Duration>>,
    /// Whether the alarm has gone off, and the socket's thread has not noticed yet.
    gone_off: AtomicBool,
    /// The bell of the thread that sleeps on the socket.
    bell: AtomicBool,
    /// Woken tasks among the parked readers and the waiter for something else: one bit each.
    woken: AtomicU8,
    /// The actor of the current step.
    now_runs: AtomicU8,
}

impl Alarm for Marks {
    fn is_there(&self) -> bool {
        true
    }

    fn set(&self, after: Duration) {
        *self.alarm.lock().unwrap() = Some(after);
        self.gone_off.store(false, Ordering::Relaxed);
    }

    fn ring(&self) {
        self.set(Duration::ZERO);
    }
}

/// Tasks: 0 is the driver's bell, 1 and 2 are parked readers, 3 waits for something else, 4 and 5
/// are driving readers.
struct Task(u8, Arc<Marks>);

const BELL: u8 = 0;
const OTHER: u8 = 3;
const DRIVING: u8 = 4;

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        match self.0 {
            BELL => self.1.bell.store(true, Ordering::Relaxed),
            n @ 1..=OTHER => _ = self.1.woken.fetch_or(1 << n, Ordering::Relaxed),
            // A reader sees its own changes without a wake-up.
            n if n - DRIVING == self.1.now_runs.load(Ordering::Relaxed) => {}
            _ => self.1.bell.store(true, Ordering::Relaxed),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum OwnThread {
    Turn,
    /// Asleep on the socket and the bell.
    Socket,
    /// Asleep on the alarm.
    Alarm,
    Resume,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reader {
    /// Is busy elsewhere; its next step is to read.
    Away,
    /// Drives, and checks whether there is a message.
    Poll,
    Socket,
    Turn,
    /// Its wait has timed out.
    Leave,
    Park,
    Parked,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Other {
    /// Leaves work to the driver.
    Sends,
    /// Starts to wait for something other than a message.
    Waits,
    Waiting,
    Done,
}

/// The actor of the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    OwnThread,
    Reader(usize),
    Other,
    /// A packet with a message arrives.
    Packet,
    /// Time passes until the alarm goes off.
    Alarm,
    /// The wait of the second reader, which sleeps as a driver, times out.
    Patience,
}

struct World {
    core: Core,
    id: ConnectionId,
    now: Instant,
    marks: Arc<Marks>,
    tasks: Vec<Waker>,
    own: OwnThread,
    readers: [Reader; READERS],
    /// Whether the second reader gives up after one more poll.
    is_impatient: bool,
    /// The readers that drive.
    caller_drivers: [Option<CallerDriver<'static>>; READERS],
    /// Number of further reads of each reader.
    reads: [u8; READERS],
    other: Other,
    /// Tasks that each actor wakes next, outside the lock.
    to_wake: [Vec<Waker>; READERS + 2],
    turn: Turn,
    /// Numbers of packets still to come, packets in the socket, and messages to be read.
    packets: (u8, u8, u8),
    /// Whether work was left to the driver.
    unsent: bool,
    /// Whether a driving reader may once more leave work, as one whose acknowledgement the socket
    /// does not accept.
    may_block: bool,
}

impl World {
    fn new(other: Other) -> Self {
        let marks = Arc::new(Marks::default());
        let mut core = Core::new(Endpoint::new(EndpointConfig::new([1; 32])), None, (1024, 2048));
        let to = |port| std::net::SocketAddr::from(([127, 0, 0, 1], port));
        let options = ConnectOptions {
            local: to(1),
            local_port: None,
            remote: to(2),
            remote_port: 2,
            service: udccp_wire::ServiceCode(1),
            config: ConnectionConfig::default().into(),
        };
        let id = core.endpoint.connect(Instant::ZERO, options).unwrap();
        core.conns.insert(id, Conn::default());
        let task = |n| Waker::from(Arc::new(Task(n, Arc::clone(&marks))));
        let tasks: Vec<_> = (0..=DRIVING + 1).map(task).collect();
        core.driver.waker = Some(tasks[usize::from(BELL)].clone());
        core.driver.driven_by = Some(DrivenBy::new(Arc::<Marks>::clone(&marks)));
        Self {
            core,
            id,
            now: Instant::ZERO,
            marks,
            tasks,
            own: OwnThread::Turn,
            readers: [Reader::Away; READERS],
            is_impatient: false,
            caller_drivers: [None, None],
            reads: [2, 1],
            other,
            to_wake: Default::default(),
            turn: Turn { more: false, ..Turn::FIRST },
            packets: (2, 0, 0),
            unsent: false,
            may_block: true,
        }
    }

    fn driven_by(&mut self) -> &mut DrivenBy {
        self.core.driver.driven_by.as_mut().unwrap()
    }

    fn actor(step: Step) -> usize {
        match step {
            Step::Reader(n) => n,
            Step::Patience => 1,
            Step::Other => READERS,
            _ => READERS + 1,
        }
    }

    fn is_ringing(&self) -> bool {
        self.marks.bell.load(Ordering::Relaxed)
    }

    fn is_woken(&self, task: u8) -> bool {
        self.marks.woken.load(Ordering::Relaxed) & 1 << task != 0
    }

    /// Whether this step is possible.
    fn is_enabled(&self, step: Step) -> bool {
        if matches!(step, Step::OwnThread | Step::Reader(_) | Step::Other)
            && !self.to_wake[Self::actor(step)].is_empty()
        {
            return true;
        }
        let on_socket = self.packets.1 > 0 || self.is_ringing();
        match step {
            Step::OwnThread => match self.own {
                OwnThread::Turn | OwnThread::Resume => true,
                OwnThread::Socket => on_socket,
                OwnThread::Alarm => self.marks.gone_off.load(Ordering::Relaxed),
            },
            Step::Reader(n) => match self.readers[n] {
                Reader::Socket => on_socket,
                Reader::Parked => self.is_woken(1 + n as u8),
                Reader::Done => false,
                _ => true,
            },
            Step::Other => match self.other {
                Other::Waiting => self.is_woken(OTHER),
                Other::Done => false,
                _ => true,
            },
            Step::Packet => self.packets.0 > 0,
            Step::Alarm => self.marks.alarm.lock().unwrap().is_some(),
            Step::Patience => self.readers[1] == Reader::Socket,
        }
    }

    fn take(&mut self, step: Step) {
        let actor = Self::actor(step);
        self.marks.now_runs.store(actor as u8, Ordering::Relaxed);
        ThreadNumber::pretend(1000 + actor as u64);
        if !matches!(step, Step::Packet | Step::Alarm) && !self.to_wake[actor].is_empty() {
            return self.to_wake[actor].remove(0).wake();
        }
        match step {
            Step::OwnThread => self.own_thread(),
            Step::Reader(n) => self.reader(n),
            Step::Other => self.other(),
            Step::Packet => {
                self.packets.0 -= 1;
                self.packets.1 += 1;
            }
            Step::Alarm => {
                let after = self.marks.alarm.lock().unwrap().take().unwrap();
                self.now += after;
                self.marks.gone_off.store(true, Ordering::Relaxed);
            }
            Step::Patience => {
                self.is_impatient = true;
                self.readers[1] = Reader::Turn;
            }
        }
    }

    /// A turn, as in [`super::Shared::turn`].
    fn take_turn(&mut self, actor: usize, stand_by: bool) {
        let core = &mut self.core;
        let arrived = std::mem::take(&mut self.packets.1);
        self.packets.2 += arrived;
        core.begin_turn(self.now);
        if arrived > 0 {
            let woken = core.wake.len();
            core.conns.get_mut(self.id).unwrap().waiting.wake(WaitFor::Message, &mut core.wake);
            core.readers_woken += core.wake.len() - woken;
        }
        // What the others wait for happens in a turn.
        core.stun.readers.wake_all(&mut core.wake);
        self.unsent = false;
        let (wake, deadline) = core.end_turn();
        let stands_by = stand_by && wake.len() == 1 && core.stand_by(self.now);
        self.turn = Turn { more: false, stands_by, deadline, ..Turn::FIRST };
        self.to_wake[actor] = wake.tasks().collect();
    }

    fn own_thread(&mut self) {
        self.own = match self.own {
            OwnThread::Turn => {
                self.take_turn(READERS + 1, true);
                if self.turn.stands_by { OwnThread::Alarm } else { OwnThread::Socket }
            }
            OwnThread::Socket => {
                self.marks.bell.store(false, Ordering::Relaxed);
                OwnThread::Turn
            }
            OwnThread::Alarm => {
                self.marks.gone_off.store(false, Ordering::Relaxed);
                OwnThread::Resume
            }
            OwnThread::Resume => {
                let now = self.now;
                if self.driven_by().resume(now) { OwnThread::Turn } else { OwnThread::Alarm }
            }
        };
    }

    /// Reads a message if there is one, or registers a task, and `settle`s as each call does. A
    /// reader that may drive passes a `CallerDriver`, as in [`super::Shared::poll_at`].
    fn poll(&mut self, n: usize, task: u8, caller_driver: Option<&CallerDriver<'_>>) -> bool {
        let is_there = self.packets.2 > 0;
        let call = AtomicU32::new(n as u32 + 1);
        let waiter =
            Waiter { waker: &self.tasks[usize::from(task)], call: Some(&call), caller_driver };
        let waiting = &mut self.core.conns.get_mut(self.id).unwrap().waiting;
        if is_there {
            drop(waiting.remove(waiter.number().unwrap()));
            self.packets.2 -= 1;
            self.reads[n] -= 1;
        } else {
            waiting.add(WaitFor::Message, waiter);
            let may_drive = caller_driver.is_some_and(|s| s.drives() || self.core.driver.is_away());
            if may_drive && std::mem::take(&mut self.may_block) {
                self.leave_work();
            }
            caller_driver
                .into_iter()
                .for_each(|caller_driver| caller_driver.start_driving(&mut self.core));
        }
        self.to_wake[n] = self.core.settle(self.now).tasks().collect();
        if let Some(caller_driver) = caller_driver {
            caller_driver.end_call(&mut self.core, self.now, !is_there);
        }
        is_there
    }

    fn done_or_away(&self, n: usize) -> Reader {
        if self.reads[n] == 0 { Reader::Done } else { Reader::Away }
    }

    /// As in `wait_to_read` of the blocking sockets.
    fn reader(&mut self, n: usize) {
        let task = n as u8;
        let reader = self.readers[n];
        self.readers[n] = match reader {
            Reader::Away | Reader::Poll => {
                let caller_driver =
                    self.caller_drivers[n].take().unwrap_or_else(|| CallerDriver::new(&SOMEBODY));
                if self.poll(n, DRIVING + task, Some(&caller_driver)) {
                    assert!(!caller_driver.drives(), "it leaves once");
                    self.done_or_away(n)
                } else if let Some(before_sleep) = caller_driver.before_sleep() {
                    self.turn.update(before_sleep);
                    self.caller_drivers[n] = Some(caller_driver);
                    if n == 1 && self.is_impatient {
                        Reader::Leave
                    } else if self.turn.more {
                        Reader::Turn
                    } else {
                        Reader::Socket
                    }
                } else {
                    Reader::Park
                }
            }
            Reader::Socket => {
                self.marks.bell.store(false, Ordering::Relaxed);
                Reader::Turn
            }
            Reader::Turn => {
                self.take_turn(n, false);
                Reader::Poll
            }
            Reader::Leave => {
                let waiting = &mut self.core.conns.get_mut(self.id).unwrap().waiting;
                drop(waiting.remove(NonZeroU32::new(n as u32 + 1).unwrap()));
                let caller_driver = self.caller_drivers[n].take().unwrap();
                caller_driver.leave(&mut self.core, self.now);
                self.reads[n] = 0;
                Reader::Done
            }
            Reader::Park if self.poll(n, 1 + task, None) => self.done_or_away(n),
            Reader::Park => Reader::Parked,
            Reader::Parked => {
                self.marks.woken.fetch_and(!(1 << (1 + task)), Ordering::Relaxed);
                Reader::Park
            }
            Reader::Done => Reader::Done,
        };
    }

    fn leave_work(&mut self) {
        self.core.request_driver();
        self.unsent = true;
    }

    /// A call that leaves work, or one that waits for something other than a message.
    fn other(&mut self) {
        self.other = match self.other {
            Other::Sends => {
                self.leave_work();
                Other::Done
            }
            Other::Waits => {
                let waker = &self.tasks[usize::from(OTHER)];
                self.core
                    .stun
                    .readers
                    .add(WaitFor::Other, Waiter { waker, call: None, caller_driver: None });
                Other::Waiting
            }
            _ => Other::Done,
        };
        self.to_wake[READERS] = self.core.settle(self.now).tasks().collect();
    }

    /// Checks the invariants, after each step.
    fn check(&self) {
        let drives = |reader: &&Reader| {
            matches!(reader, Reader::Poll | Reader::Socket | Reader::Turn | Reader::Leave)
        };
        let readers = self.readers.iter().filter(drives).count();
        let own = matches!(self.own, OwnThread::Turn | OwnThread::Socket);
        assert!(readers + usize::from(own) <= 1, "two drive");
        let alarm = *self.marks.alarm.lock().unwrap();
        let is_busy = |step| match step {
            // It may never come back.
            Step::Reader(n) if self.readers[n] == Reader::Away => !self.to_wake[n].is_empty(),
            step => self.is_enabled(step),
        };
        let actors = [Step::OwnThread, Step::Reader(0), Step::Reader(1), Step::Other];
        if alarm == Some(Duration::ZERO) || actors.into_iter().any(is_busy) {
            return;
        }
        // All threads sleep.
        assert!(!self.unsent, "what was left to the driver waits");
        let parked = self.readers.contains(&Reader::Parked);
        assert!(!parked || self.packets.2 == 0, "a message waits, and its reader was not woken");
        let on_socket = own || self.readers.contains(&Reader::Socket);
        assert!(on_socket || alarm.is_some(), "nobody drives, and nobody will");
        let waits = parked || self.other == Other::Waiting;
        assert!(!waits || on_socket, "somebody waits, and nobody drives");
    }

    /// Everything that affects later steps, except for how long the alarm takes.
    fn key(&self) -> impl std::hash::Hash + Eq + use<> {
        let driver = &self.core.driver;
        let driven_by = driver.driven_by.as_ref().unwrap();
        let conn = self.core.conns.get(self.id).unwrap();
        let who = match driven_by.who() {
            CurrentDriver::Thread => 0,
            CurrentDriver::Nobody => 1,
            CurrentDriver::Caller(number) => number.get(),
        };
        let waiting = format!(
            "{:?}{:?}",
            self.positions(&conn.waiting.list(WaitFor::Message)),
            self.positions(&self.core.stun.readers.list(WaitFor::Other))
        );
        let waking = format!("{:?}", self.to_wake.each_ref().map(|list| self.positions(list)));
        let marks = &self.marks;
        let marks = (
            is_zero(*marks.alarm.lock().unwrap()),
            marks.gone_off.load(Ordering::Relaxed),
            marks.bell.load(Ordering::Relaxed),
            marks.woken.load(Ordering::Relaxed),
        );
        let left = (self.packets, self.unsent, self.may_block, self.is_impatient);
        let actors = (self.own, self.readers, self.reads, self.other, left);
        let driver =
            (who, is_zero(driven_by.alarm_in(self.now)), driver.notified, driver.armed.is_some());
        (driver, waiting, waking, marks, actors, self.turn.more, self.core.readers_woken)
    }

    fn positions(&self, list: &[Waker]) -> Vec<Option<usize>> {
        list.iter().map(|w| self.tasks.iter().position(|task| task.will_wake(w))).collect()
    }
}

/// Whether a time is zero, if there is one.
fn is_zero(time: Option<Duration>) -> Option<bool> {
    time.map(|time| time.is_zero())
}

/// Performs the steps of `path` from the start.
fn replay(other: Other, path: &[Step]) -> World {
    let mut world = World::new(other);
    path.iter().for_each(|step| world.take(*step));
    world
}

/// Tries every order of steps. Returns who drove.
fn try_all(other: Other) -> HashSet<CurrentDriver> {
    const STEPS: [Step; 7] = [
        Step::OwnThread,
        Step::Reader(0),
        Step::Reader(1),
        Step::Other,
        Step::Packet,
        Step::Alarm,
        Step::Patience,
    ];
    let (mut seen, mut who_drove) = (HashSet::new(), HashSet::new());
    let mut open = vec![Vec::new()];
    while let Some(path) = open.pop() {
        let taken = std::panic::catch_unwind(|| {
            let world = replay(other, &path);
            world.check();
            world
        });
        let Ok(world) = taken else { panic!("after {path:?}") };
        who_drove.insert(world.core.driver.driven_by.as_ref().unwrap().who());
        if seen.insert(world.key()) {
            let steps = STEPS.into_iter().filter(|step| world.is_enabled(*step));
            open.extend(steps.map(|step| [&path[..], &[step]].concat()));
        }
    }
    assert!(seen.len() > 10_000, "{} states", seen.len());
    who_drove
}

#[test]
fn work_left_by_a_call_is_done_at_once_by_any_driver() {
    assert_eq!(try_all(Other::Sends).len(), 4, "the thread, two readers, nobody");
}

#[test]
fn a_waiting_task_always_has_a_driver() {
    assert_eq!(try_all(Other::Waits).len(), 4, "the thread, two readers, nobody");
}
