//! Data: queues, backpressure, deadlines, feedback of a slow reader.

mod common;

use bytes::Bytes;
use common::{CLIENT, Net, Pair, SERVER};
use udccp_base::{Duration, Message, Payload};
use udccp_proto::ConnectionConfig;

fn numbered(n: u32) -> Message {
    let mut data = vec![0; 1000];
    data[..4].copy_from_slice(&n.to_be_bytes());
    Message::new(Payload::Bytes(Bytes::from(data)))
}

/// Sends as much as is taken; returns how many were.
fn pump(pair: &mut Pair, next: &mut u32, last: u32) {
    let id = pair.id(CLIENT);
    let now = pair.now;
    while *next < last && pair.ends[CLIENT].is_writable(id) {
        pair.ends[CLIENT].send(now, id, numbered(*next)).unwrap();
        *next += 1;
    }
}

#[test]
fn nothing_is_lost_while_the_reader_is_slow() {
    let mut net = Net::new(2);
    net.delay = Duration::from_micros(50);
    let mut pair = Pair::connected_with(net, ConnectionConfig::default());
    let (mut next, mut got) = (0, 0_u32);
    let total = 20_000;
    let mut rounds = 0;
    while got < total {
        pump(&mut pair, &mut next, total);
        pair.pass(Duration::from_millis(1));
        rounds += 1;
        assert!(rounds < 100_000, "stuck at {got}: {:?} {:?}", pair.stats(0), pair.stats(1));
        // The reader stalls for half a second now and then, and else reads a few at a time.
        if rounds % 2000 < 500 {
            continue;
        }
        let (now, id) = (pair.now, pair.id(SERVER));
        for _ in 0..20 {
            let Ok(Some(p)) = pair.ends[SERVER].recv(now, id) else { break };
            assert_eq!(p.to_bytes()[..4], got.to_be_bytes(), "in order and complete");
            got += 1;
        }
    }
    let (c, s) = (pair.stats(CLIENT), pair.stats(SERVER));
    println!("{rounds} ms {c:#?}\n{s:#?}");
    assert_eq!(s.counters.drops.receive_queue_full, 0);
}
