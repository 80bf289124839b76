//! Calls and ICMP messages at unusual times: settings change while messages wait, while one end
//! closes, and after the other is gone. Routers and hosts report true, false and forged errors, on
//! a network that loses, duplicates and reorders. Each message has one fate and arrives at most
//! once, the counters add up, and nothing is left at the end.
//!
//! `UDCCP_TEST_CASES=20000 cargo test --release -p udccp-proto --test random_calls` runs more
//! cases, starting at `UDCCP_TEST_SEED`.

mod common;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use common::pair::PORT;
use common::{CLIENT, Impairments, Net, Pair, SERVER, connect_options, listen_config};
use udccp_base::{Datagram, Duration, Machine, Message, Payload, Rng, Seed};
use udccp_proto::{
    ConnectionConfig, EventKind, InitCookies, ListenConfig, PathReport, PmtuProbing, QueuePolicy,
    State,
};
use udccp_testkit::randomised;
use udccp_wire::ServiceCode;

const CASES: u64 = 300;
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
/// MTUs that routers report; 0 is a router that reports none.
const MTUS: [u16; 12] = [0, 1, 68, 128, 296, 576, 1006, 1280, 1499, 1500, 9000, u16::MAX];
/// Bytes before the content of a message.
const NUMBER_BYTES: usize = 8;

fn pick<T: Clone>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize].clone()
}

fn any_config(rng: &mut Rng) -> ConnectionConfig {
    let ccids = pick(rng, &[vec![2], vec![3], vec![4], vec![2, 3, 4]]);
    let mut c = ConnectionConfig::default();
    (c.tx_ccids, c.rx_ccids) = (ccids.clone(), ccids);
    c.send_queue_packets = pick(rng, &[1, 3, 20, 512]);
    c.send_queue_bytes = pick(rng, &[1, 2000, 1 << 20]);
    c.recv_queue_packets = pick(rng, &[1, 5, 1024]);
    c.recv_queue_bytes = pick(rng, &[1, 3000, 1 << 20]);
    c.queue_policy = pick(rng, &[QueuePolicy::Refuse, QueuePolicy::DropLowest]);
    c.path_mtu = pick(rng, &[1500, 9000, 576, 1280]);
    c.pmtu_probing = rng.chance(0.5).then(PmtuProbing::default);
    c.server_timewait = rng.chance(0.3);
    c.close_linger = pick(rng, &[Duration::ZERO, MS * 50, SECOND * 5]);
    c.keep_alive = pick(rng, &[None, Some(MS * 300)]);
    c.idle_limit = pick(rng, &[None, Some(SECOND * 3)]);
    c.ecn = rng.chance(0.7);
    c.data_checksum = rng.chance(0.2);
    c
}

struct RandomCase {
    rng: Rng,
    pair: Pair,
    /// The packets of each end, the latest last.
    sent: Rc<RefCell<[Vec<Datagram>; 2]>>,
    taken: [u64; 2],
    awaited: [BTreeSet<u64>; 2],
    received: [HashSet<u64>; 2],
    bytes_read: [u64; 2],
    dropped: [u64; 2],
    is_over: [bool; 2],
    has_stopped_reading: [bool; 2],
    seen: [usize; 2],
}

impl RandomCase {
    fn begin(seed: u64) -> Self {
        let mut rng = Seed(seed).stream("moments");
        let mut net = Net::new(seed);
        let cookies = pick(&mut rng, &[InitCookies::Always, InitCookies::default()]);
        let listen = ListenConfig {
            backlog: pick(&mut rng, &[1, 128]),
            init_cookies: cookies,
            ..listen_config(any_config(&mut rng))
        };
        let listener = net.ends[SERVER].listen(None, PORT, listen).unwrap();
        let sent: Rc<RefCell<[Vec<Datagram>; 2]>> = Rc::default();
        let all = Rc::clone(&sent);
        net.filter = Some(Box::new(move |from, d| {
            all.borrow_mut()[from].push(d.clone());
            true
        }));
        net.impairments = random_impairments(&mut rng);
        net.delay = pick(&mut rng, &[MS / 10, MS * 10, MS * 200]);
        let data = if rng.chance(0.3) { vec![9; 100] } else { Vec::new() };
        let options = connect_options(any_config(&mut rng));
        let id = net.ends[0].connect_with_data(net.now, options, Payload::Bytes(data.into()));
        let ids = [Some(id.unwrap()), None];
        let pair = Pair { net, listener, ids, events: Default::default() };
        Self {
            rng,
            pair,
            sent,
            taken: [0; 2],
            awaited: Default::default(),
            received: Default::default(),
            bytes_read: [0; 2],
            dropped: [0; 2],
            is_over: [false; 2],
            has_stopped_reading: [false; 2],
            seen: [0; 2],
        }
    }

