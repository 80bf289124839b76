//! Options: Mandatory, unknown ones, timestamps, NDP Count, checksums and coverage.

mod common;

use common::packet::{finished, forge, forge_with, numbers};
use common::{CLIENT, Net, Pair, SERVER};
use udccp_base::{Datagram, Duration, Payload};
use udccp_proto::{CloseReason, ConnectionConfig, State};
use udccp_wire::{
    FeatureNumber, Header, HeaderKind, OptionRef, PacketView, ResetCode, Seqno, crc32c,
};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn open_pair(seed: u64, config: ConnectionConfig) -> Pair {
    let mut pair = Pair::connected_with(Net::new(seed), config);
    pair.send(CLIENT, b"up");
    pair.send(SERVER, b"down");
    pair.pass(Duration::from_secs(1));
    pair.received(CLIENT);
    pair.received(SERVER);
    pair
}

/// Passes the client an Ack of the server with these options.
fn deliver(pair: &mut Pair, options: &[OptionRef<'_>]) {
    deliver_kind(pair, options, |ack| HeaderKind::Ack { ack });
}

fn deliver_kind(pair: &mut Pair, options: &[OptionRef<'_>], kind: impl Fn(Seqno) -> HeaderKind) {
    let like = pair.last[SERVER].clone().unwrap();
    let (_, seq, _) = numbers(&like);
    let (_, ack, _) = numbers(pair.last[CLIENT].as_ref().unwrap());
    let d = forge(&like, kind(ack), seq.next(), options);
    pair.last[SERVER] = Some(d.clone());
    pair.deliver(CLIENT, d);
}

/// The Reset with which the client ended the connection, if it did.
fn reset(pair: &mut Pair) -> Option<(ResetCode, [u8; 3])> {
    let (kind, _, _) = numbers(pair.last[CLIENT].as_ref().unwrap());
    let HeaderKind::Reset { code, data, .. } = kind else { return None };
    assert_eq!(pair.end_reason(CLIENT), Some(CloseReason::ProtocolError { code, data }));
    Some((code, data))
}

fn sent_options(pair: &Pair, end: usize) -> Vec<String> {
    let text = common::packet::describe(pair.last[end].as_ref().unwrap());
    let list = text.split_once('[').map_or("", |(_, list)| list.strip_suffix(']').unwrap());
    list.split(", ").filter(|s| !s.is_empty()).map(str::to_string).collect()
}

#[test]
fn mandatory_before_an_unknown_option_resets_with_its_type() {
    use OptionRef::{Mandatory, Padding, SlowReceiver, Unknown};
    let unknown = Unknown { kind: 100, data: &[9, 8, 7] };
    let single = Unknown { kind: 20, data: &[] };
    let of_ccid = OptionRef::CcidSpecific { kind: 250, data: &[5] };
    let feature = OptionRef::ChangeL { feature: FeatureNumber(50), value: &[1] };
    let mandatory = ResetCode::MandatoryError;
    let option = ResetCode::OptionError;
    type Case<'a> = (&'a [OptionRef<'a>], Option<(ResetCode, [u8; 3])>);
    let cases: [Case<'_>; 9] = [
        (&[unknown, single, of_ccid], None),
        (&[Mandatory, unknown], Some((mandatory, [100, 9, 8]))),
        (&[Mandatory, single], Some((mandatory, [20, 0, 0]))),
        (&[Mandatory, of_ccid], Some((mandatory, [250, 5, 0]))),
        (&[Mandatory, feature], Some((mandatory, [32, 50, 1]))),
        (&[Mandatory, SlowReceiver], None),
        (&[Mandatory, Padding, unknown], None),
        (&[Mandatory, Mandatory, SlowReceiver], Some((option, [1, 0, 0]))),
        (&[unknown, SlowReceiver, Padding, Mandatory], Some((option, [1, 0, 0]))),
    ];
    for (options, expected) in cases {
        let mut pair = open_pair(1, ConnectionConfig::default());
        deliver(&mut pair, options);
        assert_eq!(reset(&mut pair), expected, "{options:?}");
        let open = pair.state(CLIENT) == Some(State::Open);
        assert_eq!(open, expected.is_none());
    }
}

#[test]
fn on_data_packets_mandatory_and_feature_options_mean_nothing() {
    let mut pair = open_pair(2, ConnectionConfig::default());
    let change = OptionRef::ChangeL { feature: FeatureNumber(50), value: &[1] };
    let bad = OptionRef::ConfirmR { feature: FeatureNumber::CCID, value: &[77, 77] };
    let unknown = OptionRef::Unknown { kind: 100, data: &[] };
    let options = [OptionRef::Mandatory, unknown, OptionRef::Mandatory, change, bad];
    deliver_kind(&mut pair, &options, |_| HeaderKind::Data);
    assert_eq!(pair.state(CLIENT), Some(State::Open));
    assert_eq!(pair.received(CLIENT), [b""]);
    pair.send(CLIENT, b"x");
    pair.pass(ms(300));
    assert_eq!(pair.state(CLIENT), Some(State::Open));
    assert!(!sent_options(&pair, CLIENT).iter().any(|o| o.contains("Confirm")));
}

#[test]
fn an_unknown_feature_is_answered_with_an_empty_confirm() {
    let mut pair = open_pair(3, ConnectionConfig::default());
    pair.mute(CLIENT);
    deliver(&mut pair, &[OptionRef::ChangeL { feature: FeatureNumber(50), value: &[1] }]);
    pair.pass(ms(500));
    assert_eq!(pair.state(CLIENT), Some(State::Open));
    assert!(sent_options(&pair, CLIENT).contains(&"Confirm R Feature 50 []".to_string()));
}

#[test]
fn an_option_of_nonsensical_length_ends_option_processing() {
    let mut pair = open_pair(4, ConnectionConfig::default());
    // Length 1, then bytes that would be a Mandatory unknown option.
    let like = pair.last[SERVER].clone().unwrap();
    let (_, seq, _) = numbers(&like);
    let (_, ack, _) = numbers(pair.last[CLIENT].as_ref().unwrap());
    let d = forge(
        &like,
        HeaderKind::Ack { ack },
        seq.next(),
        &[
            OptionRef::Unknown { kind: 50, data: &[0, 0] },
            OptionRef::Mandatory,
            OptionRef::Unknown { kind: 51, data: &[0] },
        ],
    );
    let mut bytes = d.header.to_vec();
    let fixed = 24;
    bytes[fixed + 1] = 1;
    let view = PacketView::new(&bytes, bytes.len()).unwrap();
    let header = view.header();
    // The checksum is corrected by writing the same option space again.
    let raw: Vec<u8> = bytes[fixed..].to_vec();
    let mut buf = bytes::BytesMut::new();
    let mut emitter = udccp_wire::Emitter::new(&mut buf, &header);
    for byte in &raw {
        // Bytes below 32 are single-byte options. Others become one, so that no offset changes.
        let kind = if *byte < 32 { *byte } else { 31 };
        emitter.option(&OptionRef::Unknown { kind, data: &[] }).unwrap();
    }
    let pseudo = udccp_wire::PseudoHeader::new(like.src.ip(), like.dst.ip());
    emitter.finish(&pseudo, &[], 0);
    let mut fixed_bytes = buf.to_vec();
    fixed_bytes[fixed..].copy_from_slice(&raw);
    fixed_bytes[6..8].copy_from_slice(&[0, 0]);
    let mut sum = pseudo.sum(33, fixed_bytes.len());
    sum.add(&fixed_bytes);
    fixed_bytes[6..8].copy_from_slice(&sum.checksum().to_be_bytes());
    let d = Datagram { header: fixed_bytes.into(), ..d };
    pair.deliver(CLIENT, d);
    assert_eq!(pair.state(CLIENT), Some(State::Open));
    assert_eq!(pair.stats(CLIENT).counters.drops.sequence_invalid, 0);
    assert_eq!(pair.ends[CLIENT].endpoint_stats().bad_checksum, 0);
}

#[test]
fn a_timestamp_is_echoed_on_the_next_packet_with_the_time_it_waited() {
    let mut pair = open_pair(5, ConnectionConfig::default());
    deliver(&mut pair, &[OptionRef::Timestamp(123_456)]);
    pair.now += ms(7);
    pair.send(CLIENT, b"next");
    pair.drain();
    let d = pair.last[CLIENT].clone().unwrap();
    let view = PacketView::new(&d.header, d.transport_len()).unwrap();
    let echo = OptionRef::TimestampEcho { timestamp: 123_456, elapsed: Some(700) };
    assert!(view.options().any(|o| o == Ok(echo)));
    pair.send(CLIENT, b"one more");
    pair.drain();
    assert!(!sent_options(&pair, CLIENT).iter().any(|o| o.contains("Echo")));
}

#[test]
fn the_handshake_measures_the_round_trip_time_at_both_ends() {
    let pair = Pair::connected(6);
    for end in [CLIENT, SERVER] {
        assert_eq!(pair.stats(end).srtt, Some(ms(20)), "end {end}");
    }
}

#[test]
fn ndp_counts_tell_the_run_of_packets_without_data() {
    let config = ConnectionConfig { ndp_count: true, ..ConnectionConfig::default() };
    let mut pair = open_pair(7, config);
    let count = |pair: &Pair| {
        let options = sent_options(pair, CLIENT);
        options.iter().find_map(|o| o.strip_prefix("NDP Count ")?.parse::<u64>().ok())
    };
    pair.send(CLIENT, b"data");
    pair.drain();
    pair.send(CLIENT, b"data");
    pair.drain();
    assert_eq!(count(&pair), None, "after a data packet");
    for n in 1..=3 {
        deliver_kind(&mut pair, &[], |ack| HeaderKind::Sync { ack });
        assert_eq!(count(&pair), (n > 1).then_some(n - 1), "SyncAck {n}");
    }
    pair.send(CLIENT, b"data");
    pair.drain();
    assert_eq!(count(&pair), Some(3));
}

fn checked() -> ConnectionConfig {
    ConnectionConfig { data_checksum: true, ..ConnectionConfig::default() }
}

#[test]
fn data_checksums_are_sent_and_corrupt_data_is_dropped_and_reported() {
    let mut pair = open_pair(8, checked());
    pair.send(SERVER, b"checked");
    pair.drain();
    let d = pair.last[SERVER].clone().unwrap();
    let view = PacketView::new(&d.header, d.transport_len()).unwrap();
    assert!(view.options().any(|o| o == Ok(OptionRef::DataChecksum(crc32c::crc32c(b"checked")))));
    pair.pass(ms(300));
    assert_eq!(pair.received(CLIENT), [b"checked"]);

    let like = pair.last[SERVER].clone().unwrap();
    let (_, seq, _) = numbers(&d);
    let sum = OptionRef::DataChecksum(crc32c::crc32c(b"other"));
    let payload = Payload::Bytes(bytes::Bytes::from_static(b"spoilt"));
    let bad = forge_with(&like, HeaderKind::Data, seq.add(2), &[sum], payload);
    pair.mute(CLIENT);
    pair.deliver(CLIENT, bad);
    pair.pass(ms(300));
    assert!(pair.received(CLIENT).is_empty());
    assert_eq!(pair.stats(CLIENT).counters.drops.corrupt_payload, 1);
    // Drop Code 3 for the packet just acknowledged, or the one before.
    let told = sent_options(&pair, CLIENT);
    assert!(told.iter().any(|o| o.starts_with("Data Dropped") && o.contains("176")), "{told:?}");
}

#[test]
fn partial_coverage_is_used_only_where_the_peer_accepts_it() {
    let cases = [(3, 3, 3), (3, 2, 3), (2, 3, 0), (3, 0, 0), (0, 3, 0)];
    for (wished, accepted, expected) in cases {
        let client = ConnectionConfig { send_cscov: wished, ..Default::default() };
        let server = ConnectionConfig { min_cscov: accepted, ..Default::default() };
        let mut pair = Pair::starting(Net::new(9), client, server);
        pair.pass(ms(200));
        pair.send(CLIENT, &[1; 100]);
        pair.drain();
        let d = pair.last[CLIENT].clone().unwrap();
        let cscov = PacketView::new(&d.header, d.transport_len()).unwrap().cscov();
        assert_eq!(cscov, expected, "wished {wished}, accepted {accepted}");
        pair.pass(ms(200));
        assert_eq!(pair.received(SERVER).len(), 1);
    }
}

#[test]
fn data_with_too_little_coverage_is_dropped_and_reported() {
    let mut pair = open_pair(10, ConnectionConfig::default());
    let like = pair.last[SERVER].clone().unwrap();
    let header = PacketView::new(&like.header, like.transport_len()).unwrap().header();
    let seq = header.seq.next();
    let header = Header { seq, kind: HeaderKind::Data, cscov: 1, ..header };
    pair.mute(CLIENT);
    pair.deliver(CLIENT, finished(&like, &header, &[], Payload::Zeros(10)));
    pair.pass(ms(300));
    assert!(pair.received(CLIENT).is_empty());
    assert_eq!(pair.stats(CLIENT).counters.drops.coverage_too_small, 1);
    let told = sent_options(&pair, CLIENT);
    assert!(told.iter().any(|o| o == "Data Dropped [128]"), "{told:?}");
}

#[test]
fn an_ecn_incapable_end_announces_it_and_gets_no_capable_packets() {
    let client = ConnectionConfig { ecn: false, ..Default::default() };
    let mut pair = Pair::starting(Net::new(11), client, Default::default());
    pair.drain();
    let request = sent_options(&pair, CLIENT);
    assert!(request.contains(&"Change L ECN Incapable [1]".to_string()), "{request:?}");
    pair.pass(ms(200));
    for end in [CLIENT, SERVER] {
        pair.send(end, b"x");
        pair.drain();
        assert_eq!(pair.last[end].as_ref().unwrap().ecn, udccp_base::Ecn::NotEct);
        pair.pass(ms(300));
    }
    let mut pair = Pair::connected(12);
    pair.send(CLIENT, b"x");
    pair.drain();
    assert_eq!(pair.last[CLIENT].as_ref().unwrap().ecn, udccp_base::Ecn::Ect0);
}

#[test]
fn a_confirm_of_the_wrong_value_resets_the_connection() {
    let mut pair = Pair::starting(Net::new(13), Default::default(), Default::default());
    pair.mute(SERVER);
    pair.drain();
    let request = pair.last[CLIENT].clone().unwrap();
    let (_, ack, _) = numbers(&request);
    let like = common::packet::reversed(&request);
    let kind = HeaderKind::Response { ack, service: common::service() };
    let confirm = OptionRef::ConfirmR { feature: FeatureNumber::CCID, value: &[77, 77] };
    pair.deliver(CLIENT, forge(&like, kind, Seqno::new(5), &[confirm]));
    let (code, data) = reset(&mut pair).expect("a reset");
    assert_eq!((code, data), (ResetCode::OptionError, [35, 1, 77]));
}
