//! The same times as the fast element, conservation under changes, and a limit on the rate.

use proptest::prelude::*;
use udccp_base::{DataRate, Datagram, Duration, Ecn, Instant};

use super::Transmitter;
use crate::packet::tests::datagram;
use crate::queue::{CoDel, CoDelConfig, DropTail};
use crate::{
    Change, Drops, Gather, Link, LinkConfig, Packet, QueueConfig, QueueLimit, RateDelay,
    RateDelayConfig, Scheduled, Variation,
};

fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

fn mbps(n: u64) -> DataRate {
    DataRate::from_mbps(n)
}

fn transmitter(rate: DataRate, limit: QueueLimit) -> Transmitter<Datagram> {
    Transmitter::new(Some(rate), Box::new(DropTail::new(limit)))
}

/// Everything that leaves at or before `until`, at the times that the link itself reports.
fn leave(link: &mut dyn Link<Datagram>, until: Instant, drops: &mut Drops<Datagram>) -> Seen {
    let mut out = Vec::new();
    while let Some(now) = link.poll_timeout().filter(|due| *due <= until) {
        while let Some(packet) = link.poll_departure(now, drops) {
            out.push((now.as_nanos(), packet.wire_len()));
        }
    }
    out
}

type Seen = Vec<(u64, u32)>;

/// Feeds arrivals (gap, length). Returns departures with times, and the lengths of dropped packets.
fn feed(link: &mut dyn Link<Datagram>, arrivals: &[(u64, u32)]) -> (Seen, Vec<u32>) {
    let (mut out, mut drops, mut now) = (Vec::new(), Vec::new(), 0);
    for (gap, len) in arrivals {
        now += gap;
        out.extend(leave(link, at(now), &mut drops));
        link.handle_packet(at(now), datagram(*len), &mut drops);
    }
    out.extend(leave(link, at(u64::MAX - 1), &mut drops));
    (out, drops.into_iter().map(|(packet, _)| packet.wire_len()).collect())
}

#[test]
fn a_packet_on_the_transmitter_goes_on_at_the_new_rate() {
    // 1500 B at 12 Mbit/s take 1 ms. After a quarter of that the rate falls to a third, so the
    // remaining three quarters take 2.25 ms.
    let changes = vec![(at(250_000), Change::Rate(mbps(4)))];
    let mut link = Scheduled::new(transmitter(mbps(12), QueueLimit::Unlimited), changes);
    let (out, _) = feed(&mut link, &[(0, 1500), (0, 1500)]);
    assert_eq!(out, [(2_500_000, 1500), (5_500_000, 1500)]);
}

#[test]
fn at_rate_zero_everything_waits() {
    let changes = vec![
        (at(500_000), Change::Rate(DataRate::from_bits_per_sec(0))),
        (at(7_500_000), Change::Rate(mbps(12))),
    ];
    let mut link = Scheduled::new(transmitter(mbps(12), QueueLimit::Packets(1)), changes);
    let (out, dropped) = feed(&mut link, &[(0, 1500), (600_000, 1500), (100_000, 1500)]);
    assert_eq!(out, [(8_000_000, 1500), (9_000_000, 1500)]);
    assert_eq!(dropped, [1500], "the queue is as long as ever");
    let busy = link.stats(at(20_000_000)).busy;
    assert_eq!(busy, Duration::from_millis(2), "standing still is not being busy");
}

#[test]
fn a_link_that_goes_down_drops_what_it_holds_and_what_arrives() {
    let changes = vec![(at(1_500_000), Change::Down(true)), (at(4_000_000), Change::Down(false))];
    let config = LinkConfig {
        rate: Some(mbps(12)),
        delay: Duration::from_millis(5),
        queue: QueueConfig::DropTail,
        changes,
        ..LinkConfig::default()
    };
    let mut link = config.build::<Datagram>(udccp_base::Seed(1), "test");
    // At 1.5 ms the first is propagating, the second in transmission, and the third waits. The
    // fourth arrives while the link is down, the fifth after it is up again.
    let arrivals = [(0, 1000), (0, 1000), (0, 1001), (2_000_000, 1002), (2_000_000, 1003)];
    let arrivals = arrivals.map(|(gap, len)| (gap, len + 500));
    let (out, dropped) = feed(&mut link, &arrivals);
    assert_eq!(out, [(6_000_000, 1500), (10_002_000, 1503)]);
    assert_eq!(dropped, [1500, 1501, 1502]);
    let stats = link.stats(at(20_000_000));
    assert_eq!(stats.dropped_by(crate::DropReason::LinkDown).packets, 3);
}

#[test]
fn marks_on_what_a_link_drops_as_it_goes_down_do_not_count() {
    let codel = CoDelConfig { ecn: true, ..CoDelConfig::default() };
    let mut link =
        Transmitter::new(Some(DataRate::from_bits_per_sec(1_200_000)), Box::new(CoDel::new(codel)));
    let mut drops = Drops::new();
    for _ in 0..40 {
        link.handle_packet(at(0), Datagram { ecn: Ecn::Ect0, ..datagram(1500) }, &mut drops);
    }
    // One packet leaves every 10 ms. Marks are at 110 ms and 210 ms; the next would be at 280.7 ms.
    let down = at(285_000_000);
    leave(&mut link, down, &mut drops);
    link.change(down, &Change::Down(true), &mut drops);
    let marked = drops.iter().filter(|(packet, _)| packet.ecn == Ecn::Ce).count();
    assert_eq!((marked, link.stats(down).marked), (1, 2));
}

