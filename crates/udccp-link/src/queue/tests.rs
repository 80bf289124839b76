//! Properties of every queue, and the timing of CoDel and FQ-CoDel.

use proptest::prelude::*;
use udccp_base::{DataRate, Datagram, Duration, Ecn, Instant, Payload, Seed};

use super::*;
use crate::packet::tests::datagram;
use crate::stats::DropReason;

fn at(us: u64) -> Instant {
    Instant::from_nanos(us * 1_000)
}

/// A packet of flow `flow`.
fn of_flow(flow: u8, len: u32) -> Datagram {
    let mut packet = datagram(len);
    packet.src = ([10, 0, 1, flow], 0).into();
    packet
}

fn lengths(drops: &Drops<Datagram>) -> Vec<u32> {
    drops.iter().map(|(packet, _)| packet.wire_len()).collect()
}

#[test]
fn drop_head_drops_the_oldest_packets() {
    let mut queue = DropHead::new(QueueLimit::Bytes(3_000));
    let mut drops = Drops::new();
    for len in [1001, 1002, 900, 1500, 3_001] {
        queue.enqueue(at(0), datagram(len), false, &mut drops);
    }
    assert_eq!(lengths(&drops), [1001, 1002, 900, 1500, 3_001]);
    assert_eq!(queue.backlog(), Backlog::default(), "the last alone was too long");
}

/// Feeds CoDel with one packet per millisecond at constant length, so that each waits `wait_ms`.
/// Returns the times of drops in milliseconds, and the number of marks.
fn codel_drops(config: CoDelConfig, wait_ms: u64, until_ms: u64, ecn: Ecn) -> (Vec<u64>, u64) {
    let mut queue = CoDel::new(config);
    let mut drops = Drops::new();
    let mut times = Vec::new();
    let packet = || Datagram { ecn, ..datagram(1500) };
    // One packet in and one out per millisecond; the length equals the delay.
    for _ in 0..wait_ms {
        queue.enqueue(at(0), packet(), false, &mut drops);
    }
    for ms in 0..until_ms {
        let now = at((wait_ms + ms) * 1_000);
        queue.enqueue(now, packet(), false, &mut drops);
        queue.dequeue(now, &mut drops);
        for _ in drops.drain(..) {
            times.push(ms);
            // Replaces the dropped packet, so that the length stays constant.
            queue.enqueue(now, packet(), false, &mut Drops::new());
        }
    }
    (times, queue.marked())
}

#[test]
fn codel_drops_after_an_interval_and_then_by_the_square_root() {
    let (times, _) = codel_drops(CoDelConfig::default(), 20, 300, Ecn::NotEct);
    // The delay is first seen above the target at 0, and is still above it at 100 ms. Drops then
    // follow 100 ms / sqrt(n) apart: 100, +100, +70.7, +57.7 would be 328; drops occur at a packet.
    assert_eq!(times[..3], [100, 200, 271]);
}

#[test]
fn the_control_law_is_the_interval_over_the_root_of_the_count() {
    let (times, _) = codel_drops(CoDelConfig::default(), 20, 700, Ecn::NotEct);
    let mut expected = vec![100.0_f64];
    for n in 1..times.len() {
        expected.push(expected[n - 1] + 100.0 / (n as f64).sqrt());
    }
    let close = times.iter().zip(&expected).all(|(t, e)| *t as f64 >= *e && *t as f64 <= e + 1.0);
    assert!(close, "{times:?} against {expected:?}");
    assert!(times.len() >= 10, "{times:?}");
}

