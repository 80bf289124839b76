//! Sizes of an endpoint and of the parts of a connection, compared with the committed table.

use core::fmt::Write as _;

use super::*;
use crate::ccid::ccid2::{Ccid2Receiver, Ccid2Sender, UnusedCcid2};
use crate::ccid::ccid3::{Ccid3Receiver, Ccid3Sender, UnusedCcid3};
use crate::endpoint::Endpoint;

/// Sizes of an endpoint, of a connection's parts, and of what they point to.
fn table() -> String {
    let mut table = String::new();
    macro_rules! row {
        ($($name:ty),* $(,)?) => {
            $(writeln!(table, "{:>5} {}", size_of::<$name>(), stringify!($name)).unwrap();)*
        };
    }
    row!(
        Endpoint,
        Connection,
        Identity,
        Sequence,
        AckState,
        CongestionControl,
        SendSide,
        RecvSide,
        Outbox,
        Timers,
        Timing,
        PathMtu,
        Counters,
        Negotiation,
        Handshake,
        Limits,
        Ending,
        Ccid2Sender,
        UnusedCcid2,
        Ccid2Receiver,
        Ccid3Sender,
        UnusedCcid3,
        Ccid3Receiver,
    );
    table
}

/// Makes growth visible in review: `cargo test -p udccp-proto sizes` prints the new table.
#[test]
#[cfg(target_pointer_width = "64")]
fn the_table_of_sizes_is_the_committed_one() {
    let table = table();
    assert_eq!(table, include_str!("sizes.txt"), "sizes.txt should be:\n{table}");
}
