//! Random connections of minutes to hours. Each end has settings from their whole range, sends and
//! pauses, reads and does not read. The network loses, duplicates, reorders, marks and blocks
//! packets. Then the network becomes perfect, and messages must get through.
//!
//! `UDCCP_TEST_CASES=2000 cargo test --release -p udccp-proto --test random_connections` runs more
//! cases, starting at `UDCCP_TEST_SEED`.

mod common;

use std::collections::HashSet;
use std::num::NonZeroU32;

use common::{Impairments, Net, Pair, SERVER};
use udccp_base::{Duration, Instant, Machine, Message, Payload, Rng, Seed};
use udccp_cc::{Algorithm, IdlePolicy, InitialWindow};
use udccp_proto::ccid::CcidRegistry;
use udccp_proto::ccid::ccid2::{AckRatioConfig, Pacing, SlowStartGrowth};
use udccp_proto::{ConnectionConfig, QueuePolicy, State};
use udccp_testkit::randomised;

/// Number of cases in ordinary test runs.
const CASES: u64 = 60;
/// Messages of each end on the final perfect network, half a second apart.
const FINAL_MESSAGES: usize = 20;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn pick<T: Clone>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize].clone()
}

/// A time between the two, with equal probability for each order of magnitude.
fn any_time(rng: &mut Rng, least: Duration, most: Duration) -> Duration {
    let (least, most) = (least.as_nanos() as f64, most.as_nanos() as f64);
    let part = rng.below(1 << 20) as f64 / f64::from(1 << 20);
    Duration::from_nanos((least * libm::pow(most / least, part)) as u64)
}

fn any_config(rng: &mut Rng, tx_ccids: &[u8], rx_ccids: &[u8]) -> ConnectionConfig {
    let (tx_ccids, rx_ccids) = (tx_ccids.to_vec(), rx_ccids.to_vec());
    let mut c = ConnectionConfig { tx_ccids, rx_ccids, ..ConnectionConfig::default() };
    if rng.chance(0.4) {
        let (cubic, vegas) = (Algorithm::Cubic(<_>::default()), Algorithm::Vegas(<_>::default()));
        c.ccid2.algorithm = pick(rng, &[cubic, vegas, Algorithm::Illinois(<_>::default())]);
    }
    let ratios = [
        AckRatioConfig::Adaptive { min: 2 },
        AckRatioConfig::Thinned { min: 2, acks: 5 },
        AckRatioConfig::Fixed(1),
        AckRatioConfig::Fixed(20),
    ];
    let idle = [IdlePolicy::Rfc7661, IdlePolicy::Rfc2861, IdlePolicy::Restart, IdlePolicy::Keep];
    let growths = [SlowStartGrowth::HalfOfPackets, SlowStartGrowth::EveryPacket];
    c.ccid2.slow_start = pick(rng, &growths);
    c.ccid2.initial_window = pick(rng, &[InitialWindow::Rfc3390, InitialWindow::Packets(1)]);
    c.ccid2.max_window = pick(rng, &[2, 5, 200, 6144]);
    c.ccid2.idle = pick(rng, &idle);
    c.ccid2.pacing = pick(rng, &[Pacing::Off, Pacing::NonValidated, Pacing::Always]);
    c.ccid2.max_train = pick(rng, &[1, 8, 64]);
    c.ccid2.ack_ratio = pick(rng, &ratios);
    c.ccid2.delayed_ack = pick(rng, &[MS, MS * 40, MS * 200]);
    for tfrc in [&mut c.ccid3, &mut c.ccid4.tfrc] {
        tfrc.oscillation_reduction = rng.chance(0.5);
        tfrc.granularity = pick(rng, &[MS, MS * 10]);
        tfrc.max_credit = pick(rng, &[Duration::MAX, Duration::ZERO, MS]);
    }
    c.sequence_window = pick(rng, &[100, 32, 100_000]);
    c.send_queue_packets = pick(rng, &[128, 1, 10]);
    c.queue_policy = pick(rng, &[QueuePolicy::Refuse, QueuePolicy::DropLowest]);
    c.recv_queue_packets = pick(rng, &[1024, 50]);
    c.hold_acks_when_full = rng.chance(0.8);
    c.ecn = rng.chance(0.8);
    c.ecn_probe = NonZeroU32::new(pick(rng, &[0, 0, 0, 10]));
    c.data_checksum = rng.chance(0.2);
    c.ndp_count = rng.chance(0.3);
    c.handshake_timestamps = rng.chance(0.8);
    c.path_mtu = pick(rng, &[1500, 9000, 576, 128]);
    c.pmtu_floor = (c.path_mtu < 576).then_some(c.path_mtu);
    c.keep_alive = pick(rng, &[None, None, Some(MS * 100), Some(SECOND * 30)]);
    c.silence_timeout = pick(rng, &[SECOND * 300, SECOND * 3600]);
    c.server_timewait = rng.chance(0.3);
    c.long_way_only = rng.chance(0.1);
    c
}

