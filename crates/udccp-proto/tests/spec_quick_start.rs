//! RFC 5634: Quick-Start, with the routers and the other end controlled by the test.

mod common;
mod spec_support;

use common::{CLIENT, Net, Pair, SERVER, connect_options};
use spec_support::{Harness, option, plain, types};
use udccp_base::{DataRate, Datagram, Duration, Instant, QuickStart, QuickStartFunction};
use udccp_proto::{
    ConfigError, ConnectError, ConnectOptions, ConnectionConfig, Endpoint, EndpointConfig,
    QuickStartConfig,
};
use udccp_wire::PacketType::{Ack, Request, Response};
use udccp_wire::{OptionRef, Packet, PacketType, option_kind};

fn asking(bits_per_sec: u64, ccid: u8) -> ConnectionConfig {
    let request = Some(DataRate::from_bits_per_sec(bits_per_sec));
    ConnectionConfig {
        quick_start: QuickStartConfig { request, accept: None },
        tx_ccids: vec![ccid],
        ..ConnectionConfig::default()
    }
}

fn allowing(bits_per_sec: u64) -> ConnectionConfig {
    let accept = Some(DataRate::from_bits_per_sec(bits_per_sec));
    ConnectionConfig { quick_start: QuickStartConfig { request: None, accept }, ..plain() }
}

/// A client that requests 5 Mbit/s, its Request, and the Quick-Start option on it.
fn request(ccid: u8) -> (Harness, Packet, QuickStart) {
    let (mut harness, request) = Harness::requesting(asking(5_000_000, ccid));
    let option = harness.pair.last_option.take().expect("the first Request asks");
    (harness, request, option)
}

/// The peer's next packet arrives with this IP option and this time to live.
fn deliver_with(
    harness: &mut Harness,
    option: QuickStart,
    ttl: u8,
    ty: PacketType,
    data: &[u8],
) -> Vec<Packet> {
    let header = harness.header(ty);
    harness.seq = header.seq;
    let (now, datagram) = (harness.pair.now, harness.datagram(&header, &[], data));
    harness.pair.ends[SERVER].handle_with_quick_start(now, datagram, option, ttl);
    harness.drain()
}

/// The Response arrives 100 ms later with this answer. Returns the packets sent, with the last
/// option.
fn respond(
    harness: &mut Harness,
    request: &Packet,
    answer: Option<OptionRef<'_>>,
) -> (Vec<Packet>, Option<QuickStart>) {
    harness.wait(Duration::from_millis(100));
    let stamp = option(request, option_kind::TIMESTAMP).unwrap();
    let timestamp = u32::from_be_bytes(stamp.try_into().unwrap());
    let mut options = vec![OptionRef::TimestampEcho { timestamp, elapsed: None }];
    options.extend(answer);
    let sent = harness.deliver(Response, &options, &[]);
    let report = harness.pair.ends[CLIENT].poll_quick_start();
    (sent, report)
}

/// The answer of an honest receiver behind routers that all support Quick-Start.
fn honest(asked: QuickStart, rate: u8) -> OptionRef<'static> {
    let mut seen = asked;
    seen.lower_to(rate);
    let ttl_diff = Datagram::TTL.wrapping_sub(seen.ttl);
    OptionRef::QuickStartResponse { rate, ttl_diff, nonce: seen.nonce }
}

fn quick_starts(harness: &Harness) -> u64 {
    harness.stats().counters.quick_starts
}

//= 5634-2.1-1 test
//= 5634-2.1-3 test
//= 5634-2.7-1 test
//= 5634-2.8-1 test
//= 5634-3.1.1-1 test
//= 5634-3.2.1-1 test
#[test]
fn only_the_first_request_has_a_quick_start_request() {
    for ccid in [2, 3] {
        let (mut harness, first, asked) = request(ccid);
        assert_eq!(first.header.packet_type(), Request);
        assert_eq!((asked.function, asked.rate), (QuickStartFunction::Request, 6 + 1));
        for _ in 0..3 {
            assert_eq!(types(&harness.wait(Duration::from_secs(5))).first(), Some(&Request));
            assert_eq!(
                harness.pair.ends[CLIENT].poll_quick_start(),
                None,
                "without, when repeated"
            );
        }
    }
    let (mut harness, _) = Harness::requesting(plain());
    assert_eq!(harness.pair.last_option.take(), None, "off by default");
}

//= 5634-3.3.1-1 test
#[test]
fn ccid_4_asks_for_no_more_than_100_packets_a_second() {
    let (_, _, asked) = request(4);
    // 100 packets of 1500 bytes are 1.2 Mbit/s; 640 kbit/s is the next rate below.
    assert_eq!(asked.rate, 4);
}

