//! No packet of a simulation allocates, whatever its protocol: a run allocates for its flows, its
//! intervals, and the largest number of packets in flight. It holds memory for the transfers in
//! progress, not for all that arrive.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use udccp_lab::schema::Experiment;
use udccp_lab::{Record, RunOptions, document};
use udccp_testkit::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// Tests run one at a time, since allocations of others would count too.
static TURN: Mutex<()> = Mutex::new(());

/// Allocations and packets delivered in a run of this length.
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
    let before = ALLOCATOR.allocations();
    let record = record(text);
    (ALLOCATOR.allocations() - before, record.flows.iter().map(|f| f.packets_delivered).sum())
}

/// Runs a scenario.
fn record(text: String) -> Record {
    let root = document::parse("allocation", text).unwrap_or_else(|e| panic!("{e}"));
    let experiment = Experiment::from_node(root, Path::new("allocation"));
    let experiment = experiment.unwrap_or_else(|e| panic!("{e}"));
    let scenario = experiment.scenario_with(&Vec::new(), &[]).unwrap_or_else(|e| panic!("{e}"));
    udccp_lab::run(&experiment.id, &scenario, 1, RunOptions::default()).expect("a run")
}

#[test]
fn twice_the_packets_cost_hardly_more_allocations() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mixes = [["dccp/ccid2", "tcp/cubic"], ["dccp/ccid2", "dccp/ccid2"], ["tcp/newreno"; 2]];
    for protocols in mixes {
        // After 15 s the flows have reached their largest windows.
        let (short, long) = (run(protocols, 20), run(protocols, 40));
        let (allocations, packets) = (long.0.saturating_sub(short.0), long.1 - short.1);
        assert!(packets > 30_000, "{packets}");
        // Samples of intervals, and blocks for the few long headers.
        assert!(
            allocations < packets / 100,
            "{protocols:?}: {allocations} allocations for {packets} packets"
        );
    }
}

/// Peak memory in bytes, and completed transfers, in a run of this length.
fn transfers(protocol: &str, seconds: u64) -> (usize, u64) {
    let text = format!(
        "schema = 1\nid = \"transfers\"\n[topology]\nshape = \"dumbbell\"\n\
         access = {{ rate = \"1 Gbit/s\", delay = \"0 ms\" }}\n\
         bottleneck = {{ rate = \"20 Mbit/s\", rtt = \"40 ms\", limit = \"1.0 bdp\" }}\n\
         [time]\nduration = \"{seconds} s\"\n\
         measure = {{ from = \"1 s\", to = \"{seconds} s\", every = \"1 s\" }}\n\
         [[flow]]\nname = \"web\"\nprotocol = \"{protocol}\"\n\
         traffic = {{ kind = \"poisson\", every = \"50 ms\", size = \"20 kB\" }}\n"
    );
    let (record, peak) = ALLOCATOR.peak_of(|| record(text));
    let transfers = record.flows[0].transfers.as_ref().expect("transfers");
    (peak, transfers.completed)
}

#[test]
fn finished_transfers_release_their_memory() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for protocol in ["dccp/ccid2", "dccp/ccid3", "tcp/newreno", "tcp/cubic"] {
        let (short, long) = (transfers(protocol, 40), transfers(protocol, 80));
        let more = long.1 - short.1;
        assert!(more > 600, "{more}");
        let each = (long.0 - short.0) / more as usize;
        // Table entries, its links, and its result. If its connection were kept, a transfer of CCID
        // 2 would hold 12 kB.
        assert!(each < 3_000, "{protocol}: {each} bytes a transfer");
    }
}

/// Peak memory in bytes of a run of this many flows, each with its share of the bottleneck.
fn flows(protocol: &str, count: u64) -> usize {
    let (rate, access) = (count * 100, count * 1000);
    let text = format!(
        "schema = 1\nid = \"flows\"\n[topology]\nshape = \"dumbbell\"\n\
         access = {{ rate = \"{access} kbit/s\", delay = \"0 ms\" }}\n\
         bottleneck = {{ rate = \"{rate} kbit/s\", rtt = \"100 ms\", limit = \"1.0 bdp\" }}\n\
         [time]\nduration = \"3 s\"\nphase = \"1 s\"\n\
         measure = {{ from = \"0 s\", to = \"3 s\", every = \"1 s\" }}\n\
         [[flow]]\nname = \"f\"\nprotocol = \"{protocol}\"\nstart = \"0 s\"\n\
         traffic = \"bulk\"\ncount = {count}\n"
    );
    let (record, peak) = ALLOCATOR.peak_of(|| record(text));
    let delivered: u64 = record.flows.iter().map(|flow| flow.packets_delivered).sum();
    assert!(delivered > 15 * count, "{protocol}: {delivered} packets of {count} flows");
    peak
}

#[test]
fn a_flow_takes_no_more_memory_than_measured() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // With its packets, results and settings, in bytes. performance.md has what they consist of.
    let bounds = [("tcp/newreno", 3_835), ("dccp/ccid2", 7_010), ("dccp/ccid3", 9_050)];
    for (protocol, most) in bounds {
        let each = (flows(protocol, 500) - flows(protocol, 100)) / 400;
        assert!(each <= most, "{protocol}: {each} bytes a flow");
    }
}
