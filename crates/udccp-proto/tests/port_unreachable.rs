//! A peer whose host reports that nothing listens there (ICMP port unreachable).

mod common;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use common::packet::numbers;
use common::{CLIENT, Net, Pair, SERVER};
use udccp_base::{Datagram, Duration};
use udccp_proto::{CloseReason, ConnectionConfig, PathReport, State};
use udccp_wire::{HeaderKind, PacketType};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// The client's packets, in order.
type Sent = Rc<RefCell<VecDeque<Datagram>>>;

/// Ends the server's program: it sends nothing more. Its host receives the client's packets.
fn kill_server(pair: &mut Pair) -> Sent {
    let sent = Sent::default();
    let seen = Rc::clone(&sent);
    pair.filter = Some(Box::new(move |from, d| {
        if from == CLIENT {
            seen.borrow_mut().push_back(d.clone());
        }
        false
    }));
    sent
}

/// The server's host answers a packet of the client.
fn refuse(pair: &mut Pair, quoted: &Datagram) {
    let (now, report) = (pair.now, PathReport::PortUnreachable);
    pair.ends[CLIENT].handle_path_report(now, quoted.src, quoted.dst, &quoted.header, report);
    pair.drain();
}

#[test]
fn a_peer_whose_port_is_closed_three_times_in_a_row_is_gone() {
    for ccid in [2, 3] {
        let config = ConnectionConfig {
            tx_ccids: vec![ccid],
            rx_ccids: vec![ccid],
            ..ConnectionConfig::default()
        };
        let mut pair = Pair::connected_with(Net::new(u64::from(ccid)), config);
        pair.send(CLIENT, b"arrives");
        pair.pass(ms(500));
        let sent = kill_server(&mut pair);
        pair.send(CLIENT, b"meets a closed port");
        let mut refused = 0;
        while pair.end_reason(CLIENT).is_none() {
            pair.pass(ms(20));
            let next = sent.borrow_mut().pop_front().expect("the client asks again by itself");
            refuse(&mut pair, &next);
            refused += 1;
            assert!(refused <= 3, "CCID {ccid}");
        }
        assert_eq!(pair.end_reason(CLIENT), Some(CloseReason::PortUnreachable));
        assert_eq!(refused, 3, "CCID {ccid}: one or two may be an accident");
        assert_eq!(pair.ends[CLIENT].live_connections(), 0);
    }
}

#[test]
fn repeated_copies_of_one_report_end_nothing() {
    let mut pair = Pair::connected(11);
    let sent = kill_server(&mut pair);
    pair.send(CLIENT, b"lost");
    pair.drain();
    let quoted = sent.borrow_mut().pop_front().unwrap();
    for _ in 0..1000 {
        refuse(&mut pair, &quoted);
    }
    assert_eq!(pair.state(CLIENT), Some(State::Open));
    // Reports about all packets of one burst count once, because they are about the same time.
    for _ in 0..3 {
        pair.send(CLIENT, b"one of a burst");
    }
    pair.drain();
    let burst: Vec<_> = sent.borrow_mut().drain(..).collect();
    burst.iter().for_each(|quoted| refuse(&mut pair, quoted));
    assert_eq!(pair.state(CLIENT), Some(State::Open));
}

#[test]
fn stale_and_guessed_reports_end_nothing() {
    let mut pair = Pair::connected(12);
    let mut old = Vec::new();
    for _ in 0..20 {
        pair.send(CLIENT, b"arrives");
        pair.drain();
        old.extend(pair.last[CLIENT].clone());
        pair.pass(ms(100));
    }
    old.iter().for_each(|quoted| refuse(&mut pair, quoted));
    assert_eq!(pair.stats(CLIENT).counters.syncs_sent, 0, "the peer has acknowledged them");
    let like = pair.last[CLIENT].clone().unwrap();
    let (_, seq, _) = numbers(&like);
    for ahead in 1..1000 {
        let guess = common::packet::forge(&like, HeaderKind::Data, seq.add(ahead), &[]);
        refuse(&mut pair, &guess);
    }
    assert_eq!(pair.state(CLIENT), Some(State::Open));
    assert_eq!(pair.stats(CLIENT).counters.syncs_sent, 0);
}

/// An attacker who sees every packet reports each as refused, but the peer is alive.
#[test]
fn answers_reset_the_count_of_port_unreachable_reports() {
    let mut pair = Pair::connected(13);
    for _ in 0..100 {
        pair.send(CLIENT, b"arrives");
        pair.drain();
        let quoted = pair.last[CLIENT].clone().unwrap();
        refuse(&mut pair, &quoted);
        let asks = pair.last[CLIENT].clone().unwrap();
        assert_eq!(numbers(&asks).0.packet_type(), PacketType::Sync);
        refuse(&mut pair, &asks);
        pair.pass(ms(200));
        assert_eq!(pair.state(CLIENT), Some(State::Open));
    }
    assert_eq!(pair.received(SERVER).len(), 100);
    assert!(pair.stats(CLIENT).counters.sync_acks_received >= 100);
}

#[test]
fn a_closed_port_ends_a_handshake_and_a_close_with_its_own_reason() {
    let config = ConnectionConfig::default;
    let mut pair = Pair::starting(Net::new(14), config(), config());
    let sent = kill_server(&mut pair);
    pair.drain();
    let request = sent.borrow_mut().pop_front().unwrap();
    refuse(&mut pair, &request);
    assert_eq!(pair.end_reason(CLIENT), Some(CloseReason::PortUnreachable));

    let mut pair = Pair::connected(15);
    let sent = kill_server(&mut pair);
    pair.close(CLIENT);
    while pair.end_reason(CLIENT).is_none() {
        pair.pass(ms(50));
        let closes: Vec<_> = sent.borrow_mut().drain(..).collect();
        closes.iter().for_each(|quoted| refuse(&mut pair, quoted));
    }
    assert_eq!(pair.end_reason(CLIENT), Some(CloseReason::PortUnreachable));
}
