//! Prints a packet as one line.

use core::fmt::{self, Display, Formatter};

use crate::error::OptionError;
use crate::features::{FeatureNumber, Reconciliation};
use crate::ip::{ChecksumState, Envelope};
use crate::option::{LossInterval, OptionRef, kind};
use crate::types::PacketType;
use crate::view::PacketView;

impl Display for PacketView<'_> {
    /// `Request 41000 > 5001 seq 7 service SC=42 <Change L CCID 2 3, Timestamp 9> data 500`
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} > {} ", self.packet_type(), self.src_port(), self.dst_port())?;
        write_rest(self, f)
    }
}

impl Display for Envelope<'_> {
    /// The packet as above, with addresses, and with anything unusual about the envelope.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let packet = match self.packet() {
            Ok(packet) => packet,
            Err(e) => return write!(f, "{} > {} bad: {e}", self.pseudo.src, self.pseudo.dst),
        };
        let src = core::net::SocketAddr::new(self.pseudo.src, packet.src_port());
        let dst = core::net::SocketAddr::new(self.pseudo.dst, packet.dst_port());
        write!(f, "{src} > {dst} {} ", packet.packet_type())?;
        write_rest(&packet, f)?;
        if let Some(udp) = self.udp {
            write!(f, " [UDP {} > {}]", udp.src_port, udp.dst_port)?;
        }
        f.write_str(["", " [ECT(1)]", " [ECT(0)]", " [CE]"][usize::from(self.ecn & 3)])?;
        match self.checksum(&packet) {
            ChecksumState::Invalid => f.write_str(" [bad checksum]"),
            ChecksumState::Valid | ChecksumState::Unknown => Ok(()),
        }
    }
}

/// Everything after type and ports.
fn write_rest(packet: &PacketView<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    let short = if packet.x() { "" } else { "short " };
    write!(f, "{short}seq {}", packet.seq_raw().bits())?;
    if let Some(ack) = packet.ack_raw() {
        write!(f, " ack {}", ack.bits())?;
    }
    if let Some(service) = packet.service_code() {
        write!(f, " service {service}")?;
    }
    if let (Some(code), Some([a, b, c])) = (packet.reset_code(), packet.reset_data()) {
        write!(f, " code {} ({code}) data {a} {b} {c}", code.number())?;
    }
    if packet.ccval() != 0 {
        write!(f, " ccval {}", packet.ccval())?;
    }
    if packet.cscov() != 0 {
        write!(f, " cscov {}", packet.cscov())?;
    }
    write_options(packet, f)?;
    write_data(packet, f)
}

fn write_options(packet: &PacketView<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    let mut lead = " <";
    for option in packet.options() {
        if option == Ok(OptionRef::Padding) {
            continue;
        }
        f.write_str(lead)?;
        match option {
            Ok(option) => Display::fmt(&option, f)?,
            Err(e) => write_fault(e, f)?,
        }
        lead = ", ";
    }
    f.write_str(if lead == ", " { ">" } else { "" })
}

fn write_fault(e: OptionError, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "bad: {e}")
}

fn write_data(packet: &PacketView<'_>, f: &mut Formatter<'_>) -> fmt::Result {
    let len = packet.data_len();
    match packet.packet_type() {
        PacketType::Reset if len > 0 => match core::str::from_utf8(packet.payload_in_header()) {
            Ok(text) => write!(f, " text {text:?}"),
            Err(_) => write!(f, " text of {len} bytes"),
        },
        PacketType::Data | PacketType::DataAck => write!(f, " data {len}"),
        PacketType::Request | PacketType::Response if len > 0 => write!(f, " data {len}"),
        _ if len > 0 => write!(f, " ignored {len}"),
        _ => Ok(()),
    }
}

