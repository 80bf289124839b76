//! Properties of all packets: parsing an emitted packet returns it, and no input bytes panic.

use bytes::BytesMut;
use proptest::collection::vec;
use proptest::prelude::*;
use udccp_wire::ip::{Envelope, LinkType};
use udccp_wire::udp;
use udccp_wire::{
    Checksum, Emitter, FeatureNumber, Header, HeaderKind, IP_PROTOCOL, LossInterval, OptionRef,
    OptionValue, Packet, PacketType, PacketView, PlainAck, PlainData, PseudoHeader, RawOption,
    RawSeq, ResetCode, Seqno, ServiceCode, UsualAck,
};

fn seqno() -> impl Strategy<Value = Seqno> {
    any::<u64>().prop_map(Seqno::new)
}

fn kind() -> impl Strategy<Value = HeaderKind> {
    let numbers = (0..11_u8, seqno(), any::<u32>(), any::<u8>(), any::<[u8; 3]>());
    numbers.prop_map(|(kind, ack, service, code, data)| {
        let service = ServiceCode(service);
        match kind {
            0 => HeaderKind::Request { service },
            1 => HeaderKind::Response { ack, service },
            2 => HeaderKind::Data,
            3 => HeaderKind::Ack { ack },
            4 => HeaderKind::DataAck { ack },
            5 => HeaderKind::CloseReq { ack },
            6 => HeaderKind::Close { ack },
            7 => HeaderKind::Reset { ack, code: ResetCode::from(code), data },
            8 => HeaderKind::Sync { ack },
            9 => HeaderKind::SyncAck { ack },
            _ => HeaderKind::Listen { service },
        }
    })
}

/// A header in normal form for `data_len` bytes of data.
fn header(data_len: usize) -> impl Strategy<Value = Header> {
    let fields = (any::<u16>(), any::<u16>(), 0..16_u8, 0..16_u8, any::<bool>(), seqno(), kind());
    fields.prop_map(move |(src_port, dst_port, ccval, cscov, x, seq, kind)| {
        let x = x || !kind.packet_type().may_use_short_seqnos();
        let cscov = if (usize::from(cscov).max(1) - 1) * 4 > data_len { 0 } else { cscov };
        let short = |s: Seqno| Seqno::new(u64::from(s.low24()));
        let (seq, kind) = match kind {
            _ if x => (seq, kind),
            HeaderKind::Ack { ack } => (short(seq), HeaderKind::Ack { ack: short(ack) }),
            HeaderKind::DataAck { ack } => (short(seq), HeaderKind::DataAck { ack: short(ack) }),
            other => (short(seq), other),
        };
        Header { src_port, dst_port, ccval, cscov, x, seq, kind }
    })
}

/// Every option, from raw numbers and bytes.
fn option() -> impl Strategy<Value = OptionValue> {
    let parts = (0..25_u8, any::<u8>(), any::<u64>(), any::<u32>(), vec(any::<u8>(), 0..64));
    parts
        .prop_map(|(which, byte, wide, number, data)| make_option(which, byte, wide, number, &data))
}

fn make_option(which: u8, byte: u8, wide: u64, number: u32, value: &[u8]) -> OptionValue {
    let feature = FeatureNumber(byte);
    let whole = |unit: usize| &value[..value.len() / unit * unit];
    let option = match which {
        0 => OptionRef::Padding,
        1 => OptionRef::Mandatory,
        2 => OptionRef::SlowReceiver,
        3 => OptionRef::ChangeL { feature, value },
        4 => OptionRef::ConfirmL { feature, value },
        5 => OptionRef::ChangeR { feature, value },
        6 => OptionRef::ConfirmR { feature, value },
        7 => OptionRef::InitCookie(value),
        8 => OptionRef::NdpCount(wide & ((1 << 48) - 1) >> (byte % 48)),
        9 => OptionRef::AckVector { nonce: byte & 1 == 1, cells: value },
        10 => OptionRef::DataDropped(value),
        11 => OptionRef::Timestamp(number),
        12 => OptionRef::TimestampEcho { timestamp: number, elapsed: None },
        13 => OptionRef::TimestampEcho { timestamp: number, elapsed: Some(wide as u32) },
        14 => OptionRef::TimestampEcho { timestamp: number, elapsed: Some(u32::from(byte)) },
        15 => OptionRef::ElapsedTime(number),
        16 => OptionRef::ElapsedTime(number & 0xffff),
        17 => OptionRef::DataChecksum(number),
        18 => OptionRef::LossEventRate(number),
        19 => {
            let intervals = whole(LossInterval::LEN);
            OptionRef::LossIntervals { skip_length: byte, intervals }
        }
        20 => OptionRef::ReceiveRate(number),
        21 => OptionRef::DroppedPackets(whole(3)),
        22 => OptionRef::CcidSpecific { kind: byte | 0x80, data: value },
        23 => {
            let (rate, ttl_diff) = (byte & 15, wide as u8);
            OptionRef::QuickStartResponse { rate, ttl_diff, nonce: number >> 2 }
        }
        _ => OptionRef::Unknown { kind: 46 + byte % 82, data: value },
    };
    let owned = OptionValue::from(option);
    // Every generated option passes here, so this checks the round trip of single options.
    if which != 22 {
        assert_eq!(owned.as_ref(), Ok(option));
    }
    owned
}

