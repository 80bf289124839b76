//! CCID 3 between two endpoints: negotiation, packets, losses, silence.

mod common;

use common::packet::{forge, numbers};
use common::pair::{CLIENT, Pair, SERVER};
use common::{Impairments, Net};
use udccp_base::{Datagram, Duration};
use udccp_proto::{CloseReason, ConnectionConfig, State};
use udccp_wire::{HeaderKind, OptionRef, PacketType, PacketView, ResetCode, Seqno};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn ccids(tx: &[u8], rx: &[u8]) -> ConnectionConfig {
    ConnectionConfig { tx_ccids: tx.to_vec(), rx_ccids: rx.to_vec(), ..ConnectionConfig::default() }
}

fn both(ccid: &[u8]) -> ConnectionConfig {
    ccids(ccid, ccid)
}

fn connect(seed: u64, client: ConnectionConfig, server: ConnectionConfig) -> Pair {
    let mut pair = Pair::starting(Net::new(seed), client, server);
    pair.pass(ms(200));
    pair
}

/// CCIDs of the client's and the server's data, on which both ends agree.
fn agreed(pair: &Pair) -> [u8; 2] {
    let (client, server) = (pair.stats(CLIENT), pair.stats(SERVER));
    assert_eq!((client.tx_ccid, client.rx_ccid), (server.rx_ccid, server.tx_ccid));
    [client.tx_ccid.unwrap(), server.tx_ccid.unwrap()]
}

//= 4340-10-1 test
#[test]
fn server_preference_selects_the_ccid() {
    for (client, server, chosen) in [
        (&[3][..], &[2, 3][..], 3),
        (&[3], &[3], 3),
        (&[2, 3], &[2, 3], 2),
        (&[2, 3], &[3, 2], 3),
        (&[3, 2], &[2, 3], 2),
        (&[3, 2], &[2], 2),
        (&[2], &[2, 3], 2),
        (&[2], &[3, 2], 2),
    ] {
        let pair = connect(1, both(client), both(server));
        assert_eq!(agreed(&pair), [chosen; 2], "{client:?} and {server:?}");
    }
}

#[test]
fn without_a_common_ccid_there_is_no_connection() {
    for (client, server) in [(&[3][..], &[2][..]), (&[2], &[3])] {
        let mut pair = connect(2, both(client), both(server));
        let reason = pair.end_reason(CLIENT);
        let refused = matches!(
            reason,
            Some(
                CloseReason::PeerReset {
                    code: ResetCode::MandatoryError | ResetCode::OptionError,
                    ..
                } | CloseReason::ProtocolError { .. }
            )
        );
        assert!(refused, "{client:?} and {server:?}: {reason:?}");
    }
}

#[test]
fn each_direction_has_a_ccid_of_its_own() {
    for (up, down) in [(3, 2), (2, 3), (3, 3)] {
        let (client, server) = (ccids(&[up], &[down]), ccids(&[down], &[up]));
        let mut pair = connect(3, client, server);
        assert_eq!(agreed(&pair), [up, down]);
        for i in 0..200 {
            for end in [CLIENT, SERVER] {
                pair.try_send(end, &[i as u8; 500]);
            }
            pair.pass(ms(20));
            let got = [pair.received(CLIENT).len(), pair.received(SERVER).len()];
            assert!(i < 50 || got.iter().all(|&n| n >= 1), "{up}, {down}: {got:?} at {i}");
        }
        for end in [CLIENT, SERVER] {
            let stats = pair.stats(end);
            assert_eq!(stats.counters.drops.bad_options, 0);
            assert!(stats.counters.data_packets_acked > 180, "{up}, {down}: {stats:?}");
            assert_eq!(stats.timeouts, 0, "{up}, {down}, end {end}");
        }
    }
}

/// Sends 500-byte messages as fast as they are accepted, and reads them, for `span`.
fn stream(pair: &mut Pair, span: Duration) -> usize {
    let (mut got, end) = (0, pair.now + span);
    while pair.now < end {
        while pair.stats(CLIENT).send_queue_packets < 20 && pair.try_send(CLIENT, &[7; 500]) {}
        pair.pass(ms(5));
        got += pair.received(SERVER).len();
    }
    got
}

