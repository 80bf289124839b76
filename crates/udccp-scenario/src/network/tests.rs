use udccp_sim::{RunConfig, RunResult};

use super::*;
use crate::document;

/// Hosts that all exist from the start.
struct EagerHosts(SimulatedHosts<'static>);

impl Hosts for EagerHosts {
    fn pair(&mut self, flow: &Flow, at: PairAddresses, seed: Seed) -> Result<HostPair, String> {
        self.0.pair(flow, at, seed)
    }
}

/// Random transfers over a link with these settings.
fn scenario(protocol: &str, link: &str, (every, seconds): (&str, u64), options: &str) -> Scenario {
    let text = format!(
        "schema = 1\n[topology]\nshape = \"dumbbell\"\n\
         access = {{ rate = \"1 Gbit/s\", delay = \"1 ms\" }}\n\
         bottleneck = {{ rate = \"4 Mbit/s\", {link} }}\n\
         [time]\nduration = \"{seconds} s\"\n\
         measure = {{ from = \"1 s\", to = \"{seconds} s\", every = \"1 s\" }}\n\
         [[flow]]\nname = \"web\"\nprotocol = \"{protocol}\"\n{options}\n\
         traffic = {{ kind = \"poisson\", every = \"{every}\", size = \"20 kB\" }}\n"
    );
    let root = document::parse("transfers", text).unwrap_or_else(|e| panic!("{e}"));
    Scenario::read(&root).unwrap_or_else(|e| panic!("{e}"))
}

fn result(scenario: &Scenario, hosts: &mut dyn Hosts) -> RunResult {
    let network = network(scenario, Seed(7), hosts).unwrap_or_else(|e| panic!("{e}"));
    let run = RunConfig { check: false, ..RunConfig::new(scenario.time.duration, Seed(7)) };
    network.run(run).unwrap_or_else(|e| panic!("{e}"))
}

#[track_caller]
fn assert_same(scenario: &Scenario) {
    let hosts = || SimulatedHosts::new(&[]);
    let [lasting, passing] =
        [result(scenario, &mut EagerHosts(hosts())), result(scenario, &mut hosts())];
    let transfers = passing.flows[0].transfers.as_ref().expect("transfers");
    assert!(transfers.completed > 20, "{transfers:?}");
    assert_eq!(lasting.hash, passing.hash, "{}", scenario.flows[0].protocol.name);
    assert_eq!(lasting, passing);
}

#[test]
fn transfers_created_on_demand_give_the_same_results() {
    let often = ("300 ms", 12);
    let good = "rtt = \"40 ms\", limit = \"1.0 bdp\"";
    let bad = "rtt = \"40 ms\", limit = \"20 packets\", loss = \"4 %\", duplicate = \"3 %\"";
    for protocol in ["dccp/ccid2", "dccp/ccid3", "dccp/ccid4", "tcp/newreno", "tcp/cubic"] {
        assert_same(&scenario(protocol, good, often, ""));
        assert_same(&scenario(protocol, bad, often, ""));
    }
    let ticks = "dccp = { timer_tick = \"10 ms\", wakes_every = \"15 ms\" }";
    assert_same(&scenario("dccp/ccid3", bad, often, ticks));
    let epoll = "dccp = { timers = \"epoll\", send_buffer = \"20 kB\" }";
    assert_same(&scenario("dccp/ccid2", bad, often, epoll));
    assert_same(&scenario("dccp/ccid2", bad, often, "dccp = { invite = true }"));
}

#[test]
fn packets_after_both_ends_have_closed_are_answered_as_usual() {
    // A reordered packet arrives whole seconds after the end of its transfer.
    let mixed =
        "rtt = \"40 ms\", limit = \"1.0 bdp\", reorder = { share = \"10 %\", by = \"3 s\" }";
    for protocol in ["dccp/ccid2", "dccp/ccid3", "tcp/newreno"] {
        assert_same(&scenario(protocol, mixed, ("1 s", 60), ""));
    }
    let far = "rtt = \"700 s\", limit = \"20 packets\", loss = \"4 %\"";
    assert_same(&scenario("dccp/ccid2", far, ("100 s", 8000), ""));
}

#[test]
fn timewait_ends_as_usual() {
    let near = "rtt = \"40 ms\", limit = \"1.0 bdp\"";
    for protocol in ["dccp/ccid2", "tcp/newreno"] {
        assert_same(&scenario(protocol, near, ("10 s", 500), ""));
    }
    let ticks = "dccp = { timer_tick = \"70 ms\" }";
    assert_same(&scenario("dccp/ccid2", near, ("10 s", 500), ticks));
}
