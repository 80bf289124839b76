//! Every packet type, option and feature between two of our endpoints, in one capture that an
//! independent program reads: tshark finds no malformed packet and no wrong checksum.

mod common;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::process::Command;
use std::rc::Rc;

use common::pair::PORT;
use common::{CLIENT, Net, Pair, SERVER, connect_options, listen_config, service};
use udccp_base::{Datagram, Duration};
use udccp_packet::ip::{HeaderFields, IpHeader, LinkType};
use udccp_packet::pcap::Writer;
use udccp_proto::ccid::CcidRegistry;
use udccp_proto::ccid::ccid2::{AckRatioConfig, Ccid2Config};
use udccp_proto::{ConnectionConfig, InitCookies, InviteOptions, ListenConfig};
use udccp_wire::{OptionRef, PacketType, PacketView, option_kind};

type Log = Rc<RefCell<Vec<Datagram>>>;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A network that records what is sent, and loses the packets for which `loses` returns true.
fn recorded(log: &Log, seed: u64, loses: fn(usize) -> bool) -> Net {
    let mut net = Net::new(seed);
    let log = log.clone();
    net.filter = Some(Box::new(move |_, d| {
        let mut log = log.borrow_mut();
        log.push(d.clone());
        !loses(log.len())
    }));
    net
}

fn never(_: usize) -> bool {
    false
}

/// Sends data in both directions, so that feedback is sent too. Then the server closes.
fn exchange(pair: &mut Pair, rounds: usize) {
    for _ in 0..rounds {
        for end in [CLIENT, SERVER] {
            let _ = pair.try_send(end, b"some words");
            let _ = pair.try_send(end, b"and more of them");
        }
        pair.pass(ms(40));
        pair.received(CLIENT);
        pair.received(SERVER);
    }
}

/// Features of the header: short numbers, partial coverage, NDP Count, Data Checksum, windows.
fn features(log: &Log) {
    let config = ConnectionConfig {
        short_seqnos: true,
        ndp_count: true,
        data_checksum: true,
        send_cscov: 2,
        min_cscov: 2,
        sequence_window: 500,
        ccid2: Ccid2Config { ack_ratio: AckRatioConfig::Fixed(1), ..Ccid2Config::default() },
        keep_alive: Some(Duration::from_secs(2)),
        ..ConnectionConfig::default()
    };
    let mut pair = Pair::connected_with(recorded(log, 1, never), config);
    exchange(&mut pair, 10);
    pair.pass(Duration::from_secs(10));
    pair.close(SERVER);
    pair.pass(ms(500));
}

/// CCID 3 or 4 in both directions, with losses.
fn rate_based(log: &Log, ccid: u8) {
    let ccids = vec![ccid];
    let config = ConnectionConfig {
        tx_ccids: ccids.clone(),
        rx_ccids: ccids,
        ecn: false,
        ..ConnectionConfig::default()
    };
    let loses = |n: usize| n % 23 == 0;
    let mut pair = Pair::connected_with(recorded(log, u64::from(ccid), loses), config);
    exchange(&mut pair, 80);
    pair.close(CLIENT);
    pair.pass(ms(500));
}

/// Drops and slowness reported to the peer; the connection ends with a Reset.
fn drops_and_abort(log: &Log) {
    let config = ConnectionConfig { recv_queue_packets: 4, ..ConnectionConfig::default() };
    let config = ConnectionConfig { hold_acks_when_full: false, ..config };
    let mut pair = Pair::connected_with(recorded(log, 5, never), config);
    for _ in 0..8 {
        let _ = pair.try_send(CLIENT, b"nobody reads this");
        pair.pass(ms(50));
    }
    let (now, id) = (pair.now, pair.id(SERVER));
    pair.net.ends[SERVER].shutdown_read(now, id);
    let _ = pair.try_send(CLIENT, b"nor this");
    pair.pass(ms(500));
    let now = pair.now;
    pair.net.ends[SERVER].abort(now, id);
    pair.pass(ms(100));
}

/// Init Cookies; then a connection that starts with Listen packets; then refusals.
fn handshakes(log: &Log) {
    let mut net = recorded(log, 6, never);
    let cookies = ListenConfig { init_cookies: InitCookies::Always, ..listen_config(plain()) };
    net.ends[SERVER].listen(None, PORT, cookies).unwrap();
    let now = net.now;
    net.ends[CLIENT].connect(now, connect_options(plain())).unwrap();
    net.run(ms(300));
    let mut net = recorded(log, 7, never);
    let now = net.now;
    let invite = InviteOptions {
        local: "10.0.0.2:0".parse().unwrap(),
        local_port: PORT,
        remote: "10.0.0.1:0".parse().unwrap(),
        remote_port: 40_000,
        service: service(),
        sends_listen: true,
        config: plain().into(),
    };
    net.ends[SERVER].invite(now, invite).unwrap();
    let mut options = connect_options(plain());
    options.local_port = Some(40_000);
    net.ends[CLIENT].connect(now, options).unwrap();
    net.run(ms(300));
    let mut net = recorded(log, 8, never);
    let now = net.now;
    net.ends[CLIENT].connect(now, connect_options(plain())).unwrap();
    net.run(ms(300));
}

