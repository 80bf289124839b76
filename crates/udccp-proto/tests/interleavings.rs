//! Every order of events between a client and a server, up to a depth: each packet is delivered (in
//! any order), lost or duplicated, timers expire, and each application closes, at any point. The
//! search runs over the values of real endpoints.
//!
//! Three properties hold in every state:
//!
//! * no message is stuck: if a message cannot be sent now, a timer is set that will allow it;
//! * no connection is stuck: once the network is perfect, both ends reach OPEN, or both are done
//!   with the connection, within the time of all timers;
//! * both ends of one connection are never in TIMEWAIT at the same time (RFC 4340 section 8.3: only
//!   one of them should hold it).
//!
//! The last property is limited to one connection, because the search found this at depth 5: a
//! Request is duplicated, its connection is closed at once, and the copy arrives at a server that
//! has forgotten everything, as section 8.3 requires. It opens a second connection, which the
//! client's end of the first one resets. The receiver of that Reset holds TIMEWAIT, so both ends
//! do, each for a different connection. RFC 4340 itself causes this (TCP has the same with an old
//! SYN), and it does no harm.
//!
//! The depth is a number of events. Depth 5, which the tests search, has 3,224 states from the
//! first Request and 1,350 from OPEN; depth 6 has 16,608 and 6,932 (13 s of processor time in a
//! release build). To search deeper:
//! `UDCCP_DEPTH=7 cargo test --release -p udccp-proto --test interleavings -- --nocapture`

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::fmt::{self, Write};
use std::hash::Hasher;

use udccp_base::{Datagram, Duration, Instant, Machine, Message, Payload};
use udccp_proto::ccid::CcidRegistry;
use udccp_proto::{
    ConnectOptions, ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, ListenConfig,
    ListenerId, State,
};
use udccp_wire::{PacketView, ServiceCode};

const CLIENT: usize = 0;
const SERVER: usize = 1;
const PORT: u16 = 5001;
const SERVICE: ServiceCode = ServiceCode(42);

/// The depth of the search in ordinary test runs.
const DEPTH: usize = 5;

/// The depth when applications send. A `SendMany` takes as long as many other events.
const SENDING_DEPTH: usize = 3;

/// Packets that are duplicated on one path.
const COPIES: u8 = 1;

/// Time until everything is settled on a perfect network: all retries of all timers.
const BOUND: Duration = Duration::from_secs(600);

/// The next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// The packet of this end with this index among those in flight arrives.
    Deliver(usize, usize),
    Lose(usize, usize),
    Duplicate(usize, usize),
    /// The next timer expires.
    Timer,
    /// This end's application closes.
    Close(usize),
    /// This end's application sends a message.
    SendOne(usize),
    /// This end's application sends a hundred messages, a millisecond apart, on a perfect network.
    SendMany(usize),
}

/// Messages of one `SendMany`.
const MANY: usize = 100;

/// Two endpoints and the packets between them.
#[derive(Clone)]
struct Pair {
    now: Instant,
    ends: [Endpoint; 2],
    ids: [Option<ConnectionId>; 2],
    listener: ListenerId,
    flight: [Vec<Datagram>; 2],
    has_closed: [bool; 2],
    copies: u8,
    /// Messages that each application may still send, one event each; zero for silent ones.
    unsent: [u8; 2],
    /// Connections that the server accepted.
    accepted: u32,
}

fn config(server_timewait: bool) -> ConnectionConfig {
    ConnectionConfig {
        handshake_timestamps: false,
        request_retries: 3,
        close_retries: 3,
        handshake_timeout: Duration::from_secs(30),
        server_timewait,
        ..ConnectionConfig::default()
    }
}