//= 5634-2.2-1 test
//= 5634-2.2-2 test
//= 5634-2.2-3 test
//= 5634-2.2-4 test
//= 5634-2.2.1-1 test
//= 5634-2.2.1-2 test
#[test]
fn a_request_is_answered_once_with_what_the_receiver_allows() {
    let function = QuickStartFunction::Request;
    let asked = QuickStart { function, rate: 9, ttl: 250, nonce: 0x2bcd_ef01 };
    for (allowed_bps, rate) in [(100_000_000, 9), (5_120_000, 7)] {
        let mut harness = Harness::listening(allowing(allowed_bps));
        let sent = deliver_with(&mut harness, asked, 61, Request, &[]);
        assert_eq!(types(&sent), [Response]);
        let answer = option(&sent[0], option_kind::QUICK_START_RESPONSE).unwrap();
        let [a, b, c, d] = (asked.nonce << 2).to_be_bytes();
        assert_eq!(answer, [rate, 61_u8.wrapping_sub(250), a, b, c, d], "6 bytes of data");
        let again = harness.deliver(Request, &[], &[]);
        assert_eq!(option(&again[0], option_kind::QUICK_START_RESPONSE), None);
    }
    // Rate 0, a report, and a receiver that allows no rate.
    let zero = QuickStart { rate: 0, ..asked };
    let report = QuickStart { function: QuickStartFunction::Report, ..asked };
    let cases = [(zero, allowing(1 << 30)), (report, allowing(1 << 30)), (asked, plain())];
    for (option_in, config) in cases {
        let mut harness = Harness::listening(config);
        let sent = deliver_with(&mut harness, option_in, 61, Request, &[]);
        assert_eq!(option(&sent[0], option_kind::QUICK_START_RESPONSE), None);
    }
}

//= 5634-3.1.2-1 test
/// On an open connection too, the answer does not wait for the Ack Ratio.
#[test]
fn a_request_on_a_data_packet_is_answered_at_once() {
    let mut harness = Harness::open_with(SERVER, allowing(1 << 30));
    let function = QuickStartFunction::Request;
    let asked = QuickStart { function, rate: 5, ttl: 60, nonce: 1 };
    let sent = deliver_with(&mut harness, asked, 60, PacketType::Data, b"data");
    assert_eq!(types(&sent), [Ack]);
    assert!(option(&sent[0], option_kind::QUICK_START_RESPONSE).is_some());
}

/// An attacker who sees no packet of the connection cannot make its next packet request a rate.
#[test]
fn the_quick_start_option_of_an_invalid_packet_is_not_answered() {
    let mut harness = Harness::open_with(SERVER, allowing(1 << 30));
    let function = QuickStartFunction::Request;
    let asked = QuickStart { function, rate: 5, ttl: 60, nonce: 1 };
    let seq = harness.seq;
    harness.seq = seq.add(1 << 40);
    let challenge = deliver_with(&mut harness, asked, 60, PacketType::Data, b"forged");
    assert_eq!(types(&challenge), [PacketType::Sync]);
    harness.seq = seq;
    for _ in 0..4 {
        for packet in harness.deliver(PacketType::Data, &[], b"data") {
            assert_eq!(option(&packet, option_kind::QUICK_START_RESPONSE), None);
        }
    }
}

//= 5634-2.3-1 test
//= 5634-3.1.3-1 test
//= 5634-3.2.3-1 test
#[test]
fn an_approved_rate_is_used_and_reported_with_the_nonce() {
    for ccid in [2, 3] {
        let (mut harness, first, asked) = request(ccid);
        let (sent, report) = respond(&mut harness, &first, Some(honest(asked, 6)));
        assert_eq!(types(&sent), [Ack]);
        let report = report.expect("the first packet reports");
        assert_eq!(report, QuickStart { function: QuickStartFunction::Report, rate: 6, ..asked });
        assert_eq!(quick_starts(&harness), 1, "CCID {ccid}");
        harness.send(b"data");
        assert_eq!(harness.pair.ends[CLIENT].poll_quick_start(), None, "reported once");
    }
}

//= 5634-2.4-1 test
#[test]
fn unverified_quick_start_responses_change_nothing() {
    for case in 0..6 {
        let (mut harness, first, asked) = request(2);
        let OptionRef::QuickStartResponse { rate, ttl_diff, nonce } = honest(asked, 6) else {
            unreachable!()
        };
        let answer =
            |rate, ttl_diff, nonce| Some(OptionRef::QuickStartResponse { rate, ttl_diff, nonce });
        let answer = match case {
            0 => None,
            1 => answer(rate, ttl_diff.wrapping_add(1), nonce), // a router did not take part
            2 => answer(7, ttl_diff, nonce),                    // the rate is too high
            3 => answer(rate, ttl_diff, nonce ^ 1),
            4 => answer(0, ttl_diff, nonce),
            _ => answer(8, ttl_diff, asked.nonce),
        };
        let (_, report) = respond(&mut harness, &first, answer);
        assert_eq!((report, quick_starts(&harness)), (None, 0), "case {case}");
    }
}

