//! Arbitrary bytes as a UDP datagram with DCCP: no panic, and correct lengths.
#![no_main]

use libfuzzer_sys::fuzz_target;
use udccp_wire::udp;
use udccp_wire::{PacketView, PseudoHeader};

fuzz_target!(|input: (u16, &[u8])| {
    let (extra, bytes) = input;
    let total_len = bytes.len() + usize::from(extra);
    let Ok((header, payload)) = udp::parse(bytes, total_len) else { return };
    assert!(payload.len() <= header.payload_len() && usize::from(header.length) <= total_len);
    assert_eq!(header.to_bytes(), bytes[..8]);
    let pseudo = PseudoHeader::new([10, 1, 0, 1].into(), [10, 2, 0, 1].into());
    let _ = udp::verify(&header, &pseudo, payload);
    let _ = PacketView::new(payload, header.payload_len());
    let ports = (header.src_port, header.dst_port);
    let right = udp::around(ports, &pseudo, payload, &[], 0).expect("it fitted before");
    assert_eq!(udp::verify(&right, &pseudo, payload), Ok(()));
});
