//! Applications that pause, change direction and send bursts, over paths that fail in one or both
//! directions, between hosts that may sleep. Once the path works again, the next datagram is
//! delivered within a bounded time, and no more is sent at once than the silence allows.
//!
//! `UDCCP_TEST_CASES=5000 cargo test --release -p udccp-proto --test outages` runs more cases,
//! starting at `UDCCP_TEST_SEED`.

mod common;

use common::pair::lasting;
use common::{CLIENT, Net, Pair, SERVER};
use udccp_base::{Duration, Rng, Seed};
use udccp_proto::State;
use udccp_testkit::randomised;

const CASES: u64 = 12;
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
/// Interval at which a sending application offers messages.
const TICK: Duration = Duration::from_millis(50);
/// A rate-based sender sends at least one packet in 64 s (RFC 5348 section 4.3), and no transmit
/// timeout is longer. The first packet after a long silence may be outside the peer's window: it
/// causes a Sync, and the next one arrives.
const BOUND: Duration = Duration::from_secs(2 * 64 + 3);

fn pick<T: Clone>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize].clone()
}

struct RandomCase {
    seed: u64,
    rng: Rng,
    pair: Pair,
    ccid: u8,
    received: [u64; 2],
}

impl RandomCase {
    fn begin(seed: u64) -> Self {
        let mut rng = Seed(seed).stream("silences");
        let ccid = pick(&mut rng, &[2, 3, 4]);
        let keep_alive = pick(&mut rng, &[None, Some(SECOND * 25)]);
        let mut net = Net::new(seed);
        net.delay = pick(&mut rng, &[MS / 10, MS * 5, MS * 50, MS * 300]);
        Self { rng, ..Self::with(seed, ccid, net, keep_alive) }
    }

    /// Two ends that survive any silence.
    fn with(seed: u64, ccid: u8, net: Net, keep_alive: Option<Duration>) -> Self {
        let pair = Pair::connected_with(net, lasting(ccid, keep_alive));
        Self { seed, rng: Seed(seed).stream("silences"), pair, ccid, received: [0; 2] }
    }

    fn read(&mut self) {
        for end in [CLIENT, SERVER] {
            self.received[end] += self.pair.received(end).len() as u64;
        }
    }

    /// One end sends messages at an interval for a while.
    fn send_for(&mut self, end: usize, span: Duration, every: Duration, size: usize) {
        let until = self.pair.now + span;
        while self.pair.now < until {
            self.pair.try_send(end, &vec![1; size]);
            self.pair.pass(every);
            self.read();
        }
    }

    /// A new message of one end arrives in time.
    fn assert_delivery(&mut self, end: usize) {
        let (start, before) = (self.pair.now, self.received[1 - end]);
        while self.received[1 - end] == before {
            assert!(
                self.pair.now - start <= BOUND,
                "seed {}, CCID {}: {:?}",
                self.seed,
                self.ccid,
                self.pair.stats(end)
            );
            self.pair.try_send(end, &[2; 100]);
            self.pair.pass(TICK);
            self.read();
        }
    }

    /// Cuts the path, in one or both directions, while the ends send or not.
    fn cut_path(&mut self) {
        let mute = pick(&mut self.rng, &[None, Some(CLIENT), Some(SERVER)]);
        match mute {
            Some(end) => self.pair.mute(end),
            None => self.pair.filter = Some(Box::new(|_, _| false)),
        }
        let span = pick(&mut self.rng, &[MS * 100, SECOND, SECOND * 5, SECOND * 30, SECOND * 300]);
        let sender = pick(&mut self.rng, &[None, Some(CLIENT), Some(SERVER)]);
        match sender {
            Some(end) => self.send_for(end, span, TICK, 400),
            None => self.pair.pass(span),
        }
        if self.rng.chance(0.3) {
            // Both hosts sleep: time jumps, and all timers are late.
            let slept = pick(&mut self.rng, &[SECOND, SECOND * 60, SECOND * 4000]);
            self.pair.net.now = self.pair.now + slept;
        }
        self.pair.filter = None;
    }
}