    fn send(&mut self, end: usize) {
        let (now, id) = (self.pair.now, self.pair.id(end));
        let rng = &mut self.rng;
        let most = self.pair.net.ends[end].max_message_size(id).unwrap_or(0);
        let size = match rng.below(4) {
            0 => most,
            1 => most + 1,
            _ => rng.below(most as u64 + 1) as usize,
        };
        let mut bytes = vec![end as u8; size.max(NUMBER_BYTES)];
        bytes[..NUMBER_BYTES].copy_from_slice(&self.taken[end].to_le_bytes());
        let mut message = Message::new(Payload::Bytes(bytes.into()));
        message.priority = rng.below(3) as u32;
        message.token = rng.chance(0.7).then_some(self.taken[end]);
        message.deadline = rng.chance(0.2).then(|| now + MS * rng.below(100));
        let token = message.token;
        if self.pair.ends[end].send(now, id, message).is_ok() {
            self.awaited[end].extend(token);
            self.taken[end] += 1;
        }
    }

    fn read(&mut self, end: usize) {
        for bytes in self.pair.received(end) {
            self.bytes_read[end] += bytes.len() as u64;
            if bytes == [9; 100] || bytes.is_empty() {
                continue;
            }
            let number = u64::from_le_bytes(bytes[..NUMBER_BYTES].try_into().unwrap());
            assert!(number < self.taken[1 - end], "nobody sent {number}");
            assert!(bytes[NUMBER_BYTES..].iter().all(|b| *b == 1 - end as u8), "broken");
            assert!(self.received[end].insert(number), "{number} came twice");
        }
    }

    /// A router or the peer's host reports an error about a packet of `end`, or somebody forges it.
    fn icmp(&mut self, end: usize) {
        let rng = &mut self.rng;
        let sent = self.sent.borrow();
        let Some(newest) = sent[end].len().checked_sub(1) else { return };
        let back = if rng.chance(0.7) { rng.below(4) } else { rng.below(500) } as usize;
        let d = &sent[end][newest.saturating_sub(back)];
        let mut quoted = d.header.to_vec();
        if rng.chance(0.3) {
            quoted.truncate(rng.below(quoted.len() as u64 + 1) as usize);
        }
        if rng.chance(0.2) && !quoted.is_empty() {
            let at = rng.below(quoted.len() as u64) as usize;
            quoted[at] = rng.below(256) as u8;
        }
        let report = match rng.below(4) {
            0 => PathReport::Unreachable,
            1 => PathReport::PortUnreachable,
            2 => PathReport::PathMtu(pick(rng, &MTUS)),
            _ => PathReport::PathMtu(d.transport_len() as u16 + 19),
        };
        let (src, dst) = (d.src, d.dst);
        drop(sent);
        let now = self.pair.now;
        self.pair.ends[end].handle_path_report(now, src, dst, &quoted, report);
    }

    fn set(&mut self, end: usize) {
        let (now, id) = (self.pair.now, self.pair.id(end));
        let rng = &mut self.rng;
        let target = &mut self.pair.net.ends[end];
        match rng.below(10) {
            0 => {
                let (packets, bytes) = (pick(rng, &[1, 3, 500]), pick(rng, &[1, 2000, 1 << 20]));
                target.set_send_queue(now, id, packets, bytes);
            }
            1 => {
                let policy = pick(rng, &[QueuePolicy::Refuse, QueuePolicy::DropLowest]);
                target.set_queue_policy(now, id, policy);
            }
            2 => {
                let linger = pick(rng, &[Duration::ZERO, MS * 10, SECOND]);
                target.set_close_linger(now, id, linger);
            }
            3 => target.set_server_timewait(now, id, rng.chance(0.5)),
            4 => target.set_slow_receiver(now, id, rng.chance(0.5)),
            5 => target.set_path_mtu(now, id, pick(rng, &MTUS)),
            6 => target.path_changed(now, id),
            7 => drop(target.rediscover_path_mtu(now, id)),
            8 => target.set_receive_backlog(rng.below(1001) as u16),
            _ => {
                let services = [ServiceCode(1), common::service()];
                let listener = self.pair.listener;
                let some = rng.below(3) as usize;
                let _ =
                    self.pair.net.ends[SERVER].set_services(listener, services[..some].to_vec());
            }
        }
    }

    fn finish(&mut self, end: usize) {
        let (now, id) = (self.pair.now, self.pair.id(end));
        match self.rng.below(20) {
            0 => self.pair.net.ends[end].abort(now, id),
            1 | 2 => {
                self.pair.net.ends[end].shutdown_read(now, id);
                self.has_stopped_reading[end] = true;
            }
            3..7 => self.pair.net.ends[end].close(now, id),
            _ => {}
        }
    }

