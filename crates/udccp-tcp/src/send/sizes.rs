//! Sizes of both ends and of their parts, compared with the committed table.

use super::lazy::Later;
use super::scoreboard::losses::Losses;
use super::*;
use crate::ends::{TcpReceiver, TcpSender};
use crate::recv::{Arrivals, Gaps};

/// Makes growth visible in review: `cargo test -p udccp-tcp sizes` prints the new table.
#[test]
#[cfg(target_pointer_width = "64")]
fn the_table_of_sizes_is_the_committed_one() {
    let table = udccp_testkit::table_of_sizes!(
        TcpSender,
        TcpReceiver,
        Arrivals,
        Gaps,
        SendSide,
        LazySide,
        Later,
        Scoreboard,
        Losses,
        SendTimes,
        RttEstimator,
        Detection,
        DeviceQueue,
        Phase,
        Recovery,
        Usage,
        Counts,
        Pacing,
    );
    assert_eq!(table, include_str!("sizes.txt"), "sizes.txt should be:\n{table}");
}
