//! Every combination of fates of a short connection's first packets: each packet arrives, is lost,
//! is duplicated or delayed, while both applications follow a script. In all cases:
//!
//! * each accepted message has exactly one fate, reported before its connection ends, and it is
//!   true: acknowledged messages can be read at the other end, and dropped ones arrive nowhere;
//! * the accepted messages are those that were sent or dropped, and no message arrives twice;
//! * both ends finish, and neither sends packets or sets timers for ever.
//!
//! The tests vary four packets: 256 combinations of each script with each setting. To vary more:
//! `UDCCP_PACKETS=6 cargo test --release -p udccp-proto --test loss_combinations`

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use Action::{
    Abort, Close, PathChanged, Release, ResumeReading, Send, SendExpiring, ShutRead, SlowReceiver,
    StopReading,
};
use bytes::Bytes;
use udccp_base::{Datagram, Duration, Instant, Machine, Message, Payload};
use udccp_proto::{
    ConnectOptions, ConnectionConfig, ConnectionCounters, ConnectionId, DropCounters, Endpoint,
    EndpointConfig, EventKind, ListenConfig, ListenerId, MessageFate, QueuePolicy, State,
};
use udccp_wire::{PacketView, ServiceCode};

const CLIENT: usize = 0;
const SERVER: usize = 1;
const PORT: u16 = 5001;
const SERVICE: ServiceCode = ServiceCode(42);
const START: Instant = Instant::from_nanos(1_000_000_000);

/// Number of packets whose fates are varied in ordinary test runs.
const PACKETS: u32 = 4;

/// The fates of a packet, with the times in ms after which it arrives.
const PACKET_FATES: [(&str, &[u64]); 4] =
    [("arrives", &[10]), ("is lost", &[]), ("comes twice", &[10, 35]), ("is late", &[45])];

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// An action of an application.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// Sends this many messages.
    Send(u64),
    /// Sends this many messages, each with a deadline of a few milliseconds.
    SendExpiring(u64),
    Close,
    Abort,
    Release,
    ShutRead,
    PathChanged,
    SlowReceiver,
    /// Stops reading.
    StopReading,
    ResumeReading,
}

/// The actions of each application and their times, in ms since this end has its connection.
type Script = &'static [(u64, usize, Action)];

const SCRIPTS: [Script; 11] = [
    &[(25, CLIENT, Send(2)), (30, CLIENT, Close), (3000, SERVER, Close)],
    &[(1, SERVER, Send(2)), (6, SERVER, Close), (3000, CLIENT, Close)],
    &[(25, CLIENT, Send(1)), (0, SERVER, Send(1)), (28, CLIENT, Close), (6, SERVER, Close)],
    &[(0, CLIENT, Send(2)), (0, CLIENT, Close), (3000, SERVER, Close)],
    &[(25, CLIENT, Send(3)), (33, CLIENT, Abort), (10, SERVER, Send(1)), (3000, SERVER, Close)],
    &[(25, CLIENT, Send(2)), (25, CLIENT, Release), (2, SERVER, Send(1)), (12, SERVER, Release)],
    &[
        (0, SERVER, ShutRead),
        (25, CLIENT, Send(2)),
        (60, CLIENT, Send(2)),
        (200, CLIENT, Close),
        (3000, SERVER, Close),
    ],
    &[
        (25, CLIENT, Send(2)),
        (28, CLIENT, PathChanged),
        (29, CLIENT, Send(1)),
        (15, SERVER, PathChanged),
        (16, SERVER, Send(1)),
        (90, SERVER, Close),
        (3000, CLIENT, Close),
    ],
    &[
        (0, SERVER, StopReading),
        (25, CLIENT, SendExpiring(4)),
        (80, CLIENT, Send(3)),
        (300, SERVER, ResumeReading),
        (310, CLIENT, Send(4)),
        (311, CLIENT, Close),
        (3000, SERVER, Close),
    ],
    &[
        (25, CLIENT, SendExpiring(9)),
        (10, SERVER, SendExpiring(4)),
        (60, CLIENT, SendExpiring(2)),
        (61, SERVER, Close),
        (400, CLIENT, Close),
    ],
    &[
        (0, SERVER, SlowReceiver),
        (25, CLIENT, Send(4)),
        (12, SERVER, Send(2)),
        (120, CLIENT, Close),
        (3000, SERVER, Close),
    ],
];

