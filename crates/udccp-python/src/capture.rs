//! Reads the packets of a capture file, for metrics of external measurements.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use udccp_packet::ip::{IpPacket, LinkType};
use udccp_packet::pcap::{CaptureError, Frame, Reader};

use crate::{border, error};

/// Transport protocols whose header begins with both ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

/// One direction of a flow: addresses, IP protocol and ports (0 without ports).
type Way = (IpAddr, u16, IpAddr, u16, u8);

/// The packets of a file: the directions that occur, and for each packet the time in seconds since
/// the first packet, the index of its direction, and its length in bytes with the IP header.
#[derive(Default)]
struct Packets {
    ways: Vec<Way>,
    numbers: HashMap<Way, usize>,
    times_s: Vec<f64>,
    of: Vec<usize>,
    bytes: Vec<u64>,
    first_ns: Option<u64>,
    /// Where an incomplete last packet begins.
    cut_at: Option<u64>,
}

impl Packets {
    fn add(&mut self, frame: &Frame) {
        let packet = LinkType::from_number(frame.link)
            .and_then(|link| link.ip_packet(&frame.bytes).ok())
            .and_then(|bytes| IpPacket::parse(bytes).ok());
        let (Some(packet), Some(at_ns)) = (packet, frame.epoch_ns) else { return };
        let ports = match packet.payload {
            [a, b, c, d, ..] if WITH_PORTS.contains(&packet.protocol) && !packet.is_fragment => {
                (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]))
            }
            _ => (0, 0),
        };
        let way = (packet.pseudo.src, ports.0, packet.pseudo.dst, ports.1, packet.protocol);
        let number = *self.numbers.entry(way).or_insert_with(|| {
            self.ways.push(way);
            self.ways.len() - 1
        });
        let first_ns = *self.first_ns.get_or_insert(at_ns);
        self.times_s.push(at_ns.saturating_sub(first_ns) as f64 / 1e9);
        self.of.push(number);
        self.bytes.push(packet.len as u64);
    }

    fn read(path: &Path) -> Result<Self, String> {
        let file = File::open(path).map_err(|e| format!("cannot open {}: {e}", path.display()))?;
        let wrong = |e| format!("{}: {e}", path.display());
        let mut packets = Self::default();
        let mut is_empty = true;
        for frame in Reader::open(BufReader::new(file)).map_err(wrong)? {
            match frame {
                Err(CaptureError::Truncated { at }) if !is_empty => packets.cut_at = Some(at),
                frame => packets.add(&frame.map_err(wrong)?),
            }
            is_empty = false;
        }
        Ok(packets)
    }
}

/// What [`read_capture`] returns: the addresses as text, and where the file is cut short.
type Columns = (Vec<(String, u16, String, u16, u8)>, Vec<f64>, Vec<usize>, Vec<u64>, Option<u64>);

/// The IP packets of a capture file, pcap or pcapng; of one that was cut off while it was written,
/// the whole ones.
#[pyfunction]
pub(crate) fn read_capture(py: Python<'_>, path: PathBuf) -> PyResult<Columns> {
    border::guard(py, || {
        let packets = py.detach(|| Packets::read(&path));
        let packets = packets.map_err(|e| error::raise(py, "LogError", e))?;
        let text = |(src, sport, dst, dport, protocol): Way| {
            (src.to_string(), sport, dst.to_string(), dport, protocol)
        };
        let ways = packets.ways.into_iter().map(text).collect();
        Ok((ways, packets.times_s, packets.of, packets.bytes, packets.cut_at))
    })
}
