//! Arbitrary bytes as options: no panic, all bytes accounted for, each option written as it was
//! read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use udccp_wire::{OptionRef, OptionValue, Options, PacketType, RawOptions};

fuzz_target!(|bytes: &[u8]| {
    let mut space = RawOptions::new(bytes);
    let mut walked = 0;
    while let Some(option) = space.next() {
        match option {
            Ok(raw) => walked += 1 + if raw.kind < 32 { 0 } else { 1 + raw.data.len() },
            Err(_) => walked = bytes.len(),
        }
        assert_eq!(space.remaining().len(), bytes.len() - walked);
    }
    assert_eq!(walked, bytes.len());
    for option in Options::new(bytes) {
        match option {
            Ok(option) => check(option),
            Err(e) => drop((e.reaction(false), e.reaction(true), e.to_string())),
        }
    }
});

fn check(option: OptionRef<'_>) {
    let owned = OptionValue::from(option);
    assert_eq!(owned.as_ref(), Ok(option));
    let head = if owned.kind < 32 { 1 } else { 2 };
    assert_eq!(option.encoded_len(), head + owned.data.len());
    let _ = (PacketType::ALL.map(|t| option.is_permitted_on(t)), option.to_string());
}
