//! Packets use exactly the opportunities of the trace.

use proptest::prelude::*;
use udccp_base::{DataRate, Datagram, Duration, Instant};

use super::{Opportunities, TraceDriven};
use crate::packet::tests::datagram;
use crate::queue::DropTail;
use crate::{Change, Drops, Link, Packet, QueueLimit};

fn ms(n: u64) -> Instant {
    Instant::from_nanos(n * 1_000_000)
}

fn trace(times_ms: &[u64]) -> Opportunities {
    let times: Vec<Duration> = times_ms.iter().map(|t| Duration::from_millis(*t)).collect();
    Opportunities::new(times).expect("a trace")
}

fn link(times_ms: &[u64], limit: QueueLimit) -> TraceDriven<Datagram> {
    TraceDriven::new(trace(times_ms), Box::new(DropTail::new(limit)))
}

fn leave(link: &mut TraceDriven<Datagram>, until: Instant) -> Vec<(u64, u32)> {
    let (mut out, mut drops) = (Vec::new(), Drops::new());
    while let Some(now) = link.poll_timeout().filter(|due| *due <= until) {
        while let Some(packet) = link.poll_departure(now, &mut drops) {
            out.push((now.as_nanos() / 1_000_000, packet.wire_len()));
        }
    }
    assert!(drops.is_empty());
    out
}

#[test]
fn a_saturated_link_delivers_one_full_packet_an_opportunity_and_repeats() {
    let mut link = link(&[2, 2, 5, 10], QueueLimit::Unlimited);
    for _ in 0..10 {
        link.handle_packet(ms(0), datagram(1500), &mut Drops::new());
    }
    let times: Vec<u64> = leave(&mut link, ms(25)).iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [2, 2, 5, 10, 12, 12, 15, 20, 22, 22]);
    assert_eq!(link.stats(ms(20)).busy, Duration::from_millis(22), "busy all the time");
}

#[test]
fn an_opportunity_carries_several_short_packets_or_a_part_of_a_long_one() {
    let mut link = link(&[1, 2, 3, 4, 10], QueueLimit::Unlimited);
    for len in [700, 700, 700, 1500] {
        link.handle_packet(ms(0), datagram(len), &mut Drops::new());
    }
    // 1 ms: 700 + 700 + 100 of the third; 2 ms: its other 600 and 900; 3 ms: the last 600.
    assert_eq!(leave(&mut link, ms(9)), [(1, 700), (1, 700), (2, 700), (3, 1500)]);
}

#[test]
fn unused_opportunity_is_lost_and_precedes_arrivals() {
    let mut link = link(&[10], QueueLimit::Unlimited);
    assert_eq!(link.poll_timeout(), None, "nothing happens while there is nothing to transmit");
    link.handle_packet(ms(35), datagram(1500), &mut Drops::new());
    assert_eq!(leave(&mut link, ms(100)), [(40, 1500)]);
    link.handle_packet(ms(60), datagram(1500), &mut Drops::new());
    assert_eq!(leave(&mut link, ms(100)), [(70, 1500)]);
    assert_eq!(link.stats(ms(100)).busy, Duration::from_millis(20));
}

#[test]
fn going_down_drops_the_packet_half_transmitted() {
    let mut link = link(&[10], QueueLimit::Unlimited);
    let mut drops = Drops::new();
    link.handle_packet(ms(0), datagram(3000), &mut drops);
    assert!(leave(&mut link, ms(10)).is_empty());
    link.change(ms(15), &Change::Down(true), &mut drops);
    assert_eq!((drops.len(), link.packets_inside()), (1, 0));
}

#[test]
fn trace_without_an_end_is_rejected() {
    assert!(Opportunities::new(Vec::new()).is_none());
    assert!(Opportunities::new(vec![Duration::ZERO]).is_none());
    let back = vec![Duration::from_millis(2), Duration::from_millis(1)];
    assert!(Opportunities::new(back).is_none());
    assert_eq!(trace(&[1]).mean_rate(), DataRate::from_mbps(12));
}

proptest! {
    #[test]
    fn opportunities_carry_at_most_their_size_and_lose_nothing(
        gaps in prop::collection::vec(0..6_u64, 1..40),
        arrivals in prop::collection::vec((0..5_u64, 28..1600_u32), 1..100),
    ) {
        let mut now = 1;
        let times: Vec<u64> = gaps.iter().map(|gap| { now += gap; now }).collect();
        let mut link = link(&times, QueueLimit::Unlimited);
        let (mut out, mut now) = (Vec::new(), 0);
        for (gap, len) in &arrivals {
            now += gap;
            out.extend(leave(&mut link, ms(now)));
            link.handle_packet(ms(now), datagram(*len), &mut Drops::new());
        }
        out.extend(leave(&mut link, ms(1_000_000)));
        prop_assert_eq!(out.iter().map(|o| o.1).sum::<u32>(), arrivals.iter().map(|a| a.1).sum());
        let period = *times.last().expect("some");
        let until = |t: u64| {
            let whole = (t / period) * times.len() as u64;
            whole + times.iter().filter(|at| **at <= t % period).count() as u64
        };
        let mut bytes = 0;
        for (t, len) in &out {
            bytes += u64::from(*len);
            prop_assert!(bytes <= until(*t) * 1500, "at {} ms", t);
        }
    }
}
