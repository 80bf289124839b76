use std::collections::VecDeque;

use udccp_base::{DataSize, Duration, Instant, Seed, Transport};
use udccp_proto::ConnectionConfig;
use udccp_sim::{IpVersion, PairAddresses};
use udccp_wire::ServiceCode;

use super::{DccpConfigs, build, dccp_config};
use crate::document;
use crate::protocol::{self, Family, PROTOCOLS};
use crate::schema::{DccpOptions, Flow, HostTimers, Scenario, Service};

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
        assert!(build(&flow, at, Seed(1), None, &mut DccpConfigs::default()).is_ok());
        flow.dccp.service = Some(Service(ServiceCode::INVALID));
        let why = build(&flow, at, Seed(1), None, &mut DccpConfigs::default())
            .err()
            .expect("no such service can be asked for");
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

/// Wakes of the sender in two seconds at which it sent nothing, on a path of 20 ms without a rate.
fn wakes_for_nothing(flow: &Flow) -> u32 {
    let ends = build(
        flow,
        PairAddresses::of(0, IpVersion::V4),
        Seed(1),
        None,
        &mut DccpConfigs::default(),
    )
    .expect("a flow");
    let mut ends: [Box<dyn Transport>; 2] = [ends.sender, ends.receiver];
    let mut line = VecDeque::new();
    let (mut now, mut count) = (Instant::ZERO, 0);
    ends[0].open(now);
    while now < Instant::ZERO + Duration::from_secs(2) {
        for end in [0, 1] {
            let is_due = ends[end].poll_timeout().is_some_and(|due| due <= now);
            if is_due {
                ends[end].handle_timeout(now);
            }
            ends[0].fill(now, None, 10);
            let mut sent = false;
            while let Some(datagram) = ends[end].poll_transmit(now) {
                line.push_back((now + Duration::from_millis(10), 1 - end, datagram));
                sent = true;
            }
            ends[end].take_delivered(now);
            count += u32::from(is_due && !sent && end == 0);
        }
        let timeouts = ends.iter().filter_map(|end| end.poll_timeout());
        let arrival = line.front().map(|(at, ..)| *at);
        now = timeouts.chain(arrival).min().expect("something goes on").max(now);
        while let Some((_, end, datagram)) = line.pop_front_if(|(at, ..)| *at <= now) {
            ends[end].handle_datagram(now, datagram);
        }
    }
    count
}

/// An application that looks by itself sends what is due before the driver wakes for it. The driver
/// is not told, wakes, and finds nothing.
#[test]
fn a_driver_wakes_for_what_its_application_has_sent() {
    let mut flow = flow(false);
    flow.protocol = protocol::find("dccp/ccid3").expect("a protocol");
    flow.dccp.timers = Some(HostTimers::Epoll);
    assert_eq!(wakes_for_nothing(&flow), 0);
    flow.dccp.wakes_every = Some(Duration::from_micros(1300));
    let count = wakes_for_nothing(&flow);
    assert!(count > 10, "{count} wakes");
}

#[test]
fn flows_share_settings_that_are_the_same() {
    let config = |mtu| ConnectionConfig { path_mtu: mtu, ..ConnectionConfig::default() };
    let mut configs = DccpConfigs::default();
    let [a, b, c] = [1500, 1500, 1400].map(|mtu| configs.share(config(mtu)));
    assert!(core::ptr::eq(&*a, &*b));
    assert_eq!([b.path_mtu, c.path_mtu], [1500, 1400]);
}
