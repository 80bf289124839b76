//! Packets of the Linux kernel parse, verify, and are re-emitted byte for byte.

mod support;

use support::{Capture, foreign_capture, kernel_captures, note};
use udccp_wire::ip::{ChecksumState, Envelope};
use udccp_wire::{
    FeatureNumber, OptionError, OptionRef, Packet, PacketType, Reaction, ResetCode, ServiceCode,
    udp,
};

fn open<'a>(capture: &Capture, frame: &'a [u8]) -> Envelope<'a> {
    let envelope = Envelope::parse(capture.link, frame, &[udp::DEFAULT_PORT]);
    envelope.unwrap_or_else(|e| panic!("{}: {e}", capture.name))
}

#[test]
fn every_packet_survives_parse_and_emit() {
    let captures = kernel_captures();
    assert!(captures.len() >= 6, "only {} captures", captures.len());
    let mut packets = 0;
    for capture in &captures {
        for (i, frame) in capture.frames.iter().enumerate() {
            let envelope = open(capture, frame);
            let context = format!("{} packet {}", capture.name, i + 1);
            assert_eq!(envelope.dccp.len(), envelope.dccp_len, "{context}");
            let view = envelope.packet().unwrap_or_else(|e| panic!("{context}: {e}"));
            assert_eq!(envelope.checksum(&view), ChecksumState::Valid, "{context}");
            assert!(view.options().all(|o| o.is_ok()), "{context}: {view}");
            let packet = Packet::parse(envelope.dccp, Some(&envelope.pseudo)).unwrap();
            let bytes = packet.emit(&envelope.pseudo).unwrap();
            assert_eq!(bytes, envelope.dccp, "{context}: {view}");
            packets += 1;
        }
    }
    note(format_args!("{packets} packets"));
}

#[test]
fn a_flipped_bit_spoils_the_checksum() {
    for capture in kernel_captures() {
        let mut bytes = open(&capture, &capture.frames[0]).dccp.to_vec();
        let pseudo = open(&capture, &capture.frames[0]).pseudo;
        bytes[0] ^= 1;
        let view = udccp_wire::PacketView::new(&bytes, bytes.len()).unwrap();
        assert!(!view.verify_checksum(&pseudo, &[], 0));
        let error = Packet::parse(&bytes, Some(&pseudo)).unwrap_err();
        assert_eq!(error, udccp_wire::WireError::Checksum);
        assert_eq!(error.reaction(), Reaction::IgnorePacket);
    }
}

/// Compares each option of a connection's first packets with what the kernel is known to send.
#[test]
fn kernel_handshake_is_parsed_correctly() {
    let captures = kernel_captures();
    let basic = captures.iter().find(|c| c.name == "ccid2-basic.pcap").unwrap();
    let request = open(basic, &basic.frames[0]).packet().unwrap();
    assert_eq!(request.packet_type(), PacketType::Request);
    assert_eq!(request.service_code(), Some(ServiceCode(42)));
    assert_eq!(request.dst_port(), 5001);
    let changes: Vec<_> = request
        .options()
        .filter_map(|o| match o.unwrap() {
            OptionRef::ChangeL { feature: FeatureNumber::CCID, value } => Some(value.to_vec()),
            _ => None,
        })
        .collect();
    assert_eq!(changes, [vec![2, 3]]);
    let kinds = |frame: &Vec<u8>| open(basic, frame).packet().unwrap().packet_type();
    assert_eq!(kinds(&basic.frames[1]), PacketType::Response);
    let last = basic.frames.last().unwrap();
    let reset = open(basic, last).packet().unwrap();
    assert_eq!(reset.reset_code(), Some(ResetCode::Closed));
}

#[test]
fn partial_checksums_of_another_stack_verify() {
    let names = ["v4_longer", "v4_simple", "v6_longer", "v6_simple"];
    for name in names {
        let file = format!("tcpdump-dccp_partial_csum_{name}.pcap");
        let Some(capture) = foreign_capture(&file) else { continue };
        let mut partial = 0;
        for frame in &capture.frames {
            let envelope = open(&capture, frame);
            let view = envelope.packet().unwrap();
            assert_eq!(envelope.checksum(&view), ChecksumState::Valid, "{file}: {envelope}");
            partial += u32::from(view.cscov() != 0);
            let packet = Packet::parse(envelope.dccp, Some(&envelope.pseudo)).unwrap();
            assert_eq!(packet.emit(&envelope.pseudo).unwrap(), envelope.dccp, "{file}");
        }
        let n = capture.frames.len();
        note(format_args!("{file}: {n} packets, {partial} with partial coverage"));
    }
}

/// Options beyond option space are typed errors, with the reaction that the RFC requires.
#[test]
fn options_out_of_bounds_are_typed_errors() {
    let Some(capture) = foreign_capture("tcpdump-dccp_options-oobr.pcap") else { return };
    let mut faults = Vec::new();
    for frame in &capture.frames {
        match Envelope::parse(capture.link, frame, &[udp::DEFAULT_PORT]) {
            Ok(envelope) => faults.push(judge(&envelope)),
            Err(e) => faults.push(format!("no DCCP: {e}")),
        }
    }
    note(faults.join("\n"));
    assert!(faults.iter().any(|fault| !fault.starts_with("fine")));
}

fn judge(envelope: &Envelope<'_>) -> String {
    let view = match envelope.packet() {
        Ok(view) => view,
        Err(e) => {
            assert_eq!(e.reaction(), Reaction::IgnorePacket);
            return format!("{e}: {:?}", e.reaction());
        }
    };
    match view.options().find_map(Result::err) {
        None => format!("fine: {envelope}"),
        Some(e @ OptionError::Nonsensical { .. }) => {
            assert_eq!(e.reaction(false), Reaction::IgnoreRemainingOptions);
            let data = e.reset_data();
            let reset = Reaction::Reset { code: ResetCode::MandatoryError, data };
            assert_eq!(e.reaction(true), reset);
            assert!(Packet::parse(envelope.dccp, None).is_err());
            format!("{e}: {:?}", e.reaction(false))
        }
        Some(e) => format!("{e}: {:?}", e.reaction(false)),
    }
}
