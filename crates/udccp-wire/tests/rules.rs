//! The rules of RFC 4340 that can be checked on a single packet.

use bytes::BytesMut;
use udccp_wire::{
    Emitter, FeatureNumber, Header, HeaderFull, HeaderKind, OptionError, OptionRef, OptionValue,
    Options, Packet, PacketType, PacketView, PseudoHeader, RawSeq, Reaction, ResetCode, Seqno,
    ServiceCode, WireError,
};

fn pseudo() -> PseudoHeader {
    PseudoHeader::new([10, 1, 0, 1].into(), [10, 2, 0, 1].into())
}

fn header(kind: HeaderKind) -> Header {
    let seq = Seqno::new(0x0102_0304_0506);
    Header { src_port: 41_000, dst_port: 5001, ccval: 0, cscov: 0, x: true, seq, kind }
}

fn all_kinds() -> [HeaderKind; 11] {
    let ack = Seqno::new(0x1112_1314_1516);
    let service = ServiceCode(42);
    [
        HeaderKind::Request { service },
        HeaderKind::Response { ack, service },
        HeaderKind::Data,
        HeaderKind::Ack { ack },
        HeaderKind::DataAck { ack },
        HeaderKind::CloseReq { ack },
        HeaderKind::Close { ack },
        HeaderKind::Reset { ack, code: ResetCode::Closed, data: [0; 3] },
        HeaderKind::Sync { ack },
        HeaderKind::SyncAck { ack },
        HeaderKind::Listen { service },
    ]
}

fn bytes_of(header: Header, payload: &[u8]) -> Vec<u8> {
    let packet = Packet { header, options: Vec::new(), payload: payload.to_vec() };
    packet.emit(&pseudo()).unwrap()
}

fn view_error(bytes: &[u8]) -> WireError {
    let error = PacketView::new(bytes, bytes.len()).unwrap_err();
    assert_eq!(error.reaction(), Reaction::IgnorePacket);
    assert!(!error.to_string().is_empty());
    error
}

/// The header of a Request, byte by byte as in the RFC's diagram.
#[test]
fn a_request_looks_as_drawn() {
    let bytes = bytes_of(header(HeaderKind::Request { service: ServiceCode(0x6664_707a) }), b"");
    assert_eq!(bytes[..6], [0xa0, 0x28, 0x13, 0x89, 5, 0]);
    assert_eq!(bytes[8..], [0x01, 0, 1, 2, 3, 4, 5, 6, b'f', b'd', b'p', b'z']);
}

#[test]
fn a_line_of_text_has_what_is_unusual_and_leaves_out_the_rest() {
    let text = |header: Header, data: &[u8]| {
        let bytes = bytes_of(header, data);
        let view = PacketView::new(&bytes, bytes.len()).unwrap();
        assert_eq!(view.checksum().to_be_bytes(), bytes[6..8]);
        view.to_string()
    };
    let data = header(HeaderKind::Data);
    let ack = header(HeaderKind::Ack { ack: Seqno::new(9) });
    let start = "Data 41000 > 5001 seq 1108152157446";
    assert_eq!(text(data, b"data"), format!("{start} data 4"));
    let partial = Header { ccval: 3, cscov: 1, ..data };
    assert_eq!(text(partial, b"data"), format!("{start} ccval 3 cscov 1 data 4"));
    assert_eq!(text(ack, b""), "Ack 41000 > 5001 seq 1108152157446 ack 9");
    assert_eq!(text(ack, b"data"), "Ack 41000 > 5001 seq 1108152157446 ack 9 ignored 4");
}

//= 4340-5.1-2 test
#[test]
fn data_offset_within_bounds_or_ignored() {
    for kind in all_kinds() {
        let mut bytes = bytes_of(header(kind), b"data");
        let need = kind.packet_type().fixed_header_len(true);
        bytes[4] -= 1;
        assert_eq!(view_error(&bytes), WireError::OffsetTooSmall { offset: need - 4, need });
        bytes[4] += 3;
        let error = WireError::OffsetTooLarge { offset: need + 8, have: need + 4 };
        assert_eq!(view_error(&bytes), error);
        let kind = kind.packet_type();
        assert_eq!(view_error(&bytes[..11]), WireError::Truncated { have: 11, need: 12 }, "{kind}");
    }
}

//= 4340-5.1-6 test
//= 4340-5.1-7 test
#[test]
fn reserved_types_are_ignored() {
    for number in 11..16 {
        let mut bytes = bytes_of(header(HeaderKind::Data), b"data");
        bytes[8] = number << 1 | 1;
        assert_eq!(view_error(&bytes), WireError::ReservedType(number));
    }
}

