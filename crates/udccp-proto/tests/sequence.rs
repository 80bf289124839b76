//! Sequence numbers: windows, Sync and SyncAck, attacks, keep-alive.

mod common;

use common::packet::{forge, forge_with, numbers};
use common::{CLIENT, Net, Pair, SERVER};
use udccp_base::{Datagram, Duration, Machine, Payload};
use udccp_proto::{CloseReason, ConnectionConfig, State};
use udccp_wire::{Header, HeaderKind, PacketType, PacketView, ResetCode, Seqno};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// An open connection, idle for long enough not to count as active.
fn quiet_pair(seed: u64) -> Pair {
    let mut pair = Pair::connected(seed);
    pair.send(CLIENT, b"up");
    pair.send(SERVER, b"down");
    pair.pass(Duration::from_secs(5));
    pair.received(CLIENT);
    pair.received(SERVER);
    pair
}

fn seq_of(d: &Option<Datagram>) -> Seqno {
    numbers(d.as_ref().unwrap()).1
}

/// The server's last packet (for ports and addresses), and the client's greatest received and sent
/// numbers.
fn facts(pair: &Pair) -> (Datagram, Seqno, Seqno) {
    let like = pair.last[SERVER].clone().unwrap();
    (like, seq_of(&pair.last[SERVER]), seq_of(&pair.last[CLIENT]))
}

fn last_kind(pair: &Pair, end: usize) -> HeaderKind {
    numbers(pair.last[end].as_ref().unwrap()).0
}

//= 4340-7.5.4-5 test
//= 4340-7.5.4-9 test
#[test]
fn packets_beyond_the_window_trigger_a_sync_and_lose_their_data() {
    let mut pair = quiet_pair(1);
    let (like, gsr, _) = facts(&pair);
    for (seq, inside) in [(gsr.add(75), true), (gsr.add(75 + 76), false)] {
        pair.deliver(CLIENT, forge_with(&like, HeaderKind::Data, seq, &[], Payload::Zeros(9)));
        assert_eq!(pair.received(CLIENT).len(), usize::from(inside));
        if !inside {
            assert_eq!(last_kind(&pair, CLIENT), HeaderKind::Sync { ack: seq });
        }
    }
    assert_eq!(pair.stats(CLIENT).counters.drops.sequence_invalid, 1);
}

#[test]
fn a_long_burst_of_loss_is_recovered_from_by_sync_and_syncack() {
    let mut pair = quiet_pair(2);
    // Everything that the client sends for a while is lost: far more than the peer's window.
    let id = pair.id(CLIENT);
    pair.mute(CLIENT);
    let mut sent = 0;
    while sent < 400 {
        pair.try_send(CLIENT, b"lost");
        pair.pass(ms(500));
        sent = pair.stats(CLIENT).counters.data_packets_sent;
        // Each timeout sends one packet. A Sync between them uses up numbers faster.
        let like = pair.last[SERVER].clone().unwrap();
        let seq = seq_of(&pair.last[SERVER]).add(1 << 30);
        for _ in 0..4 {
            let (now, d) = (pair.now, forge(&like, HeaderKind::Data, seq, &[]));
            pair.ends[CLIENT].handle_datagram(now, d);
            pair.drain();
        }
        if pair.stats(CLIENT).counters.packets_sent > 300 {
            break;
        }
    }
    pair.filter = None;
    pair.received(SERVER);
    pair.trace = Some(Vec::new());
    for _ in 0..300 {
        pair.try_send(CLIENT, b"found");
        pair.pass(ms(500));
    }
    let trace = pair.take_trace();
    assert!(trace.contains("S > C Sync") && trace.contains("C > S SyncAck"), "{trace}");
    assert_eq!(pair.net.ends[CLIENT].state(id), Some(State::Open));
    assert!(pair.received(SERVER).iter().any(|m| m == b"found"), "{trace}");
}

//= 4340-7.5.4-8 test
#[test]
fn syncs_for_invalid_packets_are_rate_limited() {
    let mut pair = quiet_pair(3);
    let (like, gsr, _) = facts(&pair);
    for n in 0..1000 {
        let d = forge(&like, HeaderKind::Data, gsr.add(1_000_000 + n), &[]);
        pair.deliver(CLIENT, d);
        pair.now += ms(1);
    }
    let c = pair.stats(CLIENT).counters;
    assert!((8..=12).contains(&c.syncs_sent), "{}", c.syncs_sent);
    assert_eq!(c.syncs_sent + c.syncs_limited, 1000);
}

