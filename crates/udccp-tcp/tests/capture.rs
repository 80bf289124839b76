//! The packets of both ends form a valid capture for tshark: nothing malformed, no wrong checksum,
//! no expert error. Skipped, with a message, if tshark is not installed.
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

mod common;

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use bytes::Bytes;
use common::{Fate, Pipe, drop_segments, ms};
use udccp_base::{
    AppPort, Datagram, Duration, Instant, Machine, Message, Payload, SendOutcome, Transport,
};
use udccp_cc::{Algorithm, CubicConfig};
use udccp_packet::ip::{HeaderFields, IpHeader, LinkType};
use udccp_packet::pcap::Writer;
use udccp_tcp::{TcpConfig, UdpSender, UdpSink};

type Captured = Rc<RefCell<Writer<Vec<u8>>>>;

/// A pcap file of raw IP packets.
fn new_capture() -> Captured {
    Rc::new(RefCell::new(Writer::new(Vec::new(), LinkType::RawIp, 65_535).unwrap()))
}

fn append(file: &mut Writer<Vec<u8>>, at: Instant, d: &Datagram) {
    let fields = HeaderFields {
        protocol: d.protocol,
        ecn: d.ecn as u8,
        ttl: 64,
        identification: 0,
        payload_len: d.transport_len(),
    };
    let ip = IpHeader::new((d.src.ip(), d.dst.ip()), fields).expect("one address family");
    file.packet(at.as_nanos(), &[&ip, &d.header, &d.payload.to_bytes()], 0).unwrap();
}

/// Runs tshark over the capture; returns the number of packets, or `None` without tshark.
fn check(name: &str, file: &Captured) -> Option<usize> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pcap"));
    std::fs::write(&path, file.borrow().get_ref()).expect("the target directory is writable");
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&path);
    for checked in ["tcp", "udp", "ip"] {
        tshark.args(["-o", &format!("{checked}.check_checksum:TRUE")]);
    }
    tshark.args(["-T", "fields"]);
    let fields =
        ["_ws.malformed", "tcp.checksum.status", "udp.checksum.status", "_ws.expert.severity"];
    fields.iter().for_each(|field| {
        tshark.args(["-e", field]);
    });
    let Ok(output) = tshark.output() else {
        eprintln!("skipped: tshark is not installed");
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    for (number, line) in text.lines().enumerate() {
        let [malformed, tcp, udp, severity] =
            line.split('\t').collect::<Vec<_>>().try_into().expect("four fields");
        let at = format!("{name}.pcap packet {}: {line:?}", number + 1);
        assert!(malformed.is_empty(), "malformed: {at}");
        // Status 1 means correct; severity 0x800000 is an error.
        assert_eq!(format!("{tcp}{udp}"), "1", "checksum: {at}");
        let worst = severity.split(',').filter_map(|s| s.parse::<u32>().ok()).max();
        assert!(worst < Some(0x80_0000), "expert error: {at}");
    }
    Some(text.lines().count())
}

fn capture_of(mut pipe: Pipe) -> Captured {
    let (capture, seen) = (new_capture(), Rc::new(RefCell::new(0)));
    let (file, counter) = (capture.clone(), seen);
    pipe.tap = Some(Box::new(move |at, _, d| {
        *counter.borrow_mut() += 1;
        append(&mut file.borrow_mut(), at, d);
    }));
    pipe.start();
    pipe.run_to_end(Duration::from_secs(300));
    capture
}

#[test]
fn tcp_is_clean_with_losses_wrap_and_every_option() {
    let plain = TcpConfig::new(Algorithm::NEW_RENO);
    let configs = [
        ("usual", plain.clone()),
        ("wrap", TcpConfig { initial_sequence: Some(u32::MAX - 30_000), ..plain.clone() }),
        ("bare", TcpConfig { timestamps: false, window_scaling: false, ..plain.clone() }),
        ("ecn", TcpConfig { ecn: true, ..plain.clone() }),
        ("cubic", TcpConfig::linux_2_6_22(Algorithm::Cubic(CubicConfig::linux_2_6()))),
        ("odd", TcpConfig { mss: 1001, ..plain }),
    ];
    for (name, config) in configs {
        let mut lose = drop_segments(&[5, 20, 21, 22, 40, 60, 62, 64, 66, 100]);
        let pipe = Pipe::new(config, ms(20)).with_bytes(300_001).with_rate(10, 60).with_rule(
            move |n, d| match n {
                70..75 => Fate::Mark,
                _ => lose(n, d),
            },
        );
        if let Some(packets) = check(name, &capture_of(pipe)) {
            assert!(packets > 300, "{name}: {packets}");
        }
    }
}

#[test]
fn udp_is_clean_and_its_sink_takes_what_was_sent() {
    // Other ports than in the TCP tests, because tshark decodes UDP port 5001 as another protocol.
    let (a, b) = ("10.0.0.1:40001".parse().unwrap(), "10.0.0.2:40002".parse().unwrap());
    let (mut sender, mut sink) = (UdpSender::new(a, b), UdpSink::new(b, a));
    let capture = new_capture();
    let mut now = Instant::ZERO;
    let payloads = [
        Payload::Zeros(0),
        Payload::Zeros(1),
        Payload::Zeros(1472),
        Payload::Bytes(Bytes::from_static(b"odd")),
        Payload::Bytes(Bytes::from_static(&[0xff; 1472])),
    ];
    for payload in &payloads {
        let outcome = sender.send(now, Message::new(payload.clone()));
        assert_eq!(outcome, SendOutcome::Accepted);
        let d = sender.poll_transmit(now).expect("it leaves at once");
        append(&mut capture.borrow_mut(), now, &d);
        sink.handle_datagram(now, d.clone());
        assert_eq!(sink.poll_delivered(now).as_ref(), Some(payload));
        let mut changed = d.header.to_vec();
        changed[6] ^= 0x40;
        sink.handle_datagram(now, Datagram { header: changed.into(), ..d });
        assert_eq!(sink.poll_delivered(now), None);
        now += ms(1);
    }
    assert_eq!(sink.bad_datagrams(), 5);
    for (from, to) in [("10.0.0.1:40003", "10.0.0.2:40002"), ("10.0.0.1:40001", "10.0.0.2:40003")] {
        let mut stranger = UdpSender::new(from.parse().unwrap(), to.parse().unwrap());
        stranger.send(now, Message::new(Payload::Zeros(1)));
        sink.handle_datagram(now, stranger.poll_transmit(now).expect("it leaves at once"));
    }
    assert_eq!((sink.poll_delivered(now), sink.bad_datagrams()), (None, 7), "for other ports");
    if let Some(packets) = check("udp", &capture) {
        assert_eq!(packets, 5);
    }
    let too_large = Message::new(Payload::Zeros(65_508));
    assert_eq!(sender.send(now, too_large.clone()), SendOutcome::Closed(too_large));
    sender.close(now);
    assert!(sender.is_closed() && !sender.is_writable());
}