//= 4340-5.1-8 test
//= 4340-5.1-9 test
//= 4340-5.2-1 test
//= 4340-5.3-1 test
//= 4340-5.5-1 test
//= 4340-5.6-1 test
//= 4340-5.7-1 test
#[test]
fn only_data_ack_and_data_ack_packets_may_be_short() {
    for kind in all_kinds() {
        let sent = bytes_of(Header { x: false, ..header(kind) }, b"");
        let view = PacketView::new(&sent, sent.len()).unwrap();
        let may =
            matches!(kind.packet_type(), PacketType::Data | PacketType::Ack | PacketType::DataAck);
        assert_eq!(view.x(), !may);
        if may {
            assert_eq!(view.seq_raw(), RawSeq::Short(0x04_0506));
            assert_eq!(view.seq_raw().extend(Seqno::new(0x0102_0304_0000)).low24(), 0x04_0506);
            continue;
        }
        let mut bytes = sent;
        bytes[8] &= !1;
        assert_eq!(view_error(&bytes), WireError::ShortSeqno(kind.packet_type()));
    }
}

//= 4340-3.1-2 test
//= 4340-3.1-3 test
//= 4340-5.1-5 test
//= 4340-5.1-11 test
#[test]
fn reserved_bits_are_sent_as_zero_and_ignored() {
    for kind in all_kinds() {
        for x in [true, false] {
            let header = Header { x, ..header(kind) };
            let clean = bytes_of(header, b"");
            let mut dirty = clean.clone();
            let long = header.is_long();
            let res = [(8, 0xe0), if long { (9, 0xff) } else { (8, 0xe0) }];
            let ack: &[usize] = match (kind.packet_type().has_ack(), long) {
                (true, true) => &[16, 17],
                (true, false) => &[12],
                (false, _) => &[],
            };
            for (at, mask) in res.into_iter().chain(ack.iter().map(|&at| (at, 0xff))) {
                assert_eq!(clean[at] & mask, 0, "{header:?} byte {at}");
                dirty[at] |= mask;
            }
            let view = PacketView::new(&dirty, dirty.len()).unwrap();
            let expected = PacketView::new(&clean, clean.len()).unwrap().header();
            assert_eq!(view.header(), expected);
        }
    }
}

//= 4340-9.2-1 test
//= 4340-9.2-2 test
#[test]
fn coverage_stays_within_the_data() {
    for (cscov, data_len) in [(1, 0), (2, 4), (3, 11), (15, 56)] {
        let header = Header { cscov, ..header(HeaderKind::Data) };
        let bytes = bytes_of(header, &vec![7; data_len]);
        let view = PacketView::new(&bytes, bytes.len()).unwrap();
        let fits = usize::from(cscov - 1) * 4 <= data_len;
        assert_eq!(view.cscov(), if fits { cscov } else { 0 }, "{data_len} bytes");
        let mut wrong = bytes;
        wrong[5] = (wrong[5] & 0xf0) | 15;
        if data_len < 56 {
            assert_eq!(view_error(&wrong), WireError::CsCov { cscov: 15, data_len });
        }
    }
}

//= 4340-9.2-2 test
/// A packet from another implementation sets the coverage in its header, whatever data follows.
#[test]
fn coverage_up_to_the_last_byte_of_data_is_taken_and_one_byte_more_is_not() {
    for cscov in 0..=15_u8 {
        let covered = usize::from(cscov.saturating_sub(1)) * 4;
        for data_len in covered.saturating_sub(5)..covered + 5 {
            let mut bytes = bytes_of(header(HeaderKind::Data), &vec![7; data_len]);
            bytes[5] = (bytes[5] & 0xf0) | cscov;
            let fits = cscov < 2 || covered <= data_len;
            match PacketView::new(&bytes, bytes.len()) {
                Ok(view) => assert_eq!((fits, view.cscov()), (true, cscov), "{data_len} bytes"),
                Err(e) => {
                    assert_eq!((fits, e), (false, WireError::CsCov { cscov, data_len }));
                }
            }
        }
    }
}

#[test]
fn data_beyond_the_coverage_may_be_damaged() {
    let header = Header { cscov: 3, ..header(HeaderKind::Data) };
    let mut bytes = bytes_of(header, &[7; 20]);
    let valid = |bytes: &[u8]| {
        PacketView::new(bytes, bytes.len()).unwrap().verify_checksum(&pseudo(), &[], 0)
    };
    bytes[16 + 8] ^= 0xff;
    assert!(valid(&bytes));
    bytes[16 + 7] ^= 0xff;
    assert!(!valid(&bytes));
}

