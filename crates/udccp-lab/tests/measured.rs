//! Measurements do not depend on the sampling interval of the series, and are consistent.

use std::path::Path;

use udccp_lab::schema::Scenario;
use udccp_lab::{Record, RunOptions, document};

/// Runs 10 s over 5 Mbit/s with these lines for `[topology.bottleneck]` and below, these lines for
/// `[time]`, and these flows.
fn run(bottleneck: &str, time: &str, flows: &str) -> Record {
    let text = format!(
        r#"
[topology]
shape = "dumbbell"
access = {{ rate = "100 Mbit/s" }}

[topology.bottleneck]
rate = "5 Mbit/s"
rtt = "40 ms"
limit = "20 packets"
{bottleneck}

[time]
duration = "10 s"
{time}

{flows}
"#
    );
    let name = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/measured.toml");
    let tree = document::parse(&name.display().to_string(), text).expect("TOML");
    let scenario = Scenario::read(&tree).unwrap_or_else(|errors| panic!("{errors}"));
    let options = RunOptions { check: true, ..RunOptions::default() };
    udccp_lab::run("measured", &scenario, 1, options).expect("a run")
}

fn flow(name: &str, protocol: &str, traffic: &str) -> String {
    format!("[[flow]]\nname = \"{name}\"\nprotocol = \"{protocol}\"\ntraffic = {traffic}\n")
}

/// Congestion events count from the start of the measured part to its end, wherever intervals end.
#[test]
fn loss_events_do_not_depend_on_the_length_of_intervals() {
    for protocol in ["tcp/newreno", "dccp/ccid2", "dccp/ccid3"] {
        let found = ["100 ms", "700 ms", "1 s", "60 s"].map(|every| {
            let time = format!(
                "measure = {{ from = \"2500 ms\", to = \"8600 ms\", every = \"{every}\" }}"
            );
            let record = run("loss = \"2 %\"", &time, &flow("a", protocol, "\"bulk\""));
            record.flows[0].loss_event_percent.expect("a sender with congestion control")
        });
        assert!(found[0] > 0.1, "{protocol}: {found:?}");
        assert!(found.iter().all(|percent| *percent == found[0]), "{protocol}: {found:?}");
    }
}

/// The queue of a link that goes down is dropped in an interval in which little or nothing arrives.
#[test]
fn a_link_never_loses_more_than_all() {
    let change = |at, down| {
        format!("[[topology.change]]\nat = \"{at} ms\"\nlink = \"bottleneck\"\ndown = {down}\n")
    };
    let changes = change(5_001, true) + &change(6_000, false);
    let source = "{ kind = \"constant-rate\", rate = \"8 Mbit/s\", size = \"1000 B\" }";
    for to in ["5002 ms", "5004 ms", "5500 ms", "10 s"] {
        let time = format!("measure = {{ from = \"5 s\", to = \"{to}\" }}");
        let record = run(&changes, &time, &flow("a", "udp", source));
        let loss = record.links[0].loss_percent;
        assert!(loss > 0.0 && loss <= 100.0, "{to}: {loss}");
    }
}

/// The flows' shares match the rates in the record, however slow a flow is.
#[test]
fn the_shares_are_those_of_the_rates() {
    let slow = "{ kind = \"constant-rate\", rate = \"10 bit/s\", size = \"1 B\" }";
    let flows = flow("slow", "udp", slow) + &flow("fast", "tcp/newreno", "\"bulk\"");
    let time = "measure = { from = \"1 s\", to = \"10 s\" }";
    let record = run("", time, &flows);
    let rates: Vec<f64> = record.flows.iter().map(|f| f.goodput_mbps.expect("a rate")).collect();
    let system = &record.system;
    let expected = rates.iter().map(|rate| libm::log(*rate)).sum::<f64>();
    let found = system.log_utility.expect("both delivered something");
    assert!((found - expected).abs() < 1e-9, "{found}, {expected}");
    let expected = 1.0 - rates[0] / rates[1];
    let found = system.epsilon.expect("a value");
    assert!((found - expected).abs() < 1e-12, "{found}, {expected}");
}