/// One end and its application.
struct End {
    host: Endpoint,
    id: Option<ConnectionId>,
    /// Since when this end has its connection.
    since: Option<Instant>,
    reads: bool,
    is_released: bool,
    accepted: BTreeSet<u64>,
    fates: BTreeMap<u64, MessageFate>,
    got: Vec<u64>,
    is_closed: bool,
    counters: ConnectionCounters,
}

impl End {
    fn new(n: u8) -> Self {
        Self {
            host: Endpoint::new(EndpointConfig::new([n; 32])),
            id: None,
            since: None,
            reads: true,
            is_released: false,
            accepted: BTreeSet::new(),
            fates: BTreeMap::new(),
            got: Vec::new(),
            is_closed: false,
            counters: ConnectionCounters::default(),
        }
    }

    fn attach(&mut self, now: Instant, id: ConnectionId) {
        (self.id, self.since) = (Some(id), Some(now));
    }

    fn note(&mut self, kind: EventKind) {
        assert!(!self.is_closed, "{kind:?} after the end");
        match kind {
            EventKind::MessageFate { token, fate } => {
                assert_eq!(self.fates.insert(token, fate), None, "a second fate of {token}");
            }
            EventKind::Closed(_) => self.is_closed = true,
            _ => {}
        }
    }

    fn read(&mut self, now: Instant) {
        let Some(id) = self.id.filter(|_| !self.is_released) else { return };
        while let Ok(Some(data)) = self.host.recv(now, id) {
            self.got.push(u64::from_be_bytes(data.to_bytes()[..8].try_into().unwrap()));
        }
    }

    fn send(&mut self, now: Instant, token: u64, deadline: Option<Instant>) {
        let mut data = vec![0; 500];
        data[..8].copy_from_slice(&token.to_be_bytes());
        let message = Message {
            token: Some(token),
            priority: (token % 3) as u32,
            deadline,
            ..Message::new(Payload::Bytes(Bytes::from(data)))
        };
        if self.id.is_some_and(|id| self.host.send(now, id, message).is_ok()) {
            self.accepted.insert(token);
        }
    }
}

struct World {
    now: Instant,
    ends: [End; 2],
    listener: ListenerId,
    travelling: BTreeMap<(Instant, u64), (usize, Datagram)>,
    sent: u64,
    /// The fates of the first packets.
    packet_fates: Vec<usize>,
    script: Vec<(u64, usize, Action)>,
    tokens: u64,
    trace: Option<String>,
}

impl World {
    fn new(config: &ConnectionConfig, script: Script, packet_fates: &[usize]) -> Self {
        let mut ends = [End::new(1), End::new(2)];
        let connection = config.clone();
        let listen = ListenConfig { connection: connection.into(), ..ListenConfig::new(SERVICE) };
        let listener = ends[SERVER].host.listen(None, PORT, listen).unwrap();
        let options = ConnectOptions {
            local: "10.0.0.1:0".parse().unwrap(),
            local_port: Some(40_000),
            remote: "10.0.0.2:0".parse().unwrap(),
            remote_port: PORT,
            service: SERVICE,
            config: config.clone().into(),
        };
        let id = ends[CLIENT].host.connect(START, options).unwrap();
        ends[CLIENT].attach(START, id);
        Self {
            now: START,
            ends,
            listener,
            travelling: BTreeMap::new(),
            sent: 0,
            packet_fates: packet_fates.to_vec(),
            script: script.to_vec(),
            tokens: 0,
            trace: None,
        }
    }

