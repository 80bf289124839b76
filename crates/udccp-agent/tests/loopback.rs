//! Runs both ends of a flow on the loopback device, each controlled by lines of JSON.

#![expect(clippy::print_stderr, reason = "a test that skips says so")]

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::thread::JoinHandle;

use udccp_agent::{
    AgentEvent, AgentProtocol, AgentReport, AgentSpec, DccpStack, DccpTransport, Order, Role,
    SCHEMA, has_dccp, monotonic_ns, serve,
};
use udccp_base::{DataRate, DataSize, Duration};
use udccp_scenario::schema::{CodecName, RandomVariable, Silence, Traffic};

const SECOND: u64 = 1_000_000_000;

/// An agent in a thread.
struct Agent {
    orders: PipeWriter,
    events: BufReader<PipeReader>,
    _thread: JoinHandle<()>,
}

impl Agent {
    fn start(spec: &AgentSpec) -> Self {
        let ((input, orders), (events, output)) = (pipe().unwrap(), pipe().unwrap());
        let serve = move || {
            let _ = serve(BufReader::new(input), output, || {});
        };
        #[expect(clippy::disallowed_methods, reason = "a process in the test's place")]
        let thread = std::thread::spawn(serve);
        let mut agent = Self { orders, events: BufReader::new(events), _thread: thread };
        writeln!(agent.orders, "{}", serde_json::to_string(spec).unwrap()).unwrap();
        agent
    }

    fn read_event(&mut self) -> AgentEvent {
        let mut line = String::new();
        self.events.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"))
    }

    fn go(&mut self, t0_ns: u64) {
        writeln!(self.orders, "{}", serde_json::to_string(&Order::Go { t0_ns }).unwrap()).unwrap();
    }
}

/// Runs both ends for 1.5 s; the sender closes after 1 s.
fn run_pair(protocol: AgentProtocol, traffic: Traffic) -> [AgentReport; 2] {
    let specs = specs(protocol, traffic);
    let [mut sender, mut receiver] = specs.each_ref().map(Agent::start);
    assert_eq!(receiver.read_event(), AgentEvent::Ready);
    assert_eq!(sender.read_event(), AgentEvent::Ready);
    let t0_ns = monotonic_ns() + SECOND / 20;
    for agent in [&mut receiver, &mut sender] {
        agent.go(t0_ns);
    }
    [sender, receiver].map(|mut agent| match agent.read_event() {
        AgentEvent::Report(report) => *report,
        other => panic!("{other:?}"),
    })
}

fn specs(protocol: AgentProtocol, traffic: Traffic) -> [AgentSpec; 2] {
    let (local, remote) = (Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2));
    let port = udccp_testkit::ports::free();
    let protocol = match protocol {
        AgentProtocol::Dccp {
            stack:
                DccpStack::Ours {
                    transport: DccpTransport::UdpEncap { .. },
                    protocol,
                    options,
                    offload,
                },
        } => {
            let transport = DccpTransport::UdpEncap { port };
            let stack = DccpStack::Ours { transport, protocol, options, offload };
            AgentProtocol::Dccp { stack }
        }
        other => other,
    };
    let sender = AgentSpec {
        schema: SCHEMA,
        flow: "first".to_owned(),
        role: Role::Sender,
        protocol,
        local: local.into(),
        remote: remote.into(),
        port,
        traffic,
        frames: Vec::new(),
        packet_bytes: 1500,
        prompt: false,
        source_seed: 7,
        start_ns: SECOND / 10,
        stop_ns: Some(SECOND),
        duration_ns: 3 * SECOND / 2,
        every_ns: SECOND / 4,
    };
    let receiver = AgentSpec {
        role: Role::Receiver,
        local: remote.into(),
        remote: local.into(),
        ..sender.clone()
    };
    [sender, receiver]
}

fn tcp() -> AgentProtocol {
    let congestion = "reno".to_owned();
    AgentProtocol::Tcp { congestion, send_buffer: None, receive_buffer: None }
}

fn ours(protocol: &str) -> AgentProtocol {
    AgentProtocol::Dccp {
        stack: DccpStack::Ours {
            transport: DccpTransport::UdpEncap { port: 0 },
            protocol: protocol.to_owned(),
            options: Box::default(),
            offload: false,
        },
    }
}

fn constant_rate() -> Traffic {
    let (rate, size) = (DataRate::from_mbps(8), DataSize::from_bytes(1000));
    Traffic::ConstantRate { rate, size }
}

fn voice() -> Traffic {
    Traffic::Voip {
        codec: CodecName::G711,
        packet: Duration::from_millis(20),
        silence: Silence::None,
        patience: Duration::from_millis(150),
    }
}

fn video() -> Traffic {
    Traffic::Video {
        rate: DataRate::from_mbps(4),
        every: Duration::from_millis(40),
        group: 5,
        ratio: 3.0,
        patience: Duration::from_millis(400),
    }
}

