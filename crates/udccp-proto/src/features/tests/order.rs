//! Reordering, preference changes and wrapping numbers: sections 6.6.4 and 6.6.5.

use super::*;

const CCID: FeatureNumber = FeatureNumber::CCID;
const ACK_RATIO: FeatureNumber = FeatureNumber::ACK_RATIO;

fn seq(n: u64) -> Seqno {
    Seqno::new(n)
}

//= 4340-6.6.4-1 test
//= 4340-6.6.4-3 test
//= 4340-6.6.4-6 test
#[test]
fn changes_out_of_order_are_ignored() {
    let mut end = End::open(Role::Server);
    end.receive_at(seq(20), Some(seq(0)), &["Change L(5; 0 4)"]).unwrap();
    end.send(PacketType::Ack);
    end.receive_at(seq(19), Some(seq(0)), &["Change L(5; 0 9)"]).unwrap();
    end.receive_at(seq(20), Some(seq(0)), &["Change L(5; 0 9)"]).unwrap();
    // Also for another feature, and even if it is Mandatory.
    end.receive_at(seq(18), Some(seq(0)), &["Mandatory", "Change L(1; 9)"]).unwrap();
    assert_eq!(end.send(PacketType::Ack).shows(), [""; 0]);
    assert_eq!(end.value(R, ACK_RATIO), 4);
    end.receive_at(seq(21), Some(seq(0)), &["Change L(5; 0 9)"]).unwrap();
    end.send(PacketType::Ack);
    assert_eq!(end.value(R, ACK_RATIO), 9);
}

//= 4340-6.6.4-6 test
#[test]
fn packets_without_feature_options_do_not_count_for_order() {
    let mut end = End::open(Role::Server);
    end.receive_at(seq(20), Some(seq(0)), &["Change L(5; 0 4)"]).unwrap();
    end.receive_at(seq(30), Some(seq(0)), &[]).unwrap();
    end.receive_at(seq(25), Some(seq(0)), &["Change L(5; 0 5)"]).unwrap();
    assert_eq!(end.send(PacketType::Ack).shows(), ["Confirm R(5; 0 5)"]);
}

//= 4340-6.6.4-4 test
#[test]
fn confirms_must_acknowledge_the_latest_new_change() {
    let mut end = End::open(Role::Client);
    end.engine.change(L, ACK_RATIO, &[4], false).unwrap();
    let first = end.send(PacketType::Ack).context.seq;
    end.engine.change(L, CCID, &[3, 2], false).unwrap();
    let second = end.send(PacketType::Ack).context.seq;
    end.receive_at(seq(50), Some(first), &["Confirm R(5; 0 4)"]).unwrap();
    end.receive_at(seq(51), None, &["Confirm R(5; 0 4)"]).unwrap();
    assert_eq!(end.value(L, ACK_RATIO), 2);
    // A retransmission is no new Change.
    end.wait(2_000);
    assert_eq!(end.send(PacketType::Ack).shows().len(), 2);
    end.receive_at(seq(52), Some(second), &["Confirm R(5; 0 4)"]).unwrap();
    assert_eq!(end.value(L, ACK_RATIO), 4);
    end.receive_at(seq(52), Some(second), &["Confirm R(1; 3 3)"]).unwrap();
    assert_eq!(end.value(L, CCID), 2, "the packet came before");
}

//= 4340-6.6.5-1 test
//= 4340-6.6.6-1 test
#[test]
fn an_unstable_feature_keeps_to_the_list_it_showed_until_that_is_answered() {
    let mut end = End::open(Role::Client);
    end.engine.change(R, CCID, &[3, 2], false).unwrap();
    assert_eq!(end.send(PacketType::Ack).shows(), ["Change R(1; 3 2)"]);
    end.engine.change(R, CCID, &[4, 2], false).unwrap();
    assert_eq!(end.send(PacketType::Ack).shows(), [""; 0]);
    // A Change that crosses ours is reconciled with the list we sent, and so are retransmissions.
    end.receive_text(&["Change L(1; 2 3)"]).unwrap();
    assert_eq!(end.send(PacketType::Ack).shows(), ["Confirm R(1; 2 3 2)"]);
    end.wait(2_000);
    assert_eq!(end.send(PacketType::Ack).shows(), ["Change R(1; 3 2)"]);
    end.receive_text(&["Confirm L(1; 3 3)"]).unwrap();
    assert_eq!(end.value(R, CCID), 3);
    assert!(!end.engine.is_settled());
    assert_eq!(end.send(PacketType::Ack).shows(), ["Change R(1; 4 2)"]);
    end.receive_text(&["Confirm L(1; 4 4)"]).unwrap();
    assert_eq!(end.value(R, CCID), 4);
}

/// A Confirm whose packet acknowledges the new Change may answer a retransmitted old one.
#[test]
fn a_confirm_of_an_earlier_negotiation_is_no_answer_and_no_error() {
    let mut end = End::open(Role::Client);
    for ratio in [4, 8] {
        end.engine.change(L, ACK_RATIO, &[ratio], false).unwrap();
        end.send(PacketType::Ack);
        end.receive_text(&[&format!("Confirm R(5; 0 {ratio})")]).unwrap();
    }
    end.engine.change(L, ACK_RATIO, &[16], false).unwrap();
    end.send(PacketType::Ack);
    end.receive_text(&["Confirm R(5; 0 4)"]).unwrap();
    assert_eq!(end.value(L, ACK_RATIO), 8);
    end.receive_text(&["Confirm R(5; 0 16)"]).unwrap();
    assert_eq!(end.value(L, ACK_RATIO), 16);
    end.engine.change(L, ACK_RATIO, &[32], false).unwrap();
    end.send(PacketType::Ack);
    assert!(end.receive_text(&["Confirm R(5; 0 5)"]).is_err(), "never offered");
}

