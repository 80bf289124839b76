//! Formats a captured DCCP packet as a line of text or as JSON.

use serde::Serialize;
use udccp_wire::ip::{ChecksumState, Envelope};
use udccp_wire::{OptionRef, PacketView};

/// A packet for `--json`: one object per line.
#[derive(Serialize)]
pub(super) struct Record {
    number: u64,
    t_s: Option<f64>,
    src: String,
    dst: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    udp: Option<UdpPorts>,
    ecn: u8,
    ip_bytes: usize,
    #[serde(flatten)]
    packet: Option<PacketFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct UdpPorts {
    src: u16,
    dst: u16,
}

#[derive(Serialize)]
struct PacketFields {
    #[serde(rename = "type")]
    kind: &'static str,
    src_port: u16,
    dst_port: u16,
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ack: Option<u64>,
    long_seqnos: bool,
    ccval: u8,
    cscov: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reset: Option<Reset>,
    options: Vec<OptionFields>,
    data_bytes: usize,
    checksum: &'static str,
}

#[derive(Serialize)]
struct Reset {
    code: u8,
    name: &'static str,
    data: [u8; 3],
}

#[derive(Serialize)]
struct OptionFields {
    kind: u8,
    text: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    malformed: bool,
}

impl Record {
    pub(super) fn new(number: u64, t_s: Option<f64>, envelope: &Envelope<'_>) -> Self {
        let (packet, error) = match envelope.packet() {
            Ok(view) => (Some(fields(envelope, &view)), None),
            Err(e) => (None, Some(e.to_string())),
        };
        Self {
            number,
            t_s,
            src: envelope.pseudo.src.to_string(),
            dst: envelope.pseudo.dst.to_string(),
            udp: envelope.udp.map(|u| UdpPorts { src: u.src_port, dst: u.dst_port }),
            ecn: envelope.ecn,
            ip_bytes: envelope.ip_len,
            packet,
            error,
        }
    }
}

fn fields(envelope: &Envelope<'_>, view: &PacketView<'_>) -> PacketFields {
    let reset = view.reset_code().zip(view.reset_data()).map(|(code, data)| Reset {
        code: code.number(),
        name: code.name(),
        data,
    });
    PacketFields {
        kind: view.packet_type().name(),
        src_port: view.src_port(),
        dst_port: view.dst_port(),
        seq: view.seq_raw().bits().value(),
        ack: view.ack_raw().map(|a| a.bits().value()),
        long_seqnos: view.x(),
        ccval: view.ccval(),
        cscov: view.cscov(),
        service: view.service_code().map(|s| s.to_string()),
        reset,
        options: view.options().filter_map(option).collect(),
        data_bytes: view.data_len(),
        checksum: match envelope.checksum(view) {
            ChecksumState::Valid => "valid",
            ChecksumState::Invalid => "invalid",
            ChecksumState::Unknown => "unknown",
        },
    }
}

fn option(option: Result<OptionRef<'_>, udccp_wire::OptionError>) -> Option<OptionFields> {
    match option {
        Ok(OptionRef::Padding) => None,
        Ok(o) => Some(OptionFields { kind: o.kind(), text: o.to_string(), malformed: false }),
        Err(e) => Some(OptionFields { kind: e.kind(), text: e.to_string(), malformed: true }),
    }
}

/// Whether the packet or one of its options is malformed.
pub(super) fn is_malformed(envelope: &Envelope<'_>) -> bool {
    envelope.packet().map_or(true, |view| view.options().any(|o| o.is_err()))
}

/// Whether the checksum is known to be wrong.
pub(super) fn has_bad_checksum(envelope: &Envelope<'_>) -> bool {
    envelope.packet().is_ok_and(|view| envelope.checksum(&view) == ChecksumState::Invalid)
}
