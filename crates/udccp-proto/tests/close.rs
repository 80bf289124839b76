//! Closing connections from either side, in order or not.

mod common;

use common::packet::{forge, numbers};
use common::{CLIENT, Net, Pair, SERVER, connect_options};
use udccp_base::{Duration, Instant, Machine, Message, Payload};
use udccp_proto::{
    CloseReason, ConnectError, ConnectOptions, ConnectionConfig, DropReason, EventKind, SendError,
    State,
};
use udccp_wire::{HeaderKind, OptionRef, ResetCode};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn connected(seed: u64, config: ConnectionConfig) -> Pair {
    let mut pair = Pair::connected_with(Net::new(seed), config);
    pair.send(CLIENT, b"up");
    pair.send(SERVER, b"down");
    pair.pass(Duration::from_secs(1));
    pair.trace = Some(Vec::new());
    pair.events = Default::default();
    pair
}

/// Types and senders of the packets sent since the trace began.
fn exchange(pair: &mut Pair) -> String {
    let trace = pair.take_trace();
    let words = trace.lines().map(|l| {
        let mut words = l[11..].split_whitespace();
        let who = words.next().unwrap();
        format!("{who} {}", words.nth(2).unwrap())
    });
    words.collect::<Vec<_>>().join(", ")
}

//= 4340-8.3-2 test
//= 4340-8.3-3 test
#[test]
fn a_client_that_closes_holds_timewait() {
    let mut pair = connected(1, ConnectionConfig::default());
    pair.close(CLIENT);
    pair.pass(ms(100));
    assert_eq!(exchange(&mut pair), "C Close, S Reset");
    assert_eq!(pair.state(CLIENT), Some(State::TimeWait));
    assert_eq!(pair.state(SERVER), Some(State::Closed));
    assert_eq!(pair.events[CLIENT], [EventKind::Closed(CloseReason::LocalClose)]);
    assert_eq!(pair.events[SERVER], [EventKind::Closed(CloseReason::PeerClose)]);
    // Data that arrived can still be read.
    assert_eq!(pair.received(SERVER), [b"up"]);
    assert_eq!(pair.end_reason(SERVER), Some(CloseReason::PeerClose));
    assert_eq!(pair.received(CLIENT), [b"down"]);
    assert_eq!(pair.end_reason(CLIENT), Some(CloseReason::LocalClose));
}

//= 4340-8.3-1 test
//= 4340-8.3-3 test
#[test]
fn a_server_that_closes_leaves_timewait_to_the_client() {
    let mut pair = connected(2, ConnectionConfig::default());
    pair.close(SERVER);
    pair.pass(ms(100));
    assert_eq!(exchange(&mut pair), "S CloseReq, C Close, S Reset");
    assert_eq!(pair.state(CLIENT), Some(State::TimeWait));
    assert_eq!(pair.state(SERVER), Some(State::Closed));
    assert_eq!(pair.events[CLIENT], [EventKind::Closed(CloseReason::PeerClose)]);
    assert_eq!(pair.events[SERVER], [EventKind::Closed(CloseReason::LocalClose)]);
}

#[test]
fn a_server_may_hold_timewait_itself() {
    let config = ConnectionConfig { server_timewait: true, ..ConnectionConfig::default() };
    let mut pair = connected(3, config);
    pair.close(SERVER);
    pair.pass(ms(100));
    assert_eq!(exchange(&mut pair), "S Close, C Reset");
    assert_eq!(pair.state(CLIENT), Some(State::Closed));
    assert_eq!(pair.state(SERVER), Some(State::TimeWait));
}