//= 4342-8.1-1 test
//= 5348-3.2.1-1 test
//= 4342-8.2-1 test
//= 4342-8.3-1 test
//= 4342-8.6-1 test
//= 4340-5.1-4 test
//= 4340-5.1-3 test
#[test]
fn feedback_packets_have_what_they_must_and_data_has_the_counter() {
    let mut pair = connect(4, both(&[3]), both(&[3]));
    let seen = std::sync::Arc::new(std::sync::Mutex::new((0, [0_u32; 16], None::<Seqno>)));
    let tally = seen.clone();
    pair.net.filter = Some(Box::new(move |from, d: &Datagram| {
        let view = PacketView::new(&d.header, d.transport_len()).unwrap();
        let mut tally = tally.lock().unwrap();
        let options: Vec<OptionRef<'_>> = view.options().map(Result::unwrap).collect();
        if from == CLIENT {
            let seq = view.header().seq;
            assert!(tally.2.is_none_or(|last| last.next() == seq), "numbers grow by one");
            tally.2 = Some(seq);
        }
        let has = |f: fn(&OptionRef<'_>) -> bool| options.iter().any(f);
        match (from, view.packet_type()) {
            (CLIENT, PacketType::Data | PacketType::DataAck) => {
                tally.1[usize::from(view.ccval())] += 1;
            }
            (SERVER, PacketType::Ack) if has(|o| matches!(o, OptionRef::ReceiveRate(_))) => {
                assert_eq!(view.ccval(), 0);
                assert!(has(|o| matches!(o, OptionRef::ElapsedTime(_))), "{options:?}");
                assert!(has(|o| matches!(o, OptionRef::LossIntervals { .. })), "{options:?}");
                assert!(has(|o| matches!(o, OptionRef::LossEventRate(_))), "{options:?}");
                tally.0 += 1;
            }
            _ => {}
        }
        true
    }));
    stream(&mut pair, ms(1000));
    let (feedback, counters, _) = *seen.lock().unwrap();
    // A round trip takes 20 ms: some fifty reports.
    assert!((40..75).contains(&feedback), "{feedback}");
    assert!(counters.iter().all(|&n| n > 0), "{counters:?}");
}

#[test]
fn a_lossy_path_is_used_at_the_rate_of_the_equation() {
    let mut pair = connect(5, both(&[3]), both(&[3]));
    pair.net.impairments = Impairments { loss: 0.02, ..Impairments::default() };
    stream(&mut pair, ms(5000));
    let got = stream(&mut pair, ms(30_000)) as f64 / 30.0;
    // f(0.02) = 0.1365: 7.3 packets in 20 ms.
    assert!((got / 366.0 - 1.0).abs() < 0.25, "{got} packets a second");
    let stats = pair.stats(CLIENT);
    let p = stats.loss_event_rate.unwrap();
    assert!((0.005..0.06).contains(&p), "{p}");
    assert!(stats.congestion_events > 100, "{stats:?}");
}

#[test]
fn duplicates_reordering_and_corruption_do_no_harm() {
    for seed in 0..6 {
        let mut pair = connect(100 + seed, both(&[3]), both(&[3]));
        let (loss, duplicate, reorder, corrupt) = (0.03, 0.05, 0.2, 0.02);
        pair.net.impairments =
            Impairments { loss, duplicate, reorder, corrupt, ..Impairments::default() };
        let got = stream(&mut pair, ms(10_000));
        assert!(got > 200, "{got}");
        for end in [CLIENT, SERVER] {
            assert_eq!(pair.state(end), Some(State::Open));
            assert_eq!(pair.stats(end).counters.drops.bad_options, 0);
        }
    }
}

#[test]
fn feedback_lost_for_minutes_slows_down_and_its_return_recovers() {
    let mut config = both(&[3]);
    config.silence_timeout = Duration::from_secs(3600);
    let mut pair = connect(6, config.clone(), config);
    let before = stream(&mut pair, ms(2000));
    pair.net.mute(SERVER);
    stream(&mut pair, Duration::from_secs(5));
    let during = stream(&mut pair, Duration::from_secs(240));
    assert!(during < 40, "{during} messages in four minutes");
    pair.net.filter = None;
    stream(&mut pair, Duration::from_secs(65));
    let after = stream(&mut pair, ms(2000));
    assert!(after * 2 > before, "{before} before, {after} after");
}

#[test]
fn rate_after_a_pause_is_at_least_the_initial_rate() {
    let mut pair = connect(7, both(&[3]), both(&[3]));
    stream(&mut pair, ms(2000));
    pair.pass(Duration::from_secs(120));
    let rtt = pair.stats(CLIENT).srtt.unwrap();
    let x = pair.stats(CLIENT).x_bytes_per_sec.unwrap();
    assert!(x * rtt.as_secs_f64() >= 1990.0, "{x} B/s");
}

//= 4342-8-1 test
//= 4342-8.3-2 test
//= 4342-8.5-1 test
//= 4342-8.6-2 test
//= 4342-8.6.1-3 test
#[test]
fn reports_on_data_packets_are_ignored() {
    let mut pair = connect(8, both(&[3]), both(&[3]));
    stream(&mut pair, ms(1000));
    pair.pass(ms(50));
    let x = pair.stats(CLIENT).x_bytes_per_sec;
    let like = pair.net.last[SERVER].clone().unwrap();
    let (_, seq, _) = numbers(&like);
    let ack = numbers(pair.net.last[CLIENT].as_ref().unwrap()).1;
    let bad = [0, 0, 0, 0, 0, 0, 5, 0, 0, 1];
    let options = [
        OptionRef::ElapsedTime(0),
        OptionRef::ReceiveRate(1),
        OptionRef::LossEventRate(1),
        OptionRef::LossIntervals { skip_length: 0, intervals: &bad[1..] },
    ];
    let data = forge(&like, HeaderKind::Data, seq.add(1), &options);
    pair.net.deliver(CLIENT, data);
    assert_eq!(pair.stats(CLIENT).x_bytes_per_sec, x);
    // The same on an acknowledgement is accepted.
    let acknowledgement = forge(&like, HeaderKind::Ack { ack }, seq.add(2), &options);
    pair.net.deliver(CLIENT, acknowledgement);
    assert_ne!(pair.stats(CLIENT).x_bytes_per_sec, x);
}

#[test]
fn a_receiver_that_sends_no_ack_vectors_asks_for_no_acknowledgement_of_them() {
    let mut pair = connect(9, both(&[3]), both(&[3]));
    pair.net.impairments = Impairments { loss: 0.1, ..Impairments::default() };
    let syncs = std::sync::Arc::new(std::sync::Mutex::new(0));
    let tally = syncs.clone();
    pair.net.filter = Some(Box::new(move |from, d: &Datagram| {
        let view = PacketView::new(&d.header, d.transport_len()).unwrap();
        *tally.lock().unwrap() +=
            u32::from(from == SERVER && view.packet_type() == PacketType::Sync);
        true
    }));
    // Long enough for more runs of losses than fit in an Ack Vector.
    let got = stream(&mut pair, ms(60_000));
    assert!(got > 3000, "{got}");
    assert_eq!(*syncs.lock().unwrap(), 0);
}