/// How one end sends and reads for a while.
#[derive(Clone, Copy)]
struct Workload {
    next: Instant,
    every: Duration,
    size: usize,
    at_once: u32,
    reads: bool,
}

struct RandomCase {
    rng: Rng,
    pair: Pair,
    sent: [u64; 2],
    received: [HashSet<u64>; 2],
}

impl RandomCase {
    /// Connects the two ends. Returns `None` if that fails.
    fn begin(seed: u64) -> Option<Self> {
        let mut rng = Seed(seed).stream("life");
        let ccids: [&[u8]; 7] = [&[2], &[3], &[4], &[2, 3], &[249], &[250], &[3, 2]];
        let (up, down) = (pick(&mut rng, &ccids), pick(&mut rng, &ccids));
        let client = any_config(&mut rng, up, down);
        let server = any_config(&mut rng, down, up);
        let mut net = Net::with_ccids(seed, CcidRegistry::with_experiments());
        net.delay = any_time(&mut rng, MS / 100, SECOND);
        let mut pair = Pair::starting(net, client, server);
        pair.pass(SECOND * 30);
        pair.ids[SERVER]?;
        Some(Self { rng, pair, sent: [0; 2], received: Default::default() })
    }

    fn is_over(&self) -> bool {
        (0..2).any(|end| self.pair.state(end) != Some(State::Open))
    }

    /// Offers a message. Returns whether it was accepted.
    fn send(&mut self, end: usize, size: usize) -> bool {
        let (now, id) = (self.pair.now, self.pair.id(end));
        let most = self.pair.ends[end].max_message_size(id).unwrap_or(8);
        let mut bytes = vec![end as u8; size.min(most).max(8)];
        bytes[..8].copy_from_slice(&self.sent[end].to_le_bytes());
        let mut message = Message::new(Payload::Bytes(bytes.into()));
        if self.rng.chance(0.05) {
            message.deadline = Some(now + any_time(&mut self.rng, MS, SECOND * 10));
        }
        let is_taken = self.pair.ends[end].send(now, id, message).is_ok();
        self.sent[end] += u64::from(is_taken);
        is_taken
    }

    /// Reads all waiting messages. Each was sent, and arrives once and complete.
    fn read(&mut self, end: usize) {
        for bytes in self.pair.received(end) {
            let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            assert!(number < self.sent[1 - end], "nobody sent {number}");
            assert!(bytes[8..].iter().all(|byte| *byte == 1 - end as u8), "{number} is broken");
            assert!(self.received[end].insert(number), "{number} came twice");
        }
    }

