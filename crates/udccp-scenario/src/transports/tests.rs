use std::collections::VecDeque;
use std::sync::Arc;

use udccp_base::{DataSize, Duration, Instant, Seed, Transport};
use udccp_cc::{Algorithm, Cut, GrowthAfterCut, IdlePolicy, InitialWindow, ScalableConfig};
use udccp_proto::ConnectionConfig;
use udccp_proto::ccid::ccid2::AckRatioConfig;
use udccp_sim::{IpVersion, PairAddresses};
use udccp_tcp::{AckCounting, DelayedAck, LossDetection, TcpConfig, WindowReduction};
use udccp_wire::ServiceCode;

use super::{Configs, build, dccp_config, tcp};
use crate::document;
use crate::protocol::{self, Family, PROTOCOLS};
use crate::schema::{DccpOptions, Flow, HostTimers, Scenario, Service};

fn flow(invite: bool) -> Flow {
    flow_with("dccp/ccid2", &format!("dccp = {{ invite = {invite} }}"))
}

/// A flow of this protocol with these additional lines.
fn flow_with(protocol: &str, lines: &str) -> Flow {
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
protocol = "{protocol}"
traffic = "bulk"
{lines}
"#
    );
    let root = document::parse("call.toml", text).expect("TOML");
    Scenario::read(&root).unwrap_or_else(|errors| panic!("{errors}")).flows.remove(0)
}

/// If the endpoint refused the settings only during the run, the flow would never send, and its
/// record would contain zeros.
#[test]
fn a_flow_that_cannot_begin_is_an_error_and_never_a_silent_one() {
    for invite in [false, true] {
        let mut flow = flow(invite);
        let at = PairAddresses::of(0, IpVersion::V4);
        assert!(build(&flow, at, Seed(1), None, &mut Configs::default()).is_ok());
        Arc::make_mut(&mut flow.dccp).service = Some(Service(ServiceCode::INVALID));
        let why = build(&flow, at, Seed(1), None, &mut Configs::default())
            .err()
            .expect("no such service can be asked for");
        assert!(why.contains("reserved as invalid"), "{why}");
    }
}

/// A new row `dccp/...` must not silently run as CCID 2 under its own name.
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

/// An option that does not reach the transport would be a variant of an experiment without effect.
#[test]
fn each_option_of_a_dccp_flow_is_one_of_its_connection() {
    let lines = "[flow.dccp]\nack_ratio = 4\ninitial_window = \"7 packets\"\n\
        window_cut = \"20 %\"\ngrowth_after_cut = \"continues\"\nsequence_window = 1234\n\
        max_window = \"99 packets\"\nmin_rto = \"321 ms\"\necn = false\n\
        oscillation_reduction = true\nhistory_discounting = false\ntimer_tick = \"3 ms\"\n\
        send_queue = \"17 packets\"";
    let flow = flow_with("dccp/ccid2", lines);
    let config = dccp_config("dccp/ccid2", flow.packet, &flow.dccp).expect("settings that can be");
    assert_eq!((config.sequence_window, config.ecn), (1234, false));
    assert_eq!((config.send_queue_packets, config.send_queue_bytes), (17, 17 * 1500));
    let ccid2 = &config.ccid2;
    assert_eq!(ccid2.ack_ratio, AckRatioConfig::Fixed(4));
    assert_eq!((ccid2.initial_window, ccid2.max_window), (InitialWindow::Packets(7), 99));
    assert_eq!(ccid2.rto.min, Duration::from_millis(321));
    let (cut, after_cut) = (Cut { keep_permille: 800 }, GrowthAfterCut::Continues);
    assert_eq!(ccid2.algorithm, Algorithm::NewReno { cut, after_cut });
    for tfrc in [&config.ccid3, &config.ccid4.tfrc] {
        assert_eq!((tfrc.oscillation_reduction, tfrc.history_discounting), (true, false));
        assert_eq!(tfrc.granularity, Duration::from_millis(3));
    }
}

/// A profile of CCID 2 sets what the kernel does; an option that is given still counts.
#[test]
fn a_profile_of_dccp_is_the_ccid_2_of_that_kernel() {
    let of = |lines: &str| {
        let flow = flow_with("dccp/ccid2", lines);
        dccp_config("dccp/ccid2", flow.packet, &flow.dccp).expect("settings that can be").ccid2
    };
    let old = of("dccp = { profile = \"linux-2.6.22\" }");
    assert_eq!((old.idle, old.ack_ratio), (IdlePolicy::Unchecked, AckRatioConfig::Fixed(2)));
    assert_eq!((old.initial_window, old.ack_of_ack_after), (InitialWindow::Packets(1), 1));
    assert_eq!(old.rto.min, Duration::from_secs(1));
    let given = of("dccp = { profile = \"linux-2.6.22\", min_rto = \"300 ms\" }");
    assert_eq!((given.rto.min, given.idle), (Duration::from_millis(300), IdlePolicy::Unchecked));
    assert_eq!(of("").idle, IdlePolicy::Rfc7661);
}