fn run_case(seed: u64) {
    let mut case = RandomCase::begin(seed);
    for _ in 0..6 {
        let end = case.rng.below(2) as usize;
        let every = pick(&mut case.rng, &[MS, MS * 20, MS * 500]);
        let size = pick(&mut case.rng, &[10, 200, 1300]);
        let span = pick(&mut case.rng, &[SECOND, SECOND * 5]);
        case.send_for(end, span, every, size);
        if case.rng.chance(0.4) {
            let idle = pick(&mut case.rng, &[SECOND, SECOND * 30, SECOND * 1000]);
            case.pair.pass(idle);
        }
        if case.rng.chance(0.7) {
            case.cut_path();
        }
        for end in [end, 1 - end] {
            case.assert_delivery(end);
        }
        assert_eq!([0, 1].map(|end| case.pair.state(end)), [Some(State::Open); 2]);
    }
}

/// The round-trip time of a late acknowledgement measures the sleep of a host and not the path. It
/// must not make the connection count as active for hours: then a Sync could not close the gap that
/// lost packets leave.
#[test]
fn a_gap_closes_soon_after_a_host_has_slept() {
    for ccid in [2, 3, 4] {
        let mut case = RandomCase::with(1, ccid, Net::new(1), None);
        for _ in 0..3 {
            case.pair.send(CLIENT, b"how far is it?");
            case.pair.net.drain();
            case.pair.net.now = case.pair.now + SECOND * 200;
            case.pair.pass(SECOND);
        }
        let rtt = case.pair.stats(CLIENT).srtt.unwrap();
        assert!(rtt > SECOND * 50, "CCID {ccid}: {rtt}");
        case.pair.mute(SERVER);
        let lost = case.pair.stats(SERVER).counters.packets_sent + 100;
        while case.pair.stats(SERVER).counters.packets_sent < lost {
            case.send_for(SERVER, TICK, TICK, 100);
        }
        case.pair.filter = None;
        case.read();
        case.assert_delivery(SERVER);
    }
}

/// A sample longer than a packet's lifetime measures nothing. With a round-trip time of hours,
/// CCID 3 would need hours to recover its rate.
#[test]
fn a_host_that_has_slept_for_long_sends_as_before() {
    for ccid in [2, 3, 4] {
        let mut case = RandomCase::with(1, ccid, Net::new(1), None);
        case.send_for(CLIENT, SECOND * 5, MS * 20, 100);
        case.pair.send(CLIENT, b"good night");
        case.pair.net.drain();
        case.pair.net.now = case.pair.now + SECOND * 4000;
        case.send_for(CLIENT, SECOND * 60, MS * 20, 100);
        let before = case.received[SERVER];
        case.send_for(CLIENT, SECOND * 10, MS * 20, 100);
        let rtt = case.pair.stats(CLIENT).srtt.unwrap();
        let received = case.received[SERVER] - before;
        assert!(received > 450 && rtt < SECOND * 10, "CCID {ccid}: {received} of 500, {rtt}");
    }
}

/// Where acknowledgements may wait for ever for a second packet, a timer still tells that the first
/// was lost.
#[test]
fn unlimited_ack_delay_stops_no_sender() {
    let mut config = lasting(2, None);
    config.ccid2.delayed_ack = Duration::MAX;
    config.ccid2.initial_window = udccp_cc::InitialWindow::Packets(1);
    let pair = Pair::connected_with(Net::new(1), config);
    let mut case = RandomCase { pair, ..RandomCase::with(1, 2, Net::new(1), None) };
    case.pair.mute(CLIENT);
    case.pair.send(CLIENT, b"is lost");
    case.pair.pass(SECOND);
    case.pair.filter = None;
    case.assert_delivery(CLIENT);
}

#[test]
fn next_datagram_arrives_in_time_once_the_path_works() {
    randomised::seeds(CASES).for_each(run_case);
}
