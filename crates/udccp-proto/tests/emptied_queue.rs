//! Send queues that become empty because their messages are dropped, not sent: who waits for that
//! must not wait for anything else.

mod common;

use common::{CLIENT, Net, Pair, SERVER};
use udccp_base::{Duration, Message, Payload};
use udccp_proto::{CloseReason, ConnectionConfig, DropReason, EventKind, MessageFate, State};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn endless_linger() -> ConnectionConfig {
    ConnectionConfig { close_linger: Duration::MAX, ..ConnectionConfig::default() }
}

/// A connection whose `end` has filled its window, and `waiting` messages more in the queue.
fn blocked(
    end: usize,
    config: ConnectionConfig,
    waiting: usize,
    lifetime: Option<Duration>,
) -> Pair {
    let mut pair = Pair::connected_with(Net::new(3), config);
    pair.mute(1 - end);
    for _ in 0..waiting + 3 {
        send(&mut pair, end, lifetime);
    }
    pair.net.drain();
    pair
}

fn send(pair: &mut Pair, end: usize, lifetime: Option<Duration>) {
    let mut message = Message::new(Payload::Bytes(vec![1; 1300].into()));
    message.deadline = lifetime.map(|span| pair.now + span);
    let (now, id) = (pair.now, pair.id(end));
    pair.net.ends[end].send(now, id, message).unwrap();
}

#[test]
fn close_continues_when_the_last_message_expires() {
    for end in [CLIENT, SERVER] {
        let mut pair = blocked(end, endless_linger(), 20, Some(MS * 50));
        pair.close(end);
        pair.pass(MS * 49);
        assert_eq!(pair.state(end), Some(State::Open));
        pair.pass(MS * 2);
        let closing = [State::Closing, State::CloseReq][end];
        assert_eq!(pair.state(end), Some(closing));
        pair.filter = None;
        pair.pass(SECOND * 2);
        assert!(pair.events[end].contains(&EventKind::Closed(CloseReason::LocalClose)));
    }
}

#[test]
fn close_continues_when_the_peer_stops_reading() {
    for end in [CLIENT, SERVER] {
        let mut pair = blocked(end, endless_linger(), 20, None);
        let (now, id) = (pair.now, pair.id(1 - end));
        pair.net.ends[1 - end].shutdown_read(now, id);
        pair.close(end);
        pair.filter = None;
        pair.pass(SECOND * 2);
        assert!(pair.events[end].contains(&EventKind::PeerShutdownRead));
        assert!(pair.events[end].contains(&EventKind::Closed(CloseReason::LocalClose)));
    }
}

#[test]
fn close_continues_when_queued_messages_become_too_large() {
    for end in [CLIENT, SERVER] {
        let mut pair = blocked(end, endless_linger(), 20, None);
        pair.close(end);
        let (now, id) = (pair.now, pair.id(end));
        pair.net.ends[end].set_path_mtu(now, id, 600);
        pair.filter = None;
        pair.pass(SECOND * 2);
        assert!(pair.events[end].contains(&EventKind::Closed(CloseReason::LocalClose)));
    }
}

#[test]
fn space_is_reported_when_oversized_messages_are_dropped() {
    let config = ConnectionConfig { send_queue_packets: 4, ..endless_linger() };
    let mut pair = blocked(CLIENT, config, 0, None);
    while pair.try_send(CLIENT, &[1; 1300]) {}
    pair.pass(MS);
    pair.events = Default::default();
    let (now, id) = (pair.now, pair.id(CLIENT));
    pair.net.ends[CLIENT].set_path_mtu(now, id, 600);
    pair.pass(MS);
    assert!(pair.events[CLIENT].contains(&EventKind::Writable), "{:?}", pair.events[CLIENT]);
}

#[test]
fn a_message_expires_in_time_while_the_connection_is_not_open_yet() {
    let mut pair = Pair::starting(Net::new(4), endless_linger(), endless_linger());
    pair.mute(SERVER);
    let mut message = Message::new(Payload::Bytes(vec![1; 100].into()));
    message.deadline = Some(pair.now + MS * 50);
    message.token = Some(7);
    let (now, id) = (pair.now, pair.id(CLIENT));
    pair.net.ends[CLIENT].send(now, id, message).unwrap();
    pair.pass(MS * 49);
    assert_eq!(pair.events[CLIENT], []);
    pair.pass(MS * 2);
    let fate = MessageFate::Dropped(DropReason::Expired);
    assert!(
        pair.events[CLIENT].contains(&EventKind::MessageFate { token: 7, fate }),
        "{:?}",
        pair.events[CLIENT]
    );
}