//= 4340-8.3-1 test
#[test]
fn both_may_close_at_once() {
    let mut pair = connected(4, ConnectionConfig::default());
    pair.close(CLIENT);
    pair.close(SERVER);
    pair.pass(ms(100));
    assert_eq!(exchange(&mut pair), "C Close, S CloseReq, C Close, S Reset, S Reset");
    assert_eq!(pair.state(CLIENT), Some(State::TimeWait));
    assert_eq!(pair.state(SERVER), Some(State::Closed));

    let config = ConnectionConfig { server_timewait: true, ..ConnectionConfig::default() };
    let mut pair = connected(5, config);
    pair.close(CLIENT);
    pair.close(SERVER);
    pair.pass(ms(100));
    assert_eq!(exchange(&mut pair), "C Close, S Close, C Reset, S Reset");
    for end in [CLIENT, SERVER] {
        assert_eq!(pair.state(end), Some(State::Closed));
        assert_eq!(pair.events[end], [EventKind::Closed(CloseReason::LocalClose)]);
    }
}

//= 4340-8.3-4 test
#[test]
fn close_and_closereq_are_repeated_until_answered() {
    for end in [CLIENT, SERVER] {
        for lost in 0..3 {
            let mut pair = connected(6, ConnectionConfig::default());
            let mut count = 0;
            pair.filter = Some(Box::new(move |_, _| {
                count += 1;
                count - 1 != lost
            }));
            pair.close(end);
            pair.pass(Duration::from_secs(2));
            for end in [CLIENT, SERVER] {
                let state = pair.state(end).unwrap();
                assert!(state.is_over(), "{end} is in {state} after packet {lost} was lost");
            }
        }
    }
}

#[test]
fn close_with_a_lost_answer_still_ends_in_order() {
    for end in [CLIENT, SERVER] {
        let mut pair = connected(16, ConnectionConfig::default());
        let mut lost = false;
        pair.filter = Some(Box::new(move |_, d| {
            let answer = matches!(numbers(d).0, HeaderKind::Reset { code: ResetCode::Closed, .. });
            lost |= answer;
            !answer || !lost
        }));
        pair.close(end);
        pair.pass(Duration::from_secs(5));
        let reasons = [CloseReason::LocalClose, CloseReason::PeerClose];
        assert_eq!(pair.events[end], [EventKind::Closed(reasons[0])]);
        assert_eq!(pair.events[1 - end], [EventKind::Closed(reasons[1])]);
    }
}

#[test]
fn a_close_repeated_before_its_answer_left_gets_that_answer() {
    let mut pair = connected(17, ConnectionConfig::default());
    pair.close(CLIENT);
    let now = pair.now;
    let close = pair.ends[CLIENT].poll_transmit(now).unwrap();
    let (kind, seq, _) = numbers(&close);
    let again = forge(&close, kind, seq.next(), &[]);
    // Both arrive in one batch, before anything is drained.
    pair.ends[SERVER].handle_datagram(now, close);
    pair.ends[SERVER].handle_datagram(now, again);
    pair.pass(ms(100));
    assert_eq!(exchange(&mut pair), "S Reset");
    assert_eq!(pair.events[CLIENT], [EventKind::Closed(CloseReason::LocalClose)]);
}

//= 4340-8.3-4 test
#[test]
fn unanswered_close_is_abandoned() {
    let config = ConnectionConfig { close_retries: 3, ..ConnectionConfig::default() };
    let mut pair = connected(7, config);
    pair.mute(CLIENT);
    pair.close(CLIENT);
    pair.pass(Duration::from_secs(60));
    assert_eq!(pair.stats(CLIENT).counters.closes_retransmitted, 3);
    assert_eq!(exchange(&mut pair), "C Close, C Close, C Close, C Close, C Reset");
    assert_eq!(pair.events[CLIENT], [EventKind::Closed(CloseReason::CloseTimeout)]);
}

