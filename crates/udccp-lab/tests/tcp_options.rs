//! TCP's packets and windows follow the file's options.

mod common;

use udccp_scenario::FlowRecord;

/// One bulk flow over a path of 100 ms.
fn run(protocol: &str, tcp: &str, bottleneck: &str) -> FlowRecord {
    let flow = format!(
        "protocol = \"{protocol}\"\npacket = \"1040 B\"\ntraffic = \"bulk\"\ntcp = {{ {tcp} }}"
    );
    common::one_flow("rate = \"1 Gbit/s\"", bottleneck, &flow)
}

/// Twenty segments per round trip, each with an acknowledgement.
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

/// A receiver opens the window up to a given buffer, and acknowledges each segment meanwhile.
#[test]
fn a_receive_buffer_that_is_given_has_each_segment_acknowledged() {
    let acknowledgements = |tcp: &str| {
        let tcp = format!("max_window = \"20 packets\"{tcp}");
        let bottleneck = "rate = \"10 Mbit/s\", rtt = \"100 ms\", limit = \"50 packets\"";
        let flow = run("tcp/newreno", &tcp, bottleneck);
        let data = flow.router_throughput_mbps.expect("a rate");
        (flow.router_both_ways_mbps.expect("a rate") - data) / data * 1040.0 / 52.0
    };
    let each = acknowledgements(", receive_buffer = \"64 MiB\"");
    assert!((each - 1.0).abs() < 0.01, "{each:.3} for each segment");
    for other in ["", ", receive_buffer = \"64 MiB\", profile = \"linux-2.6.22\""] {
        let second = acknowledgements(other);
        assert!((second - 0.5).abs() < 0.02, "{second:.3} for each segment with {other}");
    }
}

/// The delay over both directions is the mean of data and acknowledgements. Each takes 50 ms plus
/// its transmission.
#[test]
fn the_delay_over_both_ways_counts_acknowledgements_too() {
    let flow = twenty(false);
    let (data, both) = (flow.delay_ms.expect("a delay"), flow.delay_both_ways_ms.expect("a delay"));
    let acks = 50.0 + 40.0 * 8.0 / 10e6 * 1e3;
    assert!(data > acks + 0.5, "{data}");
    assert!((both - (data + acks) / 2.0).abs() < 0.05, "{both} of {data} and {acks}");
}

/// Kernel 2.6 adds a fiftieth of a packet per acknowledgement. If every packet is acknowledged,
/// Scalable TCP grows twice as fast as the paper's; if every second, equally fast.
#[test]
fn scalable_of_kernel_2_6_grows_by_acknowledgements() {
    let growth = |tcp: &str| {
        let tcp = format!("{tcp}, receive_buffer = \"64 MiB\", send_buffer = \"64 MiB\"");
        let bottleneck = "rate = \"40 Mbit/s\", rtt = \"100 ms\", limit = \"120 packets\"";
        let flow = run("tcp/scalable", &tcp, bottleneck);
        // Growth from one round trip to the next; the first slow start is over.
        let rise = |w: &[Option<f64>]| Some(w[1]? / w[0]?);
        let rises = flow.series.cwnd_packets[100..].windows(2).filter_map(rise);
        let mut rises: Vec<f64> = rises.filter(|r| *r > 1.001).collect();
        rises.sort_by(f64::total_cmp);
        libm::log(rises[rises.len() / 2])
    };
    let each = growth("profile = \"linux-2.6.22\", delayed_ack = false");
    let second = growth("profile = \"linux-2.6.22\"");
    let paper = growth("profile = \"modern\", delayed_ack = false");
    assert!((each / paper - 2.0).abs() < 0.4, "{each:.4} for each, {paper:.4} in the paper");
    assert!((second / paper - 1.0).abs() < 0.3, "{second:.4} for each second, {paper:.4}");
}

/// BBR paces. On a path that never fills, the second segment of a burst waits for the first.
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

#[test]
fn a_remembered_threshold_is_where_the_window_grows_slowly_from() {
    let path = "rate = \"100 Mbit/s\", rtt = \"100 ms\", limit = \"2000 packets\"";
    let largest = |tcp: &str| {
        let windows = run("tcp/newreno", tcp, path).series.cwnd_packets;
        windows.into_iter().flatten().fold(0.0, f64::max)
    };
    // At most 300 round trips, each with one more packet.
    let (with, without) = (largest("initial_ssthresh = \"30 packets\""), largest(""));
    assert!(with > 30.0 && with < 330.0 && without > 1000.0, "{with} and {without}");
}