//= 4340-6.6.4-2 test
#[test]
fn a_retransmission_has_the_same_contents() {
    let mut end = End::open(Role::Client);
    end.engine.change(R, CCID, &[3, 2], true).unwrap();
    let first = end.send(PacketType::Ack);
    // Requesting the same again is no change of preferences.
    end.engine.change(R, CCID, &[3, 2], true).unwrap();
    end.wait(10_000);
    let second = end.send(PacketType::DataAck);
    assert_eq!(first.shows(), ["Mandatory", "Change R(1; 3 2)"]);
    assert_eq!(second.shows(), first.shows());
}

#[test]
fn a_change_withdrawn_in_time_is_never_sent() {
    let mut end = End::open(Role::Client);
    end.engine.change(L, ACK_RATIO, &[4], false).unwrap();
    end.engine.change(L, ACK_RATIO, &[2], false).unwrap();
    assert!(end.engine.is_settled());
    assert_eq!(end.send(PacketType::Ack).shows(), [""; 0]);
    // The peer may have processed the Change that was sent, so the old value is requested again.
    end.engine.change(L, ACK_RATIO, &[4], false).unwrap();
    end.send(PacketType::Ack);
    end.engine.change(L, ACK_RATIO, &[2], false).unwrap();
    end.receive_text(&["Confirm R(5; 0 4)"]).unwrap();
    assert_eq!(end.send(PacketType::Ack).shows(), ["Change L(5; 0 2)"]);
}

//= 4340-6.6.4-7 test
//= 4340-6.6.4-8 test
#[test]
fn order_survives_the_wrapping_of_numbers() {
    let mut end = End::open(Role::Server);
    let start = seq(100);
    end.receive_at(start, Some(seq(0)), &["Change L(5; 0 4)"]).unwrap();
    end.engine.change(L, ACK_RATIO, &[7], false).unwrap();
    end.send(PacketType::Ack);
    end.receive_text(&["Confirm R(5; 0 7)"]).unwrap();
    // Half the number space passes without feature options, in steps that windows allow.
    for quarter in 1..=3 {
        let distance = quarter * ((1 << 46) - 1);
        end.receive_at(start.add(distance), Some(end.gss), &[]).unwrap();
        end.gss = seq(5000).add(distance);
        end.send(PacketType::Ack);
    }
    assert!(end.gsr.is_some_and(|gsr| gsr.is_before(start)), "numbers have wrapped");
    end.receive_text(&["Change L(5; 0 5)"]).unwrap();
    assert_eq!(end.send(PacketType::Ack).shows(), ["Confirm R(5; 0 5)"]);
    end.engine.change(L, ACK_RATIO, &[8], false).unwrap();
    end.send(PacketType::Ack);
    end.receive_text(&["Confirm R(5; 0 8)"]).unwrap();
    assert_eq!(end.value(L, ACK_RATIO), 8);
}

//= 4340-6.6.4-7 test
#[test]
fn a_change_that_stayed_without_answer_is_answered_after_the_numbers_have_wrapped() {
    let mut end = End::open(Role::Server);
    end.engine.change(L, ACK_RATIO, &[7], false).unwrap();
    let start = end.send(PacketType::Ack).context.seq;
    for quarter in 1..=3 {
        end.gss = start.add(quarter * ((1 << 46) - 1));
        end.send(PacketType::Ack);
    }
    assert!(end.gss.is_before(start), "numbers have wrapped");
    end.receive_text(&["Confirm R(5; 0 7)"]).unwrap();
    assert_eq!(end.value(L, ACK_RATIO), 7);
}

//= 4340-6-1 test
//= 4340-6.6.1-2 test
#[test]
fn options_leave_and_arrive_only_where_they_may() {
    let mut end = End::open(Role::Server);
    end.engine.change(L, ACK_RATIO, &[4], false).unwrap();
    end.receive_text(&["Change L(6; 1)", "Change L(99; 1)"]).unwrap();
    use PacketType::*;
    for packet_type in [Data, CloseReq, Close, Reset, Listen] {
        assert_eq!(end.send(packet_type).shows(), [""; 0], "{packet_type:?}");
    }
    for packet_type in [Request, Sync] {
        let shows = end.send(packet_type).shows();
        assert!(shows.iter().all(|o| o.starts_with("Change")), "{packet_type:?}: {shows:?}");
    }
    assert_eq!(end.send(SyncAck).shows(), ["Confirm R(99; )", "Confirm R(6; 1 1 0)"]);
    let context = PacketContext { packet_type: Data, seq: seq(9000), ackno: None };
    let options = vec![read("Change L(5; 0 9)"), read("Mandatory"), read("Change L(99; 1)")];
    end.receive(&Packet { context, options }).unwrap();
    assert_eq!((end.send(Ack).shows(), end.value(R, ACK_RATIO)), (vec![], 2));
}
