//! Syncs in answer to invalid packets (RFC 4340 section 7.5.4).

use udccp_base::{Duration, Instant, Seed};
use udccp_wire::PacketType::{Ack, Data, Response, Sync};
use udccp_wire::{OptionRef, Packet, option_kind};

use crate::common::SERVER;
use crate::spec_support::{Harness, option, plain, types};

fn syncs(sent: &[Packet]) -> usize {
    sent.iter().filter(|p| p.header.packet_type() == Sync).count()
}

/// A packet of the peer that is far outside the window.
fn invalid(harness: &Harness) -> udccp_base::Datagram {
    let header = harness.header_at(harness.seq.add(1 << 30), harness.kind(Data));
    harness.datagram(&header, &[], b"x")
}

//= 4340-7.5.4-8 test
#[test]
fn no_schedule_of_invalid_packets_draws_more_than_eight_syncs_in_any_second() {
    let second = Duration::from_secs(1);
    for seed in 0..16 {
        let mut rng = Seed(seed).stream("schedule");
        let mut harness = Harness::open(SERVER);
        let bad = invalid(&harness);
        let mut at: Vec<Instant> = Vec::new();
        for _ in 0..300 {
            // Bursts, floods and single packets.
            let gap_ms =
                if rng.chance(0.5) { 0 } else { rng.below([5, 130, 260, 1500][seed as usize % 4]) };
            let sent = harness.wait(Duration::from_millis(gap_ms));
            assert_eq!(syncs(&sent), 0, "nobody asked");
            let sent = harness.deliver_datagram(bad.clone());
            let now = harness.pair.now;
            at.extend(std::iter::repeat_n(now, syncs(&sent)));
        }
        for nine in at.windows(9) {
            assert!(nine[8] - nine[0] > second, "seed {seed}: nine Syncs in {nine:?}");
        }
        let seconds = (*at.last().unwrap() - at[0]).as_secs_f64();
        assert!(at.len() as f64 >= seconds.min(3.0), "it does answer: {} in {seconds} s", at.len());
    }
}

#[test]
fn invalid_packet_flood_does_not_use_up_our_own_syncs() {
    let mut harness = Harness::open(SERVER);
    let bad = invalid(&harness);
    let mut with_vector = 0;
    // Every second packet is missing and our acknowledgements are never acknowledged, so the Ack
    // Vector fills up.
    for _ in 0..300 {
        for _ in 0..3 {
            harness.deliver_datagram(bad.clone());
        }
        let header = harness.header_at(harness.seq.add(2), harness.kind(Data));
        let sent =
            [harness.deliver_header(&header, &[], b"x"), harness.wait(Duration::from_millis(1))];
        let asks = |p: &&Packet| {
            let cells =
                option(p, option_kind::ACK_VECTOR_0).or(option(p, option_kind::ACK_VECTOR_1));
            p.header.packet_type() == Sync && cells.is_some()
        };
        with_vector += sent.concat().iter().filter(asks).count();
    }
    assert!(with_vector > 0, "the peer is never asked to acknowledge our acknowledgements");
}

#[test]
fn packets_refused_in_request_do_not_use_up_the_syncs_of_the_open_connection() {
    let (mut harness, _) = Harness::requesting(plain());
    let stray = harness.header_at(harness.seq.add(500), harness.kind(Ack));
    let refused: usize = (0..50).map(|_| harness.deliver_header(&stray, &[], &[]).len()).sum();
    assert!((1..=4).contains(&refused), "{refused} Resets");
    harness.seq = udccp_wire::Seqno::new(7000);
    harness.deliver(Response, &[], &[]);
    let sent = harness.deliver(Ack, &[OptionRef::SlowReceiver], &[]);
    assert!(!types(&sent).contains(&Sync));
    let bad = invalid(&harness);
    let sent: usize = (0..50).map(|_| syncs(&harness.deliver_datagram(bad.clone()))).sum();
    assert_eq!(sent, 8);
}

/// Without a limit, a nearly full vector would cause a Sync after every acknowledgement.
#[test]
fn a_peer_that_never_acknowledges_acknowledgements_is_asked_at_the_rate_of_syncs() {
    let mut harness = Harness::open(SERVER);
    let (mut asked, mut acks) = (0, 0);
    for _ in 0..2000 {
        let header = harness.header_at(harness.seq.add(2), harness.kind(Data));
        let sent = harness.deliver_header(&header, &[], b"x");
        let sent = [sent, harness.wait(Duration::from_millis(1))].concat();
        asked += syncs(&sent);
        acks += types(&sent).iter().filter(|ty| **ty == Ack).count();
        harness.read();
    }
    // One per 125 ms for two seconds, and a few at once.
    assert!(acks > 900, "only {acks} acknowledgements");
    assert!((10..=20).contains(&asked), "{asked} Syncs to {acks} acknowledgements");
}