impl Pair {
    fn starting(connection: ConnectionConfig) -> Self {
        let ccids = CcidRegistry::with_experiments();
        let end = |n| {
            Endpoint::new(EndpointConfig { ccids: ccids.clone(), ..EndpointConfig::new([n; 32]) })
        };
        let mut ends = [end(1), end(2)];
        let listen =
            ListenConfig { connection: connection.clone().into(), ..ListenConfig::new(SERVICE) };
        let listener = ends[SERVER].listen(None, PORT, listen).unwrap();
        let now = Instant::from_nanos(1_000_000_000);
        let options = ConnectOptions {
            local: "10.0.0.1:0".parse().unwrap(),
            local_port: Some(40_000),
            remote: "10.0.0.2:0".parse().unwrap(),
            remote_port: PORT,
            service: SERVICE,
            config: connection.into(),
        };
        let id = ends[CLIENT].connect(now, options).unwrap();
        let mut pair = Self {
            now,
            ends,
            ids: [Some(id), None],
            listener,
            flight: Default::default(),
            has_closed: [false; 2],
            copies: 0,
            unsent: [0; 2],
            accepted: 0,
        };
        pair.drain();
        pair
    }

    /// Both ends open, with nothing in flight.
    fn open(connection: ConnectionConfig) -> Self {
        let mut pair = Self::starting(connection);
        while pair.flight.iter().any(|f| !f.is_empty()) {
            for from in [CLIENT, SERVER] {
                while !pair.flight[from].is_empty() {
                    pair.apply(Event::Deliver(from, 0));
                }
            }
        }
        assert_eq!([CLIENT, SERVER].map(|end| pair.state(end)), [Some(State::Open); 2]);
        pair
    }

    /// Both ends open with one CCID, and with messages to send.
    fn sending(ccid: u8) -> Self {
        let (tx_ccids, rx_ccids) = (vec![ccid], vec![ccid]);
        let mut pair = Self::open(ConnectionConfig { tx_ccids, rx_ccids, ..config(false) });
        pair.unsent = [2; 2];
        pair
    }

    fn drain(&mut self) {
        for from in [CLIENT, SERVER] {
            while let Some(d) = self.ends[from].poll_transmit(self.now) {
                self.flight[from].push(d);
            }
            let stalled = self.ends[from].stalled(self.now);
            assert_eq!(stalled, None, "a message of end {from} waits for nothing");
            while self.ends[from].poll_event().is_some() {}
        }
        if let Some(id) = self.ends[SERVER].accept(self.listener) {
            self.ids[SERVER] = Some(id);
            self.accepted += 1;
        }
    }

    fn state(&self, end: usize) -> Option<State> {
        self.ends[end].state(self.ids[end]?)
    }

    fn next_timer(&self) -> Option<Instant> {
        self.ends.iter().filter_map(|e| e.poll_timeout()).min()
    }

