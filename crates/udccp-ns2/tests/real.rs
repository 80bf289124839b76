//! Runs of `ns` itself. If it is not installed, these tests print that and skip.

#![cfg(target_os = "linux")]
#![allow(clippy::tests_outside_test_module, reason = "all of it is tests")]

mod common;

use common::{USUAL, bulk, scenario};
use udccp_ns2::{Ns2, Ns2Error};
use udccp_scenario::Record;
use udccp_scenario::schema::Scenario;

#[expect(clippy::print_stderr, reason = "a test that skips says so")]
fn ns2() -> Option<Ns2> {
    match Ns2::find() {
        Ok(ns2) => Some(ns2),
        Err(Ns2Error::Missing) => {
            eprintln!("no program `ns` (apt-get install ns2): this test skips");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn record(ns2: &Ns2, scenario: &Scenario, seed: u64) -> Record {
    let mut record = ns2.run("test", scenario, seed).unwrap().record;
    record.cost.cpu_s = 0.0;
    record
}

#[test]
fn a_seed_gives_one_record_and_another_seed_another() {
    let Some(ns2) = ns2() else { return };
    let flows = bulk("first", "dccp/ccid2", "") + &bulk("second", "tcp/newreno", "");
    let scenario = scenario(USUAL, &flows);
    let first = record(&ns2, &scenario, 1);
    assert_eq!(first, record(&ns2, &scenario, 1));
    assert_ne!(first.event_hash, record(&ns2, &scenario, 2).event_hash);
    assert_eq!(first.backend, "ns2");
    assert_eq!(first.system.utilisation_percent.map(f64::round), Some(100.0));
    assert_eq!(first.flows[0].series.t_s.len(), 10);
    for flow in &first.flows {
        assert!(flow.throughput_mbps.unwrap() > 0.5, "{flow:?}");
        assert!(flow.delay_ms.unwrap() > 20.0, "{flow:?}");
        assert!(flow.congestion_events > 0, "{flow:?}");
        assert!(flow.series.cwnd_packets.iter().flatten().any(|window| *window > 5.0));
        assert!(flow.packets_delivered <= flow.packets_sent);
    }
}

#[test]
fn every_kind_of_flow_carries_data() {
    let Some(ns2) = ns2() else { return };
    let names = [
        "newreno",
        "bic",
        "cubic",
        "highspeed",
        "htcp",
        "hybla",
        "illinois",
        "lp",
        "scalable",
        "vegas",
        "veno",
        "westwood",
        "yeah",
        "compound",
    ];
    let tcp = |name: &&str| bulk(name, &format!("tcp/{name}"), "start = \"0 s\"");
    let udp = "[[flow]]\nname = \"udp\"\nprotocol = \"udp\"\ndirection = \"reverse\"\n\
               traffic = { kind = \"constant-rate\", rate = \"2 Mbit/s\", size = \"972 B\" }\n";
    let mut flows: String = names.iter().map(tcp).collect();
    flows += &bulk("ccid2", "dccp/ccid2", "");
    flows += &bulk("ccid3", "dccp/ccid3", "stop = \"8 s\"");
    flows += &bulk("sack", "tcp/newreno", "tcp = { profile = \"rfc\" }");
    flows += udp;
    let bottleneck = r#"rate = "100 Mbit/s", rtt = "40 ms", limit = "200 packets""#;
    let record = record(&ns2, &scenario(bottleneck, &flows), 7);
    for flow in &record.flows {
        assert!(flow.goodput_bytes > 100_000, "{}: {} bytes", flow.name, flow.goodput_bytes);
    }
    let udp = record.flow("udp").unwrap();
    assert!((udp.goodput_mbps.unwrap() - 2.0).abs() < 0.01, "{udp:?}");
    // A message of 972 bytes has 28 bytes of headers.
    assert!((udp.throughput_mbps.unwrap() - 2.0 * 1000.0 / 972.0).abs() < 0.01, "{udp:?}");
}

#[test]
fn a_smaller_cut_of_the_window_gives_ccid_2_more() {
    let Some(ns2) = ns2() else { return };
    let rate = |cut: &str| {
        let flow = bulk("a", "dccp/ccid2", &format!("dccp = {{ window_cut = \"{cut}\" }}"));
        let bottleneck = r#"rate = "2 Mbit/s", rtt = "100 ms", limit = "4 packets""#;
        let record = record(&ns2, &scenario(bottleneck, &flow), 3);
        record.flows[0].throughput_mbps.unwrap()
    };
    let rates = ["50 %", "25 %", "5 %"].map(rate);
    assert!(rates[0] * 1.02 < rates[1] && rates[1] < rates[2], "{rates:?}");
}

#[test]
fn unsupported_scenarios_are_rejected_before_ns_2_starts() {
    let Some(ns2) = ns2() else { return };
    let scenario = scenario(USUAL, &bulk("a", "tcp/bbr", ""));
    let error = ns2.run("test", &scenario, 1).unwrap_err();
    assert!(matches!(&error, Ns2Error::Scenario(gaps) if gaps.len() == 1), "{error}");
}

/// ns-2 alone counted acknowledgements where receivers delay them, and nothing said so.
#[test]
fn sack_tcp_counts_acknowledgements_and_a_note_says_so() {
    let Some(ns2) = ns2() else { return };
    let run = |more: &str| {
        let flow = bulk("a", "tcp/newreno", &format!("tcp = {{ profile = \"rfc\"{more} }}"));
        ns2.run("test", &scenario(USUAL, &flow), 1).unwrap()
    };
    let (usual, same) = (run(""), run(", ack_counting = \"one-per-ack\""));
    assert_eq!(usual.record.event_hash, same.record.event_hash);
    assert!(usual.notes.iter().any(|note| note.contains("one-per-ack")), "{:?}", usual.notes);
    for quiet in [same, run(", delayed_ack = false")] {
        assert!(!quiet.notes.iter().any(|note| note.contains("one-per-ack")), "{:?}", quiet.notes);
    }
}
