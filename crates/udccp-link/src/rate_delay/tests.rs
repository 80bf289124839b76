//! Exact times, exact queues, and conservation, compared with a naive model.

use proptest::prelude::*;
use udccp_base::{DataRate, Datagram, Duration, Instant, Seed};

use super::{RateDelay, RateDelayConfig};
use crate::packet::tests::datagram;
use crate::{
    Chain, Change, Drops, Filter, GilbertElliott, Link, Loss, LossConfig, Packet, QueueLimit,
};

fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

fn link(mbps: u64, delay: Duration, limit: QueueLimit) -> RateDelay<Datagram> {
    RateDelay::new(RateDelayConfig { rate: Some(DataRate::from_mbps(mbps)), delay, limit })
}

/// A token bucket of 12 Mbit/s: the tokens of a byte take 667 ns, those of 1500 B a millisecond.
fn bucket(bytes: u32, limit: QueueLimit) -> RateDelay<Datagram> {
    link(12, Duration::ZERO, limit).with_token_bucket(bytes)
}

/// Takes everything out at the times that the link itself reports.
fn drain(link: &mut RateDelay<Datagram>) -> Vec<(u64, u32)> {
    let mut out = Vec::new();
    while let Some(now) = link.poll_timeout() {
        while let Some(packet) = link.poll_departure(now, &mut Drops::new()) {
            out.push((now.as_nanos(), packet.wire_len()));
        }
    }
    out
}

#[test]
fn delivery_is_serialisation_plus_propagation() {
    let mut link = link(100, Duration::from_millis(25), QueueLimit::Unlimited);
    let mut drops = Drops::new();
    link.handle_packet(at(1_000), datagram(1500), &mut drops);
    link.handle_packet(at(1_000), datagram(40), &mut drops);
    link.handle_packet(at(900_000), datagram(1500), &mut drops);
    let expected = [(25_121_000, 1500), (25_124_200, 40), (26_020_000, 1500)];
    assert_eq!(drain(&mut link), expected);
    assert_eq!(link.poll_timeout(), None);
}

#[test]
fn a_full_bucket_lets_a_packet_go_at_once_and_the_next_when_its_tokens_are_there() {
    let mut link = bucket(1_800, QueueLimit::Unlimited);
    let mut drops = Drops::new();
    for len in [1500, 1500, 1200, 150] {
        link.handle_packet(at(0), datagram(len), &mut drops);
    }
    // 300 bytes of tokens are left for the second packet, which waits 0.8 ms for 1200 more.
    let expected = [(0, 1500), (800_000, 1500), (1_600_000, 1200), (1_700_000, 150)];
    assert_eq!(drain(&mut link), expected);
    // 0.2 ms later there are 300 bytes: enough for two packets of 150, but not for a third.
    for _ in 0..3 {
        link.handle_packet(at(1_900_000), datagram(150), &mut drops);
    }
    assert_eq!(drain(&mut link), [(1_900_000, 150), (1_900_000, 150), (2_000_000, 150)]);
    assert!(drops.is_empty());
}

#[test]
fn a_bucket_never_holds_more_than_its_size() {
    let mut link = bucket(3_000, QueueLimit::Unlimited);
    let mut drops = Drops::new();
    for _ in 0..3 {
        link.handle_packet(at(1_000_000_000), datagram(1500), &mut drops);
    }
    let second = 1_000_000_000;
    assert_eq!(drain(&mut link), [(second, 1500), (second, 1500), (second + 1_000_000, 1500)]);
}

#[test]
fn a_packet_that_waits_for_tokens_takes_room_in_the_queue() {
    let mut link = bucket(1_500, QueueLimit::Bytes(3_000));
    let mut drops = Drops::new();
    for _ in 0..4 {
        link.handle_packet(at(0), datagram(1500), &mut drops);
    }
    assert_eq!((drops.len(), link.backlog(at(0)).packets), (1, 2));
    drops.clear();
    // The first waiting packet leaves after 1 ms. From then on there is room for one.
    link.handle_packet(at(999_999), datagram(1500), &mut drops);
    link.handle_packet(at(1_000_000), datagram(1500), &mut drops);
    assert_eq!((drops.len(), link.backlog(at(1_000_000)).packets), (1, 2));
}

#[test]
fn what_waits_for_tokens_on_an_idle_link_takes_room_too() {
    let mut link = bucket(100, QueueLimit::Bytes(2_000));
    let mut drops = Drops::new();
    link.handle_packet(at(0), datagram(1500), &mut drops);
    // The first one has begun, so this one finds an empty queue, of which it takes little.
    link.handle_packet(at(950_000), datagram(40), &mut drops);
    drain(&mut link);
    // Nothing is ahead of this one, but it waits for tokens: there is no room for another.
    for _ in 0..2 {
        link.handle_packet(at(10_000_000), datagram(1500), &mut drops);
    }
    assert_eq!((drops.len(), link.backlog(at(10_000_000)).packets), (1, 1));
}

