//! CCID 3 over simulated paths: it fills a link, shares one, follows the equation, and is smooth.

mod common;

use common::bulk_flows as run;
use udccp_base::Duration;
use udccp_proto::ccid::tfrc::equation;

/// Data bytes of a packet of 1500: IPv4 header, DCCP-Data header.
const SEGMENT: u32 = 1464;

#[test]
fn alone_it_fills_a_link_and_does_not_swing() {
    let path = r#"rate = "10 Mbit/s", rtt = "50 ms", limit = "1.0 bdp""#;
    let record = run(path, 40, &["dccp/ccid3"]);
    let flow = &record.flows[0];
    assert!(flow.throughput_mbps.unwrap() > 9.8, "{flow:?}");
    assert!(flow.smoothness.unwrap() < 0.05, "{:?}", flow.smoothness);
    assert!(flow.loss_percent.unwrap() < 1.0, "{:?}", flow.loss_percent);
}

#[test]
fn beside_newreno_neither_has_twice_as_much() {
    let red = r#"{ kind = "red", min = "10 packets", max = "40 packets" }"#;
    for (limit, queue) in [("1.0 bdp", r#""drop-tail""#), ("2.0 bdp", red)] {
        let rest = format!(r#"limit = "{limit}", queue = {queue}"#);
        let path = format!(r#"rate = "10 Mbit/s", rtt = "50 ms", {rest}"#);
        let record = run(&path, 110, &["dccp/ccid3", "tcp/newreno"]);
        let [ours, tcp] = [0, 1].map(|i| record.flows[i].throughput_mbps.unwrap());
        let normalised = ours / ((ours + tcp) / 2.0);
        assert!((0.5..2.0).contains(&normalised) && ours / tcp < 2.0, "{queue}: {ours}, {tcp}");
        assert!(ours + tcp > 9.0, "{queue}: {ours}, {tcp}");
    }
}

#[test]
fn it_keeps_to_the_equation_and_is_smoother_than_ccid_2() {
    for (loss, rtt_ms) in [(1.0, 100), (3.0, 100)] {
        let path = format!(
            r#"rate = "1 Gbit/s", rtt = "{rtt_ms} ms", limit = "10000 packets", loss = "{loss} %""#
        );
        let [three, two] = ["dccp/ccid3", "dccp/ccid2"].map(|p| run(&path, 130, &[p]).flows);
        let (three, two) = (&three[0], &two[0]);
        let sent = three.goodput_mbps.unwrap() * 1e6 / 8.0 / (1.0 - loss / 100.0);
        let p = three.loss_event_percent.unwrap() / 100.0;
        // The access link's mean jitter is 50 us in each direction.
        let rtt = Duration::from_millis(rtt_ms) + Duration::from_micros(100);
        let expected = equation::throughput(SEGMENT, rtt, p).bytes_per_sec();
        let ratio = sent / expected;
        assert!((0.9..1.1).contains(&ratio), "{loss} %, {rtt_ms} ms: {ratio} of the equation");
        let (a, b) = (three.smoothness.unwrap(), two.smoothness.unwrap());
        assert!(a < b, "{loss} %, {rtt_ms} ms: {a} and {b}");
    }
}

/// The sender's state explains its rate: X is the equation's value for the current round-trip time
/// and loss event rate, and the flow sends at X. There is no window.
#[test]
fn ccid_3_rate_over_time_follows_its_equation() {
    let path = r#"rate = "1 Gbit/s", rtt = "100 ms", limit = "10000 packets", loss = "1 %""#;
    let record = run(path, 60, &["dccp/ccid3", "dccp/ccid2"]);
    let [three, two] = [0, 1].map(|i| &record.flows[i].series);
    let mut of_equation = 0.0;
    for i in 30..60 {
        let rtt_ms = three.srtt_ms[i].unwrap();
        assert!((100.0..101.0).contains(&rtt_ms), "{rtt_ms} ms");
        let rtt = Duration::from_secs_f64(rtt_ms / 1e3);
        let p = three.loss_event_percent[i].unwrap() / 100.0;
        let expected = equation::throughput(SEGMENT, rtt, p).bytes_per_sec() * 8e-6;
        let ratio = three.allowed_rate_mbps[i].unwrap() / expected;
        // At times, the receive rate limits it too.
        assert!(ratio < 1.01, "{ratio} of the equation at {i} s");
        of_equation += ratio / 30.0;
    }
    assert!(of_equation > 0.95, "{of_equation}");
    let allowed: f64 = three.allowed_rate_mbps[30..].iter().flatten().sum();
    let sent = three.goodput_mbps[30..].iter().sum::<f64>() / 0.99;
    assert!((0.95..1.05).contains(&(sent / allowed)), "{sent} of {allowed}");
    assert!(two.allowed_rate_mbps.is_empty() && two.loss_event_percent.is_empty());
    assert!(three.cwnd_packets.iter().all(Option::is_none) && two.srtt_ms[59].is_some());
}

/// Evenly spaced packets find the queue of a short path unchanged, and are never lost where TCP's
/// bursts are. Programs on Linux do not send evenly.
#[test]
fn short_path_share_depends_on_host_timers() {
    let share = |timers: &str| {
        let text = format!(
            r#"
[topology]
shape = "dumbbell"
access = {{ rate = "1 Gbit/s", limit = "unlimited", token_bucket = "1514 B" }}
[topology.bottleneck]
rate = "20 Mbit/s"
rtt = "10 ms"
limit = "1 bdp bytes"
token_bucket = "1514 B"
[time]
duration = "40 s"
measure = {{ from = "10 s", to = "40 s" }}
[[flow]]
name = "ours"
protocol = "dccp/ccid3"
traffic = "bulk"
dccp = {{ sequence_window = 5000{timers} }}
[[flow]]
name = "theirs"
protocol = "tcp/cubic-rfc9438"
traffic = "bulk"
tcp = {{ offload = false }}
"#
        );
        let record = common::scenario(text);
        let [ours, theirs] = [0, 1].map(|i| record.flows[i].throughput_mbps.unwrap());
        ours / (ours + theirs)
    };
    let (exact, epoll) = (share(""), share(r#", timers = "epoll""#));
    assert!(exact > 0.9 && epoll < 0.8, "{exact}, {epoll}");
    // If the application polls continuously, packets leave when due.
    let busy = share(r#", timers = "epoll", wakes_every = "10 us""#);
    assert!(busy > 0.9, "{busy}");
}
