//! Senders of CCID 3 and 4 whose receiver's feedback cannot be used, or is late, copied or lost for
//! hours. The nofeedback timer lowers the rate to a packet in 64 s, and never stops the sender (RFC
//! 5348 section 4.4). Usable feedback then brings the rate back.

mod common;

use std::sync::Arc;

use common::path::{Loses, Path};
use common::world::{Host, World};
use common::{CLIENT, SERVER, connect_options};
use udccp_base::{Duration, Instant, Seed};
use udccp_proto::ccid::ccid3::{Ccid3Receiver, Ccid3Sender, NEEDED_FEATURES, NUMBER};
use udccp_proto::ccid::{
    CcidFactory, CcidReceiver, CcidRegistry, CcidSender, CcidSetup, FeatureNeed, Feedback,
    OptionSink, ReceivedInfo,
};
use udccp_proto::{ConnectionConfig, EndpointConfig, State};
use udccp_wire::{LossInterval, OptionRef, Seqno};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// How a receiver spoils its feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spoils {
    Nothing,
    /// It sends no options.
    All,
    NoRate,
    RateOfZero,
    NoLosses,
    /// Its Loss Intervals reach back to long before the connection.
    FalseIntervals,
}

impl Spoils {
    fn write(self, sink: &mut dyn OptionSink, option: &OptionRef<'_>) -> bool {
        let is_loss =
            matches!(option, OptionRef::LossIntervals { .. } | OptionRef::LossEventRate(_));
        match (self, option) {
            (Self::All, _) => true,
            (Self::NoRate, OptionRef::ReceiveRate(_)) => true,
            (Self::RateOfZero, OptionRef::ReceiveRate(_)) => {
                sink.option(&OptionRef::ReceiveRate(0))
            }
            (Self::NoLosses, _) if is_loss => true,
            (Self::FalseIntervals, OptionRef::LossIntervals { .. }) => {
                let long = LossInterval {
                    lossless_length: 0xff_ffff,
                    loss_length: 0x7f_ffff,
                    data_length: 0xff_ffff,
                    nonce_echo: false,
                };
                let bytes = [long.to_bytes(), long.to_bytes()].concat();
                sink.option(&OptionRef::LossIntervals { skip_length: 0, intervals: &bytes })
            }
            (Self::FalseIntervals, OptionRef::LossEventRate(_)) => true,
            _ => sink.option(option),
        }
    }
}

struct Spoiling<'a>(&'a mut dyn OptionSink, Spoils);

impl OptionSink for Spoiling<'_> {
    fn option(&mut self, option: &OptionRef<'_>) -> bool {
        self.1.write(self.0, option)
    }

    fn room_bytes(&self) -> usize {
        self.0.room_bytes()
    }
}

#[derive(Clone, Debug)]
struct Receiver(Ccid3Receiver, Spoils);

impl CcidReceiver for Receiver {
    fn ccid(&self) -> u8 {
        NUMBER
    }

    fn on_packet(&mut self, now: Instant, packet: &ReceivedInfo) {
        self.0.on_packet(now, packet);
    }

    fn feedback(&self, now: Instant) -> Feedback {
        self.0.feedback(now)
    }

    fn feedback_len_bytes(&self) -> usize {
        self.0.feedback_len_bytes()
    }

    fn write_options(&mut self, now: Instant, sink: &mut dyn OptionSink) {
        self.0.write_options(now, &mut Spoiling(sink, self.1));
    }

    fn on_feedback_sent(&mut self, now: Instant, seq: Seqno) {
        self.0.on_feedback_sent(now, seq);
    }

    fn set_rtt(&mut self, rtt: Duration) {
        self.0.set_rtt(rtt);
    }

    fn newest(&self) -> Option<(Seqno, Instant)> {
        self.0.newest()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.0.handle_timeout(now);
    }
}

#[derive(Debug)]
struct Factory(Spoils);

impl CcidFactory for Factory {
    fn sender(&self, setup: &CcidSetup<'_>) -> Box<dyn CcidSender> {
        Box::new(Ccid3Sender::new(setup.ccid3, setup.packet_size_bytes))
    }

    fn receiver(&self, setup: &CcidSetup<'_>) -> Box<dyn CcidReceiver> {
        Box::new(Receiver(Ccid3Receiver::new(setup.ccid3), self.0))
    }

    fn needed_features(&self) -> &'static [FeatureNeed] {
        NEEDED_FEATURES
    }
}

