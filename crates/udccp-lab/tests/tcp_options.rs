//! TCP's packets and windows follow the options in the file.

use std::path::Path;

use udccp_lab::schema::Scenario;
use udccp_lab::{RunOptions, document};
use udccp_scenario::FlowRecord;

/// One bulk flow for 30 s over a path of 100 ms, measured from 10 s on.
fn run(protocol: &str, tcp: &str, bottleneck: &str) -> FlowRecord {
    run_from("rate = \"1 Gbit/s\"", protocol, tcp, bottleneck)
}

/// The same with another link between host and router.
fn run_from(access: &str, protocol: &str, tcp: &str, bottleneck: &str) -> FlowRecord {
    let text = format!(
        r#"
[topology]
shape = "dumbbell"
access = {{ {access} }}
bottleneck = {{ {bottleneck} }}
[time]
duration = "30 s"
measure = {{ from = "10 s", to = "30 s", every = "100 ms" }}
[[flow]]
name = "only"
protocol = "{protocol}"
packet = "1040 B"
traffic = "bulk"
tcp = {{ {tcp} }}
"#
    );
    let name = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tcp.toml");
    let tree = document::parse(&name.display().to_string(), text).expect("TOML");
    let scenario = Scenario::read(&tree).unwrap_or_else(|errors| panic!("{errors}"));
    let options = RunOptions { check: true, ..RunOptions::default() };
    udccp_lab::run("test", &scenario, 1, options).expect("a run").flows.remove(0)
}

/// Twenty segments a round trip, each with its acknowledgement.
fn twenty(timestamps: bool) -> FlowRecord {
    let tcp = format!(
        "profile = \"rfc\", max_window = \"20 packets\", delayed_ack = false, \
         timestamps = {timestamps}"
    );
    run("tcp/newreno", &tcp, "rate = \"10 Mbit/s\", rtt = \"100 ms\", limit = \"50 packets\"")
}

#[test]
fn without_timestamps_an_acknowledgement_has_forty_bytes() {
    for (timestamps, ack_bytes) in [(true, 52.0), (false, 40.0)] {
        let flow = twenty(timestamps);
        let data = flow.router_throughput_mbps.expect("a rate");
        let acks = flow.router_both_ways_mbps.expect("a rate") - data;
        let bytes = acks / data * 1040.0;
        assert!((bytes - ack_bytes).abs() < 0.2, "timestamps = {timestamps}: {bytes:.2} bytes");
    }
}

/// The delay over both ways is the mean of data and acknowledgements. Each takes 50 ms and
/// its own transmission.
#[test]
fn the_delay_over_both_ways_counts_acknowledgements_too() {
    let flow = twenty(false);
    let (data, both) = (flow.delay_ms.expect("a delay"), flow.delay_both_ways_ms.expect("a delay"));
    let acks = 50.0 + 40.0 * 8.0 / 10e6 * 1e3;
    assert!(data > acks + 0.5, "{data}");
    assert!((both - (data + acks) / 2.0).abs() < 0.05, "{both} of {data} and {acks}");
}

/// Kernel 2.6 adds a fiftieth of a packet for each acknowledgement: where every packet is
/// acknowledged Scalable TCP grows twice as fast as the paper's, where every second is, alike.
#[test]
fn scalable_of_kernel_2_6_grows_by_acknowledgements() {
    let growth = |tcp: &str| {
        let tcp = format!("{tcp}, receive_buffer = \"64 MiB\", send_buffer = \"64 MiB\"");
        let bottleneck = "rate = \"40 Mbit/s\", rtt = \"100 ms\", limit = \"120 packets\"";
        let flow = run("tcp/scalable", &tcp, bottleneck);
        // From one round trip to the next, where it rises; the first slow start is over.
        let rise = |w: &[Option<f64>]| Some(w[1]? / w[0]?);
        let rises = flow.series.cwnd_packets[100..].windows(2).filter_map(rise);
        let mut rises: Vec<f64> = rises.filter(|r| *r > 1.001).collect();
        rises.sort_by(f64::total_cmp);
        rises[rises.len() / 2].ln()
    };
    let each = growth("profile = \"linux-2.6.22\", delayed_ack = false");
    let second = growth("profile = \"linux-2.6.22\"");
    let paper = growth("profile = \"modern\", delayed_ack = false");
    assert!((each / paper - 2.0).abs() < 0.4, "{each:.4} for each, {paper:.4} in the paper");
    assert!((second / paper - 1.0).abs() < 0.3, "{second:.4} for each second, {paper:.4}");
}

/// BBR paces. On a path that never fills, the second segment of a train waits for the first.
#[test]
fn without_offload_paced_segments_leave_one_by_one() {
    let path = "rate = \"100 Mbit/s\", rtt = \"20 ms\", limit = \"1000 packets\"";
    let delay = |offload: bool| {
        let tcp = format!("max_window = \"20 packets\", offload = {offload}");
        run("tcp/bbr", &tcp, path).delay_ms.expect("a delay")
    };
    let (alone, in_trains) = (delay(false), delay(true));
    assert!(in_trains > alone + 0.02, "{in_trains} ms in trains, {alone} ms one by one");
}

/// A host that is as fast as the path has the only queue. A kernel keeps segments out of it, and
/// then a window that is not used does not grow, but up to twice what is in flight in slow start.
#[test]
fn a_host_as_fast_as_the_path_keeps_segments_in_the_socket() {
    let path = "rate = \"10 Mbit/s\", rtt = \"40 ms\", limit = \"50 packets\"";
    let alone = |access: &str, tcp: &str| {
        let access = format!("rate = \"10 Mbit/s\", limit = \"400 packets\"{access}");
        run_from(&access, "tcp/newreno", tcp, path)
    };
    for access in ["", ", token_bucket = \"1514 B\"", ", loss = \"0 %\""] {
        let flow = alone(access, "offload = false");
        let (rate, delay) = (flow.throughput_mbps.expect("a rate"), flow.delay_ms.expect("one"));
        // 20 ms and three transmissions of 0.83 ms; two segments wait in the device.
        assert!(rate > 9.9 && delay < 26.0, "{rate} Mbit/s, {delay} ms");
        assert_eq!((flow.retransmits, flow.congestion_events), (0, 0));
        let cwnd = flow.series.cwnd_packets.iter().flatten().copied().fold(0.0, f64::max);
        // 52 are in flight.
        assert!((95.0..=110.0).contains(&cwnd), "a window of {cwnd} packets");
    }
    let flow = alone("", "small_queues = false");
    assert!(flow.delay_ms.expect("a delay") > 100.0 && flow.retransmits > 0);
}

/// What waits for the device leaves as soon as it can: a host that is faster than the path and does
/// not pace sends the same with and without.
#[test]
fn small_queues_change_nothing_of_a_path_that_is_slower_than_its_hosts() {
    let path = "rate = \"10 Mbit/s\", rtt = \"40 ms\", limit = \"50 packets\"";
    for protocol in ["tcp/newreno", "tcp/cubic-rfc9438", "tcp/bic"] {
        let [with, without] = [true, false]
            .map(|small_queues| run(protocol, &format!("small_queues = {small_queues}"), path));
        let of = |f: &FlowRecord| (f.packets_sent, f.congestion_events, f.retransmits);
        assert_eq!(of(&with), of(&without), "{protocol}");
    }
}
