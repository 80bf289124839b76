//! Keeps the network in step with the clock, and brings in what hosts send.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::event::{Timespec, epoll};
use udccp_base::{Duration, Instant};
use udccp_sim::{Pace, Turn};

use crate::clock::Clock;
use crate::input::TunInput;

/// The last part of a wait is spent looking at clock and devices, as a sleep may end late by this.
/// Not longer: a processor that is never free is taken from the emulator now and then, by the
/// kernel, for tens of milliseconds.
const SPIN: Duration = Duration::from_micros(10);
/// The longest sleep.
const NAP: Duration = Duration::from_millis(50);
/// How often it is asked whether the run goes on.
const ASK: Duration = Duration::from_millis(100);
/// Devices looked at in one call.
const EVENTS: usize = 64;

/// Waits for the clock and for TUN devices.
pub(crate) struct Pacer<'a> {
    clock: Clock,
    inputs: Vec<Rc<RefCell<TunInput>>>,
    epoll: OwnedFd,
    events: [epoll::Event; EVENTS],
    /// Hosts with packets that wait, as of the last look.
    ready: Vec<usize>,
    goes_on: &'a mut dyn FnMut() -> bool,
    ask_at: Instant,
}

impl<'a> Pacer<'a> {
    /// For the hosts with these inputs, in the order of their numbers. It ends a run when
    /// `goes_on` says so.
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
            ask_at: Instant::ZERO,
        })
    }

    /// Waits for packets, at most so long; none where a signal came first.
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
            // What is due comes first: what hosts say now, the network hears after that.
            if now >= due {
                return Turn::Due;
            }
            if let Some(host) = self.ready.pop() {
                let Some(at) = self.inputs[host].borrow_mut().read(self.clock) else { continue };
                if at < due {
                    return Turn::Input { host, at };
                }
                // An event came due meanwhile: it is first, and the packets wait for it.
                self.ready.push(host);
                return Turn::Due;
            }
            if now >= self.ask_at {
                self.ask_at = now + ASK;
                if !(self.goes_on)() {
                    return Turn::Stop;
                }
            }
            let left = due.saturating_since(now);
            self.look(left.saturating_sub(SPIN).min(NAP));
        }
    }
}
