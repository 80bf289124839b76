//! Keeps the network in step with the clock, and feeds it packets from hosts.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::event::{Timespec, epoll};
use udccp_base::{Duration, Instant};
use udccp_sim::{Pace, Turn};

use crate::clock::Clock;
use crate::input::TunInput;

/// The end of a wait is spent polling clock and devices, since a sleep may end this late. It must
/// be short: the kernel occasionally suspends a process that never sleeps, for tens of
/// milliseconds.
const SPIN: Duration = Duration::from_micros(10);
/// The longest sleep.
const NAP: Duration = Duration::from_millis(50);
/// How often to check whether the run continues.
const CHECK: Duration = Duration::from_millis(100);
/// Most devices handled per call.
const EVENTS: usize = 64;

/// Waits for the clock and TUN devices.
pub(crate) struct Pacer<'a> {
    clock: Clock,
    inputs: Vec<Rc<RefCell<TunInput>>>,
    epoll: OwnedFd,
    events: [epoll::Event; EVENTS],
    /// Hosts with waiting packets, as of the last poll.
    ready: Vec<usize>,
    goes_on: &'a mut dyn FnMut() -> bool,
    check_at: Instant,
}

impl<'a> Pacer<'a> {
    /// A pacer for hosts with these inputs, in the order of their numbers. It ends the run when
    /// `goes_on` returns false.
    pub(crate) fn new(
        clock: Clock,
        inputs: Vec<Rc<RefCell<TunInput>>>,
        goes_on: &'a mut dyn FnMut() -> bool,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (number, input) in inputs.iter().enumerate() {
            let data = epoll::EventData::new_u64(number as u64);
            epoll::add(&epoll, input.borrow().tun(), data, epoll::EventFlags::IN)?;
        }
        let none =
            epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        Ok(Self {
            clock,
            inputs,
            epoll,
            events: [none; EVENTS],
            ready: Vec::new(),
            goes_on,
            check_at: Instant::ZERO,
        })
    }

    /// Waits for packets for at most `patience`. None are found if a signal interrupts.
    fn look(&mut self, patience: Duration) {
        let timeout = Timespec {
            tv_sec: (patience.as_nanos() / 1_000_000_000) as i64,
            tv_nsec: (patience.as_nanos() % 1_000_000_000) as i64,
        };
        let found = epoll::wait(&self.epoll, &mut self.events[..], Some(&timeout)).unwrap_or(0);
        self.ready.extend(self.events[..found].iter().map(|event| event.data.u64() as usize));
    }
}

impl Pace for Pacer<'_> {
    fn wait(&mut self, due: Instant) -> Turn {
        loop {
            let now = self.clock.now();
            // Due events come first: the network sees packets that hosts send now after them.
            if now >= due {
                return Turn::Due;
            }
            if let Some(host) = self.ready.pop() {
                let Some(at) = self.inputs[host].borrow_mut().read(self.clock) else { continue };
                if at < due {
                    return Turn::Input { host, at };
                }
                // An event became due meanwhile. It comes first, and the packets wait.
                self.ready.push(host);
                return Turn::Due;
            }
            if now >= self.check_at {
                self.check_at = now + CHECK;
                if !(self.goes_on)() {
                    return Turn::Stop;
                }
            }
            let left = due.saturating_since(now);
            self.look(left.saturating_sub(SPIN).min(NAP));
        }
    }
}