/// Keeps a queue of 20 ms from `from_ms` until `until_ms`. Returns the times of drops.
fn stands(queue: &mut CoDel<Datagram>, from_ms: u64, until_ms: u64) -> Vec<u64> {
    let (mut drops, mut times) = (Drops::new(), Vec::new());
    let ms = |n: u64| at(n * 1_000);
    for _ in 0..20 {
        queue.enqueue(ms(from_ms), datagram(1500), false, &mut drops);
    }
    for now in from_ms + 20..until_ms {
        queue.enqueue(ms(now), datagram(1500), false, &mut drops);
        queue.dequeue(ms(now), &mut drops);
        for _ in drops.drain(..) {
            times.push(now);
            queue.enqueue(ms(now), datagram(1500), false, &mut Drops::new());
        }
    }
    while queue.dequeue(ms(until_ms - 1), &mut drops).is_some() {}
    assert!(drops.is_empty());
    times
}

/// RFC 8289 section 5.4: the count continues from the previous drop state.
#[test]
fn codel_resumes_its_drop_rate_after_a_short_pause() {
    let mut queue = CoDel::new(CoDelConfig::default());
    assert_eq!(stands(&mut queue, 0, 410), [120, 220, 291, 349, 399]);
    // Four drops after the first: 100 ms / sqrt(4) to the next, then 100 ms / sqrt(5).
    assert_eq!(stands(&mut queue, 500, 730), [620, 670, 715]);
    // After 16 intervals the count starts again.
    assert_eq!(stands(&mut queue, 3_000, 3_300), [3_120, 3_220, 3_291]);
}

#[test]
fn codel_marks_ecn_capable_packets() {
    let config = CoDelConfig { ecn: true, ..CoDelConfig::default() };
    let (times, marked) = codel_drops(config, 20, 300, Ecn::Ect0);
    assert_eq!((times.len(), marked), (0, 3));
    assert_eq!(codel_drops(config, 20, 300, Ecn::NotEct).1, 0);
}

#[test]
fn codel_ignores_short_delays_and_the_last_packet() {
    assert!(codel_drops(CoDelConfig::default(), 4, 2_000, Ecn::NotEct).0.is_empty());
    let mut queue = CoDel::new(CoDelConfig::default());
    let mut drops = Drops::new();
    for i in 0..100 {
        queue.enqueue(at(i * 50_000), datagram(1500), false, &mut drops);
        assert!(queue.dequeue(at(i * 50_000 + 40_000), &mut drops).is_some());
    }
    assert!(drops.is_empty(), "one packet that waits 40 ms is not a standing queue");
}

#[test]
fn a_sparse_flow_passes_by_a_full_queue() {
    let mut queue = FqCoDel::new(FqCoDelConfig::default(), &mut Seed(1).stream("fq"));
    let mut drops = Drops::new();
    for _ in 0..200 {
        queue.enqueue(at(0), of_flow(1, 1500), false, &mut drops);
    }
    queue.dequeue(at(1_000), &mut drops);
    queue.enqueue(at(1_500), of_flow(2, 100), false, &mut drops);
    // The bulk flow has 14 B of its quantum of 1514 B left, so it is served once more before the
    // new queue.
    let next: Vec<u32> = (2..5)
        .map(|ms| queue.dequeue(at(ms * 1_000), &mut drops).unwrap().packet.wire_len())
        .collect();
    assert!(next[..2].contains(&100), "{next:?}");
}

#[test]
fn flows_share_by_bytes_whatever_the_size_of_their_packets() {
    let mut queue = FqCoDel::new(FqCoDelConfig::default(), &mut Seed(1).stream("fq"));
    let mut drops = Drops::new();
    for _ in 0..400 {
        queue.enqueue(at(0), of_flow(1, 1500), false, &mut drops);
    }
    for _ in 0..4_000 {
        queue.enqueue(at(0), of_flow(2, 150), false, &mut drops);
    }
    let mut bytes = [0_u64; 2];
    for _ in 0..2_000 {
        let packet = queue.dequeue(at(1), &mut drops).unwrap().packet;
        bytes[usize::from(packet.wire_len() == 150)] += u64::from(packet.wire_len());
    }
    let [large, small] = bytes;
    assert!(large.abs_diff(small) < 4_000, "{large} and {small} bytes");
}

