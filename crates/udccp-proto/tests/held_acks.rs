//! Acknowledgements that are delayed until data can carry them.

mod common;

use common::{CLIENT, Pair, SERVER};
use udccp_base::{Duration, Machine};
use udccp_wire::PacketType;

/// Two messages of the client have arrived, so the server owes an acknowledgement (the Ack Ratio is
/// two) and has sent nothing yet.
fn with_pending_ack() -> Pair {
    let mut pair = Pair::connected(1);
    ask(&mut pair);
    pair
}

/// Two messages of the client arrive.
fn ask(pair: &mut Pair) {
    for _ in 0..2 {
        pair.send(CLIENT, b"question");
        let now = pair.now;
        let datagram = pair.net.ends[CLIENT].poll_transmit(now).expect("data may leave");
        pair.net.ends[SERVER].handle_datagram(now, datagram);
    }
}

/// Types of the packets that the server sends now.
fn leaves(pair: &mut Pair) -> Vec<PacketType> {
    let now = pair.now;
    let next = || pair.net.ends[SERVER].poll_transmit(now);
    std::iter::from_fn(next).filter_map(|d| PacketType::peek(&d.header)).collect()
}

#[test]
fn answers_carry_held_acknowledgements() {
    let mut pair = with_pending_ack();
    let (now, id) = (pair.now, pair.id(SERVER));
    assert!(pair.net.ends[SERVER].hold_ack(now, id));
    assert_eq!(leaves(&mut pair), []);
    pair.send(SERVER, b"answer");
    assert_eq!(leaves(&mut pair), [PacketType::DataAck]);
    pair.net.ends[SERVER].release_acks();
    assert_eq!(leaves(&mut pair), [], "it has left");
}

#[test]
fn answers_end_the_hold_on_acknowledgements() {
    let mut pair = with_pending_ack();
    let (now, id) = (pair.now, pair.id(SERVER));
    assert!(pair.net.ends[SERVER].hold_ack(now, id));
    pair.send(SERVER, b"answer");
    let answer = pair.net.ends[SERVER].poll_transmit(now).expect("it may leave");
    assert_eq!(PacketType::peek(&answer.header), Some(PacketType::DataAck));
    pair.net.ends[CLIENT].handle_datagram(now, answer);
    ask(&mut pair);
    assert_eq!(leaves(&mut pair), [PacketType::Ack]);
}

#[test]
fn an_acknowledgement_that_was_held_leaves_when_it_is_released() {
    let mut pair = with_pending_ack();
    let (now, id) = (pair.now, pair.id(SERVER));
    assert!(pair.net.ends[SERVER].hold_ack(now, id));
    assert_eq!(leaves(&mut pair), []);
    pair.net.ends[SERVER].release_acks();
    assert_eq!(leaves(&mut pair), [PacketType::Ack]);
    let mut pair = with_pending_ack();
    let (now, id) = (pair.now, pair.id(SERVER));
    assert!(pair.net.ends[SERVER].hold_ack(now, id));
    pair.net.ends[SERVER].release_ack(id);
    assert_eq!(leaves(&mut pair), [PacketType::Ack]);
}

#[test]
fn no_acknowledgement_is_held_when_none_is_due() {
    let mut pair = Pair::connected(1);
    let (now, id) = (pair.now, pair.id(SERVER));
    assert!(!pair.net.ends[SERVER].hold_ack(now, id));
    let mut pair2 = with_pending_ack();
    assert_eq!(leaves(&mut pair2), [PacketType::Ack], "at once, where nobody holds it");
}

#[test]
fn an_acknowledgement_of_a_stream_is_not_held() {
    let mut pair = with_pending_ack();
    pair.send(CLIENT, b"and more");
    let (now, id) = (pair.now, pair.id(SERVER));
    let datagram = pair.net.ends[CLIENT].poll_transmit(now).expect("data may leave");
    pair.net.ends[SERVER].handle_datagram(now, datagram);
    assert!(!pair.net.ends[SERVER].hold_ack(now, id));
    assert_eq!(leaves(&mut pair), [PacketType::Ack]);
}

/// An acknowledgement is owed, and the server may send messages beside which it does not fit: of
/// many packets every other one was lost, which makes the Ack Vector long.
fn with_pending_ack_and_full_messages() -> Pair {
    let mut pair = Pair::connected(1);
    for _ in 0..20 {
        while pair.try_send(CLIENT, b"question") {}
        pair.pass(Duration::from_millis(20));
        pair.received(SERVER);
    }
    pair.pass(Duration::from_millis(500));
    pair.received(SERVER);
    while pair.try_send(CLIENT, b"question") {}
    let (now, id) = (pair.now, pair.id(SERVER));
    let next = || pair.net.ends[CLIENT].poll_transmit(now);
    let burst: Vec<_> = std::iter::from_fn(next).collect();
    for datagram in burst.into_iter().step_by(2) {
        pair.net.ends[SERVER].handle_datagram(now, datagram);
    }
    let most = pair.net.ends[SERVER].max_message_size(id).expect("it is open");
    for _ in 0..3 {
        pair.send(SERVER, &vec![7; most]);
    }
    pair
}

#[test]
fn an_acknowledgement_that_fits_no_message_follows_those_of_its_instant() {
    let mut pair = with_pending_ack_and_full_messages();
    let (data, ack) = (PacketType::Data, PacketType::Ack);
    assert_eq!(leaves(&mut pair), [data, data, data, ack]);
}

#[test]
fn an_acknowledgement_that_fits_no_message_is_not_put_off_by_a_slow_device() {
    let mut pair = with_pending_ack_and_full_messages();
    let mut left = Vec::new();
    // The device takes a packet every millisecond.
    while let Some(datagram) = pair.net.ends[SERVER].poll_transmit(pair.now) {
        left.extend(PacketType::peek(&datagram.header));
        pair.now += Duration::from_millis(1);
    }
    let (data, ack) = (PacketType::Data, PacketType::Ack);
    assert_eq!(left, [data, ack, data, data]);
}
