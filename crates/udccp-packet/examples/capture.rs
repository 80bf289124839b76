//! Lists the packets of a capture file: time, addresses, protocol, bytes.
//!
//! ```sh
//! cargo run -p udccp-packet --features std --example capture -- captures/ccid2-basic.pcap
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::fs::File;
use std::io::BufReader;

use udccp_packet::ip::{IpPacket, LinkType};
use udccp_packet::pcap::Reader;

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).ok_or("give the name of a pcap or pcapng file")?;
    for frame in Reader::open(BufReader::new(File::open(name)?))? {
        let frame = frame?;
        let Some(link) = LinkType::from_number(frame.link) else { continue };
        let Ok(packet) = link.ip_packet(&frame.bytes).and_then(IpPacket::parse) else { continue };
        let (at, pseudo) = (frame.epoch_ns.unwrap_or(0) as f64 / 1e9, packet.pseudo);
        let (src, dst, protocol) = (pseudo.src, pseudo.dst, packet.protocol);
        println!("{at:.6} {src} > {dst} protocol {protocol}, {} bytes", packet.len);
    }
    Ok(())
}
