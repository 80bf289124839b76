//! Interprets bytes as the events of a connection: packets delivered, lost, duplicated, damaged or
//! forged, calls of the applications, and time, in any order. After each step: nothing panics, the
//! endpoints come to rest, their packets are well formed, and no message is stuck.

use std::collections::{BTreeSet, VecDeque};

use udccp_base::{Datagram, Duration, Ecn, Instant, Machine, Message, Payload};
use udccp_proto::ccid::CcidRegistry;
use udccp_proto::{
    ConnectOptions, ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, Event, EventKind,
    ListenConfig, ListenerId, PathReport, State,
};
use udccp_wire::{Header, PacketView, ServiceCode};

#[path = "forge.rs"]
mod forge;
#[path = "start_states.rs"]
mod start_states;

#[expect(unreachable_pub, reason = "other tests share it")]
#[path = "../common/trains.rs"]
mod trains;

const PORT: u16 = 5001;
const SERVICE: ServiceCode = ServiceCode(42);
/// Most steps of one run. A step may exchange many packets.
const MAX_STEPS: usize = 40;
/// Most packets in flight in one direction; further ones are lost.
const MAX_FLIGHT: usize = 32;
/// Most packets that one step can cause: a window, plus a margin.
const MAX_DRAIN: usize = 600;
/// Most wake-ups at the end of a run until nothing more happens.
const MAX_WAKES: usize = 20_000;