//= 4340-5.8-1 test
//= 4340-5.8-2 test
//= 4340-5.8.1-1 test
#[test]
fn options_are_padded_to_whole_words() {
    for n in 0..9 {
        let mut buf = BytesMut::from(&b"before"[..]);
        let mut emitter = Emitter::new(&mut buf, &header(HeaderKind::Data));
        for _ in 0..n {
            emitter.option(&OptionRef::SlowReceiver).unwrap();
        }
        assert_eq!(emitter.options_len(), n);
        let len = emitter.finish(&pseudo(), b"", 0);
        let packet = &buf[6..];
        assert_eq!((len, packet.len()), (16 + n.next_multiple_of(4), len));
        let view = PacketView::new(packet, len).unwrap();
        assert!(view.verify_checksum(&pseudo(), &[], 0));
        assert!(view.option_bytes()[n..].iter().all(|&b| b == 0));
    }
}

#[test]
fn a_full_header_takes_no_more() {
    let mut buf = BytesMut::new();
    let mut emitter = Emitter::new(&mut buf, &header(HeaderKind::Data));
    assert_eq!(emitter.raw_option(50, &[1; 254]), Err(HeaderFull));
    for _ in 0..3 {
        emitter.raw_option(50, &[1; 253]).unwrap();
    }
    emitter.raw_option(50, &[1; 237]).unwrap();
    assert_eq!(emitter.remaining(), 0);
    assert_eq!(emitter.option(&OptionRef::Mandatory), Err(HeaderFull));
    assert_eq!(emitter.finish_encapsulated(0), udccp_wire::MAX_HEADER_LEN);
    assert_eq!(PacketView::new(&buf, buf.len()).unwrap().options().count(), 4);
}

//= 4340-5.8-3 test
//= 4340-5.8-5 test
#[test]
fn options_come_in_order_until_a_nonsensical_length() {
    for (tail, length) in [(&[50, 1, 2, 2][..], Some(1)), (&[50, 9, 2], Some(9)), (&[50], None)] {
        let bytes = [&[2, 41, 6, 0, 0, 0, 9, 0][..], tail].concat();
        let mut options = Options::new(&bytes);
        assert_eq!(options.next(), Some(Ok(OptionRef::SlowReceiver)));
        assert_eq!(options.next(), Some(Ok(OptionRef::Timestamp(9))));
        assert_eq!(options.next(), Some(Ok(OptionRef::Padding)));
        let fault = options.next().unwrap().unwrap_err();
        let remaining = tail.len() as u16;
        let data = [tail.get(2).copied().unwrap_or(0), tail.get(3).copied().unwrap_or(0)];
        assert_eq!(fault, OptionError::Nonsensical { kind: 50, length, remaining, data });
        assert_eq!(fault.reaction(false), Reaction::IgnoreRemainingOptions);
        assert_eq!(options.next(), None);
    }
}

//= 4340-5.8-9 test
//= 4340-5.8-10 test
//= 4340-5.8.2-1 test
#[test]
fn an_option_of_wrong_length_is_ignored_alone() {
    let lengths: [(u8, &[u8]); 9] = [
        (32, &[2]),
        (34, &[2]),
        (36, &[]),
        (37, &[2, 9]),
        (41, &[2, 5, 7]),
        (42, &[5, 7, 9, 11]),
        (43, &[3, 5, 7]),
        (44, &[4, 5, 7]),
        (45, &[]),
    ];
    for (kind, wrong) in lengths {
        for &length in wrong {
            let data = vec![0xab; usize::from(length) - 2];
            let bytes = [&[kind, length][..], &data, &[2]].concat();
            let mut options = Options::new(&bytes);
            let fault = options.next().unwrap().unwrap_err();
            assert_eq!((fault.kind(), fault.reaction(false)), (kind, Reaction::IgnoreOption));
            let [a, b] = [data.first(), data.get(1)].map(|b| b.copied().unwrap_or(0));
            let reset = Reaction::Reset { code: ResetCode::MandatoryError, data: [kind, a, b] };
            assert_eq!(fault.reaction(true), reset);
            assert_eq!(options.next(), Some(Ok(OptionRef::SlowReceiver)), "option {kind}");
        }
    }
}

//= 4340-6.6.8-2 test
#[test]
fn a_confirm_without_feature_resets() {
    for kind in [33, 35] {
        let fault = Options::new(&[kind, 2]).next().unwrap().unwrap_err();
        let reset = Reaction::Reset { code: ResetCode::OptionError, data: [kind, 0, 0] };
        assert_eq!(fault.reaction(false), reset);
    }
}