fn dialogue() -> Traffic {
    let size = |n| RandomVariable::Exponential { mean: DataSize::from_bytes(n) };
    Traffic::RequestResponse {
        request: size(400),
        response: size(9_000),
        think: RandomVariable::Constant { value: Duration::from_millis(20) },
        timeout: Duration::from_secs(5),
    }
}

/// Checks what holds for every pair of ends if nothing is lost.
fn assert_delivered([sender, receiver]: &[AgentReport; 2]) {
    assert_eq!((sender.role, receiver.role), (Role::Sender, Role::Receiver));
    assert_eq!(sender.samples.len(), 6);
    assert_eq!(receiver.samples.len(), 6);
    assert!(sender.app_bytes_out > 0, "{sender:?}");
    assert_eq!(receiver.app_bytes_in, sender.app_bytes_out, "{receiver:?}");
    let sampled: u64 = receiver.samples.iter().map(|s| s.app_bytes).sum();
    assert_eq!(sampled, receiver.app_bytes_in);
    let device: u64 = receiver.samples.iter().map(|s| s.wire_bytes).sum();
    assert!(device >= receiver.app_bytes_in, "the device counts all of it: {device}");
}

#[test]
fn bulk_over_kernel_tcp_arrives_and_reports_its_window() {
    let reports = run_pair(tcp(), Traffic::Bulk);
    assert_delivered(&reports);
    let [sender, receiver] = reports;
    let second = sender.samples[1];
    assert!(second.cwnd_packets.is_some_and(|w| w >= 10.0), "{second:?}");
    assert!(second.srtt_ns.is_some_and(|ns| ns > 0), "{second:?}");
    assert!(receiver.samples.iter().all(|s| s.cwnd_packets.is_none()));
    assert!(receiver.app_bytes_in > 1 << 20, "{}", receiver.app_bytes_in);
}

#[test]
fn udp_at_a_constant_rate_keeps_it() {
    let reports = run_pair(AgentProtocol::Udp, constant_rate());
    assert_delivered(&reports);
    // 0.9 s at one message per millisecond, the first at once.
    assert_eq!(reports[0].offered.accepted, 900);
}

#[test]
fn our_dccp_carries_bulk_and_reports_its_window() {
    let reports = run_pair(ours("dccp/ccid2"), Traffic::Bulk);
    let [sender, receiver] = &reports;
    assert!(sender.samples[2].cwnd_packets.is_some(), "{:?}", sender.samples[2]);
    assert!(sender.samples[2].srtt_ns.is_some());
    assert!(receiver.app_bytes_in > 100_000, "{}", receiver.app_bytes_in);
    assert!(receiver.app_bytes_in <= sender.app_bytes_out);
}

#[test]
fn our_dccp_carries_bulk_over_raw_ip_where_that_is_allowed() {
    let AgentProtocol::Dccp { stack: DccpStack::Ours { protocol, options, offload, .. } } =
        ours("dccp/ccid2")
    else {
        unreachable!("it is ours");
    };
    let transport = DccpTransport::Raw;
    let stack = DccpStack::Ours { transport, protocol, options, offload };
    let [_, receiver] = specs(AgentProtocol::Dccp { stack: stack.clone() }, Traffic::Bulk);
    if let AgentEvent::Error { message, .. } = Agent::start(&receiver).read_event() {
        eprintln!("skipped: {message}");
        return;
    }
    let [_, receiver] = run_pair(AgentProtocol::Dccp { stack }, Traffic::Bulk);
    assert!(receiver.app_bytes_in > 100_000, "{}", receiver.app_bytes_in);
}

#[test]
fn our_dccp_with_ccid_3_reports_its_rate() {
    let [sender, receiver] = run_pair(ours("dccp/ccid3"), constant_rate());
    assert!(sender.samples[2].x_bytes_per_sec.is_some_and(|x| x > 0.0));
    assert!(receiver.app_bytes_in > 100_000, "{}", receiver.app_bytes_in);
}

#[test]
fn live_media_messages_are_tracked_over_every_protocol() {
    for protocol in [tcp(), AgentProtocol::Udp, ours("dccp/ccid2")] {
        for (traffic, begun) in [(voice(), 45), (video(), 23)] {
            let name = format!("{protocol:?} {traffic:?}");
            let reports = run_pair(protocol.clone(), traffic);
            assert_delivered(&reports);
            let [sender, receiver] = reports.map(|r| r.messages.expect("messages are followed"));
            assert!(sender.begun.abs_diff(begun) <= 1, "{name}: {}", sender.begun);
            assert!(receiver.done.len() as u64 >= sender.begun - sender.given_up - 1, "{name}");
            // The delay depends on how busy the machine is, but no message outlasts the run.
            let within = |[at, took]: &[u64; 2]| (*at).max(*took) <= 3 * SECOND / 2;
            assert!(receiver.done.iter().all(within), "{name}: {:?}", receiver.done);
        }
    }
}