    fn events(&self) -> Vec<Event> {
        let mut all = Vec::new();
        for from in [CLIENT, SERVER] {
            for place in 0..self.flight[from].len() {
                all.push(Event::Deliver(from, place));
                all.push(Event::Lose(from, place));
                if self.copies < COPIES {
                    all.push(Event::Duplicate(from, place));
                }
            }
            let is_live = self.state(from).is_some_and(|s| !s.is_over());
            if is_live && !self.has_closed[from] {
                all.push(Event::Close(from));
            }
            if is_live && self.unsent[from] > 0 {
                all.extend([Event::SendOne(from), Event::SendMany(from)]);
            }
        }
        if self.next_timer().is_some() {
            all.push(Event::Timer);
        }
        all
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Deliver(from, place) => {
                let d = self.flight[from].remove(place);
                self.ends[1 - from].handle_datagram(self.now, d);
            }
            Event::Lose(from, place) => drop(self.flight[from].remove(place)),
            Event::Duplicate(from, place) => {
                self.copies += 1;
                let d = self.flight[from][place].clone();
                self.ends[1 - from].handle_datagram(self.now, d);
            }
            Event::Timer => {
                self.now = self.next_timer().map_or(self.now, |at| at.max(self.now));
                for end in &mut self.ends {
                    end.handle_timeout(self.now);
                }
            }
            Event::Close(end) => {
                self.has_closed[end] = true;
                if let Some(id) = self.ids[end] {
                    self.ends[end].close(self.now, id);
                }
            }
            Event::SendOne(end) => {
                self.unsent[end] -= 1;
                self.send_one(end);
            }
            Event::SendMany(end) => {
                self.unsent[end] -= 1;
                self.send_many(end);
            }
        }
        self.drain();
    }

    fn send_one(&mut self, end: usize) {
        let Some(id) = self.ids[end] else { return };
        let _ = self.ends[end].send(self.now, id, Message::new(Payload::Zeros(100)));
    }

    fn send_many(&mut self, end: usize) {
        for _ in 0..MANY {
            self.send_one(end);
            self.drain();
            self.deliver_all();
            self.now += Duration::from_millis(1);
            if self.next_timer().is_some_and(|at| at <= self.now) {
                self.apply(Event::Timer);
            }
        }
    }

    /// Delivers everything in flight, and reads it.
    fn deliver_all(&mut self) {
        for from in [CLIENT, SERVER] {
            for d in std::mem::take(&mut self.flight[from]) {
                self.ends[1 - from].handle_datagram(self.now, d);
            }
            if let Some(id) = self.ids[1 - from] {
                while matches!(self.ends[1 - from].recv(self.now, id), Ok(Some(_))) {}
            }
        }
        self.drain();
    }

    /// Values that behave alike have the same fingerprint: the endpoints' values with times
    /// relative to now and without counters, and the packets in flight.
    fn fingerprint(&self) -> u64 {
        let mut print = Fingerprint { hasher: DefaultHasher::new(), now: self.now, skipped: None };
        for end in &self.ends {
            write!(print, "{end:?}").unwrap();
        }
        write!(print, "{:?}{:?}{}", self.flight, self.has_closed, self.copies).unwrap();
        print.hasher.finish()
    }

    /// From here on the network is perfect, and the applications do nothing.
    fn settle(&mut self) -> Result<(), String> {
        let until = self.now + BOUND;
        loop {
            self.check()?;
            self.deliver_all();
            if self.flight.iter().any(|f| !f.is_empty()) {
                self.now += Duration::from_millis(1);
                continue;
            }
            match self.next_timer().filter(|at| *at <= until && !self.is_settled()) {
                Some(at) => {
                    self.now = self.now.max(at);
                    for end in &mut self.ends {
                        end.handle_timeout(self.now);
                    }
                    self.drain();
                }
                None => break,
            }
        }
        if self.is_settled() {
            return Ok(());
        }
        Err(format!("stuck: {:?} and {:?}", self.state(CLIENT), self.state(SERVER)))
    }

    fn has_sent_all(&self, end: usize) -> bool {
        let stats = self.ids[end].and_then(|id| self.ends[end].stats(id));
        stats.is_none_or(|stats| stats.send_queue_packets == 0)
    }

    /// Both ends are in OPEN, with nothing to send and no close called, or neither is alive.
    fn is_settled(&self) -> bool {
        let states = [self.state(CLIENT), self.state(SERVER)];
        let is_open = states.iter().all(|s| *s == Some(State::Open));
        let is_over = states.iter().all(|s| s.is_none_or(State::is_over));
        // A server's end that never reached OPEN has no id yet, but it also counts.
        let holds =
            self.ids[SERVER].is_none() && self.ends[SERVER].endpoint_stats().connections > 0;
        let has_sent = self.has_sent_all(CLIENT) && self.has_sent_all(SERVER);
        (is_open && has_sent && self.has_closed == [false; 2]) || (is_over && !holds)
    }

    fn check(&self) -> Result<(), String> {
        let waits = |end| self.state(end) == Some(State::TimeWait);
        if waits(CLIENT) && waits(SERVER) && self.accepted < 2 {
            return Err("both ends are in TIMEWAIT".into());
        }
        Ok(())
    }
}

/// Hashes a value's text, with instants relative to now. Derived `Debug` writes a number in one
/// piece.
struct Fingerprint {
    hasher: DefaultHasher,
    now: Instant,
    /// Open brackets of a value that is skipped.
    skipped: Option<usize>,
}

