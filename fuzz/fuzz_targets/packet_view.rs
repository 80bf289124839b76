//! Arbitrary bytes as a packet: no panic, and a parsed packet survives emitting and parsing again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use udccp_wire::{Packet, PacketView, PseudoHeader};

fuzz_target!(|input: (u16, &[u8])| {
    let (extra, bytes) = input;
    let pseudo = PseudoHeader::new([10, 1, 0, 1].into(), [10, 2, 0, 1].into());
    if let Ok(view) = PacketView::new(bytes, bytes.len() + usize::from(extra)) {
        let _ = (view.header(), view.options().count(), view.to_string());
        let _ = view.verify_checksum(&pseudo, bytes, usize::from(extra));
        assert!(view.data_offset() + view.payload_in_header().len() == bytes.len());
        assert!(view.data_len() <= usize::from(extra) + bytes.len());
    }
    let Ok(packet) = Packet::parse(bytes, None) else { return };
    let emitted = packet.emit(&pseudo).expect("what was parsed fits");
    assert_eq!(emitted.len(), bytes.len());
    assert_eq!(Packet::parse(&emitted, Some(&pseudo)).as_ref(), Ok(&packet));
    let inside = packet.emit_encapsulated().expect("what was parsed fits");
    assert_eq!(Packet::parse(&inside, None), Ok(packet));
});
