//! Captures of the Linux kernel's DCCP, packet by packet.

use std::path::Path;

use udccp_packet::pcap::Reader;
use udccp_wire::ip::{Envelope, LinkType};
use udccp_wire::{Packet, PacketType, PseudoHeader};

/// A packet of a capture, and which way it went.
#[derive(Clone, Debug)]
pub struct Captured {
    pub from_client: bool,
    pub pseudo: PseudoHeader,
    pub packet: Packet,
}

/// The DCCP packets of a capture file in `captures/`.
pub fn read(name: &str) -> Vec<Captured> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures").join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut all = Vec::<Captured>::new();
    let mut client_port = None;
    for frame in Reader::open(&bytes[..]).unwrap() {
        let frame = frame.unwrap();
        let link = LinkType::from_number(frame.link).unwrap();
        let Ok(envelope) = Envelope::parse(link, &frame.bytes, &[]) else { continue };
        let packet = Packet::parse(envelope.dccp, Some(&envelope.pseudo)).unwrap();
        if client_port.is_none() && packet.header.packet_type() == PacketType::Request {
            client_port = Some(packet.header.src_port);
        }
        let from_client = client_port == Some(packet.header.src_port);
        all.push(Captured { from_client, pseudo: envelope.pseudo, packet });
    }
    all
}