impl Display for OptionRef<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(kind::name(self.kind()))?;
        match *self {
            Self::Padding | Self::Mandatory | Self::SlowReceiver => Ok(()),
            Self::ChangeL { feature, value } | Self::ChangeR { feature, value } => {
                write!(f, " {feature}")?;
                write_values(feature, value, f)
            }
            Self::ConfirmL { feature, value } | Self::ConfirmR { feature, value } => {
                write!(f, " {feature}")?;
                write_confirm(feature, value, f)
            }
            Self::InitCookie(d) => write!(f, " {} bytes", d.len()),
            Self::NdpCount(n) => write!(f, " {n}"),
            Self::AckVector { cells, .. } => write_ack_vector(cells, f),
            Self::DataDropped(blocks) => write_blocks(blocks, f),
            Self::Timestamp(n) => write!(f, " {n}"),
            Self::TimestampEcho { timestamp, elapsed } => {
                write!(f, " {timestamp}")?;
                elapsed.map_or(Ok(()), |n| write_elapsed(n, f))
            }
            Self::ElapsedTime(n) => write_elapsed(n, f),
            Self::DataChecksum(n) => write!(f, " {n:#010x}"),
            Self::QuickStartResponse { rate, ttl_diff, nonce } => {
                write!(f, " rate {rate} ttl {ttl_diff} nonce {nonce:#x}")
            }
            Self::LossEventRate(u32::MAX) => f.write_str(" none"),
            Self::LossEventRate(n) => write!(f, " 1/{n}"),
            Self::ReceiveRate(n) => write!(f, " {n} B/s"),
            Self::LossIntervals { skip_length, intervals } => {
                write!(f, " skip {skip_length}")?;
                LossInterval::iter(intervals).try_for_each(|i| write_interval(i, f))
            }
            Self::DroppedPackets(d) => Self::drop_counts(d).try_for_each(|n| write!(f, " {n}")),
            Self::CcidSpecific { kind, data } | Self::Unknown { kind, data } => {
                write!(f, " {kind}")?;
                write_hex(data, f)
            }
        }
    }
}

/// One number for a non-negotiable feature, a list of bytes for any other.
fn write_values(feature: FeatureNumber, value: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    let rule = feature.info().map(|info| info.rule);
    if rule == Some(Reconciliation::NonNegotiable) && (1..=8).contains(&value.len()) {
        let n = value.iter().fold(0_u64, |n, &b| n << 8 | u64::from(b));
        return write!(f, " {n}");
    }
    if value.is_empty() {
        return f.write_str(" empty");
    }
    value.iter().try_for_each(|b| write!(f, " {b}"))
}

/// The value and, for a server-priority feature, the confirmer's list.
fn write_confirm(feature: FeatureNumber, value: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    let rule = feature.info().map(|info| info.rule);
    match value {
        [chosen, list @ ..] if rule == Some(Reconciliation::ServerPriority) => {
            write!(f, " {chosen}")?;
            if list.is_empty() {
                return Ok(());
            }
            f.write_str(" of")?;
            list.iter().try_for_each(|b| write!(f, " {b}"))
        }
        _ => write_values(feature, value, f),
    }
}

/// Runs, newest first: `R` received, `E` ECN marked, `?` reserved, `N` not yet received.
fn write_ack_vector(cells: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    let mut cells = cells.iter().peekable();
    while let Some(&cell) = cells.next() {
        let mut run = u32::from(cell & 0x3f) + 1;
        while let Some(more) = cells.next_if(|&&next| next >> 6 == cell >> 6) {
            run += u32::from(more & 0x3f) + 1;
        }
        write!(f, " {}{run}", ['R', 'E', '?', 'N'][usize::from(cell >> 6)])?;
    }
    Ok(())
}

/// Runs, newest first, each with its drop code.
fn write_blocks(blocks: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    const CODES: [&str; 8] = [
        "Protocol Constraints",
        "Application Not Listening",
        "Receive Buffer",
        "Corrupt",
        "Reserved 4",
        "Reserved 5",
        "Reserved 6",
        "Delivered Corrupt",
    ];
    for &block in blocks {
        match block {
            0..0x80 => write!(f, " normal {}", u32::from(block) + 1)?,
            _ => {
                let code = CODES[usize::from(block >> 4 & 7)];
                write!(f, " {code} {}", u32::from(block & 0xf) + 1)?;
            }
        }
    }
    Ok(())
}

/// A time in units of 10 microseconds.
fn write_elapsed(n: u32, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, " {}.{:02} ms", n / 100, n % 100)
}

fn write_interval(i: LossInterval, f: &mut Formatter<'_>) -> fmt::Result {
    let nonce = u8::from(i.nonce_echo);
    write!(f, " ({}+{} data {} nonce {nonce})", i.lossless_length, i.loss_length, i.data_length)
}

fn write_hex(data: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str(if data.is_empty() { "" } else { " 0x" })?;
    data.iter().try_for_each(|b| write!(f, "{b:02x}"))
}