/// Counters, which do not affect behaviour.
const COUNTERS: [&str; 2] = ["ConnectionCounters", "EndpointStats"];

impl Fingerprint {
    /// Only instants are as large as this and below the maximum.
    fn as_instant(piece: &str) -> Option<u64> {
        let is_number = piece.len() >= 9 && piece.bytes().all(|b| b.is_ascii_digit());
        let number = is_number.then(|| piece.parse().ok()).flatten();
        number.filter(|n| (900_000_000..1 << 41).contains(n))
    }
}

impl fmt::Write for Fingerprint {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        if let Some(open) = &mut self.skipped {
            let count = |bracket| piece.matches(bracket).count();
            *open = (*open + count('{')).saturating_sub(count('}'));
            if *open == 0 && piece.contains('}') {
                self.skipped = None;
            }
            return Ok(());
        }
        if COUNTERS.contains(&piece) {
            self.skipped = Some(0);
        }
        match Self::as_instant(piece) {
            Some(n) => self.hasher.write_u64(n.wrapping_sub(self.now.as_nanos())),
            None => self.hasher.write(piece.as_bytes()),
        }
        Ok(())
    }
}

fn describe(d: &Datagram) -> String {
    PacketView::new(&d.header, d.transport_len()).map_or("?".into(), |v| v.to_string())
}

/// The events that led to a state, for debugging.
fn trace(first: &Pair, path: &[Event]) -> String {
    let mut pair = first.clone();
    let mut text = String::new();
    for event in path {
        let packet = match *event {
            Event::Deliver(from, place)
            | Event::Lose(from, place)
            | Event::Duplicate(from, place) => describe(&pair.flight[from][place]),
            Event::Timer | Event::Close(_) | Event::SendOne(_) | Event::SendMany(_) => {
                String::new()
            }
        };
        pair.apply(*event);
        let states = [pair.state(CLIENT), pair.state(SERVER)];
        let _ = writeln!(text, "{event:?} {packet}\n    then {states:?}");
    }
    text
}

/// Searches breadth first; returns the number of different states.
fn search(first: &Pair, depth: usize) -> usize {
    let mut seen = HashSet::from([first.fingerprint()]);
    let mut frontier: Vec<(Pair, Vec<Event>)> = vec![(first.clone(), Vec::new())];
    for _ in 0..depth {
        let mut next = Vec::new();
        for (pair, path) in frontier {
            for event in pair.events() {
                let mut after = pair.clone();
                after.apply(event);
                if !seen.insert(after.fingerprint()) {
                    continue;
                }
                let mut path = path.clone();
                path.push(event);
                let held = after.check().and_then(|()| after.clone().settle());
                if let Err(fault) = held {
                    panic!("{fault}\n{}", trace(first, &path));
                }
                next.push((after, path));
            }
        }
        frontier = next;
    }
    seen.len()
}

#[expect(clippy::print_stderr, reason = "the reader is told how much was searched")]
fn report(name: &str, first: &Pair, depth: usize) {
    let deeper = std::env::var("UDCCP_DEPTH").ok().and_then(|d| d.parse().ok());
    let depth = deeper.unwrap_or(depth);
    let states = search(first, depth);
    eprintln!("{name}: depth {depth}, {states} states");
    assert!(states > 100);
}

//= 4340-8.3-3 test
#[test]
fn no_event_order_from_request_leaves_a_pair_stuck() {
    report("from the Request", &Pair::starting(config(false)), DEPTH);
}

#[test]
fn no_event_order_from_open_leaves_a_pair_stuck() {
    report("from OPEN", &Pair::open(config(false)), DEPTH);
}

#[test]
fn no_event_order_leaves_a_pair_stuck_with_server_timewait() {
    report("from OPEN, with a server that holds TIMEWAIT", &Pair::open(config(true)), DEPTH);
}

#[test]
fn no_order_of_sending_and_idling_blocks_a_sender() {
    for ccid in [2, 3, 4, 249, 250] {
        report(&format!("CCID {ccid}, sending"), &Pair::sending(ccid), SENDING_DEPTH);
    }
}