#[test]
fn a_shorter_delay_keeps_the_order() {
    let config = LinkConfig {
        rate: Some(mbps(12)),
        delay: Duration::from_millis(50),
        changes: vec![(at(1_500_000), Change::Delay(Duration::from_millis(1)))],
        ..LinkConfig::default()
    };
    let mut link = config.build::<Datagram>(udccp_base::Seed(1), "test");
    let (out, _) = feed(&mut link, &[(0, 1500), (0, 1500), (60_000_000, 1500)]);
    assert_eq!(out, [(51_000_000, 1500), (51_000_000, 1500), (62_000_000, 1500)]);
}

fn limits() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        Just(QueueLimit::Unlimited),
        (0..20_u32).prop_map(QueueLimit::Packets),
        (0..20_000_u64).prop_map(QueueLimit::Bytes),
    ]
}

fn arrivals() -> impl Strategy<Value = Vec<(u64, u32)>> {
    prop::collection::vec((0..40_000_u64, 28..1500_u32), 1..300)
}

proptest! {
    #[test]
    fn unchanged_link_equals_the_fast_element_exactly(
        rate in 1_000_000..1_000_000_000_u64,
        limit in limits(),
        arrivals in arrivals(),
    ) {
        let rate = DataRate::from_bits_per_sec(rate);
        let config = RateDelayConfig { rate: Some(rate), delay: Duration::ZERO, limit };
        let mut fast = RateDelay::<Datagram>::new(config);
        let mut slow = transmitter(rate, limit);
        prop_assert_eq!(feed(&mut slow, &arrivals), feed(&mut fast, &arrivals));
        let end = at(10_000_000_000);
        let (fast, slow) = (fast.stats(end), slow.stats(end));
        prop_assert_eq!(slow.queue_delay, fast.queue_delay);
        prop_assert_eq!((slow.arrived, slow.departed), (fast.arrived, fast.departed));
        prop_assert_eq!(slow.dropped, fast.dropped);
        prop_assert!(slow.busy.abs_diff(fast.busy) <= Duration::from_nanos(300));
    }

    #[test]
    fn simultaneous_arrivals_are_equal_in_fast_and_general_links(
        tick in prop::option::of(1..300_000_u64),
        moderation in prop::option::of(1..300_000_u64),
        arrivals in arrivals(),
    ) {
        let time = |ns: Option<u64>| ns.map(Duration::from_nanos);
        let gather = Gather { delay_tick: time(tick), interrupt_moderation: time(moderation) };
        let limit = QueueLimit::Packets(5);
        let fast = LinkConfig { rate: Some(mbps(100)), limit, gather, ..LinkConfig::default() };
        // A trace of delays that adds nothing needs an element of its own.
        let variation = Variation::Trace([(Duration::ZERO, Duration::ZERO)].into());
        let parts = LinkConfig { variation, ..fast.clone() };
        let seen = |config: &LinkConfig| {
            feed(config.build::<Datagram>(udccp_base::Seed(1), "test").as_mut(), &arrivals)
        };
        prop_assert_eq!(seen(&fast), seen(&parts));
    }

    #[test]
    fn a_schedule_loses_and_reorders_nothing_and_serves_no_more_than_its_rates(
        rates in prop::collection::vec((0..3_000_000_u64, 0..200_u64), 1..12),
        arrivals in prop::collection::vec((0..40_000_u64, 28..1500_u32), 1..200),
    ) {
        let mut now = 0;
        let steps: Vec<(u64, u64)> =
            rates.iter().map(|(gap, mbps)| { now += gap; (now, *mbps) }).collect();
        let mut changes: Vec<_> =
            steps.iter().map(|(t, rate)| (at(*t), Change::Rate(mbps(*rate)))).collect();
        // Finally the rate is above zero again, so that everything leaves.
        changes.push((at(now + 1), Change::Rate(mbps(10))));
        let slow = transmitter(mbps(10), QueueLimit::Unlimited);
        let mut link = Scheduled::new(slow, changes);
        let (out, dropped) = feed(&mut link, &arrivals);
        prop_assert!(dropped.is_empty());
        let lengths: Vec<u32> = arrivals.iter().map(|(_, len)| *len).collect();
        prop_assert_eq!(out.iter().map(|(_, len)| *len).collect::<Vec<_>>(), lengths);
        // Bits times nanoseconds per second: the integral of the rate from 0 to t.
        let integral = |t: u64| {
            let mut all: Vec<(u64, u64)> = vec![(0, 10)];
            all.extend(&steps);
            all.push((now + 1, 10));
            let mut sum = 0_u128;
            for (i, (from, rate)) in all.iter().enumerate() {
                let to = all.get(i + 1).map_or(u64::MAX, |next| next.0).min(t);
                sum += u128::from(to.saturating_sub(*from)) * u128::from(*rate) * 1_000_000;
            }
            sum
        };
        let mut served = 0_u128;
        for (t, len) in &out {
            served += u128::from(*len) * 8_000_000_000;
            prop_assert!(served <= integral(*t), "at {} ns", t);
        }
        let stats = link.stats(at(u64::MAX));
        prop_assert_eq!(stats.arrived, stats.departed);
        prop_assert_eq!(link.packets_inside(), 0);
    }
}
