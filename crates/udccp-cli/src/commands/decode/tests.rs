use super::*;

const BASIC: &[u8] = include_bytes!("../../../../../captures/ccid2-basic.pcap");

fn decode(bytes: &[u8], json: bool) -> (String, Decoder, Option<CaptureError>) {
    let mut decoder = Decoder::new(Vec::new(), json);
    let mut out = Vec::new();
    let end = decoder.decode(bytes, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), decoder, end)
}

/// The frames of a classic pcap file as raw frames.
fn frames(pcap: &[u8]) -> Vec<Vec<u8>> {
    Reader::open(pcap).unwrap().map(|f| f.unwrap().bytes).collect()
}

/// A pcapng file around frames of one Ethernet interface with nanosecond stamps.
fn pcapng(frames: &[Vec<u8>], big: bool) -> Vec<u8> {
    let n32 = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let n16 = |n: u16| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut file = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let padded = body.len().next_multiple_of(4);
        let length = n32(padded as u32 + 12);
        file.extend(n32(kind));
        file.extend(length);
        file.extend(body);
        file.resize(file.len() + padded - body.len(), 0);
        file.extend(length);
    };
    let mut section = n32(0x1a2b_3c4d).to_vec();
    section.extend([n16(1), n16(0)].concat());
    section.extend([0xff; 8]);
    block(0x0a0d_0d0a, &section);
    let mut interface = [n16(1), n16(0)].concat();
    interface.extend(n32(0));
    interface.extend([n16(9), n16(1)].concat());
    interface.extend([9, 0, 0, 0]);
    interface.extend(n32(0));
    block(1, &interface);
    block(5, &[0; 12]);
    for (i, frame) in frames.iter().enumerate() {
        let mut body = [n32(0), n32(0), n32(i as u32 * 1_000_000)].concat();
        body.extend([n32(frame.len() as u32), n32(frame.len() as u32)].concat());
        body.extend(frame);
        block(6, &body);
    }
    file
}

#[test]
fn a_kernel_capture_is_decoded_whole() {
    let (text, decoder, end) = decode(BASIC, false);
    assert!(end.is_none());
    let expected = Counts { frames: 82, packets: 82, malformed: 0, bad_checksums: 0 };
    assert_eq!(decoder.counts, expected);
    assert!(text.lines().next().unwrap().contains("Request"), "{text}");
    assert!(text.lines().last().unwrap().contains("Closed"), "{text}");
}

#[test]
fn pcapng_is_decoded_in_both_byte_orders() {
    let frames = frames(BASIC);
    let (little, ..) = decode(&pcapng(&frames, false), false);
    let (big, decoder, end) = decode(&pcapng(&frames, true), false);
    assert!(end.is_none());
    assert_eq!(decoder.counts.packets, 82);
    assert_eq!(little, big);
    assert!(big.lines().nth(1).unwrap().trim_start().starts_with("0.001000 "), "{big}");
}

#[test]
fn truncated_files_are_decoded_up_to_the_cut() {
    for file in [BASIC.to_vec(), pcapng(&frames(BASIC), false)] {
        for len in (0..400).chain(file.len() - 100..file.len()) {
            let (text, decoder, end) = decode(&file[..len], false);
            assert_eq!(text.lines().count() as u64, decoder.counts.packets);
            match end {
                Some(CaptureError::Truncated { at }) => assert!(at < len as u64),
                Some(CaptureError::NotACapture) => assert!(len < 4),
                Some(e) => panic!("{e} at {len}"),
                None => assert!(decoder.counts.frames < 82, "cut between two frames"),
            }
        }
    }
}

#[test]
fn corrupt_files_never_crash_the_decoder() {
    let ng = pcapng(&frames(BASIC)[..6], false);
    for file in [&BASIC[..1500], &ng] {
        for at in 0..file.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = file.to_vec();
                damaged[at] ^= flip;
                decode(&damaged, at % 2 == 0);
            }
        }
    }
}

#[test]
fn json_is_one_object_a_packet() {
    let (text, ..) = decode(BASIC, true);
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(first["type"], "Request");
    assert_eq!(first["service"], "SC=42");
    assert_eq!(first["checksum"], "valid");
    assert_eq!(first["dst_port"], 5001);
    assert_eq!(text.lines().count(), 82);
}

/// The DCCP packets of the capture, inside UDP with other ports, as raw IP.
fn encapsulated() -> Vec<u8> {
    let mut file = [0xa1b2_c3d4_u32.to_be_bytes().as_slice(), &[0, 2, 0, 4]].concat();
    file.extend([0; 8]);
    file.extend([65_535_u32.to_be_bytes(), 101_u32.to_be_bytes()].concat());
    for frame in frames(BASIC) {
        let envelope = Envelope::parse(LinkType::Ethernet, &frame, &[]).unwrap();
        let mut dccp = envelope.dccp.to_vec();
        dccp[6..8].fill(0);
        let udp = udccp_wire::udp::around((4000, 5001), &envelope.pseudo, &dccp, &[], 0);
        let (std::net::IpAddr::V4(src), std::net::IpAddr::V4(dst)) =
            (envelope.pseudo.src, envelope.pseudo.dst)
        else {
            panic!("the capture is IPv4")
        };
        let ip = udccp_packet::ip::Ipv4Header {
            src,
            dst,
            protocol: 17,
            ecn: 0,
            ttl: 64,
            identification: 0,
            payload_len: dccp.len() + 8,
        };
        let packet = [&ip.to_bytes()[..], &udp.unwrap().to_bytes(), &dccp].concat();
        file.extend([0; 8]);
        file.extend(
            [(packet.len() as u32).to_be_bytes(), (packet.len() as u32).to_be_bytes()].concat(),
        );
        file.extend(packet);
    }
    file
}

#[test]
fn udp_port_is_learnt_from_a_request() {
    let (text, decoder, end) = decode(&encapsulated(), false);
    assert!(end.is_none());
    assert_eq!(decoder.counts.packets, 82);
    assert_eq!((decoder.counts.malformed, decoder.counts.bad_checksums), (0, 0));
    assert!(text.lines().all(|l| l.contains("[UDP 4000 > 5001]")), "{text}");
}