    fn step(&mut self) {
        let end = self.rng.below(2) as usize;
        if self.pair.ids[end].is_none() {
            if self.rng.chance(0.3) {
                self.icmp(end);
            }
        } else {
            match self.rng.below(20) {
                0..9 => (0..self.rng.below(8)).for_each(|_| self.send(end)),
                9..12 => self.read(end),
                12..15 => self.icmp(end),
                15..18 => self.set(end),
                18 => self.finish(end),
                _ => self.pair.impairments = random_impairments(&mut self.rng),
            }
        }
        let span = pick(&mut self.rng, &[Duration::ZERO, MS, MS, MS * 20, MS * 300]);
        if self.rng.chance(0.9) {
            self.pair.pass(span);
        }
        self.check();
    }

    /// Checks fates and counters.
    fn check(&mut self) {
        self.pair.collect();
        for end in 0..2 {
            for kind in self.pair.events[end][self.seen[end]..].iter() {
                match kind {
                    EventKind::MessageFate { token, .. } => {
                        assert!(self.awaited[end].remove(token), "a fate of {token} too many");
                    }
                    EventKind::MessageDropped { .. } => self.dropped[end] += 1,
                    EventKind::Closed(_) => {
                        assert!(self.awaited[end].is_empty(), "no fate: {:?}", self.awaited[end]);
                        assert!(!self.is_over[end], "a second end");
                        self.is_over[end] = true;
                    }
                    _ => {}
                }
            }
            self.seen[end] = self.pair.events[end].len();
            self.check_counters(end);
        }
    }

    /// Checks that everything accepted is counted once.
    fn check_counters(&self, end: usize) {
        let Some(id) = self.pair.ids[end] else { return };
        let Some(stats) = self.pair.ends[end].stats(id) else { return };
        let (c, d) = (stats.counters, stats.counters.drops);
        let never_left = d.send_expired + d.send_displaced + d.send_ended + d.send_too_large;
        assert_eq!(never_left, self.dropped[end], "{stats:?}");
        let all = c.data_packets_sent + never_left + stats.send_queue_packets as u64;
        // The data of a failed Request did not pass through `send`.
        let request = u64::from(end == CLIENT) * d.send_ended.min(1);
        let taken = self.taken[end];
        assert!(all == taken || all == taken + request, "end {end}: {taken} of {stats:?}");
        if !self.has_stopped_reading[end] {
            let bytes = self.bytes_read[end] + stats.recv_queue_bytes as u64;
            assert_eq!(bytes, c.data_bytes_received, "end {end}: {stats:?}");
        }
    }

    fn end(mut self) {
        self.pair.impairments = Impairments::default();
        self.pair.ends.iter_mut().for_each(|end| end.set_receive_backlog(0));
        let calm = if self.rng.chance(0.5) { 600 } else { 0 };
        for _ in 0..calm {
            self.pair.pass(SECOND);
            for end in 0..2 {
                if self.pair.ids[end].is_some() {
                    self.read(end);
                }
            }
        }
        self.check();
        let both_open = (0..2).all(|end| self.pair.state(end) == Some(State::Open));
        if both_open && calm > 0 && self.bytes_read.iter().sum::<u64>() > 0 {
            for end in 0..2 {
                let stats = self.pair.stats(end);
                let full = self.pair.stats(1 - end).recv_queue_packets > 0;
                assert!(full || stats.send_queue_packets == 0, "waits for ever: {stats:?}");
                assert!(full || self.awaited[end].is_empty(), "no fate: {stats:?}");
            }
        }
        for end in 0..2 {
            if self.pair.ids[end].is_some() {
                self.pair.close(end);
            }
        }
        self.pair.pass(SECOND * 1000);
        self.check();
        for end in 0..2 {
            let Some(id) = self.pair.ids[end] else { continue };
            self.read(end);
            let now = self.pair.now;
            assert!(self.is_over[end], "end {end} has no end: {:?}", self.pair.stats(end));
            self.pair.ends[end].release(now, id);
        }
        let (now, listener) = (self.pair.now, self.pair.listener);
        self.pair.ends[SERVER].unlisten(now, listener);
        self.pair.pass(SECOND * 1000);
        for end in &self.pair.ends {
            assert_eq!((end.endpoint_stats().connections, end.poll_timeout()), (0, None));
        }
    }
}

fn random_impairments(rng: &mut Rng) -> Impairments {
    if rng.chance(0.4) {
        return Impairments::default();
    }
    Impairments {
        loss: pick(rng, &[0.0, 0.05, 0.4]),
        duplicate: pick(rng, &[0.0, 0.1]),
        reorder: pick(rng, &[0.0, 0.5]),
        overtake: pick(rng, &[0.0, 0.05]),
        corrupt: pick(rng, &[0.0, 0.02]),
    }
}

#[test]
fn random_calls_and_icmp_leave_no_state_behind() {
    for seed in randomised::seeds(CASES) {
        let mut case = RandomCase::begin(seed);
        for _ in 0..20 + case.rng.below(150) {
            case.step();
        }
        case.end();
    }
}