//= 4340-5.8-7 test
//= 4340-5.8-8 test
//= 4340-5.8.2-2 test
//= 4340-11.4-3 test
//= 4340-11.7-6 test
//= 4340-13.2-1 test
#[test]
fn each_option_has_its_packet_types() {
    let feature = FeatureNumber::CCID;
    let value = &[2];
    let everywhere = [
        OptionRef::Padding,
        OptionRef::SlowReceiver,
        OptionRef::NdpCount(1),
        OptionRef::Timestamp(1),
        OptionRef::TimestampEcho { timestamp: 1, elapsed: None },
        OptionRef::DataChecksum(1),
    ];
    let not_on_data = [
        OptionRef::Mandatory,
        OptionRef::ChangeL { feature, value },
        OptionRef::ChangeR { feature, value },
        OptionRef::LossEventRate(1),
        OptionRef::ReceiveRate(1),
    ];
    let only_with_ack = [
        OptionRef::ConfirmL { feature, value },
        OptionRef::ConfirmR { feature, value },
        OptionRef::InitCookie(value),
        OptionRef::AckVector { nonce: false, cells: value },
        OptionRef::AckVector { nonce: true, cells: value },
        OptionRef::DataDropped(value),
        OptionRef::ElapsedTime(1),
        OptionRef::LossIntervals { skip_length: 0, intervals: &[] },
        OptionRef::DroppedPackets(&[]),
    ];
    for packet in PacketType::ALL {
        let listen = packet == PacketType::Listen;
        let permitted = |o: &OptionRef<'_>| o.is_permitted_on(packet);
        assert!(everywhere.iter().all(|o| permitted(o) != listen), "{packet}");
        let data = packet == PacketType::Data;
        assert!(not_on_data.iter().all(|o| permitted(o) != (listen || data)), "{packet}");
        assert!(only_with_ack.iter().all(|o| permitted(o) == packet.has_ack()), "{packet}");
    }
}

//= 4340-7.7-2 test
//= 4340-13.2-2 test
//= 4340-13.2-3 test
//= 4340-13.3-4 test
#[test]
fn numbers_take_the_smallest_form() {
    let bytes = |o: OptionRef<'_>| OptionValue::from(o).data;
    let ndp = |n| bytes(OptionRef::NdpCount(n)).len();
    assert_eq!([0, 1, 255, 256, 0xff_ffff, 1 << 40].map(ndp), [1, 1, 1, 2, 3, 6]);
    assert_eq!(bytes(OptionRef::NdpCount(u64::MAX)), [0xff; 6]);
    let elapsed = |n| bytes(OptionRef::ElapsedTime(n)).len();
    assert_eq!([0, 49_999, 65_535, 65_536, u32::MAX].map(elapsed), [2, 2, 2, 4, 4]);
    let echo = |elapsed| bytes(OptionRef::TimestampEcho { timestamp: 1, elapsed }).len();
    assert_eq!([None, Some(0), Some(65_535), Some(65_536)].map(echo), [4, 6, 6, 8]);
}

/// The encodings of RFC 4340 section 6.5 and the examples of RFC 4342 and RFC 5622.
#[test]
fn the_examples_of_the_rfcs() {
    let value = &[2, 3];
    let change = OptionRef::ChangeL { feature: FeatureNumber::CCID, value };
    assert_eq!(Options::new(&[32, 5, 1, 2, 3]).next(), Some(Ok(change)));
    let value = &[0, 0, 0, 0, 4, 0];
    let confirm = OptionRef::ConfirmR { feature: FeatureNumber::SEQUENCE_WINDOW, value };
    assert_eq!(Options::new(&[35, 9, 3, 0, 0, 0, 0, 4, 0]).next(), Some(Ok(confirm)));
    let empty = OptionRef::ConfirmL { feature: FeatureNumber(126), value: &[] };
    assert_eq!(Options::new(&[33, 3, 126]).next(), Some(Ok(empty)));
    let intervals = [
        193, 39, 2, 0, 0, 10, 128, 0, 1, 0, 0, 10, 0, 0, 8, 0, 0, 5, 0, 0, 10, 0, 0, 8, 0, 0, 1, 0,
        0, 8, 0, 0, 10, 128, 0, 0, 0, 0, 15,
    ];
    let text = Options::new(&intervals).next().unwrap().unwrap().to_string();
    let l3 = "Loss Intervals skip 2 (10+1 data 10 nonce 1) (8+5 data 10 nonce 0)";
    assert_eq!(text, format!("{l3} (8+1 data 8 nonce 0) (10+0 data 15 nonce 1)"));
    let dropped = [195, 14, 0, 0, 1, 0, 0, 4, 0, 0, 1, 0, 0, 0];
    let text = Options::new(&dropped).next().unwrap().unwrap().to_string();
    assert_eq!(text, "Dropped Packets 1 4 1 0");
}