/// Transfers arrive until their flow stops or the run ends, whichever is first.
#[test]
fn arrivals_after_the_end_are_ignored() {
    let traffic = "{ kind = \"poisson\", every = \"100 ms\", size = \"2 kB\" }";
    let flows = |stop| flow("web", "tcp/newreno", traffic) + stop;
    let [open, cut] = ["", "stop = \"20 s\"\n"].map(|stop| run("", "", &flows(stop)));
    assert_eq!(open.event_hash, cut.event_hash);
    assert!(cut.flows[0].transfers.as_ref().expect("transfers").begun > 50);
}

/// An in-order link that drops one of several copies, which arrived with others between them, is
/// correct.
#[test]
fn dropped_duplicates_are_not_reported_as_reordering() {
    let copies = "duplicate = \"10 %\"\n\
        delay_distribution = { kind = \"normal\", deviation = \"6 ms\", in_order = false }";
    let source = "{ kind = \"constant-rate\", rate = \"4 Mbit/s\", size = \"1000 B\" }";
    let flows = flow("a", "udp", source) + "receiver_access = { corrupt = \"10 %\" }\n";
    let record = run(copies, "", &flows);
    assert!(record.links[0].packets_duplicated > 200);
}

/// Transfers of a `poisson` flow come and go, and UDP measures no time: neither has a single value.
#[test]
fn equation_without_rtt_is_undefined() {
    let traffic = "{ kind = \"poisson\", size = \"20 kB\", every = \"100 ms\" }";
    let constant = "{ kind = \"constant-rate\", rate = \"9 Mbit/s\", size = \"1000 B\" }";
    for (protocol, traffic) in [("tcp/newreno", traffic), ("udp", constant)] {
        let record = run("loss = \"2 %\"", "", &flow("a", protocol, traffic));
        assert_eq!(record.flows[0].equation_ratio, None, "{protocol}");
        assert_eq!(record.undefined["flows.a.equation_ratio"], "no round-trip time", "{protocol}");
    }
}

/// Without loss the equation has no rate: the reason is the one in the list of metrics.
#[test]
fn equation_without_loss_is_undefined() {
    let slow = "{ kind = \"constant-rate\", rate = \"1 Mbit/s\", size = \"1000 B\" }";
    let record = run("", "", &flow("a", "dccp/ccid2", slow));
    assert_eq!((record.flows[0].loss_percent, record.flows[0].equation_ratio), (Some(0.0), None));
    assert_eq!(record.undefined["flows.a.equation_ratio"], "no loss");
    assert_eq!(record.undefined["flows.a.equation_ratio_of_events"], "no loss");
}

/// The square root law gives 1.22 packets of 1448 bytes per round trip of 41 ms, divided by the
/// root of the loss: 3.4 Mbit/s, of which timeouts cost some. NewReno is the reference itself.
#[test]
fn a_newreno_takes_about_what_its_equation_says() {
    let time = "measure = { from = \"2 s\", to = \"10 s\" }";
    let record = run("loss = \"1 %\"", time, &flow("a", "tcp/newreno", "\"bulk\""));
    let ratio = record.flows[0].equation_ratio.expect("loss and a round-trip time");
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
}

/// Each value of the series is the rate of its interval.
#[test]
fn the_series_of_a_link_has_the_mean_of_its_throughput() {
    let time = "measure = { from = \"0 s\", to = \"10 s\", every = \"500 ms\" }";
    let record = run("", time, &flow("a", "tcp/newreno", "\"bulk\""));
    let link = &record.links[0];
    let series = &link.series.throughput_mbps;
    let mean = series.iter().sum::<f64>() / series.len() as f64;
    assert_eq!(series.len(), 20);
    assert!((mean - link.throughput_mbps).abs() < 1e-6, "{mean}, {}", link.throughput_mbps);
}

/// What a flow sends over a link counts only in the measured part of the run.
#[test]
fn packets_before_the_measured_time_do_not_count() {
    let source = "{ kind = \"constant-rate\", rate = \"2 Mbit/s\", size = \"972 B\" }";
    let time = "measure = { from = \"8 s\", to = \"10 s\" }";
    let record = run("", time, &flow("a", "udp", source));
    // Including 28 bytes of headers.
    let found = record.flows[0].crossings[0].data_mbps;
    assert!((found - 2.0 * 1000.0 / 972.0).abs() < 0.02, "{found}");
}
