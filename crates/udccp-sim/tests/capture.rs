//! Captures: the contents of every file, byte by byte.

mod toy;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use toy::{ToyReceiver, ToySender};
use udccp_base::{DataRate, Duration, Seed};
use udccp_sim::{
    Bulk, Capture, CaptureFile, Dumbbell, DumbbellConfig, PairConfig, QueueLimit, RunConfig,
    RunResult, SimError,
};

/// Files in memory.
#[derive(Clone, Default)]
struct Folder(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

struct File(Folder, String);

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut files = self.0.0.lock().unwrap();
        files.entry(self.1.clone()).or_default().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn run(capture: Capture<'_>) -> Result<RunResult, SimError> {
    let rate = DataRate::from_mbps(5);
    let rtt = Duration::from_millis(20);
    let mut net = Dumbbell::new(DumbbellConfig::symmetric(rate, rtt, QueueLimit::Packets(10)));
    for name in ["one", "two/three"] {
        let at = net.next_addresses();
        net.add_pair(PairConfig::new(
            name,
            ToySender::new(at, 12),
            ToyReceiver::new(at),
            Box::new(Bulk::new()),
        ));
    }
    let mut config = RunConfig::new(Duration::from_secs(2), Seed(1));
    config.capture = Some(capture);
    net.run(config)
}

fn captured(snaplen: u32) -> (RunResult, BTreeMap<String, Vec<u8>>) {
    let folder = Folder::default();
    let open = |name: &str| -> io::Result<Option<CaptureFile>> {
        Ok(Some(Box::new(File(folder.clone(), name.to_owned()))))
    };
    let result = run(Capture::new(open).with_snaplen(snaplen)).unwrap();
    let files = folder.0.lock().unwrap().clone();
    (result, files)
}

struct Packet {
    nanos: u64,
    len: u32,
    bytes: Vec<u8>,
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..4].try_into().unwrap())
}

fn packets(file: &[u8]) -> Vec<Packet> {
    assert_eq!((word(file), word(&file[20..])), (0xa1b2_3c4d, 101), "pcap, ns, raw IP");
    let (mut rest, mut out) = (&file[24..], Vec::new());
    while !rest.is_empty() {
        let nanos = u64::from(word(rest)) * 1_000_000_000 + u64::from(word(&rest[4..]));
        let (kept, len) = (word(&rest[8..]) as usize, word(&rest[12..]));
        out.push(Packet { nanos, len, bytes: rest[16..16 + kept].to_vec() });
        rest = &rest[16 + kept..];
    }
    out
}

#[test]
fn every_point_sees_what_passes_it_in_order_and_with_right_headers() {
    let (result, files) = captured(65_535);
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let expected =
        ["bottleneck", "one-receiver", "one-sender", "two-three-receiver", "two-three-sender"];
    assert_eq!(names, expected);
    let of = |name: &str| packets(&files[name]);
    let sender = &result.flows[0];
    let at_sender = sender.forward.sent.packets + sender.reverse.delivered.packets;
    assert_eq!(of("one-sender").len() as u64, at_sender);
    let at_receiver = sender.forward.delivered.packets + sender.reverse.sent.packets;
    assert_eq!(of("one-receiver").len() as u64, at_receiver);
    let both = &result.system;
    let passed = both.forward.whole.departed.packets + both.reverse.whole.departed.packets;
    assert_eq!(of("bottleneck").len() as u64, passed);
    assert!(both.forward.whole.dropped_total().packets > 0, "the queue overflows");
    for (name, file) in &files {
        let mut last = 0;
        for packet in packets(file) {
            assert!(packet.nanos >= last, "{name}: time goes on");
            last = packet.nanos;
            assert_eq!(packet.len as usize, packet.bytes.len());
            let ip = &packet.bytes;
            assert_eq!((ip[0], ip[9]), (0x45, 253));
            assert_eq!(u16::from_be_bytes([ip[2], ip[3]]) as usize, ip.len());
            let sum = ip[..20].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
            assert_eq!(sum.sum::<u32>() % 0xffff, 0, "{name}: header checksum");
            assert!(ip[32..].iter().all(|b| *b == 0), "the payload is zeros");
        }
    }
}

#[test]
fn the_time_to_live_tells_how_many_routers_were_passed() {
    let (_, files) = captured(65_535);
    let ttl = |name: &str| -> Vec<u8> {
        let mut seen: Vec<u8> = packets(&files[name]).iter().map(|p| p.bytes[8]).collect();
        seen.sort_unstable();
        seen.dedup();
        seen
    };
    assert_eq!(ttl("one-sender"), [62, 64]);
    assert_eq!(ttl("bottleneck"), [63]);
    assert_eq!(ttl("one-receiver"), [62, 64]);
}

#[test]
fn a_snaplen_keeps_the_front_and_the_true_length() {
    let (_, files) = captured(32);
    let first = &packets(&files["one-sender"])[0];
    assert_eq!((first.len, first.bytes.len()), (1500, 32));
}

#[test]
fn capturing_changes_nothing_and_points_may_be_left_out() {
    let plain = run(Capture::new(|_| Ok(None))).unwrap();
    assert_eq!(plain, captured(100).0);
}

#[test]
fn a_file_that_cannot_be_opened_or_written_is_named() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::other("disk full"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let refused = run(Capture::new(|_| Err(io::Error::other("no such folder")))).unwrap_err();
    assert_eq!(refused.to_string(), "cannot write the capture \"one-sender\": no such folder");
    let full = run(Capture::new(|_| Ok(Some(Box::new(Full))))).unwrap_err();
    assert!(full.to_string().contains("disk full"), "{full}");
}