#[test]
fn unconfirmed_close_is_reported_and_continues() {
    for (linger, patience) in [(ms(5000), ms(5000)), (ms(1), ms(280))] {
        for end in [CLIENT, SERVER] {
            let config = ConnectionConfig { close_linger: linger, ..ConnectionConfig::default() };
            let mut pair = connected(20, config);
            assert_eq!(pair.stats(end).srtt, Some(ms(20)), "three Closes take 14 times as long");
            pair.mute(end);
            pair.close(end);
            pair.pass(patience - ms(1));
            assert_eq!(pair.events[end], []);
            pair.pass(ms(1));
            assert_eq!(pair.events[end], [EventKind::CloseUnconfirmed]);
            assert!(pair.ends[end].is_close_unconfirmed(pair.id(end)));
            pair.filter = None;
            pair.pass(patience * 2);
            assert_eq!(pair.events[end][1..], [EventKind::Closed(CloseReason::LocalClose)]);
        }
    }
    // The peer closes and its Reset is lost. A `close` here then waits no longer than usual.
    let mut pair = connected(21, ConnectionConfig::default());
    pair.close(SERVER);
    pair.pass(ms(15));
    pair.mute(SERVER);
    pair.close(CLIENT);
    pair.pass(ms(6000));
    assert_eq!(pair.events[CLIENT], [EventKind::CloseUnconfirmed]);
}

/// A time beyond the range of the clock never comes.
#[test]
fn unlimited_close_is_not_reported_as_unconfirmed() {
    for linger in [Duration::MAX, Duration::from_nanos(u64::MAX - 1)] {
        let config = ConnectionConfig { close_linger: linger, ..ConnectionConfig::default() };
        let mut pair = connected(22, config);
        pair.mute(CLIENT);
        pair.close(CLIENT);
        pair.pass(ms(6000));
        assert!(!pair.ends[CLIENT].is_close_unconfirmed(pair.id(CLIENT)), "{linger:?}");
        pair.filter = None;
        pair.pass(Duration::from_secs(10));
        assert_eq!(pair.events[CLIENT], [EventKind::Closed(CloseReason::LocalClose)]);
    }
}

#[test]
fn timewait_keeps_the_ports_for_four_minutes_and_answers_with_resets() {
    let mut pair = connected(8, ConnectionConfig::default());
    let tuple = pair.ends[CLIENT].tuple(pair.id(CLIENT)).unwrap();
    let last = pair.last[SERVER].clone().unwrap();
    pair.close(CLIENT);
    pair.pass(ms(100));
    let (now, id) = (pair.now, pair.id(CLIENT));
    pair.ends[CLIENT].release(now, id);
    pair.drain();
    assert_eq!(pair.ends[CLIENT].endpoint_stats().timewaits, 1);
    assert_eq!(pair.ends[CLIENT].endpoint_stats().connections, 0);
    let local_port = Some(tuple.local_port);
    let same = ConnectOptions { local_port, ..connect_options(ConnectionConfig::default()) };
    assert_eq!(pair.net.ends[CLIENT].connect(now, same.clone()), Err(ConnectError::InUse));
    pair.deliver(CLIENT, last);
    let (kind, _, _) = numbers(pair.last[CLIENT].as_ref().unwrap());
    assert!(matches!(kind, HeaderKind::Reset { code: ResetCode::NoConnection, .. }));
    pair.pass(Duration::from_secs(239));
    let now = pair.now;
    assert!(pair.net.ends[CLIENT].connect(now, same.clone()).is_err());
    pair.pass(Duration::from_secs(1));
    assert_eq!(pair.ends[CLIENT].endpoint_stats().timewaits, 0);
    let now = pair.now;
    assert!(pair.net.ends[CLIENT].connect(now, same).is_ok());
}

/// Regression: the longest time held the ports for none.
#[test]
fn timewait_for_ever_keeps_the_ports() {
    let config = ConnectionConfig { timewait: Duration::MAX, ..ConnectionConfig::default() };
    let mut pair = connected(13, config);
    pair.close(CLIENT);
    pair.pass(Duration::from_secs(3600));
    assert_eq!(pair.state(CLIENT), Some(State::TimeWait));
    let (now, id) = (pair.now, pair.id(CLIENT));
    pair.ends[CLIENT].release(now, id);
    pair.pass(Duration::from_secs(3600));
    assert_eq!(pair.ends[CLIENT].endpoint_stats().timewaits, 1);
    assert_eq!(pair.ends[CLIENT].poll_timeout(), None);
}

