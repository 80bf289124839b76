//! `udccp agent` as a process: controlled by its orchestrator, refused, orphaned.

use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Command, Stdio};
use std::time::Duration;

use udccp_agent::{AgentProcess, AgentProtocol, AgentSpec, HostError, Role, SCHEMA, monotonic_ns};
use udccp_base::{DataRate, DataSize};
use udccp_scenario::schema::Traffic;

const SECOND: u64 = 1_000_000_000;
const PATIENCE: Duration = Duration::from_secs(20);

fn agent() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_udccp"));
    command.arg("agent");
    command
}

/// Both ends of half a second of UDP over loopback.
fn ends() -> [AgentSpec; 2] {
    let (local, remote) = (Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2));
    let port = udccp_testkit::ports::free();
    let (rate, size) = (DataRate::from_mbps(1), DataSize::from_bytes(500));
    let sender = AgentSpec {
        schema: SCHEMA,
        flow: "first".to_owned(),
        role: Role::Sender,
        protocol: AgentProtocol::Udp,
        local: local.into(),
        remote: remote.into(),
        port,
        traffic: Traffic::ConstantRate { rate, size },
        frames: Vec::new(),
        packet_bytes: 1500,
        prompt: false,
        source_seed: 1,
        start_ns: 0,
        stop_ns: Some(SECOND / 2),
        duration_ns: 7 * SECOND / 10,
        every_ns: SECOND / 10,
    };
    let receiver = AgentSpec {
        role: Role::Receiver,
        local: remote.into(),
        remote: local.into(),
        ..sender.clone()
    };
    [sender, receiver]
}

#[test]
fn two_processes_run_a_flow_and_report_it() {
    let [mut sender, mut receiver] =
        ends().map(|spec| AgentProcess::spawn(agent(), &spec).expect("a process"));
    for host in [&mut receiver, &mut sender] {
        host.wait_ready(PATIENCE).expect("bound sockets");
    }
    let t0_ns = monotonic_ns() + SECOND / 10;
    for host in [&mut receiver, &mut sender] {
        host.go(t0_ns);
    }
    let sent = sender.report(PATIENCE).expect("the sender's report");
    let got = receiver.report(PATIENCE).expect("the receiver's report");
    // 500 bytes every 4 ms, the first at once.
    assert_eq!(sent.app_bytes_out, 125 * 500);
    assert_eq!(got.app_bytes_in, sent.app_bytes_out);
    assert_eq!(got.samples.len(), 7);
}

#[test]
fn unsupported_host_reports_a_reason_and_an_exit_code() {
    let [_, receiver] = ends();
    let _holder = UdpSocket::bind((receiver.local, receiver.port)).expect("the port");
    let mut host = AgentProcess::spawn(agent(), &receiver).expect("a process");
    match host.wait_ready(PATIENCE) {
        Err(HostError::Agent { of, kind, code, hint, .. }) => {
            assert_eq!((kind.as_str(), code), ("port-in-use", 7));
            assert!(of.contains("first") && !hint.is_empty(), "{of}: {hint}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn agent_exits_with_its_parent() {
    let [sender, _] = ends();
    let mut child = agent()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a process");
    let mut orders = child.stdin.take().expect("its input");
    let line = serde_json::to_string(&sender).expect("JSON");
    std::io::Write::write_all(&mut orders, format!("{line}\n").as_bytes()).expect("a pipe");
    drop(orders);
    assert_eq!(child.wait().expect("an end").code(), Some(1));
}