fn plain() -> ConnectionConfig {
    ConnectionConfig::default()
}

/// All datagrams of these connections.
fn recorded_connections() -> Vec<Datagram> {
    let log = Log::default();
    features(&log);
    rate_based(&log, 3);
    if CcidRegistry::default().get(4).is_some() {
        rate_based(&log, 4);
    }
    drops_and_abort(&log);
    handshakes(&log);
    log.take()
}

/// The types, options and features that occur.
fn kinds_that_occur(all: &[Datagram]) -> (BTreeSet<u8>, BTreeSet<u8>, BTreeSet<u8>) {
    let (mut types, mut options, mut features) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for d in all {
        let view = PacketView::new(&d.header, d.transport_len()).unwrap();
        types.insert(view.packet_type().number());
        for option in view.options() {
            let option = option.unwrap();
            options.insert(option.kind());
            match option {
                OptionRef::ChangeL { feature, .. }
                | OptionRef::ChangeR { feature, .. }
                | OptionRef::ConfirmL { feature, .. }
                | OptionRef::ConfirmR { feature, .. } => {
                    features.insert(feature.0);
                }
                _ => {}
            }
        }
    }
    (types, options, features)
}

//= 4340-5.8-3 test
#[test]
fn two_endpoints_exercise_every_type_option_and_feature() {
    let (types, options, features) = kinds_that_occur(&recorded_connections());
    let all: BTreeSet<u8> = PacketType::ALL.iter().map(|ty| ty.number()).collect();
    assert_eq!(types, all, "packet types");
    // Ack Vector [Nonce 1] is obsolete: ECT(1) is no longer a nonce (RFC 8311).
    let mut wanted: BTreeSet<u8> = (32..=44).filter(|k| *k != option_kind::ACK_VECTOR_1).collect();
    wanted.extend([0, 1, 2, 192, 193, 194]);
    if CcidRegistry::default().get(4).is_some() {
        wanted.insert(option_kind::DROPPED_PACKETS);
    }
    let missing: Vec<_> = wanted.difference(&options).collect();
    assert!(missing.is_empty(), "options that are missing: {missing:?}");
    let wanted: BTreeSet<u8> = (1..=9).chain([192]).collect();
    let missing: Vec<_> = wanted.difference(&features).collect();
    assert!(missing.is_empty(), "features that are missing: {missing:?}");
}

/// A capture file of raw IP packets, a millisecond apart.
fn pcap(all: &[Datagram]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file, LinkType::RawIp, 65_535).unwrap();
    for (i, d) in all.iter().enumerate() {
        let fields = HeaderFields {
            protocol: d.protocol,
            ecn: d.ecn as u8,
            ttl: 64,
            identification: i as u16,
            payload_len: d.transport_len(),
        };
        let ip = IpHeader::new((d.src.ip(), d.dst.ip()), fields).expect("one address family");
        let at_ns = i as u64 * 1_000_000;
        writer.packet(at_ns, &[&ip, &d.header, &d.payload.to_bytes()], 0).unwrap();
    }
    file
}

/// The number of packets in the file that match a tshark filter.
fn tshark(file: &std::path::Path, filter: &str) -> usize {
    let output = Command::new("tshark")
        .args(["-o", "dccp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"])
        .args(["-T", "fields", "-e", "frame.number", "-Y", filter, "-r"])
        .arg(file)
        .output()
        .expect("tshark runs");
    let says = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tshark: {says}");
    output.stdout.iter().filter(|b| **b == b'\n').count()
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn tshark_decodes_every_packet_type_option_and_feature() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("skipped: tshark is not installed");
        return;
    }
    let all = recorded_connections();
    let folder = std::env::temp_dir().join(format!("udccp-options-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("every-option.pcap");
    std::fs::write(&file, pcap(&all)).unwrap();
    let counts =
        ["dccp", "dccp.checksum.status == 1", "_ws.malformed", "_ws.expert.severity == error"]
            .map(|filter| tshark(&file, filter));
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(counts, [all.len(), all.len(), 0, 0], "packets, sound, malformed, in error");
}