#[test]
fn close_delivers_what_is_queued_within_its_bound() {
    let mut pair = connected(9, ConnectionConfig::default());
    for _ in 0..50 {
        pair.send(CLIENT, &[7; 1000]);
    }
    pair.close(CLIENT);
    assert!(!pair.try_send(CLIENT, b"too late"));
    pair.pass(Duration::from_secs(2));
    assert_eq!(pair.received(SERVER).len(), 51);
    assert_eq!(pair.end_reason(SERVER), Some(CloseReason::PeerClose));

    let config = ConnectionConfig { close_linger: ms(300), ..ConnectionConfig::default() };
    let mut pair = connected(10, config);
    pair.mute(SERVER);
    for _ in 0..50 {
        pair.send(CLIENT, &[7; 1000]);
    }
    pair.close(CLIENT);
    pair.pass(ms(250));
    assert_eq!(pair.state(CLIENT), Some(State::Open));
    pair.pass(ms(100));
    assert_eq!(pair.state(CLIENT), Some(State::Closing));
    let dropped = |kind: &&EventKind| {
        let reason = DropReason::ConnectionEnded;
        **kind == EventKind::MessageDropped { reason, bytes: 1000 }
    };
    let dropped = pair.events[CLIENT].iter().filter(dropped).count();
    assert_eq!(pair.stats(CLIENT).counters.drops.send_ended, dropped as u64);
    assert_eq!(pair.stats(CLIENT).counters.data_packets_sent as usize, 51 - dropped);
    assert!(dropped > 30);
}

#[test]
//= 4340-8.3-6 test
fn data_that_arrives_while_a_connection_closes_is_still_delivered() {
    for end in [CLIENT, SERVER] {
        let mut pair = connected(17, ConnectionConfig::default());
        pair.received(end);
        pair.send(1 - end, b"on its way");
        pair.close(end);
        pair.pass(ms(5));
        let closing = [State::Closing, State::CloseReq][end];
        assert_eq!(pair.state(end), Some(closing));
        pair.pass(ms(500));
        assert_eq!(pair.received(end), [b"on its way"], "end {end}");
        assert_eq!(pair.end_reason(end), Some(CloseReason::LocalClose));
    }
}

#[test]
fn a_message_sent_and_closed_at_once_waits_for_the_handshake() {
    let net = Net::new(11);
    let mut pair = Pair::starting(net, Default::default(), Default::default());
    pair.send(CLIENT, b"only this");
    pair.close(CLIENT);
    pair.pass(Duration::from_secs(1));
    assert_eq!(pair.received(SERVER), [b"only this"]);
    assert_eq!(pair.end_reason(SERVER), Some(CloseReason::PeerClose));
    assert_eq!(pair.end_reason(CLIENT), Some(CloseReason::LocalClose));
}

#[test]
fn abort_resets_at_once() {
    let mut pair = connected(12, ConnectionConfig::default());
    let (now, id) = (pair.now, pair.id(CLIENT));
    pair.ends[CLIENT].abort(now, id);
    pair.pass(ms(100));
    assert_eq!(exchange(&mut pair), "C Reset");
    assert_eq!(pair.events[CLIENT], [EventKind::Closed(CloseReason::LocalAbort)]);
    let (code, data) = (ResetCode::Aborted, [0; 3]);
    let reason = CloseReason::PeerReset { code, data };
    assert_eq!(pair.events[SERVER], [EventKind::Closed(reason)]);
    assert_eq!(pair.state(SERVER), Some(State::TimeWait));
    let refused = pair.net.ends[CLIENT].send(now, id, Message::new(Payload::Zeros(1)));
    assert!(matches!(refused, Err(SendError::NotOpen(_))));
}

#[test]
fn a_released_connection_closes_by_itself_and_is_forgotten() {
    let mut pair = connected(13, ConnectionConfig::default());
    for end in [SERVER, CLIENT] {
        let (now, id) = (pair.now, pair.id(end));
        pair.ends[end].release(now, id);
        pair.pass(ms(200));
        assert_eq!(pair.ends[end].endpoint_stats().connections, 0, "end {end}");
    }
    assert_eq!(pair.ends[CLIENT].endpoint_stats().timewaits, 1);
    assert_eq!(pair.ends[SERVER].endpoint_stats().timewaits, 0);
    pair.pass(Duration::from_secs(240));
    assert_eq!(pair.ends[CLIENT].endpoint_stats().timewaits, 0);
    assert_eq!(pair.ends[CLIENT].poll_timeout(), None::<Instant>);
}