#[test]
fn without_a_rate_only_the_delay_counts() {
    let mut link = RateDelay::new(RateDelayConfig {
        delay: Duration::from_nanos(7),
        ..RateDelayConfig::default()
    });
    let mut drops = Drops::new();
    for _ in 0..3 {
        link.handle_packet(at(5), datagram(1500), &mut drops);
    }
    assert_eq!(drain(&mut link), [(12, 1500); 3]);
}

#[test]
fn the_packet_on_the_transmitter_takes_no_room_in_the_queue() {
    let mut link = link(12, Duration::ZERO, QueueLimit::Packets(2));
    let mut drops = Drops::new();
    // 1 ms each: one in transmission, two waiting, no room for the fourth.
    for _ in 0..4 {
        link.handle_packet(at(0), datagram(1500), &mut drops);
    }
    assert_eq!(drops.len(), 1);
    assert_eq!(link.backlog(at(0)).packets, 2);
    // One nanosecond before the first ends, the queue is still full. At its end there is room.
    link.handle_packet(at(999_999), datagram(1500), &mut drops);
    assert_eq!(drops.len(), 2);
    link.handle_packet(at(1_000_000), datagram(1500), &mut drops);
    assert_eq!(drops.len(), 2);
    assert_eq!(link.backlog(at(1_000_000)).bytes, 3_000);
}

#[test]
fn a_queue_of_no_packets_passes_what_finds_the_transmitter_idle() {
    let mut link = link(12, Duration::ZERO, QueueLimit::Packets(0));
    let mut drops = Drops::new();
    for ms in 0..10 {
        link.handle_packet(at(ms * 1_000_000), datagram(1500), &mut drops);
    }
    assert_eq!(drops.len(), 0);
    link.handle_packet(at(9_500_000), datagram(1500), &mut drops);
    assert_eq!(drops.len(), 1);
}

#[test]
fn a_byte_limit_lets_a_short_packet_in_where_a_long_one_has_no_room() {
    let mut link = link(12, Duration::ZERO, QueueLimit::Bytes(3_100));
    let mut drops = Drops::new();
    for len in [1500, 1500, 1500, 1500, 100] {
        link.handle_packet(at(0), datagram(len), &mut drops);
    }
    assert_eq!(drops.iter().map(|d| d.0.wire_len()).collect::<Vec<_>>(), [1500]);
    assert_eq!(link.backlog(at(0)).bytes, 3_100);
}

#[test]
fn a_saturated_link_is_busy_all_the_time_and_no_more() {
    let mut link = link(100, Duration::from_millis(1), QueueLimit::Packets(10));
    let mut drops = Drops::new();
    for i in 0..20_000 {
        let now = at(i * 60_000);
        while link.poll_departure(now, &mut drops).is_some() {}
        link.handle_packet(now, datagram(1500), &mut drops);
    }
    let now = at(20_000 * 60_000);
    let stats = link.stats(now);
    assert_eq!(stats.utilisation(Duration::from_nanos(now.as_nanos())), 1.0);
    assert_eq!(stats.dropped_total().packets, drops.len() as u64);
    assert!(drops.len().abs_diff(10_000) < 20, "{}", drops.len());
    let delay = stats.queue_delay.quantile(0.5).unwrap().as_nanos() as f64;
    // Nine or ten packets of 120 us wait ahead of an arrival that is accepted.
    assert!((1_100_000.0..1_205_000.0).contains(&delay), "{delay}");
}

/// The naive model: every time from the exact rational sum, every queue by counting.
struct Model {
    bits_per_sec: u128,
    limit: QueueLimit,
    /// Exact end of the last transmission, in units of 1/rate nanoseconds.
    free: u128,
    begins: Vec<(u128, u32)>,
}

impl Model {
    fn arrive(&mut self, now: u64, len: u32) -> Option<u64> {
        let now = u128::from(now) * self.bits_per_sec;
        let waiting: Vec<u32> =
            self.begins.iter().filter(|(b, _)| *b > now).map(|(_, l)| *l).collect();
        let bytes: u64 = waiting.iter().map(|l| u64::from(*l)).sum();
        let admitted = match self.limit {
            QueueLimit::Unlimited => true,
            QueueLimit::Packets(n) => waiting.len() < n as usize,
            QueueLimit::Bytes(n) => bytes + u64::from(len) <= n,
        };
        if self.free > now && !admitted {
            return None;
        }
        let begin = self.free.max(now);
        self.begins.push((begin, len));
        self.free = begin + u128::from(len) * 8_000_000_000;
        Some(self.free.div_ceil(self.bits_per_sec) as u64)
    }
}

fn limits() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        Just(QueueLimit::Unlimited),
        (0..20_u32).prop_map(QueueLimit::Packets),
        (0..20_000_u64).prop_map(QueueLimit::Bytes),
    ]
}

