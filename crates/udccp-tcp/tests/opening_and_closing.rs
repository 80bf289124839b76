//! Handshake, options, close from both sides, and flows that do not open.

mod common;

use common::{Fate, Pipe, addresses, drop_segments, ms, plain};
use udccp_base::{AppPort, Duration, Instant, Machine, Message, Payload, Seed};
use udccp_base::{SendOutcome, Transport};
use udccp_cc::Algorithm;
use udccp_tcp::wire::Flags;
use udccp_tcp::{CloseReason, State, TcpConfig, TcpReceiver, TcpSender};

const fn at(milliseconds: u64) -> Instant {
    Instant::from_nanos(milliseconds * 1_000_000)
}

#[test]
fn three_segments_open_a_connection_and_agree_on_options() {
    let mut pipe = Pipe::new(plain(), ms(50)).with_bytes(1448);
    let log = pipe.record();
    pipe.start();
    pipe.run_for(ms(120));
    let log = log.borrow();
    let [syn, syn_ack, ack, data] = log[..4] else { panic!("{log:#?}") };
    assert_eq!((syn.header.flags, syn_ack.header.flags), (Flags::SYN, Flags(0x12)));
    assert_eq!((syn.at, syn_ack.at, ack.at), (at(0), at(50), at(100)));
    assert_eq!(syn_ack.header.ack, syn.header.seq.wrapping_add(1));
    assert_eq!(data.data, 1448, "data leaves with the end of the handshake");
    for options in [syn.header.options, syn_ack.header.options] {
        assert!(options.sack_permitted && options.timestamps.is_some());
        assert_eq!((options.mss, options.window_scale), (Some(1460), Some(9)));
    }
    let echoed = syn_ack.header.options.timestamps.unwrap().1;
    assert_eq!(echoed, syn.header.options.timestamps.unwrap().0);
    assert_eq!(pipe.sender.state(), State::FinWait1);
    assert_eq!(pipe.sender.probe().srtt, Some(ms(100)));
}

#[test]
fn an_option_counts_only_where_both_ends_have_it() {
    for (scaling, timestamps) in [(false, true), (true, false), (false, false)] {
        let config = TcpConfig { window_scaling: scaling, timestamps, ..plain() };
        let mut pipe = Pipe::new(config, ms(10)).with_bytes(300_000);
        let log = pipe.record();
        pipe.start();
        pipe.run_to_end(Duration::from_secs(100));
        assert_eq!(pipe.delivered, 300_000);
        let full = log.borrow().iter().map(|s| s.data).max();
        assert_eq!(full, Some(if timestamps { 1448 } else { 1460 }));
        for s in log.borrow().iter().skip(1) {
            assert_eq!(s.header.options.timestamps.is_some(), timestamps);
            assert_eq!(
                s.header.options.window_scale.is_some(),
                scaling && s.header.flags.has(Flags::SYN)
            );
        }
    }
}

/// A flow of 300,000 bytes to a receiver with its own configuration.
fn between(sender: TcpConfig, receiver: TcpConfig) -> Pipe {
    let (a, b) = addresses();
    let mut pipe = Pipe::new(sender, ms(10)).with_bytes(300_000);
    pipe.receiver = TcpReceiver::new(b, a, receiver, Seed(2));
    pipe
}

/// RFC 7323 sections 1.3 and 2.2: an option is used only if both SYNs carry it.
#[test]
fn an_end_uses_no_option_that_the_other_does_not_offer() {
    let without = TcpConfig { window_scaling: false, timestamps: false, ..plain() };
    for (sender, receiver) in [(plain(), without.clone()), (without, plain())] {
        let mut pipe = between(sender, receiver);
        let log = pipe.record();
        pipe.start();
        pipe.run_to_end(Duration::from_secs(100));
        assert_eq!(pipe.delivered, 300_000);
        for s in log.borrow().iter().skip(1) {
            let options = s.header.options;
            assert_eq!((options.timestamps, options.window_scale), (None, None));
        }
    }
}

/// RFC 9293 section 3.7.1: retransmissions must not exceed the peer's MSS option either.
#[test]
fn a_hole_is_sent_again_in_segments_that_the_peer_takes() {
    let mut pipe = between(plain(), TcpConfig { mss: 536, ..plain() });
    pipe = pipe.with_rule(drop_segments(&[20, 21, 22, 23, 24, 25]));
    let log = pipe.record();
    pipe.start();
    pipe.run_to_end(Duration::from_secs(100));
    assert_eq!(pipe.sender.stats().send.retransmits, 6);
    assert_eq!(log.borrow().iter().map(|s| s.data).max(), Some(536 - 12));
}