//= 4340-7.5.4-2 test
//= 4340-7.5.4-4 test
#[test]
fn an_invalid_reset_is_challenged_with_the_greatest_number_received() {
    let mut pair = quiet_pair(4);
    let (like, gsr, gss) = facts(&pair);
    let reset = |ack| HeaderKind::Reset { ack, code: ResetCode::Aborted, data: [0; 3] };
    for (ack, seq) in [(gss.next(), gsr.next()), (gss, gsr), (gss, gsr.add(1000))] {
        pair.deliver(CLIENT, forge(&like, reset(ack), seq, &[]));
        assert_eq!(last_kind(&pair, CLIENT), HeaderKind::Sync { ack: gsr });
        assert_eq!(pair.state(CLIENT), Some(State::Open));
    }
    pair.deliver(CLIENT, forge(&like, reset(gss), gsr.next(), &[]));
    assert_eq!(pair.state(CLIENT), Some(State::TimeWait));
}

//= 4340-7.5.4-1 test
#[test]
fn invalid_syncs_are_ignored() {
    let mut pair = quiet_pair(5);
    let (like, gsr, gss) = facts(&pair);
    for (seq, ack) in [(gsr.next(), gss.next()), (gsr.next(), gss.sub(200)), (gsr.sub(100), gss)] {
        for kind in [HeaderKind::Sync { ack }, HeaderKind::SyncAck { ack }] {
            let before = pair.sent;
            pair.deliver(CLIENT, forge(&like, kind, seq, &[]));
            assert_eq!(pair.sent, before, "{kind:?} {seq}");
        }
    }
    assert_eq!(pair.stats(CLIENT).counters.drops.sequence_invalid, 6);
}

//= 4340-7.5.3-1 test
#[test]
fn sync_far_ahead_is_accepted_only_on_a_silent_connection() {
    let mut pair = quiet_pair(6);
    let (like, gsr, gss) = facts(&pair);
    let far = gsr.add(1 << 20);
    pair.deliver(CLIENT, forge(&like, HeaderKind::Sync { ack: gss }, far, &[]));
    assert_eq!(last_kind(&pair, CLIENT), HeaderKind::SyncAck { ack: far });
    // The window has moved to the Sync, and now the connection is active.
    let (gss, before) = (seq_of(&pair.last[CLIENT]), pair.sent);
    let farther = far.add(1 << 20);
    pair.deliver(CLIENT, forge(&like, HeaderKind::Sync { ack: gss }, farther, &[]));
    assert_eq!(pair.sent, before);
    pair.now += Duration::from_secs(1);
    pair.deliver(CLIENT, forge(&like, HeaderKind::Sync { ack: gss }, farther, &[]));
    assert_eq!(last_kind(&pair, CLIENT), HeaderKind::SyncAck { ack: farther });
}

//= 4340-5.7-2 test
#[test]
fn the_acknowledgement_number_of_a_sync_acknowledges_nothing() {
    let mut pair = quiet_pair(7);
    let (like, gsr, _) = facts(&pair);
    pair.mute(CLIENT);
    pair.send(CLIENT, b"in flight");
    pair.drain();
    let gss = seq_of(&pair.last[CLIENT]);
    pair.deliver(CLIENT, forge(&like, HeaderKind::Sync { ack: gss }, gsr.next(), &[]));
    assert_eq!(pair.stats(CLIENT).counters.data_packets_acked, 1, "only the first, before");
    assert_eq!(pair.stats(CLIENT).pipe_packets, Some(1));
}

#[test]
fn short_sequence_numbers_are_ignored_unless_agreed() {
    let mut pair = quiet_pair(8);
    let (like, gsr, _) = facts(&pair);
    let header = PacketView::new(&like.header, like.transport_len()).unwrap().header();
    let header = Header { x: false, seq: gsr.next(), kind: HeaderKind::Data, ..header };
    let before = pair.sent;
    let d = common::packet::finished(&like, &header, &[], Payload::Zeros(5));
    pair.deliver(CLIENT, d);
    assert_eq!((pair.received(CLIENT).len(), pair.sent), (0, before));

    let config = ConnectionConfig { short_seqnos: true, ..ConnectionConfig::default() };
    let mut pair = Pair::connected_with(Net::new(9), config);
    let mut short = 0;
    for n in 0..40_u8 {
        pair.send(CLIENT, &[n]);
        pair.pass(ms(20));
        let d = pair.last[CLIENT].as_ref().unwrap();
        short += u32::from(!PacketView::new(&d.header, d.transport_len()).unwrap().x());
    }
    pair.pass(ms(500));
    assert!(short > 30, "{short}");
    let got: Vec<u8> = pair.received(SERVER).iter().map(|m| m[0]).collect();
    assert_eq!(got, (0..40).collect::<Vec<u8>>());
    assert_eq!(pair.stats(SERVER).counters.drops.sequence_invalid, 0);
    pair.close(CLIENT);
    pair.pass(ms(100));
    assert_eq!(pair.state(SERVER), Some(State::Closed));
}

