//! Sizes of an endpoint and of the parts of a connection, compared with the committed table.

use super::*;
use crate::ccid::ccid2::{Ccid2Receiver, Ccid2Sender, UnusedCcid2};
use crate::ccid::ccid3::{Ccid3Receiver, Ccid3Sender, UnusedCcid3, UnusedCcid3Receiver};
use crate::endpoint::Endpoint;

/// Makes growth visible in review: `cargo test -p udccp-proto sizes` prints the new table.
#[test]
#[cfg(target_pointer_width = "64")]
fn the_table_of_sizes_is_the_committed_one() {
    let table = udccp_testkit::table_of_sizes!(
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
        UnusedCcid3Receiver,
    );
    assert_eq!(table, include_str!("sizes.txt"), "sizes.txt should be:\n{table}");
}
