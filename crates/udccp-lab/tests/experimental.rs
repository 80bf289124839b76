//! The experimental CCIDs over simulated paths: they fill a link, and behave like their kind.

mod common;

use common::bulk_flows as run;

const PATH: &str = r#"rate = "20 Mbit/s", rtt = "100 ms", limit = "2.0 bdp""#;

#[test]
fn each_experimental_algorithm_fills_a_link_alone() {
    for protocol in ["dccp/cubic", "dccp/bbr"] {
        let record = run(PATH, 40, &[protocol]);
        let throughput = record.flows[0].throughput_mbps.unwrap();
        assert!(throughput > 18.5, "{protocol}: {throughput} Mbit/s");
    }
}

/// BBR keeps about one BDP in flight; CUBIC fills a queue of two BDP.
#[test]
fn bbr_leaves_the_queue_short_and_cubic_does_not() {
    let [bbr, cubic] = ["dccp/bbr", "dccp/cubic"].map(|p| {
        let record = run(PATH, 40, &[p]);
        record.system.queue_delay_ms.p50.expect("a queue")
    });
    assert!(bbr < 30.0 && cubic > 60.0, "{bbr} ms, {cubic} ms");
}

/// BBR ignores random loss that reduces a loss-based window to almost nothing.
#[test]
fn bbr_fills_a_link_that_loses_packets() {
    let lossy = format!(r#"{PATH}, loss = "1 %""#);
    let [bbr, cubic] =
        ["dccp/bbr", "dccp/cubic"].map(|p| run(&lossy, 40, &[p]).flows[0].throughput_mbps.unwrap());
    assert!(bbr > 17.0 && cubic < 8.0, "{bbr} Mbit/s, {cubic} Mbit/s");
}

#[test]
fn ccid_cubic_and_tcp_cubic_share_as_equals() {
    let record = run(PATH, 200, &["dccp/cubic", "tcp/cubic-rfc9438"]);
    let [ours, tcp] = [0, 1].map(|i| record.flows[i].throughput_mbps.unwrap());
    assert!((0.66..1.5).contains(&(ours / tcp)), "{ours} Mbit/s, {tcp} Mbit/s");
    assert!(ours + tcp > 18.5, "{ours} Mbit/s, {tcp} Mbit/s");
}
