//! A deterministic pipe between two ends: delay, rate, a drop-tail queue, selected losses.
#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part of the pipe")]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use udccp_base::{
    AppPort, DataRate, Datagram, Duration, Ecn, Instant, Machine, Message, Payload, Seed, Sent,
    Transport,
};
use udccp_cc::Algorithm;
use udccp_tcp::wire::TcpHeader;
use udccp_tcp::{TcpConfig, TcpReceiver, TcpSender};

/// What a pipe does with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Pass,
    Drop,
    /// Arrives later by this much.
    Late(Duration),
    Mark,
}

/// A segment that passed the tap.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub at: Instant,
    pub forward: bool,
    pub header: TcpHeader<'static>,
    pub data: usize,
    pub ecn: Ecn,
}

/// Decides the fate of the `n`th datagram (from 0) of one direction.
pub type Rule = Box<dyn FnMut(u64, &Datagram) -> Fate>;

/// Observes a datagram that enters either direction (true: forward).
pub type Tap = Box<dyn FnMut(Instant, bool, &Datagram)>;

/// One direction.
pub struct Link {
    pub delay: Duration,
    pub rate: Option<DataRate>,
    /// Queue limit in packets of 1500 bytes, if there is a rate.
    pub limit: u64,
    pub rule: Option<Rule>,
    pub sent: u64,
    pub dropped: u64,
    busy_until: Instant,
    in_flight: VecDeque<(Instant, Datagram)>,
}

impl Link {
    pub fn new(delay: Duration) -> Self {
        Self {
            delay,
            rate: None,
            limit: u64::MAX,
            rule: None,
            sent: 0,
            dropped: 0,
            busy_until: Instant::ZERO,
            in_flight: VecDeque::new(),
        }
    }

    fn enter(&mut self, now: Instant, mut d: Datagram) {
        let n = self.sent;
        self.sent += 1;
        let fate = self.rule.as_mut().map_or(Fate::Pass, |rule| rule(n, &d));
        let mut arrival = now + self.delay;
        if let Some(rate) = self.rate {
            let backlog = self.busy_until - now;
            if backlog > rate.time_for(1500) * self.limit {
                self.dropped += 1;
                return;
            }
            self.busy_until = self.busy_until.max(now) + rate.time_for(d.ip_len() as u64);
            arrival = self.busy_until + self.delay;
        }
        match fate {
            Fate::Pass => {}
            Fate::Drop => {
                self.dropped += 1;
                return;
            }
            Fate::Late(by) => arrival += by,
            Fate::Mark if d.ecn.is_capable() => d.ecn = Ecn::Ce,
            Fate::Mark => {}
        }
        if self.in_flight.back().is_none_or(|last| last.0 <= arrival) {
            self.in_flight.push_back((arrival, d));
            return;
        }
        // An earlier datagram is late, so this one overtakes it.
        let i = self.in_flight.partition_point(|x| x.0 <= arrival);
        self.in_flight.insert(i, (arrival, d));
    }

    fn next(&self) -> Instant {
        self.in_flight.front().map_or(Instant::MAX, |x| x.0)
    }
}

/// Two ends, two directions, and a bulk source at the first end.
pub struct Pipe {
    pub now: Instant,
    pub sender: TcpSender,
    pub receiver: TcpReceiver,
    pub forward: Link,
    pub back: Link,
    /// Bytes that the source still has to offer; it closes after the last.
    pub to_send: u64,
    pub delivered: u64,
    pub tap: Option<Tap>,
    pub steps: u64,
    /// Whether the application at the receiver reads.
    pub reading: bool,
}

pub fn addresses() -> (SocketAddr, SocketAddr) {
    ("10.0.0.1:40001".parse().unwrap(), "10.0.0.2:5001".parse().unwrap())
}

/// A configuration without extensions of kernels, so that counts can be computed by hand.
pub fn plain() -> TcpConfig {
    TcpConfig::rfc(Algorithm::NEW_RENO)
}

impl Pipe {
    pub fn new(config: TcpConfig, one_way: Duration) -> Self {
        let (a, b) = addresses();
        Self {
            now: Instant::ZERO,
            sender: TcpSender::new(a, b, config.clone(), Seed(1)),
            receiver: TcpReceiver::new(b, a, config, Seed(2)),
            forward: Link::new(one_way),
            back: Link::new(one_way),
            to_send: u64::MAX,
            delivered: 0,
            tap: None,
            steps: 0,
            reading: true,
        }
    }

    pub fn with_bytes(mut self, bytes: u64) -> Self {
        self.to_send = bytes;
        self
    }

