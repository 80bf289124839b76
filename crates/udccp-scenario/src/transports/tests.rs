use udccp_base::{DataSize, Seed};
use udccp_sim::{IpVersion, PairAddresses};
use udccp_wire::ServiceCode;

use super::{build, dccp_config};
use crate::document;
use crate::protocol::{Family, PROTOCOLS};
use crate::schema::{DccpOptions, Flow, Scenario, Service};

fn flow(invite: bool) -> Flow {
    let text = format!(
        r#"[topology]
shape = "dumbbell"
access = {{ rate = "1 Gbit/s" }}
bottleneck = {{ rate = "10 Mbit/s", rtt = "100 ms", limit = "100 packets" }}
[time]
duration = "10 s"
measure = {{ from = "0 s", to = "10 s" }}
[[flow]]
name = "call"
protocol = "dccp/ccid2"
traffic = "bulk"
dccp = {{ invite = {invite} }}
"#
    );
    let root = document::parse("call.toml", text).expect("TOML");
    Scenario::read(&root).unwrap_or_else(|errors| panic!("{errors}")).flows.remove(0)
}

/// What the endpoint refuses once the run has begun would be a flow that never sends, and a record
/// with zeros.
#[test]
fn a_flow_that_cannot_begin_is_an_error_and_never_a_silent_one() {
    for invite in [false, true] {
        let mut flow = flow(invite);
        let at = PairAddresses::of(0, IpVersion::V4);
        assert!(build(&flow, at, Seed(1), None).is_ok());
        flow.dccp.service = Some(Service(ServiceCode::INVALID));
        let why = build(&flow, at, Seed(1), None).err().expect("no such service can be asked for");
        assert!(why.contains("reserved as invalid"), "{why}");
    }
}

/// A new row `dccp/...` once would have run as CCID 2, under its own name.
#[test]
fn a_protocol_without_a_ccid_never_runs_as_ccid_2() {
    let config =
        |name: &str| dccp_config(name, DataSize::from_bytes(1500), &DccpOptions::default());
    for name in ["dccp/ccid9", "dccp/", "tcp/newreno", "udp"] {
        let why = config(name).expect_err(name);
        assert!(why.contains(name), "{why}");
    }
    for protocol in PROTOCOLS.iter().filter(|p| p.family == Family::Dccp) {
        let config = config(protocol.name).expect(protocol.name);
        assert_eq!((config.tx_ccids.first().copied(), config.tx_ccids.len()), (protocol.ccid, 1));
        assert_eq!(config.rx_ccids, config.tx_ccids);
    }
}