#[test]
fn a_rate_below_what_slow_start_has_is_reported_and_not_used() {
    let (mut harness, first, asked) = request(2);
    let (_, report) = respond(&mut harness, &first, Some(honest(asked, 1)));
    assert_eq!((report.map(|r| r.rate), quick_starts(&harness)), (Some(1), 0));
}

#[test]
fn quick_start_over_udp_is_unavailable_and_reported() {
    let mut end = Endpoint::new(EndpointConfig::new([1; 32]));
    let options = ConnectOptions {
        local: "10.0.0.1:40000".parse().unwrap(),
        remote: "10.0.0.2:6511".parse().unwrap(),
        ..connect_options(asking(1_000_000, 2))
    };
    let refused = end.connect(Instant::ZERO, options);
    assert_eq!(refused, Err(ConnectError::Config(ConfigError::QuickStartOverUdp)));
}

/// A connection whose client was granted 2.6 Mbit/s over 100 ms, and has data to send.
fn in_mode(ccid: u8) -> Pair {
    let client = asking(2_560_000, ccid);
    let accept = client.quick_start.request;
    let quick_start = QuickStartConfig { request: None, accept };
    let server = ConnectionConfig { quick_start, rx_ccids: vec![ccid], ..plain() };
    let mut net = Net::new(5634);
    net.delay = Duration::from_millis(50);
    let mut pair = Pair::starting(net, client, server);
    for _ in 0..100 {
        pair.send(CLIENT, &[0; 1000]);
    }
    // The Response has arrived, the first data has not.
    pair.pass(Duration::from_millis(101));
    assert_eq!(pair.stats(CLIENT).counters.quick_starts, 1);
    pair
}

fn cwnd(pair: &Pair) -> u32 {
    pair.stats(CLIENT).cwnd_packets.unwrap()
}

fn x(pair: &Pair) -> f64 {
    pair.stats(CLIENT).x_bytes_per_sec.unwrap()
}

//= 5634-2.3.2-1 test
//= 5634-3.2.4-2 test
//= 5634-3.2.4-4 test
/// One round-trip time of Quick-Start mode, and one (CCID 2) or two (CCID 3) of validation.
#[test]
fn silence_is_noticed_after_two_or_three_round_trip_times() {
    let mut two = in_mode(2);
    two.mute(SERVER);
    let fast = cwnd(&two);
    assert!(fast > 15, "{fast}");
    two.pass(Duration::from_millis(195));
    assert_eq!(cwnd(&two), fast);
    two.pass(Duration::from_millis(10));
    assert!(cwnd(&two) < 3, "half of the first window: {}", cwnd(&two));
    let mut three = in_mode(3);
    three.mute(SERVER);
    let fast = x(&three);
    assert!(fast > 250_000.0, "{fast}");
    three.pass(Duration::from_millis(295));
    assert_eq!(x(&three), fast);
    three.pass(Duration::from_millis(10));
    assert!(x(&three) < fast / 2.0 + 1.0, "{}", x(&three));
}

//= 5634-3.2.4-2 test
/// The first acknowledgements report that nothing was lost; then no more arrive.
#[test]
fn feedback_in_validation_keeps_the_rate_through_later_silence() {
    let mut pair = in_mode(2);
    let fast = cwnd(&pair);
    pair.pass(Duration::from_millis(105));
    assert!(pair.stats(CLIENT).counters.data_packets_acked > 0);
    pair.mute(SERVER);
    pair.pass(Duration::from_millis(100));
    assert!(cwnd(&pair) >= fast, "{fast} to {}", cwnd(&pair));
}

//= 5634-3.2.4-2 test
/// All packets are acknowledged: the mode and its validation end, and the rate stays.
#[test]
fn validated_rate_is_kept() {
    for ccid in [2, 3] {
        let mut pair = in_mode(ccid);
        pair.pass(Duration::from_millis(500));
        let counters = pair.stats(CLIENT).counters;
        assert!(counters.data_packets_acked > 60, "CCID {ccid}: {counters:?}");
        assert_eq!(counters.data_packets_lost, 0);
    }
}

//= 5634-3.1.5-1 test
//= 5634-3.2.5-1 test
#[test]
fn a_loss_ends_quick_start_at_once() {
    for ccid in [2, 3] {
        let mut pair = in_mode(ccid);
        let mut data = 0;
        pair.filter = Some(Box::new(move |from, d| {
            data += u32::from(from == CLIENT && d.transport_len() > 1000);
            data != 3
        }));
        let fast = if ccid == 2 { f64::from(cwnd(&pair)) } else { x(&pair) };
        pair.pass(Duration::from_millis(170));
        let now = if ccid == 2 { f64::from(cwnd(&pair)) } else { x(&pair) };
        // CCID 2 has less than half the window before, and not half of the approved one.
        let most = if ccid == 2 { 8.0 } else { fast * 0.9 };
        assert!(now < most, "CCID {ccid}: {fast} to {now}");
    }
}