fn packet() -> impl Strategy<Value = Packet> {
    vec(any::<u8>(), 0..80).prop_flat_map(|payload| {
        let options = vec(option(), 0..12).prop_map(|mut options| {
            while options.last().is_some_and(|o| o.kind == 0) {
                options.pop();
            }
            options
        });
        (header(payload.len()), options, Just(payload))
            .prop_map(|(header, options, payload)| Packet { header, options, payload })
    })
}

fn pseudo() -> impl Strategy<Value = PseudoHeader> {
    let v4 = any::<([u8; 4], [u8; 4])>();
    let v6 = any::<([u8; 16], [u8; 16])>();
    prop_oneof![
        v4.prop_map(|(a, b)| PseudoHeader::new(a.into(), b.into())),
        v6.prop_map(|(a, b)| PseudoHeader::new(a.into(), b.into())),
    ]
}

/// Calls every function that reads bytes, for the tests that they never panic.
fn ask_everything(bytes: &[u8], total_len: usize) {
    let pseudo = PseudoHeader::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    if let Ok(view) = PacketView::new(bytes, total_len) {
        let _ = (view.options().count(), view.header(), view.to_string());
        let _ = (view.verify_checksum(&pseudo, &[], 0), view.verify_checksum(&pseudo, bytes, 9));
        assert!(view.data_offset() <= bytes.len());
    }
    let _ = Packet::parse(bytes, Some(&pseudo));
    let _ = Packet::parse(bytes, None).map(|p| p.emit(&pseudo));
    for link in [0, 1, 101, 113, 276].map(|n| LinkType::from_number(n).unwrap()) {
        let _ = Envelope::parse(link, bytes, &[6511]).map(|e| e.to_string());
    }
    let _ = udp::parse(bytes, total_len);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1024,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn parse_inverts_emit(packet in packet(), pseudo in pseudo()) {
        let bytes = packet.emit(&pseudo).unwrap();
        prop_assert_eq!(Packet::parse(&bytes, Some(&pseudo)).unwrap(), packet);
    }

    #[test]
    fn parse_inverts_emit_for_encapsulated_packets(packet in packet(), pseudo in pseudo()) {
        let bytes = packet.emit_encapsulated().unwrap();
        prop_assert_eq!(&bytes[6..8], &[0, 0]);
        let header = udp::around((6511, 6512), &pseudo, &bytes, &[], 0).unwrap();
        let datagram = [&header.to_bytes()[..], &bytes].concat();
        let (header, inside) = udp::parse(&datagram, datagram.len()).unwrap();
        prop_assert_eq!(udp::verify(&header, &pseudo, inside), Ok(()));
        prop_assert_eq!(Packet::parse(inside, None).unwrap(), packet);
    }

    /// Splitting the data between header bytes, rest and zeros changes no checksum.
    #[test]
    fn the_checksum_is_the_same_however_the_data_is_held(
        mut packet in packet(), pseudo in pseudo(), cut in 0..80_usize, zeros in 0..40_usize
    ) {
        let real = packet.payload.clone();
        packet.payload.resize(real.len() + zeros, 0);
        let whole = packet.emit(&pseudo).unwrap();
        let mut buf = BytesMut::new();
        let mut emitter = Emitter::new(&mut buf, &packet.header);
        for o in &packet.options {
            emitter.raw_option(o.kind, &o.data).unwrap();
        }
        let len = emitter.finish(&pseudo, &real, zeros);
        prop_assert_eq!(&buf[..], &whole[..len]);
        let cut = len + cut.min(real.len());
        let view = PacketView::new(&whole[..cut], whole.len()).unwrap();
        let rest = &whole[cut..len + real.len()];
        prop_assert!(view.verify_checksum(&pseudo, rest, zeros));
        let wrong = PseudoHeader::new([1, 2, 3, 4].into(), [5, 6, 7, 8].into());
        // One in 65,535 other address pairs has the same sum.
        let is_same = packet.emit(&wrong).unwrap() == whole;
        prop_assert_eq!(view.verify_checksum(&wrong, rest, zeros), is_same);
    }

    #[test]
    fn view_and_header_agree(packet in packet(), pseudo in pseudo()) {
        let bytes = packet.emit(&pseudo).unwrap();
        let view = PacketView::new(&bytes, bytes.len()).unwrap();
        let h = packet.header;
        prop_assert_eq!(view.header(), h);
        prop_assert_eq!(view.seq_raw(), match h.x {
            true => RawSeq::Long(h.seq),
            false => RawSeq::Short(h.seq.low24()),
        });
        prop_assert_eq!(view.ack_raw().map(RawSeq::bits), h.kind.ack());
        prop_assert_eq!(view.payload_in_header(), &packet.payload[..]);
        prop_assert!(!view.to_string().is_empty());
    }

    #[test]
    fn short_numbers_extend_correctly(reference in seqno(), near in 0..1_u64 << 23, up: bool) {
        let truth = if up { reference.add(near) } else { reference.sub(near) };
        prop_assert_eq!(Seqno::extend24(truth.low24(), reference), truth);
        prop_assert_eq!(RawSeq::Short(truth.low24()).extend(reference), truth);
    }

    #[test]
    fn service_codes_go_through_text(code in 0..u32::MAX) {
        let text = ServiceCode(code).to_string();
        prop_assert_eq!(text.parse(), Ok(ServiceCode(code)));
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in vec(any::<u8>(), 0..200), extra in 0..2000_usize) {
        ask_everything(&bytes, bytes.len());
        ask_everything(&bytes, bytes.len() + extra);
        ask_everything(&bytes, extra);
    }

    /// Bytes that begin like a packet pass more checks than random ones.
    #[test]
    fn no_damaged_packet_panics(
        packet in packet(), pseudo in pseudo(), cut in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(), value: u8
    ) {
        let mut bytes = packet.emit(&pseudo).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = value;
        ask_everything(&bytes, bytes.len());
        ask_everything(&bytes[..cut.index(bytes.len())], bytes.len());
    }

    #[test]
    fn every_raw_option_is_parsed_or_rejected(kind: u8, data in vec(any::<u8>(), 0..=253)) {
        let raw = RawOption { kind, data: if kind < 32 { &[] } else { &data } };
        if let Ok(option) = OptionRef::from_raw(raw) {
            prop_assert_eq!(option.kind(), kind);
            let owned = OptionValue::from(option);
            prop_assert_eq!(owned.as_ref(), Ok(option));
        }
    }
}