    fn log(&mut self, end: usize, what: impl FnOnce() -> String) {
        let Some(trace) = &mut self.trace else { return };
        let at = (self.now - START).as_millis_f64();
        let _ = writeln!(trace, "{at:10.3} {} {}", ["C", "S"][end], what());
    }

    fn put(&mut self, from: usize, d: &Datagram) {
        let packet_fates = self.packet_fates.get(self.sent as usize).copied().unwrap_or(0);
        let (name, times) = PACKET_FATES[packet_fates];
        self.log(from, || {
            let view = PacketView::new(&d.header, d.transport_len());
            format!("{} {name}", view.map_or_else(|e| e.to_string(), |view| view.to_string()))
        });
        for (n, &after) in (0..).zip(times) {
            let key = (self.now + ms(after), 2 * self.sent + n);
            self.travelling.insert(key, (1 - from, d.clone()));
        }
        self.sent += 1;
    }

    fn drain(&mut self) {
        for end in [CLIENT, SERVER] {
            while let Some(d) = self.ends[end].host.poll_transmit(self.now) {
                self.put(end, &d);
                assert!(self.sent < 400, "the ends never stop sending");
            }
            assert_eq!(self.ends[end].host.stalled(self.now), None, "a message waits for nothing");
            while let Some(event) = self.ends[end].host.poll_event() {
                // A late Request may open another connection, which has no owner.
                if self.ends[end].id.is_none_or(|id| id == event.id) {
                    self.log(end, || format!("{:?}", event.kind));
                    self.ends[end].note(event.kind);
                }
            }
            if end == SERVER && self.ends[end].id.is_none() {
                let accepted = self.ends[end].host.accept(self.listener);
                accepted.into_iter().for_each(|id| self.ends[end].attach(self.now, id));
            }
            let it = &mut self.ends[end];
            if it.reads {
                it.read(self.now);
            }
            if let Some(counters) = it.id.and_then(|id| it.host.counters(id)) {
                it.counters = counters;
            }
        }
    }

    fn action(&mut self, end: usize, action: Action) {
        self.log(end, || format!("does {action:?}"));
        let (now, it) = (self.now, &mut self.ends[end]);
        let id = it.id.expect("it has begun");
        match action {
            Send(count) | SendExpiring(count) => {
                let deadline = matches!(action, SendExpiring(_)).then(|| now + ms(3));
                for _ in 0..count {
                    self.tokens += 1;
                    it.send(now, self.tokens, deadline);
                }
            }
            Close => it.host.close(now, id),
            Abort => it.host.abort(now, id),
            ShutRead => it.host.shutdown_read(now, id),
            PathChanged => it.host.path_changed(now, id),
            SlowReceiver => it.host.set_slow_receiver(now, id, true),
            StopReading => it.reads = false,
            ResumeReading => it.reads = true,
            Release => {
                it.host.release(now, id);
                it.is_released = true;
            }
        }
    }

    fn next_action(&self) -> Option<(Instant, usize)> {
        let of_script = self.script.iter().zip(0..);
        let due = of_script.filter_map(|((after, end, _), n)| {
            self.ends[*end].since.map(|since| (since + ms(*after), n))
        });
        due.min()
    }

    /// Runs until there are no more events.
    fn run(&mut self) {
        let mut turns = 0;
        self.drain();
        loop {
            let action = self.next_action();
            let timers = self.ends.iter().filter_map(|end| end.host.poll_timeout()).min();
            let arrival = self.travelling.first_key_value().map(|((at, _), _)| *at);
            let next = [action.map(|action| action.0), timers, arrival].into_iter().flatten().min();
            let Some(next) = next else { return };
            turns = if next > self.now { 0 } else { turns + 1 };
            assert!(turns < 20, "time stands still: a timer fires for ever");
            self.now = self.now.max(next);
            let now = self.now;
            for end in &mut self.ends {
                if end.host.poll_timeout().is_some_and(|at| at <= now) {
                    end.host.handle_timeout(now);
                }
            }
            while let Some(first) = self.travelling.first_entry().filter(|f| f.key().0 <= now) {
                let (to, d) = first.remove();
                self.ends[to].host.handle_datagram(now, d);
            }
            if let Some((_, n)) = action.filter(|(at, _)| *at <= now) {
                let (_, end, action) = self.script.remove(n);
                self.action(end, action);
            }
            self.drain();
        }
    }

