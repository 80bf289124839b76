//! Arbitrary bytes as a captured frame of any link type: no panic, no endless loop.
#![no_main]

use libfuzzer_sys::fuzz_target;
use udccp_wire::ip::{Envelope, LinkType};

fuzz_target!(|input: (u8, &[u8])| {
    let (link, frame) = input;
    let numbers = [0, 1, 101, 113, 276];
    let number = numbers[usize::from(link) % numbers.len()];
    let link = LinkType::from_number(number).expect("a known number");
    match Envelope::parse(link, frame, &[6511]) {
        Ok(envelope) => {
            assert!(envelope.dccp.len() <= envelope.dccp_len);
            let _ = envelope.to_string();
            let _ = envelope.packet().map(|packet| envelope.checksum(&packet));
        }
        Err(e) => drop(e.to_string()),
    }
});
