//! What waits in a host, where it is as fast as the path, does not wait in the network.

use std::path::Path;

use udccp_lab::schema::Scenario;
use udccp_lab::{RunOptions, document};
use udccp_scenario::FlowRecord;

/// One bulk flow for 30 s over a path, measured from 10 s on.
fn run(access: &str, protocol: &str, options: &str, bottleneck: &str) -> FlowRecord {
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
{options}
"#
    );
    let name = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts.toml");
    let tree = document::parse(&name.display().to_string(), text).expect("TOML");
    let scenario = Scenario::read(&tree).unwrap_or_else(|errors| panic!("{errors}"));
    let options = RunOptions { check: true, ..RunOptions::default() };
    udccp_lab::run("test", &scenario, 1, options).expect("a run").flows.remove(0)
}

/// A host that is as fast as the path has the only queue. A kernel keeps segments out of it, and
/// then a window that is not used does not grow, but up to twice what is in flight in slow start.
#[test]
fn a_host_as_fast_as_the_path_keeps_segments_in_the_socket() {
    let path = "rate = \"10 Mbit/s\", rtt = \"40 ms\", limit = \"50 packets\"";
    let alone = |access: &str, tcp: &str| {
        let access = format!("rate = \"10 Mbit/s\", limit = \"400 packets\"{access}");
        run(&access, "tcp/newreno", &format!("tcp = {{ {tcp} }}"), path)
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
            .map(|small_queues| format!("tcp = {{ small_queues = {small_queues} }}"))
            .map(|tcp| run("rate = \"1 Gbit/s\"", protocol, &tcp, path));
        let of = |f: &FlowRecord| (f.packets_sent, f.congestion_events, f.retransmits);
        assert_eq!(of(&with), of(&without), "{protocol}");
    }
}

/// A socket with room for 40 packets: the host's queue is never longer, and nothing is lost in it.
#[test]
fn a_send_buffer_limits_what_waits_in_the_host() {
    let path = "rate = \"10 Mbit/s\", rtt = \"40 ms\", limit = \"50 packets\"";
    let alone = |protocol: &str, dccp: &str| {
        run("rate = \"10 Mbit/s\", limit = \"400 packets\"", protocol, dccp, path)
    };
    for protocol in ["dccp/ccid2", "dccp/ccid3"] {
        // 2,304 bytes each.
        let flow = alone(protocol, "dccp = { send_buffer = \"90 KiB\" }");
        let (rate, delay) = (flow.throughput_mbps.expect("a rate"), flow.delay_ms.expect("one"));
        assert!(rate > 9.5 && delay < 20.0 + 43.0 * 0.832, "{protocol}: {rate} Mbit/s, {delay} ms");
        assert_eq!(flow.loss_percent, Some(0.0), "{protocol}");
    }
    let flow = alone("dccp/ccid2", "");
    assert!(flow.delay_ms.expect("a delay") > 100.0);
}
