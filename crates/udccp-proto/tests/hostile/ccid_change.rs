//! A receiver that makes the sender change its CCID, so that it forgets its losses (RFC 4340
//! section 10.5).

use udccp_base::Duration;
use udccp_proto::{ConnectionConfig, State};
use udccp_wire::PacketType::{Ack, DataAck, Response};
use udccp_wire::{FeatureNumber, OptionRef, Packet, ResetCode, option_kind};

use crate::common::{CLIENT, Net, Pair, SERVER};
use crate::spec_support::{Harness, about, plain, reset};

const CCID: FeatureNumber = FeatureNumber::CCID;

fn two_or_three() -> ConnectionConfig {
    ConnectionConfig { tx_ccids: vec![2, 3], rx_ccids: vec![2, 3], ..plain() }
}

/// The content of a Confirm of the CCID of our data: the value, and our list.
fn confirmed(sent: &[Packet]) -> Option<Vec<u8>> {
    let ours = |o: &&udccp_wire::OptionValue| about(o, option_kind::CONFIRM_L, CCID.0);
    sent.iter().flat_map(|p| &p.options).find(ours).map(|o| o.data[1..].to_vec())
}

/// The peer requests another CCID for our data.
fn ask(harness: &mut Harness, ccids: &[u8]) -> Option<Vec<u8>> {
    let change = OptionRef::ChangeR { feature: CCID, value: ccids };
    let mut sent = harness.deliver(Ack, &[change], &[]);
    sent.extend(harness.wait(Duration::from_millis(300)));
    confirmed(&sent)
}

/// Sends data of which the peer reports most as lost.
fn lose(harness: &mut Harness) {
    for _ in 0..8 {
        harness.pair.send(harness.end, &[1; 500]);
    }
    harness.drain();
    // The newest packet arrived, and the one before it is missing.
    let cells = OptionRef::AckVector { nonce: false, cells: &[0, 0xc0] };
    for _ in 0..4 {
        harness.deliver(Ack, &[cells], &[]);
    }
}

//= 4340-10.5-4 test
#[test]
fn a_peer_that_changes_our_ccid_in_open_does_not_wipe_our_congestion_state() {
    let mut harness = Harness::open_with(SERVER, two_or_three());
    lose(&mut harness);
    let before = harness.stats();
    assert!(before.congestion_events > 0 && before.tx_ccid == Some(2));
    for ccid in [3, 2, 3, 2, 3] {
        let answer = ask(&mut harness, &[ccid]);
        // The value stays, and the list contains no other.
        assert_eq!(answer.unwrap()[0], 2);
        let now = harness.stats();
        assert_eq!((now.tx_ccid, now.rx_ccid), (Some(2), Some(2)));
        assert_eq!(now.congestion_events, before.congestion_events);
        assert_eq!(now.ssthresh_packets, before.ssthresh_packets);
    }
    assert_eq!(ask(&mut harness, &[3]).unwrap(), [2, 2]);
    assert_eq!(harness.state(), Some(State::Open));
    // A peer that insists is reset.
    let change = OptionRef::ChangeR { feature: CCID, value: &[3] };
    let sent = harness.deliver(Ack, &[OptionRef::Mandatory, change], &[]);
    assert_eq!(reset(&sent).map(|r| r.0), Some(ResetCode::MandatoryError));
}

#[test]
fn a_peer_that_changes_the_ccid_of_its_own_data_in_open_keeps_the_one_agreed() {
    let mut harness = Harness::open_with(SERVER, two_or_three());
    for ccid in [3, 2, 3] {
        let change = OptionRef::ChangeL { feature: CCID, value: &[ccid] };
        harness.deliver(Ack, &[change], &[]);
        harness.wait(Duration::from_millis(300));
        assert_eq!(harness.stats().rx_ccid, Some(2));
    }
}

//= 4340-10.5-4 test
#[test]
fn a_server_that_keeps_its_client_in_partopen_cannot_change_its_ccid_either() {
    for confirms in [true, false] {
        let (mut harness, _) = Harness::requesting(two_or_three());
        let both = [
            OptionRef::ConfirmR { feature: CCID, value: &[2, 2, 3] },
            OptionRef::ConfirmL { feature: CCID, value: &[2, 2, 3] },
        ];
        let options = if confirms { &both[..] } else { &[] };
        harness.deliver(Response, options, &[]);
        harness.pair.send(CLIENT, b"data");
        harness.drain();
        for ccid in [3, 2, 3] {
            let change = OptionRef::ChangeR { feature: CCID, value: &[ccid] };
            harness.deliver(Response, &[change], &[]);
            harness.wait(Duration::from_millis(300));
            assert_eq!(harness.state(), Some(State::PartOpen));
            assert_eq!(harness.stats().tx_ccid, Some(2), "confirms: {confirms}");
        }
        // An answer to our own Change may still arrive late, but only once.
        let late = OptionRef::ConfirmR { feature: CCID, value: &[3, 3] };
        harness.deliver(DataAck, &[late], b"x");
        let chosen = if confirms { 2 } else { 3 };
        assert_eq!(harness.stats().tx_ccid, Some(chosen));
        for ccid in [2, 3, 2] {
            ask(&mut harness, &[ccid]);
            assert_eq!(harness.stats().tx_ccid, Some(chosen));
        }
    }
}

#[test]
fn the_handshake_still_chooses_between_two_ends_that_like_different_ccids() {
    let list = |list: &[u8]| ConnectionConfig {
        tx_ccids: list.to_vec(),
        rx_ccids: list.to_vec(),
        ..ConnectionConfig::default()
    };
    for (client, server, chosen) in [
        (&[2, 3][..], &[3, 2][..], 3),
        (&[3, 2], &[2, 3], 2),
        (&[3], &[2, 3], 3),
        (&[2, 3], &[3], 3),
    ] {
        let mut pair = Pair::starting(Net::new(5), list(client), list(server));
        pair.pass(Duration::from_secs(2));
        for end in [CLIENT, SERVER] {
            pair.send(end, b"data");
            pair.pass(Duration::from_secs(2));
            let stats = pair.stats(end);
            assert_eq!((stats.tx_ccid, stats.rx_ccid), (Some(chosen), Some(chosen)));
        }
    }
}
