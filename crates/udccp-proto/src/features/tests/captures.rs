//! The feature options of real captures, processed by a negotiator at each end.

use super::*;

use udccp_packet::pcap::Reader;
use udccp_wire::ip::{Envelope, LinkType};
use udccp_wire::{PacketView, RawSeq};

/// DCCP packets of a capture file in order: whether the client sent it, and its bytes.
fn dccp_packets(name: &str) -> Vec<(bool, Vec<u8>)> {
    let path = format!("{}/../../captures/{name}", env!("CARGO_MANIFEST_DIR"));
    let file = std::fs::read(path).unwrap();
    let mut packets = Vec::new();
    let mut client = None;
    for frame in Reader::open(&file[..]).unwrap() {
        let frame = frame.unwrap();
        let link = LinkType::from_number(frame.link).unwrap();
        let Ok(envelope) = Envelope::parse(link, &frame.bytes, &[]) else { continue };
        let source = envelope.pseudo.src;
        packets.push((*client.get_or_insert(source) == source, envelope.dccp.to_vec()));
    }
    packets
}

fn long(raw: RawSeq) -> Seqno {
    match raw {
        RawSeq::Long(seq) => seq,
        RawSeq::Short(_) => panic!("the captures have long numbers"),
    }
}

/// Passes a packet of the capture to a negotiator; returns its feature options as text.
fn feed(engine: &mut Negotiator, view: &PacketView<'_>) -> Vec<String> {
    let context = PacketContext {
        packet_type: view.packet_type(),
        seq: long(view.seq_raw()),
        ackno: view.ack_raw().map(long),
    };
    // The numbers of the captures rise.
    engine.begin_packet(context.seq, context.seq);
    let mut mandatory = false;
    let mut shown = Vec::new();
    for option in view.options() {
        let option = option.unwrap();
        engine.on_option(&context, &option, mandatory).unwrap();
        mandatory = option == OptionRef::Mandatory;
        if matches!(option.kind(), 32..=35) {
            shown.push(show(&option));
        }
    }
    shown
}

fn kernel_wishes(ccids: &[u64]) -> FeaturePreferences {
    let lists: &[(u8, &[u64])] = &[(1, ccids), (6, &[0, 1]), (7, &[0, 1]), (4, &[0, 1])];
    let mut preferences = FeaturePreferences::new();
    for location in [L, R] {
        for &(feature, values) in lists {
            preferences.set(location, FeatureNumber(feature), values).unwrap();
        }
        preferences.set(location, FeatureNumber::SEND_LEV_RATE, &[0, 1]).unwrap();
    }
    preferences
}

/// The options that a negotiator adds to a packet that a kernel sent, as text.
fn write(engine: &mut Negotiator, view: &PacketView<'_>) -> Vec<String> {
    let mut shown = Vec::new();
    let emit = &mut |option: &OptionRef<'_>| shown.push(show(option));
    engine.write_options(Instant::ZERO, long(view.seq_raw()), view.packet_type(), 1000, emit);
    shown
}

/// A negotiator shadows each kernel: it reads what that kernel received, and writes its options on
/// the packets that the kernel sent. Every Change is confirmed on the next packet.
fn replay(name: &str, ccids: &[u64]) -> [Negotiator; 2] {
    let wishes = kernel_wishes(ccids);
    let mut client = Negotiator::new(Role::Client, wishes.clone().into());
    let mut server = Negotiator::new(Role::Server, wishes.into());
    let (mut changes, mut confirms) = (0, 0);
    for (from_client, bytes) in dccp_packets(name) {
        let view = PacketView::new(&bytes, bytes.len()).unwrap();
        let (sender, receiver) =
            if from_client { (&mut client, &mut server) } else { (&mut server, &mut client) };
        let written = write(sender, &view);
        confirms += written.iter().filter(|o| o.starts_with("Confirm")).count();
        changes += feed(receiver, &view).iter().filter(|o| o.starts_with("Change")).count();
    }
    assert!(changes > 4 && confirms > 4, "{name}: {changes} Changes, {confirms} Confirms");
    [client, server]
}

#[test]
fn ccid_2_over_ipv4_and_ipv6() {
    for name in ["ccid2-basic.pcap", "ccid2-ipv6.pcap", "ccid2-serverclose.pcap"] {
        let [client, server] = replay(name, &[2, 3]);
        for engine in [&client, &server] {
            assert_eq!(engine.value(R, FeatureNumber::CCID), Some(2), "{name}");
            assert_eq!(engine.value(R, FeatureNumber::ECN_INCAPABLE), Some(1), "{name}");
        }
        // The kernel's server requests Ack Vectors in both directions; the client here agrees.
        assert_eq!(client.value(L, FeatureNumber::SEND_ACK_VECTOR), Some(1), "{name}");
        assert_eq!(client.value(R, FeatureNumber::SEND_ACK_VECTOR), Some(1), "{name}");
    }
}

#[test]
fn sequence_windows_and_ack_ratios_follow_the_kernel_through_losses() {
    let [client, server] = replay("ccid2-loss2.pcap", &[2, 3]);
    for engine in [&client, &server] {
        let window = engine.value(R, FeatureNumber::SEQUENCE_WINDOW).unwrap();
        assert!((32..=100_000).contains(&window), "{window}");
    }
    assert_ne!(server.value(R, FeatureNumber::SEQUENCE_WINDOW), Some(100));
    assert_eq!(server.value(R, FeatureNumber::ACK_RATIO), Some(1));
}

#[test]
fn ccid_3_asks_for_its_own_features() {
    let [client, server] = replay("ccid3-basic.pcap", &[3]);
    for engine in [&client, &server] {
        assert_eq!(engine.value(L, FeatureNumber::CCID), Some(3));
    }
    assert_eq!(server.value(L, FeatureNumber::SEND_LEV_RATE), Some(1));
    assert_eq!(server.value(R, FeatureNumber::SEND_LEV_RATE), Some(1));
    assert_eq!(server.value(R, FeatureNumber::ACK_RATIO), Some(0));
}