/// Numbers of a header, different for every `n`.
fn header_of(n: u64, kind: HeaderKind) -> Header {
    Header {
        src_port: (n * 7919) as u16,
        dst_port: 5001,
        ccval: (n % 16) as u8,
        cscov: u8::from(n % 11 == 0),
        x: n % 7 != 0,
        seq: Seqno::new(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        kind,
    }
}

/// Checks that both views return the same for all fields of their packet type.
fn assert_alike(usual: &PacketView<'_>, view: &PacketView<'_>) {
    assert_eq!(usual.header(), view.header());
    assert_eq!(usual.ack_raw(), view.ack_raw());
    assert_eq!(usual.option_bytes(), view.option_bytes());
    assert_eq!(usual.payload_in_header(), view.payload_in_header());
    assert_eq!((usual.data_len(), usual.total_len()), (view.data_len(), view.total_len()));
    assert_eq!(usual.checksum(), view.checksum());
}

/// Checks that the fast path reads a packet exactly as the general one does, and that both detect a
/// flipped bit under the checksum.
fn assert_read_alike(long: &[u8], n: u64, pseudo: &PseudoHeader, zeros: usize) {
    for flipped in [0, n as usize % (long.len() * 8)] {
        let mut bytes = long.to_vec();
        bytes[flipped / 8] ^= u8::from(flipped > 0) << (flipped % 8);
        let view = PacketView::new(&bytes, bytes.len() + zeros);
        if let Some(usual) = PacketView::of_usual(&bytes, bytes.len() + zeros) {
            let view = view.unwrap();
            assert_alike(&usual, &view);
            let is_right = usual.verify_checksum(pseudo, &[], zeros);
            assert_eq!(is_right, flipped == 0, "bit {flipped}");
            let real = vec![0; zeros];
            assert_eq!(view.verify_checksum(pseudo, &real, 0), is_right);
        }
    }
}

#[test]
fn fast_data_writer_equals_the_general_one() {
    let pseudo = PseudoHeader::new([10, 1, 0, 1].into(), [10, 2, 0, 1].into());
    for n in 0..2_000_u64 {
        let header = header_of(n, HeaderKind::Data);
        let zeros = (n * 37 % 1400) as usize;
        let mut long = BytesMut::new();
        Emitter::new(&mut long, &header).finish(&pseudo, &[], zeros);
        let short =
            header.plain_data(Checksum::OfZeros(pseudo.sum(IP_PROTOCOL, 0).number(), zeros));
        assert_eq!(short.is_some(), header.x && header.cscov == 0);
        assert!(short.is_none_or(|short| long == short[..]));
        assert_read_alike(&long, n, &pseudo, zeros);
        let Header { src_port, dst_port, ccval, seq, .. } = header;
        let read = short.map(|_| PlainData { src_port, dst_port, ccval, seq });
        assert_eq!(PlainData::read(&long), read);
        long.clear();
        Emitter::new(&mut long, &header).finish_encapsulated(zeros);
        let short = header.plain_data(Checksum::Zero);
        assert!(short.is_none_or(|short| long == short[..]));
    }
}

#[test]
fn acks_with_long_vectors_have_the_bytes_of_their_options() {
    let pseudo = PseudoHeader::new([10, 1, 0, 1].into(), [10, 2, 0, 1].into());
    for n in 0..1_200_u64 {
        let ack = Seqno::new(n.wrapping_mul(0xbf58_476d_1ce4_e5b9));
        let is_data = n % 7 < 3;
        let kind = if is_data { HeaderKind::DataAck { ack } } else { HeaderKind::Ack { ack } };
        let header = header_of(n, kind);
        let zeros = if is_data { (n * 37 % 400) as usize } else { 0 };
        let cells: Vec<u8> = (0..n).map(|i| (n * 5 + i * 77) as u8).collect();
        let elapsed = (n % 3 == 0).then_some((n * n * 17) as u32 % 0x1_1000);
        let nonce = n % 5 == 0;
        let (mut long, mut fast) = (BytesMut::new(), BytesMut::new());
        let mut emitter = Emitter::new(&mut long, &header);
        let vectors = cells.chunks(253).map(|cells| OptionRef::AckVector { nonce, cells });
        let mut options = vectors.chain(elapsed.map(OptionRef::ElapsedTime));
        let fits = options.all(|option| emitter.option(&option).is_ok());
        emitter.finish(&pseudo, &[], zeros);
        let options = UsualAck { nonce, cells: &cells, elapsed };
        let checksum = Checksum::OfZeros(pseudo.sum(IP_PROTOCOL, 0).number(), zeros);
        let is_usual = header.x && header.cscov == 0 && elapsed.is_none_or(|e| e <= 0xffff);
        assert_eq!(header.long_ack(&options, checksum, &mut fast), fits && is_usual, "{n}");
        let is_plain = !is_data && header.x && header.cscov == 0;
        let read = PlainAck::read(&long).map(|read| (read.seq, read.ackno));
        assert_eq!(read, is_plain.then_some((header.seq, ack)), "{n}");
        assert!(fast.is_empty() || fast == long && fast.len() == options.header_len(), "{n}");
    }
}

#[test]
fn fast_ack_writer_equals_the_general_one() {
    let pseudo = PseudoHeader::new([10, 1, 0, 1].into(), [10, 2, 0, 1].into());
    for n in 0..4_000_u64 {
        let ack = Seqno::new(n.wrapping_mul(0xbf58_476d_1ce4_e5b9));
        let is_data = n % 7 < 3;
        let kind = if is_data { HeaderKind::DataAck { ack } } else { HeaderKind::Ack { ack } };
        let header = header_of(n, kind);
        let zeros = if is_data { (n * 37 % 1400) as usize } else { 0 };
        let cells: Vec<u8> = (0..n % 80).map(|i| (n * 5 + i * 77) as u8).collect();
        let elapsed = (n % 3 == 0).then_some((n * n * 17) as u32 % 0x1_1000);
        let nonce = n % 5 == 0;
        let mut long = BytesMut::new();
        let write = |buf: &mut BytesMut| {
            let mut emitter = Emitter::new(buf, &header);
            emitter.option(&OptionRef::AckVector { nonce, cells: &cells }).unwrap();
            if let Some(elapsed) = elapsed {
                emitter.option(&OptionRef::ElapsedTime(elapsed)).unwrap();
            }
            emitter.finish(&pseudo, &[], zeros);
        };
        write(&mut long);
        let options = UsualAck { nonce, cells: &cells, elapsed };
        let (mut room, mut other) = ([0; UsualAck::ROOM], [0; UsualAck::ROOM]);
        let checksum = Checksum::OfZeros(pseudo.sum(IP_PROTOCOL, 0).number(), zeros);
        let short = header.usual_ack(&options, checksum, &mut room);
        let fits = 2 + cells.len() + if elapsed.is_some() { 4 } else { 0 } <= 72;
        let is_usual = header.x && header.cscov == 0 && elapsed.is_none_or(|e| e <= 0xffff);
        assert_eq!(short.is_some(), fits && is_usual, "{n}");
        assert!(short.is_none_or(|short| long == *short), "{n}");
        assert_read_alike(&long, n, &pseudo, zeros);
        let inside_udp = header.usual_ack(&options, Checksum::Zero, &mut other);
        assert!(inside_udp.is_none_or(|short| short[..6] == long[..6]
            && short[6..8] == [0, 0]
            && short[8..] == long[8..]));
    }
}

proptest! {
    /// For any bytes, with the data in the header buffer or separate.
    #[test]
    fn fast_parser_equals_the_general_one(
        mut bytes in vec(any::<u8>(), 0..80),
        more in 0..100_usize,
        ty in 0..16_u8,
        offset in 0..12_u8,
    ) {
        if let [_, _, _, _, at, cover, _, _, kind, ..] = &mut bytes[..] {
            (*at, *kind) = (offset, ty << 1 | *kind & 0xe1);
            *cover &= if more % 3 == 0 { 0xff } else { 0xf0 };
        }
        if let Some(data) = PlainData::read(&bytes) {
            let view = PacketView::new(&bytes, bytes.len() + more).unwrap();
            let kind = (view.packet_type(), view.data_offset(), view.cscov());
            prop_assert_eq!(kind, (PacketType::Data, 16, 0));
            let ports = (view.src_port(), view.dst_port());
            prop_assert_eq!((data.src_port, data.dst_port), ports);
            prop_assert_eq!((RawSeq::Long(data.seq), data.ccval), (view.seq_raw(), view.ccval()));
        }
        if let Some(ack) = PlainAck::read(&bytes) {
            let view = PacketView::new(&bytes, bytes.len()).unwrap();
            let kind = (view.packet_type(), view.data_offset(), view.cscov());
            prop_assert_eq!(kind, (PacketType::Ack, bytes.len(), 0));
            let ports = (view.src_port(), view.dst_port());
            prop_assert_eq!((ack.src_port, ack.dst_port), ports);
            prop_assert_eq!((RawSeq::Long(ack.seq), ack.ccval), (view.seq_raw(), view.ccval()));
            prop_assert_eq!(Some(RawSeq::Long(ack.ackno)), view.ack_raw());
            prop_assert_eq!(ack.options, view.option_bytes());
        }
        for total in [bytes.len() + more, bytes.len().saturating_sub(more)] {
            let Some(usual) = PacketView::of_usual(&bytes, total) else { continue };
            assert_alike(&usual, &PacketView::new(&bytes, total).unwrap());
        }
    }
}
