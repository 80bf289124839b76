//! Syncs in answer to invalid packets (RFC 4340 section 7.5.4).

use udccp_base::{Duration, Instant, Seed};
use udccp_wire::PacketType::{Ack, Data, Response, Sync};
use udccp_wire::{OptionRef, Packet, option_kind};

use crate::common::SERVER;
use crate::spec_support::{Hand, option, plain, types};

fn syncs(said: &[Packet]) -> usize {
    said.iter().filter(|p| p.header.packet_type() == Sync).count()
}

/// A packet of the peer that is far outside the window.
fn invalid(hand: &Hand) -> udccp_base::Datagram {
    let header = hand.header_at(hand.seq.add(1 << 30), hand.kind(Data));
    hand.datagram(&header, &[], b"x")
}

//= 4340-7.5.4-8 test
#[test]
fn no_schedule_of_invalid_packets_draws_more_than_eight_syncs_in_any_second() {
    let second = Duration::from_secs(1);
    for seed in 0..16 {
        let mut rng = Seed(seed).stream("schedule");
        let mut hand = Hand::open(SERVER);
        let bad = invalid(&hand);
        let mut at: Vec<Instant> = Vec::new();
        for _ in 0..300 {
            // Bursts, floods and single packets.
            let gap_ms =
                if rng.chance(0.5) { 0 } else { rng.below([5, 130, 260, 1500][seed as usize % 4]) };
            let said = hand.wait(Duration::from_millis(gap_ms));
            assert_eq!(syncs(&said), 0, "nobody asked");
            let said = hand.give_datagram(bad.clone());
            let now = hand.pair.now;
            at.extend(std::iter::repeat_n(now, syncs(&said)));
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
    let mut hand = Hand::open(SERVER);
    let bad = invalid(&hand);
    let mut with_vector = 0;
    // Every second packet is missing and our acknowledgements are never acknowledged, so the Ack
    // Vector fills up.
    for _ in 0..300 {
        for _ in 0..3 {
            hand.give_datagram(bad.clone());
        }
        let header = hand.header_at(hand.seq.add(2), hand.kind(Data));
        let said = [hand.give_header(&header, &[], b"x"), hand.wait(Duration::from_millis(1))];
        let asks = |p: &&Packet| {
            let cells =
                option(p, option_kind::ACK_VECTOR_0).or(option(p, option_kind::ACK_VECTOR_1));
            p.header.packet_type() == Sync && cells.is_some()
        };
        with_vector += said.concat().iter().filter(asks).count();
    }
    assert!(with_vector > 0, "the peer is never asked to acknowledge our acknowledgements");
}

#[test]
fn packets_refused_in_request_do_not_use_up_the_syncs_of_the_open_connection() {
    let (mut hand, _) = Hand::requesting(plain());
    let stray = hand.header_at(hand.seq.add(500), hand.kind(Ack));
    let refused: usize = (0..50).map(|_| hand.give_header(&stray, &[], &[]).len()).sum();
    assert!((1..=4).contains(&refused), "{refused} Resets");
    hand.seq = udccp_wire::Seqno::new(7000);
    hand.give(Response, &[], &[]);
    let said = hand.give(Ack, &[OptionRef::SlowReceiver], &[]);
    assert!(!types(&said).contains(&Sync));
    let bad = invalid(&hand);
    let said: usize = (0..50).map(|_| syncs(&hand.give_datagram(bad.clone()))).sum();
    assert_eq!(said, 8);
}

/// Without a limit, a nearly full vector would cause a Sync after every acknowledgement.
#[test]
fn a_peer_that_never_acknowledges_acknowledgements_is_asked_at_the_rate_of_syncs() {
    let mut hand = Hand::open(SERVER);
    let (mut asked, mut acks) = (0, 0);
    for _ in 0..2000 {
        let header = hand.header_at(hand.seq.add(2), hand.kind(Data));
        let said = hand.give_header(&header, &[], b"x");
        let said = [said, hand.wait(Duration::from_millis(1))].concat();
        asked += syncs(&said);
        acks += types(&said).iter().filter(|ty| **ty == Ack).count();
        hand.read();
    }
    // One per 125 ms for two seconds, and a few at once.
    assert!(acks > 900, "only {acks} acknowledgements");
    assert!((10..=20).contains(&asked), "{asked} Syncs to {acks} acknowledgements");
}
