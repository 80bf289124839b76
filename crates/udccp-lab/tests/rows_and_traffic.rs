//! The real protocols on chains of routers, and with media and web traffic.

use std::path::Path;

use udccp_lab::document::{self, Override};
use udccp_lab::schema::Experiment;
use udccp_lab::{Record, RunOptions};

fn experiment(name: &str) -> Experiment {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    Experiment::load(&path).unwrap_or_else(|errors| panic!("{errors}"))
}

fn run(experiment: &Experiment, changes: &[&str]) -> Record {
    let changes: Vec<Override> =
        changes.iter().map(|c| Override::parse(c).expect("a change")).collect();
    let scenario =
        experiment.scenario_with(&Vec::new(), &changes).unwrap_or_else(|errors| panic!("{errors}"));
    udccp_lab::run(&experiment.id, &scenario, 1, RunOptions::default()).expect("a run")
}

/// A dumbbell of 8 Mbit/s and 40 ms with one flow.
fn one(protocol: &str, traffic: &str, more: &str) -> Record {
    let text = format!(
        "schema = 1\nid = \"one\"\n[topology]\nshape = \"dumbbell\"\n\
         access = {{ rate = \"100 Mbit/s\" }}\n\
         bottleneck = {{ rate = \"8 Mbit/s\", rtt = \"40 ms\", limit = \"50 packets\" }}\n{more}\n\
         [time]\nduration = \"30 s\"\n[[flow]]\nname = \"flow\"\nprotocol = \"{protocol}\"\n\
         traffic = {traffic}\n"
    );
    let root = document::parse("one.toml", text).expect("TOML");
    let experiment = Experiment::from_node(root, Path::new("one.toml"));
    run(&experiment.unwrap_or_else(|errors| panic!("{errors}")), &[])
}

#[test]
fn the_flow_over_all_hops_of_a_parking_lot_gets_the_least() {
    let lot = experiment("parking-lot.toml");
    let record = run(&lot, &["time.duration=40 s", "time.measure.to=40 s"]);
    let goodput = |name: &str| record.flow(name).and_then(|f| f.goodput_mbps).expect("a goodput");
    for short in ["first", "second", "third"] {
        assert!(
            goodput("long") < 0.7 * goodput(short),
            "{short}: {} {}",
            goodput("long"),
            goodput(short)
        );
    }
    assert!(goodput("long") > 0.2);
    let forward: Vec<f64> =
        record.links.iter().step_by(2).map(|link| link.utilisation_percent).collect();
    assert!(forward.len() == 3 && forward.iter().all(|used| *used > 90.0), "{forward:?}");
    let hops = |name: &str| record.flow(name).expect("a flow").crossings.len();
    assert_eq!([hops("long"), hops("second")], [3, 1]);
}

#[test]
fn narrow_reverse_link_throttles_a_flow() {
    for protocol in ["tcp/newreno", "dccp/ccid2"] {
        let goodput = |rate: &str| {
            let reverse = format!("reverse = {{ rate = \"{rate}\", limit = \"10 packets\" }}");
            one(protocol, "\"bulk\"", &reverse).flows[0].goodput_mbps.expect("a goodput")
        };
        let (wide, narrow) = (goodput("8 Mbit/s"), goodput("8 kbit/s"));
        assert!(wide > 6.0, "{protocol}: {wide}");
        assert!(narrow < 0.7 * wide, "{protocol}: {narrow} of {wide}");
    }
}

#[test]
fn transfers_of_a_tcp_report_no_congestion_events() {
    let traffic = "{ kind = \"poisson\", every = \"500 ms\", size = \"50 kB\" }";
    let record = one("tcp/newreno", traffic, "");
    let why = record.undefined.get("flows.flow.loss_event_percent").expect("a reason");
    assert_eq!(why, "the sender reports no congestion events");
}

#[test]
fn requests_are_answered_over_tcp_and_dccp() {
    let traffic = "{ kind = \"request-response\", request = \"200 B\", response = \"5 kB\", \
                   think = \"200 ms\" }";
    for protocol in ["tcp/newreno", "dccp/ccid2"] {
        let record = one(protocol, traffic, "");
        let found = record.flows[0].responses.as_ref().expect("responses");
        // One every 200 ms plus one or two round trips: fewer than 125 in 30 s.
        assert!((80..=125).contains(&found.completed), "{protocol}: {found:?}");
        assert_eq!(found.given_up, 0, "{protocol}");
        let p50 = found.time_ms.p50.expect("a median");
        assert!((40.0..130.0).contains(&p50), "{protocol}: {p50}");
        // The server receives only requests.
        let asked = record.flows[0].goodput_bytes;
        let bytes = found.completed * 200..=found.begun * 200;
        assert!(bytes.contains(&asked), "{protocol}: {asked} of {bytes:?}");
    }
}

/// A response that exceeds the send buffer continues as room becomes free.
#[test]
fn long_answers_arrive_whole() {
    let traffic = "{ kind = \"request-response\", request = \"200 B\", \
                   response = \"2 MB\", think = \"100 ms\", timeout = \"30 s\" }";
    let record = one("tcp/newreno", traffic, "");
    let found = record.flows[0].responses.as_ref().expect("responses");
    assert!(found.completed >= 2, "{found:?}");
    // At the path's 8 Mbit/s.
    assert!(found.time_ms.p50.expect("a median") > 2000.0, "{found:?}");
}

#[test]
fn transfers_end_and_are_counted() {
    for protocol in ["tcp/newreno", "dccp/ccid2"] {
        let record = one(protocol, "{ kind = \"transfer\", size = \"1 MB\" }", "");
        let found = record.flows[0].transfers.as_ref().expect("transfers");
        // DCCP does not retransmit: losses at the end of slow start make its transfer incomplete.
        let is_short = u64::from(protocol.starts_with("dccp"));
        assert_eq!((found.begun, found.completed, found.given_up), (1, 1, is_short), "{protocol}");
        // A second at the full rate of the path plus the start; at the end, only losses.
        let ms = found.mean_ms.expect("a time");
        assert!((1_000.0..4_000.0).contains(&ms), "{protocol}: {ms}");
    }
    let web = "{ kind = \"poisson\", every = \"200 ms\", \
               size = { kind = \"exponential\", mean = \"20 kB\" } }";
    let record = one("tcp/newreno", web, "");
    let found = record.flows[0].transfers.as_ref().expect("transfers");
    // 150 are expected, with a standard deviation of 12.
    assert!(found.begun.abs_diff(150) < 40, "{found:?}");
    assert!(found.completed > found.begun - 10, "{found:?}");
    assert!(found.time_ms.p50 < found.time_ms.p95);
    assert_eq!(record.flows.len(), 1);
}

#[test]
fn media_runs_repeat_exactly_and_report_message_fates() {
    let media = experiment("media.toml");
    let short = ["time.duration=25 s", "time.measure.to=25 s", "flow.file.start=5 s"];
    let [mut a, mut b] = [(); 2].map(|()| run(&media, &short));
    (a.cost.cpu_s, b.cost.cpu_s) = (0.0, 0.0);
    assert_eq!(a, b);
    let names: Vec<&str> = a.flows.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "call-1", "call-2", "call-3", "call-4", "film", "camera", "web", "dialogue", "bursts",
            "file"
        ]
    );
    for name in ["call-1", "film", "camera"] {
        let found = a.flow(name).and_then(|f| f.messages.as_ref()).expect("messages");
        assert!(found.completed > 0 && found.completed + found.given_up <= found.begun, "{name}");
        assert!(found.time_ms.p50.expect("a median") > 20.0, "{name}: {found:?}");
    }
}