/// Reads the input; zeros follow its end.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n
    }

    fn bytes(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// Two endpoints, the packets between them, and the state of their applications.
#[derive(Clone)]
pub(crate) struct Session {
    now: Instant,
    ends: [Endpoint; 2],
    ids: [Option<ConnectionId>; 2],
    listener: ListenerId,
    flight: [VecDeque<Datagram>; 2],
    /// The latest packet that each end sent: its addresses, ports and numbers.
    last: [Option<(Datagram, Header)>; 2],
    /// Messages whose fate each end waits for, and the token of its next one.
    awaited: [BTreeSet<u64>; 2],
    next_token: u64,
}

/// Addresses of both ends. Inside UDP, checksums are not verified.
fn addresses(over_udp: bool) -> [core::net::SocketAddr; 2] {
    let port = if over_udp { 6511 } else { 0 };
    [1, 2].map(|host| ([10, 0, 0, host], port).into())
}

impl Session {
    /// A client that has sent its Request.
    fn starting(config: &ConnectionConfig, over_udp: bool) -> Self {
        let endpoint = |n| {
            let ccids = CcidRegistry::with_experiments();
            Endpoint::new(EndpointConfig { ccids, ..EndpointConfig::new([n; 32]) })
        };
        let mut ends = [endpoint(1), endpoint(2)];
        let listen =
            ListenConfig { connection: config.clone().into(), ..ListenConfig::new(SERVICE) };
        let listener = ends[1].listen(None, PORT, listen).unwrap();
        let now = Instant::from_nanos(1_000_000_000);
        let [local, remote] = addresses(over_udp);
        let options = ConnectOptions {
            local,
            local_port: Some(40_000),
            remote,
            remote_port: PORT,
            service: SERVICE,
            config: config.clone().into(),
        };
        let id = ends[0].connect(now, options).unwrap();
        let (flight, last, awaited) = Default::default();
        let ids = [Some(id), None];
        let mut session = Self { now, ends, ids, listener, flight, last, awaited, next_token: 0 };
        session.drain();
        session
    }

    /// Both ends open, with data exchanged.
    fn open(config: &ConnectionConfig) -> Self {
        Self::open_over(config, false)
    }

    /// The same, optionally over UDP.
    fn open_over(config: &ConnectionConfig, over_udp: bool) -> Self {
        let mut session = Self::starting(config, over_udp);
        for round in 0..8 {
            session.now += Duration::from_millis(10);
            for to in [1, 0] {
                while session.deliver(1 - to, 0) {}
                session.ends[to].handle_timeout(session.now);
                session.drain();
            }
            if round > 2 {
                session.send(round % 2, 100, 0);
            }
        }
        assert_eq!(session.ids.map(|id| id.is_some()), [true; 2]);
        assert_eq!(session.state(0), Some(State::Open));
        assert_eq!(session.state(1), Some(State::Open));
        for end in 0..2 {
            while matches!(
                session.ends[end].recv(session.now, session.ids[end].unwrap()),
                Ok(Some(_))
            ) {}
        }
        session
    }

    fn state(&self, end: usize) -> Option<State> {
        self.ends[end].state(self.ids[end]?)
    }

    /// Both ends send everything that they have ready.
    fn drain(&mut self) {
        for from in 0..2 {
            let mut sent = 0;
            while let Some(d) = self.ends[from].poll_transmit(self.now) {
                sent += 1;
                assert!(sent < MAX_DRAIN, "an endpoint never stops sending");
                self.put_in_flight(from, d);
            }
            let stalled = self.ends[from].stalled(self.now);
            assert_eq!(stalled, None, "a message of end {from} waits for nothing");
            while let Some(event) = self.ends[from].poll_event() {
                self.take_event(from, event);
            }
        }
        if let Some(id) = self.ends[1].accept(self.listener) {
            self.ids[1].get_or_insert(id);
        }
    }

    /// Processes an event. Each message with a token has one fate, before the end.
    fn take_event(&mut self, end: usize, event: Event) {
        match event.kind {
            EventKind::MessageFate { token, .. } => {
                assert!(self.awaited[end].remove(&token), "a fate of {token} that nobody awaits");
            }
            EventKind::Closed(_) if self.ids[end] == Some(event.id) => {
                assert!(self.awaited[end].is_empty(), "end {end}: no fate of {:?}", self.awaited);
            }
            _ => {}
        }
    }

    /// Checks that a packet is well formed, and puts it in flight.
    fn put_in_flight(&mut self, from: usize, d: Datagram) {
        let len = d.transport_len();
        let view = PacketView::new(&d.header, len).expect("what we write is a packet");
        debug_assert!(view.options().all(|o| o.is_ok()), "a broken option: {view}");
        self.last[from] = Some((d.clone(), view.header()));
        if self.flight[from].len() < MAX_FLIGHT {
            self.flight[from].push_back(d);
        }
    }

    /// Delivers the packet of `from` at this index; false if there is none.
    fn deliver(&mut self, from: usize, place: usize) -> bool {
        let Some(d) = self.flight[from].remove(place) else { return false };
        self.ends[1 - from].handle_datagram(self.now, d);
        true
    }

    fn send(&mut self, end: usize, bytes: u32, flags: u8) {
        let Some(id) = self.ids[end] else { return };
        let mut message = Message::new(Payload::Zeros(bytes));
        if flags & 1 != 0 {
            message.deadline = Some(self.now + Duration::from_millis(30));
        }
        message.priority = u32::from(flags >> 6);
        if flags & 2 != 0 {
            message.token = Some(self.next_token);
        }
        if self.ends[end].send(self.now, id, message).is_ok() && flags & 2 != 0 {
            self.awaited[end].insert(self.next_token);
            self.next_token += 1;
        }
        self.drain();
    }

    /// One end sends some messages of one size at once, and everything in flight arrives in
    /// buffers. Both ends process trains; copies of them process single packets.
    fn train(&mut self, input: &mut Input<'_>) {
        let (from, count, size) = (input.below(2), input.byte(), input.byte());
        let ecn = Ecn::from_bits(input.byte());
        let Some(id) = self.ids[from] else { return };
        for _ in 0..count % 40 {
            let message = Message::new(Payload::Zeros(u32::from(size) * 4));
            let _ = self.ends[from].send(self.now, id, message);
        }
        if size % 8 == 0 {
            self.ends[from].close(self.now, id);
        }
        let mut alone = self.ends.clone();
        loop {
            let train = trains::poll_train(&mut self.ends[from], self.now);
            let one_by_one: Vec<_> =
                train.iter().map_while(|_| alone[from].poll_transmit(self.now)).collect();
            assert!(train == one_by_one, "a train leaves that is not the same as its packets");
            if train.is_empty() {
                break;
            }
            train.into_iter().for_each(|d| self.put_in_flight(from, d));
        }
        assert!(alone[from].poll_transmit(self.now).is_none());
        let due = self.flight[from].drain(..).map(|d| Datagram { ecn, ..d });
        for buffer in trains::merged(due) {
            trains::take_train(&mut self.ends[1 - from], self.now, &buffer);
            trains::take_one_by_one(&mut alone[1 - from], self.now, &buffer);
        }
        // The text is too long to print.
        let is_same = format!("{:?}", self.ends) == format!("{alone:?}");
        assert!(is_same, "a train is not the same as its packets");
        self.drain();
    }

    /// One end sends up to 256 messages on a perfect network, and the other reads.
    fn send_stream(&mut self, input: &mut Input<'_>) {
        let (from, count, size) = (input.below(2), input.byte(), input.byte());
        let pause = Duration::from_micros(1 << (4 + size % 12));
        for _ in 0..=count {
            self.send(from, u32::from(size) * 5, count & 2);
            for to in [1 - from, from] {
                while self.deliver(1 - to, 0) {
                    self.drain();
                }
            }
            if let Some(id) = self.ids[1 - from] {
                let _ = self.ends[1 - from].recv(self.now, id);
                self.drain();
            }
            self.now += pause;
            let due = |end: &Endpoint| end.poll_timeout().is_some_and(|at| at <= self.now);
            if self.ends.iter().any(due) {
                self.wake(self.now);
            }
        }
    }

    /// Lets time pass, until the next timer or for a span.
    fn wait(&mut self, how: u8) {
        let next = || self.ends.iter().filter_map(|e| e.poll_timeout()).min();
        let until = match how {
            0..=127 => match next() {
                Some(at) => at.max(self.now),
                None => return,
            },
            _ => self.now + Duration::from_nanos(1 << (10 + u32::from(how & 31))),
        };
        for _ in 0..64 {
            let at = self.ends.iter().filter_map(|e| e.poll_timeout()).min();
            let Some(at) = at.filter(|at| *at <= until) else { break };
            self.wake(at);
        }
        self.now = self.now.max(until);
    }

    fn wake(&mut self, at: Instant) {
        self.now = self.now.max(at);
        for end in &mut self.ends {
            end.handle_timeout(self.now);
        }
        self.drain();
        for end in 0..2 {
            let (at, state) = (self.ends[end].poll_timeout(), self.state(end));
            assert!(at.is_none_or(|at| at > self.now), "{state:?}: a due timer is not served");
        }
    }

    fn arrive(&mut self, to: usize, d: Datagram) {
        self.ends[to].handle_datagram(self.now, d);
        self.drain();
    }

    fn call(&mut self, input: &mut Input<'_>) {
        let (end, what, value) = (input.below(2), input.byte(), input.byte());
        let Some(id) = self.ids[end] else { return };
        let (now, target) = (self.now, &mut self.ends[end]);
        match what % 12 {
            0..=2 => drop(target.recv(now, id)),
            3 | 4 => target.close(now, id),
            5 => target.abort(now, id),
            6 => target.shutdown_read(now, id),
            7 => {
                target.release(now, id);
                self.awaited[end].clear();
            }
            8 => target.set_path_mtu(now, id, u16::from(value) * 8),
            9 => target.set_receive_backlog(u16::from(value) * 4),
            10 => {
                let Some((d, _)) = self.last[end].clone() else { return };
                let report = match value & 3 {
                    0 => PathReport::Unreachable,
                    2 => PathReport::PortUnreachable,
                    _ => PathReport::PathMtu(u16::from(value) * 8),
                };
                target.handle_path_report(now, d.src, d.dst, &d.header, report);
            }
            _ => target.unlisten(now, self.listener),
        }
        self.drain();
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.byte() % 17 {
            // The network delivers or impairs packets.
            0..=2 => {
                let from = input.below(2);
                if self.deliver(from, 0) {
                    self.drain();
                }
            }
            3 => {
                let from = input.below(2);
                self.flight[from].pop_front();
            }
            4 => {
                let (from, place) = (input.below(2), input.below(MAX_FLIGHT));
                if self.deliver(from, place) {
                    self.drain();
                }
            }
            5 => {
                let from = input.below(2);
                if let Some(d) = self.flight[from].front().cloned() {
                    let ecn = Ecn::from_bits(input.byte());
                    self.arrive(1 - from, Datagram { ecn, ..d });
                }
            }
            6..=8 => self.forge(input),
            9 => self.raw(input),
            10 | 11 => {
                let how = input.byte();
                self.wait(how);
            }
            12 | 13 => {
                let (end, size) = (input.below(2), input.byte());
                let flags = input.byte();
                self.send(end, u32::from(size) * 8, flags);
            }
            14 => self.send_stream(input),
            16 => self.train(input),
            _ => self.call(input),
        }
    }

    /// From here on the network is perfect: the connection ends or is open.
    fn finish(&mut self) {
        for _ in 0..MAX_WAKES {
            let mut moved = false;
            for from in 0..2 {
                while self.deliver(from, 0) {
                    self.drain();
                    moved = true;
                }
            }
            if moved {
                self.now += Duration::from_millis(1);
                continue;
            }
            let at = self.ends.iter().filter_map(|e| e.poll_timeout()).min();
            let Some(at) = at else { break };
            self.wake(at);
        }
        for end in 0..2 {
            let is_rest = self.state(end).is_none_or(|s| s == State::Open || s == State::Closed);
            assert!(is_rest, "end {end} is stuck in {:?}", self.state(end));
        }
        if [0, 1].map(|end| self.state(end)) == [Some(State::Open); 2] {
            let waiting = [0, 1]
                .map(|end| self.ends[end].stats(self.ids[end]?).map(|s| s.send_queue_packets));
            assert_eq!(waiting, [Some(0); 2], "messages wait for ever");
            assert!(self.awaited.iter().all(BTreeSet::is_empty), "no fate: {:?}", self.awaited);
        }
    }
}

thread_local! {
    static START_STATES: Vec<Session> = start_states::all();
}

/// Number of starting points.
pub(crate) fn count_start_states() -> u8 {
    START_STATES.with(|b| b.len() as u8)
}

/// Runs the events in the bytes, until the connection ends (which takes long) or until the end of
/// the bytes. The first byte selects the starting point. Returns the number of steps and the final
/// state.
pub(crate) fn run(bytes: &[u8], until_settled: bool) -> (usize, Session) {
    let mut input = Input(bytes);
    let first = input.byte();
    let mut session = START_STATES.with(|b| b[usize::from(first) % b.len()].clone());
    let mut steps = 0;
    while steps < MAX_STEPS && !input.0.is_empty() {
        session.step(&mut input);
        steps += 1;
    }
    if until_settled {
        session.finish();
    }
    (steps, session)
}
