//! `udccp decode`: prints the DCCP packets of a capture file.

mod render;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use udccp_packet::ip::{IpPacket, LinkType};
use udccp_packet::pcap::{CaptureError, Frame, Reader};
use udccp_packet::udp::UdpHeader;
use udccp_wire::ip::{Envelope, EnvelopeError};
use udccp_wire::{PacketType, PacketView};

use super::numbers::whole;
use crate::exit::{CliResult, Exit, Failure};
use crate::output;
use render::Record;

const EXAMPLES: &str = "\
Examples:
  udccp decode trace.pcap                      one line a packet, time since the first
  udccp decode trace.pcapng --udp-port 5004    DCCP inside UDP port 5004 too
  tcpdump -w - -U udp port 5004 | udccp decode -
  udccp decode trace.pcap --json | jq -r .type | sort | uniq -c

DCCP is decoded as IP protocol 33 and inside UDP (RFC 6773): on port 6511, on the ports given with
--udp-port, and on every port that a DCCP Request was sent to. A capture on the sending machine
shows many packets as one huge datagram; run `udccp cat` or `udccp perf` with --no-offload there.";

/// Flags of `udccp decode`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Capture file, pcap or pcapng; - reads standard input
    file: PathBuf,
    /// A UDP port that carries DCCP (may be repeated)
    #[arg(long, value_name = "PORT", value_parser = whole(0..=u16::MAX))]
    udp_port: Vec<u16>,
    /// Print one JSON object per packet
    #[arg(long)]
    json: bool,
    /// Exit with 9 if a packet is malformed or has a wrong checksum
    #[arg(long)]
    strict: bool,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> CliResult<Exit> {
    let name = args.file.display().to_string();
    let input = open(&args.file)?;
    let mut decoder = Decoder::new(args.udp_port.clone(), args.json);
    let mut out = BufWriter::new(io::stdout().lock());
    let end = output::printed(decoder.decode(input, &mut out))?;
    output::printed(out.flush())?;
    drop(out);
    let counts = &decoder.counts;
    output::note(&format!(
        "{name}: {} frames, {} DCCP packets, {} malformed, {} wrong checksums, {} other frames",
        counts.frames,
        counts.packets,
        counts.malformed,
        counts.bad_checksums,
        counts.frames - counts.packets,
    ));
    match end {
        Some(e) => Err(bad_file(&name, &e, counts)),
        None if args.strict && counts.malformed + counts.bad_checksums > 0 => Ok(Exit::CheckFailed),
        None => Ok(Exit::Success),
    }
}

fn open(path: &Path) -> CliResult<Box<dyn Read>> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path).map_err(|e| {
        Failure::new(Exit::BadInput, format!("cannot open {}: {e}", path.display()))
            .hint("give the path of a pcap or pcapng file, or - for standard input")
    })?;
    Ok(Box::new(BufReader::new(file)))
}

fn bad_file(name: &str, e: &CaptureError, counts: &Counts) -> Failure {
    let hint = match e {
        CaptureError::NotACapture => {
            "capture with tcpdump -w or Wireshark; text output of either is not a capture file"
        }
        CaptureError::Truncated { .. } if counts.frames > 0 => {
            "the readable part is printed above; the file was cut off while being written"
        }
        CaptureError::Truncated { .. } => "the capture was cut off while it was written or copied",
        CaptureError::Damaged { .. } => "the readable part is printed above; copy the file again",
        CaptureError::Io(_) => "see the system's error above",
    };
    Failure::new(Exit::BadInput, format!("{name}: {e}")).hint(hint)
}

/// Counts of frames and packets.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    frames: u64,
    packets: u64,
    malformed: u64,
    bad_checksums: u64,
}

/// Converts frames to lines.
struct Decoder {
    udp_ports: Vec<u16>,
    json: bool,
    counts: Counts,
    first_ns: Option<u64>,
}

impl Decoder {
    fn new(mut udp_ports: Vec<u16>, json: bool) -> Self {
        udp_ports.push(udccp_wire::udp::DEFAULT_PORT);
        Self { udp_ports, json, counts: Counts::default(), first_ns: None }
    }

    /// Prints every DCCP packet of a file. Returns the file's error, if any.
    fn decode(
        &mut self,
        input: impl Read,
        out: &mut impl Write,
    ) -> io::Result<Option<CaptureError>> {
        let capture = match Reader::open(input) {
            Ok(capture) => capture,
            Err(e) => return Ok(Some(e)),
        };
        for frame in capture {
            match frame {
                Ok(frame) => self.frame(&frame, out)?,
                Err(e) => return Ok(Some(e)),
            }
        }
        Ok(None)
    }

    fn frame(&mut self, frame: &Frame, out: &mut impl Write) -> io::Result<()> {
        self.counts.frames += 1;
        let first = self.first_ns.or(frame.epoch_ns);
        self.first_ns = first;
        let t_s = frame.epoch_ns.zip(first).map(|(now, first)| seconds_between(first, now));
        let Some(envelope) = self.open_envelope(frame) else { return Ok(()) };
        self.counts.packets += 1;
        self.counts.malformed += u64::from(render::is_malformed(&envelope));
        self.counts.bad_checksums += u64::from(render::has_bad_checksum(&envelope));
        if self.json {
            let record = Record::new(self.counts.frames, t_s, &envelope);
            serde_json::to_writer(&mut *out, &record)?;
            writeln!(out)
        } else {
            match t_s {
                Some(t) => writeln!(out, "{t:>12.6} {envelope}"),
                None => writeln!(out, "{:>12} {envelope}", "-"),
            }
        }
    }

    /// Finds the DCCP packet in a frame.
    fn open_envelope<'a>(&mut self, frame: &'a Frame) -> Option<Envelope<'a>> {
        let link = LinkType::from_number(frame.link)?;
        match Envelope::parse(link, &frame.bytes, &self.udp_ports) {
            Ok(envelope) => Some(envelope),
            Err(EnvelopeError::NotDccp { protocol: udccp_wire::udp::IP_PROTOCOL }) => {
                self.learn_port(link, frame)
            }
            Err(_) => None,
        }
    }

    /// Recognises UDP ports that carry DCCP by a packet that can only be a Request, and remembers
    /// them.
    fn learn_port<'a>(&mut self, link: LinkType, frame: &'a Frame) -> Option<Envelope<'a>> {
        let all: Vec<u16> = udp_ports_of(link, &frame.bytes)?.into();
        let envelope = Envelope::parse(link, &frame.bytes, &all).ok()?;
        let packet = envelope.packet().ok()?;
        if !looks_like_request(&packet) {
            return None;
        }
        self.udp_ports.push(envelope.udp?.dst_port);
        Some(envelope)
    }
}

/// Whether a packet can only be a Request inside UDP: it has 48-bit sequence numbers, no checksum
/// (RFC 6773 section 3.3), and valid options.
fn looks_like_request(packet: &PacketView<'_>) -> bool {
    packet.packet_type() == PacketType::Request
        && packet.x()
        && packet.checksum() == 0
        && packet.options().all(|o| o.is_ok())
}

/// Source and destination port of a UDP datagram with any content.
fn udp_ports_of(link: LinkType, frame: &[u8]) -> Option<[u16; 2]> {
    let packet = IpPacket::parse(link.ip_packet(frame).ok()?).ok()?;
    let (header, _) = UdpHeader::read(packet.payload)?;
    Some([header.src_port, header.dst_port])
}

fn seconds_between(first_ns: u64, now_ns: u64) -> f64 {
    (i128::from(now_ns) - i128::from(first_ns)) as f64 / 1e9
}