/// The same for TCP.
#[test]
fn each_option_of_a_tcp_flow_is_one_of_its_connection() {
    let lines = "[flow.tcp]\ndelayed_ack = false\nack_counting = \"at-most-two\"\n\
        window_reduction = \"rate-halving\"\nloss_detection = \"sack\"\n\
        initial_window = \"7 packets\"\nwindow_cut = \"20 %\"\nmax_window = \"99 packets\"\n\
        initial_ssthresh = \"55 packets\"\nreceive_buffer = \"100 kB\"\n\
        send_buffer = \"200 kB\"\nmin_rto = \"321 ms\"\ntimestamps = false\n\
        offload = false\nsmall_queues = false\necn = true";
    let config = tcp::config(&flow_with("tcp/newreno", lines)).expect("settings that can be");
    let (cut, after_cut) = (Cut { keep_permille: 800 }, GrowthAfterCut::Pauses);
    let expected = TcpConfig {
        delayed_ack: DelayedAck::OFF,
        ack_counting: AckCounting::AtMost(2),
        window_reduction: WindowReduction::RateHalving,
        loss_detection: LossDetection::Sack,
        initial_window: InitialWindow::Packets(7),
        max_cwnd: Some(99),
        initial_ssthresh: Some(55),
        recv_buffer_bytes: 100_000,
        opens_window: true,
        send_buffer_bytes: 200_000,
        min_rto: Duration::from_millis(321),
        timestamps: false,
        offload: false,
        small_queues: false,
        ecn: true,
        receive_checksum_offload: true,
        ..TcpConfig::new(Algorithm::NewReno { cut, after_cut })
    };
    assert_eq!(format!("{config:?}"), format!("{expected:?}"));
}

/// The profile of a kernel includes that kernel's versions of algorithms.
#[test]
fn a_profile_of_tcp_brings_the_algorithms_of_its_time() {
    let algorithm = |profile: &str, name: &str| {
        let flow = flow_with(name, &format!("tcp = {{ profile = \"{profile}\" }}"));
        tcp::config(&flow).expect("a profile").algorithm
    };
    for name in ["bic", "cubic-rfc9438", "highspeed", "illinois", "bbr"] {
        let name = format!("tcp/{name}");
        assert_ne!(algorithm("modern", &name), algorithm("linux-2.6.22", &name), "{name}");
    }
    let old = Algorithm::Scalable(ScalableConfig::linux_2_6());
    assert_eq!(algorithm("linux-2.6.22", "tcp/scalable"), old);
    assert_ne!(algorithm("modern", "tcp/scalable"), old);
}

/// The number of wake-ups of the sender in two seconds without a packet sent, on a path of 20 ms
/// without a rate.
fn wakes_for_nothing(flow: &Flow) -> u32 {
    let ends =
        build(flow, PairAddresses::of(0, IpVersion::V4), Seed(1), None, &mut Configs::default())
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

/// An application with its own wake-ups sends what is due before the driver's timer. The driver
/// does not notice, wakes, and has nothing to send.
#[test]
fn a_driver_wakes_for_what_its_application_has_sent() {
    let mut flow = flow(false);
    flow.protocol = protocol::find("dccp/ccid3").expect("a protocol");
    Arc::make_mut(&mut flow.dccp).timers = Some(HostTimers::Epoll);
    assert_eq!(wakes_for_nothing(&flow), 0);
    Arc::make_mut(&mut flow.dccp).wakes_every = Some(Duration::from_micros(1300));
    let count = wakes_for_nothing(&flow);
    assert!(count > 10, "{count} wakes");
}

#[test]
fn flows_share_settings_that_are_the_same() {
    let config = |mtu| ConnectionConfig { path_mtu: mtu, ..ConnectionConfig::default() };
    let mut configs = Configs::default();
    let [a, b, c] = [1500, 1500, 1400].map(|mtu| configs.dccp.of(config(mtu)));
    assert!(core::ptr::eq(&*a, &*b));
    assert_eq!([b.path_mtu, c.path_mtu], [1500, 1400]);
}