    /// Runs for a while with one set of impairments, and one behaviour at each end.
    fn run_phase(&mut self) {
        let rng = &mut self.rng;
        let most = pick(rng, &[60, 60, 4000]);
        let mut span = any_time(rng, MS * 10, SECOND * most);
        let impaired = Impairments {
            loss: pick(rng, &[0.001, 0.05, 0.3, 1.0]),
            duplicate: pick(rng, &[0.0, 0.05, 0.5]),
            reorder: pick(rng, &[0.0, 0.1, 0.9]),
            overtake: pick(rng, &[0.0, 0.03]),
            corrupt: pick(rng, &[0.0, 0.0, 0.01]),
        };
        self.pair.impairments = if rng.chance(0.4) { Impairments::default() } else { impaired };
        self.pair.filter = None;
        if rng.chance(0.1) {
            let end = rng.below(2) as usize;
            self.pair.mute(end);
        }
        self.pair.marks_all = rng.chance(0.1);
        if rng.chance(0.3) {
            self.pair.delay = any_time(rng, MS / 100, SECOND);
        }
        if rng.chance(0.1) {
            let end = rng.below(2) as usize;
            let (now, id) = (self.pair.now, self.pair.id(end));
            self.pair.ends[end].path_changed(now, id);
        }
        let start = self.pair.now;
        let mut workloads = [0, 1].map(|_| Workload {
            next: if rng.chance(0.6) { start } else { Instant::MAX },
            every: any_time(rng, MS, SECOND * 20),
            size: pick(rng, &[8, 100, 500, 1200, 9000]),
            at_once: pick(rng, &[1, 1, 10, 200]),
            reads: rng.chance(0.7),
        });
        if workloads.iter().any(|m| m.next == start && m.every < MS * 20) {
            span = span.min(SECOND * 10);
        }
        let until = start + span;
        while self.pair.now < until && !self.is_over() {
            for (end, workload) in workloads.iter_mut().enumerate() {
                if workload.next <= self.pair.now {
                    workload.next = self.pair.now + workload.every;
                    let taken = (0..workload.at_once).take_while(|_| self.send(end, workload.size));
                    taken.for_each(drop);
                }
                if workload.reads {
                    self.read(end);
                }
            }
            let next = workloads.iter().map(|m| m.next).fold(until, Instant::min);
            self.pair.pass(next - self.pair.now);
        }
    }

    fn pass(&mut self, seconds: u64) {
        for _ in 0..2 * seconds {
            self.pair.pass(MS * 500);
            (0..2).for_each(|end| self.read(end));
        }
    }

    /// Messages on the perfect network get through: within 64 s, and at a usable rate unless a
    /// rate-based sender has measured heavy losses before.
    fn assert_delivery_on_a_perfect_network(&mut self) {
        self.pair.impairments = Impairments::default();
        (self.pair.filter, self.pair.marks_all) = (None, false);
        self.pair.delay = self.pair.delay.min(MS * 100);
        self.pass(300);
        for end in 0..2 {
            self.send(end, 100);
            self.pass(140);
            let (mut taken, before) = (0, self.received[1 - end].len());
            for _ in 0..FINAL_MESSAGES {
                if self.is_over() {
                    return;
                }
                taken += usize::from(self.send(end, 100));
                self.pass(1);
            }
            self.pass(70);
            if self.is_over() {
                return;
            }
            let (stats, received) = (self.pair.stats(end), self.received[1 - end].len() - before);
            assert!(received > 0, "end {end} does not get through: {stats:?}");
            let is_slow = stats.loss_event_rate.is_some_and(|p| p > 0.05);
            // Some had deadlines.
            let least = if is_slow { 0 } else { FINAL_MESSAGES / 2 };
            assert!(
                taken.min(received + 6) >= least,
                "end {end}: {received} of {taken}, {stats:?}"
            );
        }
    }

    fn end(mut self) {
        for end in 0..2 {
            self.pair.close(end);
            let pause = any_time(&mut self.rng, MS, SECOND * 100);
            self.pair.pass(pause);
            (0..2).for_each(|end| self.read(end));
        }
        self.pass(1000);
        for end in 0..2 {
            let (now, id) = (self.pair.now, self.pair.id(end));
            self.pair.ends[end].release(now, id);
        }
        self.pair.pass(SECOND * 1000);
        for end in &self.pair.ends {
            assert_eq!((end.endpoint_stats().connections, end.poll_timeout()), (0, None));
        }
    }
}

#[test]
fn random_connections_always_resume_on_a_good_network() {
    let mut spoke = 0;
    for seed in randomised::seeds(CASES) {
        // A failing run prints the seed of the network.
        let Some(mut case) = RandomCase::begin(seed) else { continue };
        for _ in 0..3 + case.rng.below(10) {
            case.run_phase();
        }
        if !case.is_over() {
            case.assert_delivery_on_a_perfect_network();
            spoke += 1;
        }
        case.end();
    }
    assert!(spoke > 0, "all lives ended early");
}