proptest! {
    #[test]
    fn times_and_drops_are_those_of_the_naive_model(
        rate in 1_000_000..1_000_000_000_u64,
        delay in 0..2_000_000_u64,
        limit in limits(),
        arrivals in prop::collection::vec((0..40_000_u64, 28..1500_u32), 1..300),
        looks in any::<bool>(),
    ) {
        let rate_of = DataRate::from_bits_per_sec(rate);
        let delay = Duration::from_nanos(delay);
        let config = RateDelayConfig { rate: Some(rate_of), delay, limit };
        let mut link = RateDelay::<Datagram>::new(config);
        let mut model = Model { bits_per_sec: rate.into(), limit, free: 0, begins: Vec::new() };
        let (mut now, mut expected, mut got) = (0, Vec::new(), Vec::new());
        let mut drops = Drops::new();
        for (gap, len) in &arrivals {
            now += gap;
            while let Some(due) = link.poll_timeout().filter(|due| *due <= at(now)) {
                let packet = link.poll_departure(due, &mut drops).expect("due");
                got.push((due.as_nanos(), packet.wire_len()));
            }
            link.handle_packet(at(now), datagram(*len), &mut drops);
            // To look at the backlog tells the link which packets have begun.
            if looks {
                prop_assert!(limit.holds(link.backlog(at(now))));
            }
            if let Some(end) = model.arrive(now, *len) {
                expected.push((end + delay.as_nanos(), *len));
            }
        }
        let inside = link.packets_inside();
        let stats = link.stats(at(now));
        prop_assert_eq!(
            stats.arrived.packets,
            stats.departed.packets + stats.dropped_total().packets + inside as u64
        );
        got.extend(drain(&mut link));
        prop_assert_eq!(got, expected);
        prop_assert_eq!(drops.len() as u64, stats.dropped_total().packets);
    }
}

#[test]
fn jitter_makes_deliveries_later_and_keeps_their_order() {
    let below = Duration::from_micros(120);
    let deliveries = |jitter: Duration| {
        let rng = udccp_base::Seed(4).stream("jitter");
        let plain = link(100, Duration::from_millis(1), QueueLimit::Unlimited);
        let mut link = plain.with_jitter(jitter, rng);
        // Two packets at a time, each 120 us on the wire.
        for i in 0..2_000 {
            link.handle_packet(at(i / 2 * 1_000_000), datagram(1500), &mut Drops::new());
        }
        drain(&mut link).into_iter().map(|(ns, _)| ns).collect::<Vec<_>>()
    };
    let (plain, late) = (deliveries(Duration::ZERO), deliveries(below));
    assert!(late.is_sorted());
    let later: Vec<u64> = late.iter().zip(&plain).map(|(l, p)| l - p).collect();
    assert!(later.iter().all(|l| *l < below.as_nanos()), "{:?}", later.iter().max());
    let mean = later.iter().sum::<u64>() / later.len() as u64;
    assert!(mean.abs_diff(60_000) < 4_000, "mean {mean} ns");
}

#[test]
fn a_queue_is_empty_when_its_last_packet_has_left_it() {
    let mut drops = Drops::new();
    let mut line = link(12, Duration::from_millis(7), QueueLimit::Packets(2));
    let mut bucket =
        link(12, Duration::from_millis(7), QueueLimit::Packets(2)).with_token_bucket(1500);
    assert_eq!([line.empties_at(at(5)), bucket.empties_at(at(5))], [at(5); 2]);
    // 1 ms each; the fourth is dropped. A bucket lets each leave a transmission time earlier.
    for _ in 0..4 {
        line.handle_packet(at(0), datagram(1500), &mut drops);
        bucket.handle_packet(at(0), datagram(1500), &mut drops);
    }
    assert_eq!([line.empties_at(at(0)), bucket.empties_at(at(0))], [at(3_000_000), at(2_000_000)]);
    assert_eq!(line.empties_at(at(4_000_000)), at(4_000_000));
}

/// All outputs of a link with a packet every 700 us, and another loss model from the middle on.
fn all_of(mut link: impl Link<Datagram>) -> String {
    let (mut out, mut drops) = (Vec::new(), Drops::new());
    let end = at(700_000 * 4_000);
    for n in 0..4_000 {
        let now = at(700_000 * n);
        if n == 2_000 {
            link.change(now, &Change::Loss(LossConfig::EveryNth(7)), &mut drops);
        }
        while let Some(packet) = link.poll_departure(now, &mut drops) {
            out.push((now, packet.wire_len()));
        }
        link.handle_packet(now, datagram(1000 + n as u32 % 500), &mut drops);
    }
    let drops: Vec<_> = drops.iter().map(|(packet, reason)| (packet.wire_len(), reason)).collect();
    format!("{out:?} {drops:?} {:?} {:?}", link.stats(end), link.backlog(end))
}

#[test]
fn built_in_loss_equals_a_separate_loss_element() {
    let burst = GilbertElliott::with_bursts(0.1, 5.0).expect("such a channel");
    for loss in [LossConfig::None, LossConfig::Random(0.1), LossConfig::GilbertElliott(burst)] {
        // The link is too slow for all packets.
        let slow = || link(12, Duration::from_millis(5), QueueLimit::Packets(10));
        let rule = || Loss::new(loss.clone(), Seed(5).stream("loss"));
        let before = Chain::new(Box::new(Filter::new(rule()))).then(Box::new(slow()));
        assert_eq!(all_of(slow().with_loss(rule())), all_of(before), "{loss:?}");
    }
}
