//! Sizes of both ends and of their parts, compared with the committed table.

use core::fmt::Write as _;

use super::lazy::Later;
use super::*;
use crate::ends::{TcpReceiver, TcpSender};
use crate::recv::{Gaps, ReceiveSide};

/// Makes growth visible in review: `cargo test -p udccp-tcp sizes` prints the new table.
#[test]
#[cfg(target_pointer_width = "64")]
fn the_table_of_sizes_is_the_committed_one() {
    let mut table = String::new();
    macro_rules! row {
        ($($name:ty),* $(,)?) => {
            $(writeln!(table, "{:>5} {}", size_of::<$name>(), stringify!($name)).unwrap();)*
        };
    }
    row!(
        TcpSender,
        TcpReceiver,
        ReceiveSide,
        Gaps,
        SendSide,
        LazySide,
        Later,
        Scoreboard,
        SendTimes,
        RttEstimator,
        Detection,
        DeviceQueue,
        Phase,
        Reduction,
        Usage,
        Counts,
        Pacing,
    );
    assert_eq!(table, include_str!("sizes.txt"), "sizes.txt should be:\n{table}");
}