    pub fn with_back_rule(mut self, rule: impl FnMut(u64, &Datagram) -> Fate + 'static) -> Self {
        self.back.rule = Some(Box::new(rule));
        self
    }

    /// A bottleneck with a queue of `limit` packets of 1500 bytes.
    pub fn with_rate(mut self, mbps: u64, limit: u64) -> Self {
        self.forward.rate = Some(DataRate::from_mbps(mbps));
        self.forward.limit = limit;
        self
    }

    /// Records the segments that both ends send.
    pub fn record(&mut self) -> Rc<RefCell<Vec<Seen>>> {
        let log = Rc::new(RefCell::new(Vec::new()));
        let writer = log.clone();
        self.tap = Some(Box::new(move |at, forward, d| {
            let (header, data) = TcpHeader::of(d).expect("both ends send intact segments");
            let header = header.without_sack();
            writer.borrow_mut().push(Seen { at, forward, header, data, ecn: d.ecn });
        }));
        log
    }

    pub fn with_rule(mut self, rule: impl FnMut(u64, &Datagram) -> Fate + 'static) -> Self {
        self.forward.rule = Some(Box::new(rule));
        self
    }

    fn feed(&mut self) {
        while self.to_send > 0 && self.sender.is_writable() {
            let len = self.to_send.min(self.sender.max_payload() as u64);
            self.sender.send(self.now, Message::new(Payload::Zeros(len as u32)));
            self.to_send -= len;
            if self.to_send == 0 {
                self.sender.close(self.now);
            }
        }
    }

    /// Drains both ends after an external command.
    pub fn drain(&mut self) {
        self.feed();
        while let Some(d) = next_of(&mut self.sender, self.now) {
            if let Some(tap) = &mut self.tap {
                tap(self.now, true, &d);
            }
            self.forward.enter(self.now, d);
        }
        while let Some(p) = self.reading.then(|| self.receiver.poll_delivered(self.now)).flatten() {
            self.delivered += p.len() as u64;
        }
        while let Some(d) = next_of(&mut self.receiver, self.now) {
            if let Some(tap) = &mut self.tap {
                tap(self.now, false, &d);
            }
            self.back.enter(self.now, d);
        }
    }

    pub fn start(&mut self) {
        self.sender.open(self.now);
        self.drain();
    }

    /// Handles the next event up to `until`; false if there is none.
    pub fn step(&mut self, until: Instant) -> bool {
        let timer = |m: &dyn Machine| m.poll_timeout().unwrap_or(Instant::MAX);
        let timers = timer(&self.sender).min(timer(&self.receiver));
        let next = timers.min(self.forward.next()).min(self.back.next());
        if next > until || next == Instant::MAX {
            self.now = self.now.max(until);
            return false;
        }
        self.steps += 1;
        self.now = self.now.max(next);
        if self.forward.next() <= self.now {
            let (_, d) = self.forward.in_flight.pop_front().unwrap();
            self.receiver.handle_datagram(self.now, d);
        } else if self.back.next() <= self.now {
            let (_, d) = self.back.in_flight.pop_front().unwrap();
            self.sender.handle_datagram(self.now, d);
        } else {
            self.sender.handle_timeout(self.now);
            self.receiver.handle_timeout(self.now);
        }
        self.drain();
        true
    }

    pub fn run_for(&mut self, span: Duration) {
        let until = self.now + span;
        while self.step(until) {}
    }

    /// Runs until both ends are closed; panics if that takes longer than `limit`.
    pub fn run_to_end(&mut self, limit: Duration) {
        let until = self.now + limit;
        while self.step(until) {
            if self.sender.is_closed() && self.receiver.is_closed() {
                return;
            }
        }
        panic!("not over after {limit}: {:#?} {:#?}", self.sender, self.receiver);
    }
}

/// The next datagram of an end, which must have no more if it says so.
fn next_of(end: &mut impl Machine, now: Instant) -> Option<Datagram> {
    let may_transmit = end.may_transmit();
    let mut datagram = None;
    let sent = end.poll_transmit_into(now, &mut datagram);
    assert_eq!(datagram.is_some(), sent != Sent::Nothing);
    assert!(may_transmit || datagram.is_none(), "{datagram:?} was not expected");
    if sent == Sent::Last {
        assert_eq!(end.poll_transmit(now), None, "there is one more");
    }
    datagram
}

pub const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Drops the data segments with these numbers, counted from 0 over first transmissions.
pub fn drop_segments(which: &'static [u64]) -> impl FnMut(u64, &Datagram) -> Fate {
    let mut n = 0;
    move |_, d| {
        if d.payload.is_empty() {
            return Fate::Pass;
        }
        n += 1;
        if which.contains(&(n - 1)) { Fate::Drop } else { Fate::Pass }
    }
}
