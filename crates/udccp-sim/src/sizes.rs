//! Sizes of what a simulation has of each host, link and flow, compared with the committed table.

use crate::application::Application;
use crate::config::PairConfig;
use crate::events::Event;
use crate::fabric::RunningLink;
use crate::host::Host;
use crate::network::LinkSpec;
use crate::packet::Slot;
use crate::record::{FlowStep, PathRecorder, Rare, SenderRate, Series, Times};
use crate::result::{FlowResult, FlowSample};
use crate::route::FlowPlan;
use crate::source::Bulk;

/// Makes growth visible in review: `cargo test -p udccp-sim sizes` prints the new table.
#[test]
#[cfg(target_pointer_width = "64")]
fn the_table_of_sizes_is_the_committed_one() {
    let table = udccp_testkit::table_of_sizes!(
        Host,
        Application,
        Bulk,
        RunningLink,
        Event,
        PathRecorder,
        Times,
        Rare,
        Series,
        FlowStep,
        SenderRate,
        FlowPlan,
        Slot,
        PairConfig,
        LinkSpec,
        FlowResult,
        FlowSample,
    );
    assert_eq!(table, include_str!("sizes.txt"), "sizes.txt should be:\n{table}");
}