#[test]
fn requests_are_answered_over_kernel_tcp_and_our_dccp() {
    for protocol in [tcp(), ours("dccp/ccid2")] {
        let [sender, receiver] = run_pair(protocol.clone(), dialogue());
        let times = sender.responses.expect("responses are followed");
        assert!(times.done.len() >= 4, "{protocol:?}: {times:?}");
        assert!(times.begun - times.done.len() as u64 <= 1, "{protocol:?}: {times:?}");
        assert!(receiver.app_bytes_in > 0 && receiver.warnings.is_empty(), "{receiver:?}");
    }
}

#[test]
fn transfers_are_matched_at_the_receiver() {
    let size = DataSize::from_bytes(300_000);
    let every = Duration::from_millis(100);
    let some = RandomVariable::Constant { value: DataSize::from_bytes(20_000) };
    for protocol in [tcp(), ours("dccp/ccid2")] {
        for traffic in [Traffic::Transfer { size }, Traffic::Poisson { every, size: some }] {
            let [sender, receiver] = run_pair(protocol.clone(), traffic);
            let (last, others) = sender.connections.split_last().expect("there are some");
            for sent in &sender.connections {
                assert_eq!(sent.is_offered, Some(true));
                let got = receiver.connections.iter().find(|c| c.port == sent.port);
                let got =
                    got.unwrap_or_else(|| panic!("port {} is not at the receiver", sent.port));
                assert!(got.bytes <= sent.bytes);
                assert!(got.last_ns.is_some_and(|at| at >= sent.opened_ns));
                // The run may end before the last transfer is complete.
                assert!(got.bytes == sent.bytes || !others.is_empty() && sent.port == last.port);
            }
        }
    }
}

#[test]
fn kernel_dccp_carries_bulk_where_available() {
    if !has_dccp() {
        eprintln!("skipped: this kernel has no DCCP sockets");
        return;
    }
    for ccid in [2, 3] {
        let stack = DccpStack::Linux { ccid, tx_queue: None, service: 1 };
        let [_, receiver] = run_pair(AgentProtocol::Dccp { stack }, Traffic::Bulk);
        assert!(receiver.app_bytes_in > 100_000, "CCID {ccid}: {receiver:?}");
    }
}

#[test]
fn missing_kernel_features_are_reported_before_start() {
    let congestion = "nonesuch".to_owned();
    let protocol = AgentProtocol::Tcp { congestion, send_buffer: None, receive_buffer: None };
    let [sender, _] = specs(protocol, Traffic::Bulk);
    match Agent::start(&sender).read_event() {
        AgentEvent::Error { kind, message, hint } => {
            assert!(["no-congestion-control", "congestion-control-denied"].contains(&&*kind));
            assert!(message.contains("nonesuch"), "{message}");
            assert!(!hint.is_empty());
        }
        other => panic!("{other:?}"),
    }
    if !has_dccp() {
        let stack = DccpStack::Linux { ccid: 2, tx_queue: None, service: 1 };
        let [sender, _] = specs(AgentProtocol::Dccp { stack }, Traffic::Bulk);
        let events = Agent::start(&sender).read_event();
        assert!(
            matches!(&events, AgentEvent::Error { kind, .. } if kind == "no-dccp"),
            "{events:?}"
        );
    }
}

#[test]
fn port_in_use_is_reported() {
    for protocol in [tcp(), AgentProtocol::Udp, ours("dccp/ccid2")] {
        let [_, receiver] = specs(protocol, constant_rate());
        let address = SocketAddr::new(receiver.local, receiver.port);
        let _holders = (TcpListener::bind(address).unwrap(), UdpSocket::bind(address).unwrap());
        match Agent::start(&receiver).read_event() {
            AgentEvent::Error { message, .. } => assert!(message.contains("in use"), "{message}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn invalid_orders_are_rejected() {
    let ((input, mut orders), (events, output)) = (pipe().unwrap(), pipe().unwrap());
    writeln!(orders, "{{\"schema\": 1, \"flew\": \"first\"}}").unwrap();
    let error = serve(BufReader::new(input), output, || {}).unwrap_err();
    assert_eq!((error.kind(), error.exit_code()), ("spec", 4));
    let mut line = String::new();
    BufReader::new(events).read_line(&mut line).unwrap();
    assert!(line.contains("flew"), "{line}");
}

#[test]
fn agent_is_notified_when_its_orchestrator_dies() {
    let [sender, _] = specs(tcp(), Traffic::Bulk);
    let ((input, mut orders), (events, output)) = (pipe().unwrap(), pipe().unwrap());
    writeln!(orders, "{}", serde_json::to_string(&sender).unwrap()).unwrap();
    drop(orders);
    let (tell, told) = std::sync::mpsc::channel();
    let error = serve(BufReader::new(input), output, move || tell.send(()).unwrap()).unwrap_err();
    assert_eq!(error.kind(), "orphaned");
    assert!(told.recv().is_ok());
    drop(events);
}
