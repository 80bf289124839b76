//! Arbitrary bytes as the cells of an Ack Vector: no panic, runs without gaps, each packet once.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use udccp_proto::ackvec::for_each_run;
use udccp_wire::{OptionRef, Seqno};

fuzz_target!(|input: (u64, &[u8])| {
    let (ackno, cells) = input;
    let ackno = Seqno::new(ackno);
    let packets: u64 = cells.iter().map(|cell| u64::from(cell & 0x3f) + 1).sum();
    let mut next = ackno;
    for_each_run(ackno, cells, |_state, newest, oldest| {
        assert_eq!(newest, next);
        assert!(oldest.at_most(newest));
        next = oldest.prev();
        ControlFlow::Continue(())
    });
    assert_eq!(next, ackno.sub(packets));
    let _ = OptionRef::AckVector { nonce: false, cells }.to_string();
    let _ = OptionRef::DataDropped(cells).to_string();
});