#[test]
fn options_on_a_reset_are_processed_before_the_connection_ends() {
    let mut pair = connected(14, ConnectionConfig::default());
    let like = pair.last[SERVER].clone().unwrap();
    let (_, seq, _) = numbers(&like);
    let (_, ack, _) = numbers(pair.last[CLIENT].as_ref().unwrap());
    let kind = HeaderKind::Reset { ack, code: ResetCode::Closed, data: [0; 3] };
    let options = [OptionRef::Mandatory, OptionRef::Unknown { kind: 100, data: &[1, 2, 3] }];
    pair.deliver(CLIENT, forge(&like, kind, seq.next(), &options));
    let (kind, _, _) = numbers(pair.last[CLIENT].as_ref().unwrap());
    let HeaderKind::Reset { code, data, .. } = kind else { panic!("{kind:?}") };
    assert_eq!((code, data), (ResetCode::MandatoryError, [100, 1, 2]));
}

#[test]
fn a_connection_closed_before_accept_can_still_be_accepted_and_read() {
    let net = Net::new(15);
    let mut pair = Pair::starting(net, Default::default(), Default::default());
    pair.send(CLIENT, b"short");
    pair.close(CLIENT);
    pair.net.run(Duration::from_secs(1));
    let id = pair.net.ends[SERVER].accept(pair.listener).expect("it is still there");
    let now = pair.now;
    let message = pair.net.ends[SERVER].recv(now, id).unwrap().unwrap();
    assert_eq!(&message.to_bytes()[..], b"short");
}

/// Events of a connection, from its accept on.
fn events_after_accept(pair: &mut Pair) -> Vec<EventKind> {
    while pair.ends[SERVER].poll_event().is_some() {}
    let id = pair.net.ends[SERVER].accept(pair.listener).expect("it is still there");
    let events = core::iter::from_fn(|| pair.net.ends[SERVER].poll_event());
    events.inspect(|event| assert_eq!(event.id, id)).map(|event| event.kind).collect()
}

#[test]
fn accept_reports_what_happened_before() {
    let starting = |seed| Pair::starting(Net::new(seed), Default::default(), Default::default());
    let mut pair = starting(17);
    pair.net.run(ms(100));
    pair.close(CLIENT);
    pair.net.run(Duration::from_secs(1));
    assert_eq!(events_after_accept(&mut pair), [EventKind::Closed(CloseReason::PeerClose)]);

    let mut pair = starting(18);
    pair.net.run(ms(100));
    let (now, id) = (pair.now, pair.ids[CLIENT].unwrap());
    pair.ends[CLIENT].abort(now, id);
    pair.net.run(ms(100));
    let (code, data) = (ResetCode::Aborted, [0; 3]);
    let reset = CloseReason::PeerReset { code, data };
    assert_eq!(events_after_accept(&mut pair), [EventKind::Closed(reset)]);

    let mut pair = starting(19);
    pair.net.run(ms(100));
    assert_eq!(events_after_accept(&mut pair), []);
}

#[test]
fn unlisten_resets_what_was_never_accepted() {
    let net = Net::new(16);
    let mut pair = Pair::starting(net, Default::default(), Default::default());
    pair.net.run(ms(100));
    let (now, listener) = (pair.now, pair.listener);
    pair.ends[SERVER].unlisten(now, listener);
    pair.net.run(ms(100));
    let (code, data) = (ResetCode::Aborted, [0; 3]);
    assert_eq!(pair.end_reason(CLIENT), Some(CloseReason::PeerReset { code, data }));
    assert_eq!(pair.ends[SERVER].endpoint_stats().connections, 0);
}
