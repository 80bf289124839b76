use std::fs;

use udccp_lab::schema::Experiment;
use udccp_link::Tally;

use super::*;
use crate::trace::parse;

const SMALL: &str = r#"
schema = 1
id = "small"
asks = "What was seen?"
[topology]
shape = "dumbbell"
access = { rate = "100 Mbit/s", delay = "1 ms" }
bottleneck = { rate = "1 Mbit/s", delay = "8 ms", limit = "10 packets" }
[time]
duration = "3 s"
measure = { from = "1 s", to = "3 s", every = "1 s" }
[[flow]]
name = "tcp"
protocol = "tcp/newreno"
traffic = "bulk"
tcp = { timestamps = false }
[[flow]]
name = "ccid2"
protocol = "dccp/ccid2"
packet = "516 B"
traffic = "bulk"
"#;

fn small() -> Scenario {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.toml");
    fs::write(&file, SMALL).unwrap();
    let experiment = Experiment::load(&file).unwrap();
    experiment.part(None).unwrap().scenario(&Vec::new(), &[]).unwrap()
}

fn result(lines: &str) -> Result<RunResult, String> {
    let scenario = small();
    let mut replay = Replay::new(&scenario);
    for line in lines.lines() {
        replay.line(&parse(line.trim().as_bytes())?)?;
    }
    assert!(replay.is_over);
    Ok(replay.finish(1))
}

/// Three segments, of which the second is lost and retransmitted; one acknowledgement.
const TCP: &str = "\
    L 0 0.000000000 0 0 0 0 0 0 0 0
    L 0 1.000000000 0 0 0 0 0 0 0 0
    + 1.1 2 0 tcp 1500 ------- 0 2.0 3.0 1 10
    + 1.1 2 0 tcp 1500 ------- 0 2.0 3.0 2 11
    + 1.1 2 0 tcp 1500 ------- 0 2.0 3.0 3 12
    d 1.101 0 1 tcp 1500 ------- 0 2.0 3.0 2 11
    r 1.12 1 3 tcp 1500 ------- 0 2.0 3.0 1 10
    r 1.14 1 3 tcp 1500 ------- 0 2.0 3.0 3 12
    + 1.14 3 1 ack 40 ------- 0 3.0 2.0 1 13
    r 1.15 0 2 ack 40 ------- 0 3.0 2.0 1 13
    L 0 2.000000000 3 4500 2 3000 1 1500 0 0
    F 0 1 4.5 1 0 0 -
    + 2.5 2 0 tcp 1500 ------- 0 2.0 3.0 2 14
    r 2.53 1 3 tcp 1500 ------- 0 2.0 3.0 2 14
    + 2.6 2 0 tcp 1500 ------- 0 2.0 3.0 4 15
    L 0 3.000000000 5 7500 4 6000 1 1500 0 0
    F 0 2 2.5 1 0 1 -
    E";

#[test]
fn flow_results_follow_from_packet_events() {
    let result = result(TCP).unwrap();
    let flow = &result.flows[0];
    assert_eq!(flow.forward.sent.packets, 5);
    assert_eq!((flow.forward.delivered.packets, flow.forward.dropped_total()), (3, 1));
    assert_eq!(flow.forward.in_flight, 1);
    assert_eq!(flow.reverse.delivered.bytes, 40);
    // The third segment waits for the second: all three are delivered, the last two at 2.53 s.
    assert_eq!(flow.goodput_bytes, 3 * 1460);
    let goodput: Vec<u64> = flow.series.iter().map(|s| s.goodput_bytes).collect();
    assert_eq!(goodput, [0, 1460, 2920]);
    let delay = flow.measured.delay.mean().unwrap();
    assert_eq!(delay, Duration::from_millis(30));
    // 20 and 40 ms, of packets 10 and 12; then 30 ms, of packet 14.
    assert_eq!(flow.measured.jitter.per_number, Some(Duration::from_micros(7_500)));
    assert_eq!(flow.crossings[0].data.bytes, 4500);
    assert_eq!(flow.crossings[0].acks.bytes, 40);
    let windows: Vec<_> = flow.series.iter().map(|s| s.sender.cwnd_packets.get()).collect();
    assert_eq!(windows, [None, Some(4.5), Some(2.5)]);
    assert_eq!((flow.last_probe.congestion_events, flow.last_probe.retransmits), (1, 1));
}

#[test]
fn queue_results_follow_from_counters() {
    let result = result(TCP).unwrap();
    let link = &result.system.forward;
    assert_eq!(link.name, "bottleneck forward");
    assert_eq!(link.whole.dropped_by(DropReason::QueueFull).packets, 1);
    assert_eq!(link.whole.departed, Tally { packets: 4, bytes: 6000 });
    // 6000 bytes at 1 Mbit/s are 48 ms of the two seconds.
    assert!((link.utilisation - 0.024).abs() < 1e-9, "{}", link.utilisation);
    assert_eq!(link.series.len(), 3);
    assert_eq!(result.system.reverse.whole.departed, Tally::default());
}

#[test]
fn every_packet_of_dccp_with_data_is_delivered() {
    let lines = "\
        + 1.1 4 0 DCCP_Request 88 ------- 1 4.0 5.0 -1 1
        + 1.2 4 0 DCCP_Data 516 ------- 1 4.0 5.0 -1 2
        + 1.2 4 0 DCCP_DataAck 532 ------- 1 4.0 5.0 -1 3
        r 1.3 1 5 DCCP_Request 88 ------- 1 4.0 5.0 -1 1
        r 1.4 1 5 DCCP_DataAck 532 ------- 1 4.0 5.0 -1 3
        E";
    let flow = result(lines).unwrap().flows.swap_remove(1);
    assert_eq!(flow.goodput_bytes, 500);
    assert_eq!((flow.forward.delivered.packets, flow.forward.delivered_data), (2, 1));
    assert_eq!(flow.forward.in_flight, 1);
}

#[test]
fn equal_traces_have_equal_hashes_and_others_have_not() {
    let hash = |lines: &str| result(lines).unwrap().hash;
    assert_eq!(hash(TCP), hash(TCP));
    assert_ne!(hash(TCP), hash(&TCP.replace("1.12", "1.13")));
}

#[test]
fn impossible_traces_are_errors() {
    for (line, what) in [
        ("r 1.1 1 3 tcp 1500 ------- 0 2.0 3.0 1 10", "packet 10 never left"),
        ("+ 1.1 2 0 tcp 1500 ------- 7 2.0 3.0 1 10", "no flow 7"),
        ("F 0 9 4.5 1 0 0 -", "no interval 9"),
        ("L 2 0.000000000 0 0 0 0 0 0 0 0", "no link 2"),
    ] {
        let error = result(&format!("{line}\nE")).unwrap_err();
        assert!(error.contains(what), "{line}: {error}");
    }
}