/// A client that sends with this CCID to a server that spoils its feedback.
fn world(ccid: u8, spoils: Spoils) -> World {
    let hosts = ["client", "server"].map(|name| {
        let mut ccids = CcidRegistry::default();
        if name == "server" && spoils != Spoils::Nothing {
            ccids = CcidRegistry::empty();
            ccids.register(NUMBER, Arc::new(Factory(spoils))).unwrap();
        }
        let secret = Seed(1).stream(name).bytes32();
        Host::with(EndpointConfig { ccids, ..EndpointConfig::new(secret) }, Instant::ZERO + SECOND)
    });
    let config = ConnectionConfig {
        tx_ccids: vec![ccid],
        rx_ccids: vec![ccid],
        silence_timeout: SECOND * 1_000_000,
        ..ConnectionConfig::default()
    };
    let rng = Seed(1).stream("network");
    let mut world = World::between(1, rng, hosts, connect_options(config), MS * 50);
    let path = Path { rate: Some(60_000), queue: MS * 500, ..Path::default() };
    world.paths = [path.clone(), path];
    world.size = 300;
    world
}

/// The client sends all that it may. Returns how many packets left.
fn send(world: &mut World, span: Duration) -> u64 {
    let sent = |world: &World| {
        world.hosts[CLIENT].end.stats(world.id(CLIENT)).unwrap().counters.data_packets_sent
    };
    let (until, before) = (world.now + span, sent(world));
    while world.now < until {
        while world.offer(CLIENT) {}
        world.pass(MS * 50);
        world.read(SERVER);
    }
    sent(world) - before
}

/// The sender never stops, and after an hour sends at most `most` packets in 130 s.
fn assert_slow_but_alive(world: &mut World, most: u64, case: &str) {
    for n in 0..30 {
        let sent = send(world, SECOND * 130);
        assert!(sent >= 1, "{case}: nothing in part {n}: {}", world.stats());
        assert!(n < 28 || sent <= most, "{case}: {sent} packets in part {n}: {}", world.stats());
    }
    assert_eq!(world.state(CLIENT), Some(State::Open), "{case}");
}

//= 5348-4.4-1 test
#[test]
fn unusable_feedback_slows_a_sender_down_and_never_stops_it() {
    use Spoils::{All, FalseIntervals, NoLosses, NoRate, RateOfZero};
    // A packet in 64 s. A rate of zero without losses can be used, and leaves the initial rate of
    // four packets in a round-trip time (section 4.3).
    for (spoils, most) in
        [(All, 4), (NoRate, 4), (NoLosses, 4), (FalseIntervals, 4), (RateOfZero, 130 * 40)]
    {
        let mut world = world(NUMBER, spoils);
        assert_slow_but_alive(&mut world, most, &format!("{spoils:?}"));
    }
}

/// Regression: after large messages, small ones left as rarely as large ones would have, and
/// reports of what arrived kept the rate at that for hours.
#[test]
fn feedback_that_is_lost_for_an_hour_slows_a_sender_down_until_it_returns() {
    for ccid in [3, 4] {
        for size in [300, 20] {
            // The least rate of CCID 4 is that of a full packet in 64 s, with headers.
            let most = if ccid == 3 { 4 } else { 130 / 64 * 1460 / (size as u64 + 36) + 4 };
            let mut world = world(ccid, Spoils::Nothing);
            send(&mut world, SECOND * 100);
            let usual = send(&mut world, SECOND * 30);
            let whole = world.paths[SERVER].clone();
            (world.paths[SERVER].loss, world.paths[SERVER].loses) = (1.0, Loses::Any);
            world.size = size;
            assert_slow_but_alive(&mut world, most, &format!("CCID {ccid}"));
            world.paths[SERVER] = whole;
            send(&mut world, SECOND * 200);
            let sent = send(&mut world, SECOND * 30);
            let case = format!("CCID {ccid}, {size} bytes: {sent} of {usual}");
            assert!(sent * 3 >= usual, "{case}: {}", world.stats());
        }
    }
}

/// Each acknowledgement arrives twice, and up to ten seconds late.
#[test]
fn feedback_that_is_late_and_copied_does_not_hold_a_sender_back_for_long() {
    for ccid in [3, 4] {
        let mut world = world(ccid, Spoils::Nothing);
        let whole = world.paths[SERVER].clone();
        world.paths[SERVER] =
            Path { duplicate: 1.0, reorder: 1.0, detour: SECOND * 10, ..whole.clone() };
        for n in 0..10 {
            let sent = send(&mut world, SECOND * 130);
            assert!(sent >= 30, "CCID {ccid}: {sent} packets in part {n}");
        }
        world.paths[SERVER] = whole;
        send(&mut world, SECOND * 200);
        let sent = send(&mut world, SECOND * 30);
        assert!(sent >= 500, "CCID {ccid}: {sent}: {}", world.stats());
    }
}