/// RFC 9293 section 3.10.7.3, first: a segment that acknowledges something else is not accepted.
#[test]
fn an_answer_to_the_syn_of_another_connection_opens_nothing() {
    let (a, b) = addresses();
    let answer = |seed| {
        let mut sender = TcpSender::new(a, b, plain(), Seed(seed));
        sender.open(at(0));
        let mut receiver = TcpReceiver::new(b, a, plain(), Seed(seed));
        receiver.handle_datagram(at(0), sender.poll_transmit(at(0)).expect("a SYN"));
        (sender, receiver.poll_transmit(at(0)).expect("its answer"))
    };
    let ((mut sender, its_own), (_, of_another)) = (answer(1), answer(2));
    sender.handle_datagram(at(1), of_another);
    assert_eq!(sender.state(), State::SynSent);
    sender.handle_datagram(at(1), its_own);
    assert_eq!(sender.state(), State::Established);
}

/// RFC 9293 section 3.10.7.4, fifth: the segment is dropped and answered with an acknowledgement.
#[test]
fn an_acknowledgement_of_what_was_never_sent_acknowledges_nothing() {
    let open = || {
        let mut pipe = Pipe::new(plain(), ms(10));
        pipe.to_send = 0;
        pipe.start();
        pipe.run_for(ms(100));
        pipe
    };
    let send = |pipe: &mut Pipe, segments| {
        let message = Message::new(Payload::Zeros(1448));
        for _ in 0..segments {
            pipe.sender.send(pipe.now, message.clone());
        }
        std::iter::from_fn(|| pipe.sender.poll_transmit(pipe.now)).collect::<Vec<_>>()
    };
    // Two flows with the same numbers, of which one has sent more.
    let (mut one, mut other) = (open(), open());
    assert_eq!(send(&mut one, 1).len(), 1);
    for segment in send(&mut other, 4) {
        other.receiver.handle_datagram(other.now, segment);
    }
    let of_other = other.receiver.poll_transmit(other.now).expect("an acknowledgement");
    one.sender.handle_datagram(one.now, of_other);
    assert_eq!(one.sender.probe().pipe_packets, Some(1));
    assert!(one.sender.poll_transmit(one.now).is_some(), "it is answered");
}

#[test]
fn the_end_that_closes_first_waits_and_the_other_does_not() {
    let mut pipe = Pipe::new(plain(), ms(50)).with_bytes(100_000);
    pipe.start();
    pipe.run_for(Duration::from_secs(3));
    assert_eq!(pipe.delivered, 100_000);
    assert_eq!((pipe.sender.state(), pipe.receiver.state()), (State::TimeWait, State::Closed));
    assert!(pipe.receiver.is_closed() && !pipe.sender.is_closed());
    pipe.run_to_end(Duration::from_secs(61));
    assert_eq!(pipe.sender.close_reason(), None);
    let late = pipe.sender.send(pipe.now, Message::new(Payload::Zeros(1)));
    assert!(matches!(late, SendOutcome::Closed(_)));
    assert!(!pipe.sender.is_writable());
    pipe.sender.open(pipe.now);
    assert!(pipe.sender.is_closed(), "an end lives once");
}

#[test]
fn lost_segments_of_the_close_are_repeated() {
    // The FIN, the peer's FIN and the last acknowledgement, each lost once.
    for lost_forward in [0_u64, 1, 2, 3] {
        for lost_back in [0_u64, 1, 2] {
            let (mut fins, mut back) = (0, 0);
            let mut pipe = Pipe::new(plain(), ms(20))
                .with_bytes(3000)
                .with_rule(move |_, d| {
                    let is_late = d.header[13] & 1 == 1 || fins > 0;
                    fins += u64::from(is_late);
                    if fins == lost_forward && is_late { Fate::Drop } else { Fate::Pass }
                })
                .with_back_rule(move |_, d| {
                    let is_late = d.header[13] & 1 == 1;
                    back += u64::from(is_late);
                    if back == lost_back && is_late { Fate::Drop } else { Fate::Pass }
                });
            pipe.start();
            pipe.run_to_end(Duration::from_secs(100));
            assert_eq!(pipe.delivered, 3000, "{lost_forward} {lost_back}");
            assert_eq!(pipe.receiver.close_reason(), None, "{lost_forward} {lost_back}");
        }
    }
}