    /// Checks the final state.
    fn check(&mut self) {
        for end in [CLIENT, SERVER] {
            let it = &mut self.ends[end];
            let state = it.id.and_then(|id| it.host.state(id));
            assert!(state.is_none_or(State::is_over), "end {end} is in {state:?}");
            assert_eq!(it.host.endpoint_stats().connections, 0, "end {end} holds some");
            it.read(self.now);
            let (to, from) = (&self.ends[end], &self.ends[1 - end]);
            let arrived: BTreeSet<u64> = to.got.iter().copied().collect();
            assert_eq!(arrived.len(), to.got.len(), "twice: {:?}", to.got);
            assert!(arrived.is_subset(&from.accepted), "{arrived:?}");
            for (token, fate) in &from.fates {
                let has = arrived.contains(token);
                match fate {
                    MessageFate::Acknowledged => {
                        assert!(has || to.is_released, "{token}: {fate:?}")
                    }
                    MessageFate::Dropped(_) => assert!(!has, "{token}: {fate:?}"),
                    _ => {}
                }
            }
            if from.is_released {
                continue;
            }
            let told: BTreeSet<u64> = from.fates.keys().copied().collect();
            assert_eq!(told, from.accepted, "one fate for each");
            let (counters, accepted) = (&from.counters, from.accepted.len() as u64);
            assert_eq!(counters.data_packets_sent + dropped(&counters.drops), accepted);
        }
    }
}

/// Messages that were never sent.
fn dropped(drops: &DropCounters) -> u64 {
    drops.send_expired + drops.send_displaced + drops.send_ended + drops.send_too_large
}

fn of(ccid: u8) -> ConnectionConfig {
    let (tx_ccids, rx_ccids) = (vec![ccid], vec![ccid]);
    ConnectionConfig { tx_ccids, rx_ccids, ..ConnectionConfig::default() }
}

/// Settings with small queues and short timeouts.
fn narrow(ccid: u8) -> ConnectionConfig {
    ConnectionConfig {
        send_queue_packets: 2,
        queue_policy: QueuePolicy::DropLowest,
        recv_queue_packets: 2,
        close_linger: ms(60),
        close_retries: 2,
        request_retries: 1,
        ..of(ccid)
    }
}

/// Runs every combination for every script.
fn run_seeds(config: &ConnectionConfig) {
    let packets = std::env::var("UDCCP_PACKETS").ok().and_then(|n| n.parse().ok());
    let packets = packets.unwrap_or(PACKETS);
    for script in SCRIPTS {
        for combination in 0..PACKET_FATES.len().pow(packets) {
            let digits =
                std::iter::successors(Some(combination), |left| Some(left / PACKET_FATES.len()));
            let packet_fates = digits.map(|left| left % PACKET_FATES.len()).take(packets as usize);
            let packet_fates: Vec<usize> = packet_fates.collect();
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let mut world = World::new(config, script, &packet_fates);
                world.run();
                world.check();
            }));
            if outcome.is_err() {
                let mut world = World::new(config, script, &packet_fates);
                world.trace = Some(String::new());
                let _ = catch_unwind(AssertUnwindSafe(|| world.run()));
                panic!("the failure above, in this run:\n{}", world.trace.unwrap_or_default());
            }
        }
    }
}

#[test]
fn fates_are_true_under_every_single_loss_with_ccid_2() {
    run_seeds(&of(2));
}

#[test]
fn fates_are_true_under_every_single_loss_with_ccid_3() {
    run_seeds(&of(3));
}

#[test]
fn fates_are_true_under_every_single_loss_with_short_queues() {
    run_seeds(&narrow(2));
    run_seeds(&narrow(3));
}