#[test]
fn silent_peer_is_probed_and_finally_abandoned() {
    let config =
        ConnectionConfig { keep_alive: Some(Duration::from_secs(10)), ..Default::default() };
    let mut pair = Pair::connected_with(Net::new(10), config);
    pair.pass(Duration::from_secs(100));
    let c = pair.stats(CLIENT).counters;
    assert!((4..=10).contains(&c.keep_alives_sent), "{}", c.keep_alives_sent);
    assert!(c.sync_acks_received + c.syncs_received >= c.keep_alives_sent);
    assert_eq!(pair.state(CLIENT), Some(State::Open));
    pair.mute(SERVER);
    pair.pass(Duration::from_secs(60));
    assert_eq!(pair.end_reason(CLIENT), Some(CloseReason::PeerSilent));
    assert_eq!(pair.stats(CLIENT).counters.keep_alives_sent - c.keep_alives_sent, 5);
    assert_eq!(pair.state(SERVER), Some(State::TimeWait));
}

#[test]
fn peer_that_never_acknowledges_data_is_abandoned() {
    let mut pair = quiet_pair(11);
    pair.mute(SERVER);
    for _ in 0..200 {
        pair.try_send(CLIENT, b"anyone?");
        pair.pass(Duration::from_secs(2));
    }
    assert_eq!(pair.end_reason(CLIENT), Some(CloseReason::PeerSilent));
}

#[test]
fn every_valid_sync_is_answered_with_its_own_number() {
    let mut pair = quiet_pair(12);
    let (like, gsr, gss) = facts(&pair);
    // In reverse order: the second is older than the newest received.
    for n in [5, 2] {
        let sync = forge(&like, HeaderKind::Sync { ack: gss }, gsr.add(n), &[]);
        pair.deliver(CLIENT, sync);
        assert_eq!(last_kind(&pair, CLIENT), HeaderKind::SyncAck { ack: gsr.add(n) });
    }
}

//= 4340-7.5.2-2 test
#[test]
fn the_sequence_window_grows_ahead_of_a_fast_connection() {
    let mut net = Net::new(13);
    net.delay = ms(50);
    net.spacing = Duration::from_micros(10);
    let mut pair = Pair::connected_with(net, ConnectionConfig::default());
    let (mut largest, id) = (0, pair.id(CLIENT));
    for _ in 0..400 {
        let now = pair.now;
        while pair.ends[CLIENT].is_writable(id) {
            let zeros = udccp_base::Message::new(Payload::Zeros(1000));
            pair.ends[CLIENT].send(now, id, zeros).unwrap();
        }
        pair.pass(ms(5));
        pair.received(SERVER);
        largest = largest.max(pair.stats(CLIENT).cwnd_packets.unwrap());
    }
    assert!(largest > 1000, "the window never exceeded {largest}");
    for end in [CLIENT, SERVER] {
        let c = pair.stats(end).counters;
        assert_eq!((c.drops.sequence_invalid, c.syncs_sent), (0, 0), "end {end}");
    }
}

#[test]
fn data_can_be_injected_only_within_the_window() {
    let mut pair = quiet_pair(14);
    let (like, gsr, _) = facts(&pair);
    let guesses = (0..500_u64).map(|n| Seqno::new(n * 562_949_953_421));
    let far = |s: &Seqno| s.distance_from(gsr).unsigned_abs() > 100;
    for seq in guesses.filter(far) {
        pair.deliver(CLIENT, forge_with(&like, HeaderKind::Data, seq, &[], Payload::Zeros(4)));
    }
    assert!(pair.received(CLIENT).is_empty());
    assert_eq!(last_kind(&pair, CLIENT).packet_type(), PacketType::Sync);
}