#[test]
fn the_passive_end_may_close_first() {
    let mut pipe = Pipe::new(plain(), ms(20));
    pipe.start();
    pipe.run_for(ms(500));
    pipe.receiver.close(pipe.now);
    pipe.drain();
    pipe.run_for(ms(500));
    assert_eq!((pipe.sender.state(), pipe.receiver.state()), (State::CloseWait, State::FinWait2));
    let before = pipe.delivered;
    pipe.run_for(ms(500));
    assert!(pipe.delivered > before, "data still flows the other way");
    pipe.to_send = 0;
    pipe.sender.close(pipe.now);
    pipe.drain();
    pipe.run_to_end(Duration::from_secs(100));
    assert_eq!(pipe.sender.state(), State::Closed);
}

#[test]
fn a_lost_syn_costs_its_timeout_and_the_initial_window() {
    let mut pipe = Pipe::new(plain(), ms(50))
        .with_bytes(200_000)
        .with_rule(|n, _| if n == 0 { Fate::Drop } else { Fate::Pass });
    let log = pipe.record();
    pipe.start();
    pipe.run_for(ms(1150));
    assert_eq!(log.borrow()[1].at, at(1000));
    assert_eq!(pipe.sender.probe().cwnd_packets, Some(1.0));
    pipe.run_to_end(Duration::from_secs(100));
    assert_eq!(pipe.delivered, 200_000);
}

#[test]
fn a_lost_answer_to_the_syn_is_repeated() {
    let mut pipe = Pipe::new(plain(), ms(50))
        .with_bytes(10_000)
        .with_back_rule(|n, _| if n == 0 { Fate::Drop } else { Fate::Pass });
    pipe.start();
    pipe.run_to_end(Duration::from_secs(100));
    assert_eq!(pipe.delivered, 10_000);
}

#[test]
fn data_replaces_a_lost_handshake_ack() {
    let mut pipe = Pipe::new(plain(), ms(50))
        .with_bytes(10_000)
        .with_rule(|n, _| if n == 1 { Fate::Drop } else { Fate::Pass });
    pipe.start();
    pipe.run_to_end(Duration::from_secs(100));
    assert_eq!((pipe.delivered, pipe.sender.stats().send.retransmits), (10_000, 0));
}

#[test]
fn a_peer_that_never_answers_is_given_up() {
    let mut pipe = Pipe::new(plain(), ms(50)).with_rule(|_, _| Fate::Drop);
    pipe.start();
    pipe.run_for(Duration::from_secs(62));
    assert_eq!(pipe.sender.state(), State::SynSent, "1 + 2 + 4 + 8 + 16 + 32 s");
    pipe.run_for(Duration::from_secs(2));
    assert!(pipe.sender.is_closed());
    assert_eq!(pipe.sender.close_reason(), Some(CloseReason::TimedOut));
    let offer = Message::new(Payload::Zeros(1));
    assert_eq!(pipe.sender.send(pipe.now, offer.clone()), SendOutcome::Closed(offer));
}

#[test]
fn vanished_peer_is_abandoned() {
    let config = TcpConfig { data_retries: 5, ..plain() };
    let mut pipe = Pipe::new(config, ms(50)).with_rule(|n, _| match n {
        0..100 => Fate::Pass,
        _ => Fate::Drop,
    });
    pipe.start();
    pipe.run_for(Duration::from_secs(200));
    assert_eq!(pipe.sender.close_reason(), Some(CloseReason::TimedOut));
    assert_eq!(pipe.sender.stats().send.timeouts, 6);
}

#[test]
fn sequence_numbers_may_wrap_at_any_point() {
    for before in [0_u32, 1, 2, 1000, 50_000] {
        let isn = Some(u32::MAX - before);
        let config = TcpConfig { initial_sequence: isn, ..TcpConfig::new(Algorithm::NEW_RENO) };
        let mut pipe = Pipe::new(config, ms(10))
            .with_bytes(400_000)
            .with_rule(drop_segments(&[0, 7, 30, 31, 32, 100]));
        pipe.start();
        pipe.run_to_end(Duration::from_secs(100));
        assert_eq!(pipe.delivered, 400_000);
    }
}
