//! No packet of a simulation allocates, whatever its protocol: what a run allocates is for its
//! flows, its intervals, and the most packets that were ever under way.

use std::path::Path;

use udccp_lab::schema::Experiment;
use udccp_lab::{RunOptions, document};
use udccp_testkit::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// Allocations and packets delivered in a run of so many seconds.
fn run(protocols: [&str; 2], seconds: u64) -> (u64, u64) {
    let mut text = format!(
        "schema = 1\nid = \"allocation\"\n[topology]\nshape = \"dumbbell\"\n\
         access = {{ rate = \"1 Gbit/s\", delay = \"0 ms\" }}\n\
         bottleneck = {{ rate = \"20 Mbit/s\", rtt = \"40 ms\", limit = \"1.0 bdp\" }}\n\
         [time]\nduration = \"{seconds} s\"\n\
         measure = {{ from = \"1 s\", to = \"{seconds} s\", every = \"1 s\" }}\n"
    );
    for (i, protocol) in protocols.iter().enumerate() {
        text += &format!(
            "[[flow]]\nname = \"f{i}\"\nprotocol = \"{protocol}\"\nstart = \"0 s\"\n\
             traffic = \"bulk\"\n"
        );
    }
    let root = document::parse("allocation", text).unwrap_or_else(|e| panic!("{e}"));
    let experiment = Experiment::from_node(root, Path::new("allocation"));
    let experiment = experiment.unwrap_or_else(|e| panic!("{e}"));
    let scenario = experiment.scenario_with(&Vec::new(), &[]).unwrap_or_else(|e| panic!("{e}"));
    let before = ALLOCATOR.allocations();
    let record = udccp_lab::run(&experiment.id, &scenario, 1, RunOptions::default());
    let allocations = ALLOCATOR.allocations() - before;
    let record = record.expect("a run");
    (allocations, record.flows.iter().map(|f| f.packets_delivered).sum())
}

#[test]
fn twice_the_packets_cost_hardly_more_allocations() {
    let mixes = [["dccp/ccid2", "tcp/cubic"], ["dccp/ccid2", "dccp/ccid2"], ["tcp/newreno"; 2]];
    for protocols in mixes {
        // After 15 s the flows have had their largest windows.
        let (short, long) = (run(protocols, 20), run(protocols, 40));
        let (allocations, packets) = (long.0.saturating_sub(short.0), long.1 - short.1);
        assert!(packets > 30_000, "{packets}");
        // Samples of intervals, and blocks that the few long headers are cut from.
        assert!(
            allocations < packets / 100,
            "{protocols:?}: {allocations} allocations for {packets} packets"
        );
    }
}
