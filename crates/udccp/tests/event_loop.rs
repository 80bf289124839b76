//! Event loops that wait for changes of the descriptor (edge-triggered, as mio and tokio do) and
//! otherwise just try, over random sequences of calls at both ends.

#![expect(clippy::print_stdout, reason = "a failure shows its seed")]
#![cfg(target_os = "linux")]

mod common;

use common::{SERVICE, localhost, number_of, numbered};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use udccp::blocking::{Connection, Endpoint, Listener};
use udccp::{Options, QueuePolicy, Readiness, TryRecvError, TrySendError};
use udccp_base::{Rng, Seed};
use udccp_testkit::randomised;

/// Time limit, so that a test that hangs fails.
const LIMIT_MS: u16 = 20_000;
const MESSAGES: u32 = 400;

/// A number below `n`.
fn below(random: &mut Rng, n: u32) -> u32 {
    random.below(u64::from(n)) as u32
}

/// One end, and the state that its event loop assumes.
struct End {
    connection: Connection,
    may_read: bool,
    may_write: bool,
    sent: u32,
    read: u32,
    closes_after: u32,
    has_closed: bool,
    has_ended: bool,
}

impl End {
    fn new(connection: Connection, closes_after: u32) -> Self {
        let (may_read, may_write, has_closed, has_ended) = (false, false, false, false);
        let (sent, read) = (0, 0);
        Self { connection, may_read, may_write, sent, read, closes_after, has_closed, has_ended }
    }

    /// The assumed state of an end, and its connection, as text.
    fn state(&self) -> String {
        let loop_has = (self.may_read, self.may_write, self.has_closed, self.has_ended);
        let recv = self.connection.try_recv();
        let said = polled(&self.connection.readiness().unwrap());
        format!("{loop_has:?} {:?} {recv:?} {said:?}", self.connection.state())
    }

    /// Reads some messages. `is_told`: its descriptor has just reported that there are some.
    fn read_some(&mut self, most: u32, is_told: bool) {
        for n in 0..most {
            match self.connection.try_recv() {
                Ok(message) => {
                    let number = number_of(&message);
                    assert!(number >= self.read, "in order: {number}, {}", self.read);
                    self.read = number + 1;
                }
                Err(TryRecvError::Empty) => {
                    assert!(!is_told || n > 0, "woken for nothing");
                    self.may_read = false;
                    return;
                }
                Err(TryRecvError::Ended(_)) => {
                    self.has_ended = true;
                    return;
                }
            }
        }
    }

    fn write_some(&mut self, most: u32, random: &mut Rng, is_told: bool) {
        for n in 0..most {
            if self.sent == self.closes_after {
                self.connection.start_close();
                self.has_closed = true;
                return;
            }
            let len = match n {
                0 => self.connection.max_message_size(),
                _ => 4 + below(random, 1200) as usize,
            };
            match self.connection.try_send(numbered(self.sent, len)) {
                Ok(()) => self.sent += 1,
                Err(TrySendError::Full(_)) => {
                    assert!(!is_told || n > 0, "woken for nothing");
                    self.may_write = false;
                    return;
                }
                Err(TrySendError::Failed(_)) => {
                    self.has_closed = true;
                    return;
                }
            }
        }
    }
}

/// The events that `poll` reports for a descriptor.
fn polled(fd: &Readiness) -> PollFlags {
    let mut fds = [PollFd::new(fd, PollFlags::IN | PollFlags::OUT | PollFlags::RDHUP)];
    poll(&mut fds, Some(&Timespec::default())).expect("a descriptor");
    fds[0].revents()
}

fn options(random: &mut Rng) -> Options {
    let mut options = Options::default()
        .send_queue(1 << 20, 1 + below(random, 6) as usize)
        .recv_queue(1 << 20, 4 + below(random, 60) as usize);
    if below(random, 4) == 0 {
        options = options.ccid(3);
    }
    options.queue_policy(QueuePolicy::Refuse)
}

fn run_from(seed: u64) {
    let mut random: Rng = Seed(seed).stream("event loop");
    let (here, there) = (options(&mut random), options(&mut random));
    let listener = Listener::bind_with(localhost(false), [SERVICE], &there).unwrap();
    let endpoint = Endpoint::bind(localhost(false)).unwrap();
    let client = endpoint.connect(listener.local_addr(), SERVICE, &here, None).unwrap();
    let server = listener.accept().unwrap();
    let mut ends = [client, server].map(|end| End::new(end, below(&mut random, MESSAGES)));
    let epoll = Epoll::new(EpollCreateFlags::empty()).unwrap();
    let all = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP;
    for (n, end) in ends.iter().enumerate() {
        let event = EpollEvent::new(all | EpollFlags::EPOLLET, n as u64);
        epoll.add(end.connection.readiness().unwrap(), event).unwrap();
    }
    loop {
        let n = below(&mut random, 2) as usize;
        let (most, reads) = (1 + below(&mut random, 8), below(&mut random, 2) == 0);
        let end = &mut ends[n];
        if reads && end.may_read && !end.has_ended {
            end.read_some(most, false);
        } else if !reads && end.may_write && !end.has_closed {
            end.write_some(most, &mut random, false);
        }
        if ends.iter().all(|end| end.has_ended) {
            return;
        }
        let is_busy = |e: &End| e.may_read && !e.has_ended || e.may_write && !e.has_closed;
        let patience = match ends.iter().any(is_busy) {
            true if below(&mut random, 3) > 0 => continue,
            true => EpollTimeout::ZERO,
            false => EpollTimeout::from(LIMIT_MS),
        };
        let mut events = [EpollEvent::empty(); 4];
        let count = loop {
            match epoll.wait(&mut events, patience) {
                // The process was stopped and continued.
                Err(Errno::EINTR) => {}
                waited => break waited.unwrap(),
            }
        };
        let state = || ends.each_ref().map(End::state);
        assert!(count > 0 || patience == EpollTimeout::ZERO, "never woken: {:?}", state());
        for event in &events[..count] {
            let end = &mut ends[event.data() as usize];
            let is_told = |bit| event.events().contains(bit);
            if is_told(EpollFlags::EPOLLIN) && !end.has_ended {
                end.may_read = true;
                end.read_some(1 + below(&mut random, 3), true);
            }
            if is_told(EpollFlags::EPOLLOUT) && !end.has_closed {
                end.may_write = true;
                end.write_some(1 + below(&mut random, 3), &mut random, true);
            }
        }
    }
}

#[test]
fn readiness_reports_every_change_and_no_other() {
    for seed in randomised::seeds(60) {
        println!("UDCCP_TEST_SEED={seed}");
        run_from(seed);
    }
}
