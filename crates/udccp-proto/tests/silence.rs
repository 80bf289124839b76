//! A peer that does not answer: it is asked before it counts as gone, and a connection whose peer
//! is gone always ends.

mod common;

use common::{CLIENT, Net, Pair, SERVER};
use udccp_base::{Duration, Machine};
use udccp_proto::{CloseReason, ConnectionConfig, EventKind, State};

const CCIDS: [u8; 3] = [2, 3, 4];
const SECOND: Duration = Duration::from_secs(1);
/// The default `silence_timeout`.
const LIMIT: Duration = Duration::from_secs(300);

fn pair(ccid: u8, config: ConnectionConfig) -> Pair {
    let config = ConnectionConfig { tx_ccids: vec![ccid], rx_ccids: vec![ccid], ..config };
    let mut pair = Pair::connected_with(Net::new(ccid.into()), config);
    pair.pass(SECOND * 10);
    pair
}

fn cut(pair: &mut Pair) {
    pair.filter = Some(Box::new(|_, _| false));
}

fn has_given_up(pair: &Pair, end: usize) -> bool {
    pair.events[end].contains(&EventKind::Closed(CloseReason::PeerSilent))
}

/// Regression: nothing is sent again in DCCP, so a peer that has nothing to say was given up
/// because one datagram was lost.
#[test]
fn one_lost_message_ends_no_connection() {
    for ccid in CCIDS {
        for loss in [0.0, 0.3] {
            let mut pair = pair(ccid, ConnectionConfig::default());
            pair.mute(CLIENT);
            pair.send(CLIENT, b"lost");
            pair.pass(SECOND);
            pair.filter = None;
            pair.impairments.loss = loss;
            pair.pass(LIMIT * 3);
            let states = [CLIENT, SERVER].map(|end| pair.state(end));
            assert_eq!(states, [Some(State::Open); 2], "CCID {ccid}, loss {loss}");
        }
    }
}

/// Regression: a packet that the peer had sent before counted as an answer to the message. If the
/// peer then was gone, the connection stayed for ever.
#[test]
fn a_packet_that_crosses_a_message_is_no_answer_to_it() {
    for ccid in CCIDS {
        for crossing in [CLIENT, SERVER] {
            let mut pair = pair(ccid, ConnectionConfig::default());
            pair.send(crossing, b"crosses");
            pair.net.drain();
            pair.pass(Duration::from_millis(5));
            pair.send(CLIENT, b"a request");
            pair.net.drain();
            // What is on the way arrives. The server is gone.
            cut(&mut pair);
            pair.pass(LIMIT - SECOND);
            assert!(!has_given_up(&pair, CLIENT), "CCID {ccid}");
            pair.pass(SECOND * 2);
            assert!(has_given_up(&pair, CLIENT), "CCID {ccid}: {:?}", pair.stats(CLIENT));
        }
    }
}

/// Messages sent while the acknowledgement of earlier ones is on its way are unanswered too.
#[test]
fn an_answer_to_some_messages_is_none_to_the_later_ones() {
    for ccid in CCIDS {
        let mut pair = pair(ccid, ConnectionConfig::default());
        let before = pair.stats(CLIENT).counters.acks_received;
        pair.send(CLIENT, b"first");
        pair.send(CLIENT, b"second");
        pair.pass(Duration::from_millis(15));
        cut(&mut pair);
        pair.send(CLIENT, b"third");
        pair.pass(SECOND);
        assert_eq!(pair.stats(CLIENT).counters.acks_received, before + 1, "CCID {ccid}");
        pair.pass(LIMIT + SECOND);
        assert!(has_given_up(&pair, CLIENT), "CCID {ccid}: {:?}", pair.stats(CLIENT));
    }
}

#[test]
fn probes_begin_in_the_last_eighth_and_are_few() {
    for ccid in CCIDS {
        let mut pair = pair(ccid, ConnectionConfig::default());
        cut(&mut pair);
        pair.send(CLIENT, b"lost");
        pair.pass(LIMIT * 7 / 8 - SECOND);
        assert_eq!(pair.stats(CLIENT).counters.syncs_sent, 0, "CCID {ccid}");
        pair.pass(SECOND * 2);
        assert_eq!(pair.stats(CLIENT).counters.syncs_sent, 1, "CCID {ccid}");
        pair.pass(LIMIT);
        assert!(has_given_up(&pair, CLIENT));
        assert_eq!(pair.stats(CLIENT).counters.syncs_sent, 6, "CCID {ccid}");
    }
}

/// Regression: a host that always runs late excused every silence for ever.
#[test]
fn a_host_that_always_runs_late_gives_up_too() {
    let watching = ConnectionConfig { keep_alive: Some(SECOND * 25), ..Default::default() };
    let limited = ConnectionConfig { idle_limit: Some(SECOND * 100), ..watching.clone() };
    for (sends, config) in
        [(true, ConnectionConfig::default()), (false, watching), (false, limited)]
    {
        for ccid in CCIDS {
            let mut pair = pair(ccid, config.clone());
            cut(&mut pair);
            if sends {
                pair.send(CLIENT, b"lost");
            }
            pair.net.drain();
            let mut turns = 0;
            while !has_given_up(&pair, CLIENT) {
                let due = pair.net.ends[CLIENT].poll_timeout().expect("it watches the peer");
                pair.net.now = due + Duration::from_millis(200);
                pair.pass(Duration::ZERO);
                turns += 1;
                assert!(turns < 2000, "CCID {ccid}: {:?}", pair.stats(CLIENT));
            }
        }
    }
}