#[test]
fn full_queue_drops_from_the_longest_flow() {
    let codel = CoDelConfig { limit: QueueLimit::Packets(100), ..CoDelConfig::default() };
    let config = FqCoDelConfig { codel, ..FqCoDelConfig::default() };
    let mut queue = FqCoDel::new(config, &mut Seed(1).stream("fq"));
    let mut drops = Drops::new();
    for _ in 0..10 {
        queue.enqueue(at(0), of_flow(1, 1500), false, &mut drops);
    }
    for _ in 0..91 {
        queue.enqueue(at(0), of_flow(2, 1400), false, &mut drops);
    }
    assert_eq!(lengths(&drops), [1400; 45], "half of 91");
    assert!(drops.iter().all(|(_, reason)| *reason == DropReason::QueueFull));
    assert_eq!(queue.backlog().packets, 56);
}

fn queues(limit: QueueLimit, seed: u64) -> Vec<Box<dyn Queue<Datagram>>> {
    let rng = || Seed(seed).stream("queue");
    let rate = Some(DataRate::from_mbps(10));
    let red = RedConfig { weight: 0.1, ecn: true, ..RedConfig::between(3.0, 9.0, rate, limit) };
    let bytes = RedConfig { unit: RedUnit::Bytes, gentle: false, ..red };
    let codel = CoDelConfig { ecn: true, limit, ..CoDelConfig::default() };
    let hasty = CoDelConfig { interval: Duration::from_millis(5), ecn: false, ..codel };
    let fq = FqCoDelConfig { codel: hasty, flows: 4, quantum: 300 };
    let pie = PieConfig { limit, max_burst: Duration::ZERO, ..PieConfig::default() };
    vec![
        Box::new(DropTail::new(limit)),
        Box::new(DropHead::new(limit)),
        Box::new(Red::new(red, rng())),
        Box::new(Red::new(bytes, rng())),
        Box::new(CoDel::new(codel)),
        Box::new(CoDel::new(hasty)),
        Box::new(FqCoDel::new(fq, &mut rng())),
        Box::new(Pie::new(pie, rng())),
    ]
}

/// Gap, length, flow, and whether a packet is taken out instead of put in.
fn steps() -> impl Strategy<Value = Vec<(u64, u32, u8, bool)>> {
    prop::collection::vec((0..4_000_u64, 28..1500_u32, 0..6_u8, any::<bool>()), 1..400)
}

proptest! {
    #[test]
    fn every_packet_is_delivered_dropped_or_queued(
        seed in any::<u64>(),
        limit in prop_oneof![
            Just(QueueLimit::Unlimited),
            (0..30_u32).prop_map(QueueLimit::Packets),
            (0..30_000_u64).prop_map(QueueLimit::Bytes),
        ],
        steps in steps(),
    ) {
        for mut queue in queues(limit, seed) {
            let (mut drops, mut now) = (Drops::new(), 0);
            let (mut put, mut got) = (0_u64, 0_u64);
            for (gap, len, flow, take) in &steps {
                now += gap;
                if *take {
                    let taken = queue.dequeue(at(now), &mut drops);
                    got += taken.map_or(0, |w| u64::from(w.packet.wire_len()));
                } else {
                    let mut packet = of_flow(*flow, *len);
                    packet.ecn = Ecn::from_bits(*flow);
                    put += u64::from(*len);
                    queue.enqueue(at(now), packet, false, &mut drops);
                }
                let backlog = queue.backlog();
                prop_assert!(limit.holds(backlog), "{:?} over {:?}", backlog, limit);
                let dropped: u64 = drops.iter().map(|d| u64::from(d.0.wire_len())).sum();
                prop_assert_eq!(put, got + dropped + backlog.bytes, "{:?}", queue);
            }
            while let Some(waiting) = queue.dequeue(at(now), &mut drops) {
                let zeros = Payload::Zeros(waiting.packet.wire_len() - 28);
                prop_assert_eq!(&waiting.packet.payload, &zeros);
            }
            prop_assert_eq!(queue.backlog(), Backlog::default());
        }
    }
}
