//! Describes packets as text, and builds them.

use bytes::Bytes;
use udccp_base::{Datagram, Ecn, Payload};
use udccp_wire::{
    Emitter, Header, HeaderKind, OptionRef, PacketView, PseudoHeader, Seqno, option_kind,
};

/// One line: type, numbers relative to their start, options by name.
pub fn describe(d: &Datagram) -> String {
    let Ok(view) = PacketView::new(&d.header, d.transport_len()) else {
        return "malformed".to_string();
    };
    let mut text = format!("{:8}", view.packet_type().name());
    if let Some(service) = view.service_code() {
        text += &format!(" {service}");
    }
    if let Some(code) = view.reset_code() {
        text += &format!(" \"{code}\" {:?}", view.reset_data().unwrap());
    }
    if view.data_len() > 0 {
        text += &format!(" {} B", view.data_len());
    }
    let options: Vec<String> = view.options().filter_map(|o| option_text(&o.ok()?)).collect();
    if !options.is_empty() {
        text += &format!(" [{}]", options.join(", "));
    }
    text
}

fn option_text(option: &OptionRef<'_>) -> Option<String> {
    let name = option_kind::name(option.kind());
    Some(match option {
        OptionRef::Padding => return None,
        OptionRef::ChangeL { feature, value }
        | OptionRef::ChangeR { feature, value }
        | OptionRef::ConfirmL { feature, value }
        | OptionRef::ConfirmR { feature, value } => format!("{name} {feature} {value:?}"),
        OptionRef::AckVector { cells, .. } => format!("{name} {cells:?}"),
        OptionRef::DataDropped(blocks) => format!("{name} {blocks:?}"),
        OptionRef::NdpCount(n) => format!("{name} {n}"),
        _ => name.to_string(),
    })
}

/// The type, sequence and acknowledgement number of a packet.
pub fn numbers(d: &Datagram) -> (HeaderKind, Seqno, Option<Seqno>) {
    let view = PacketView::new(&d.header, d.transport_len()).unwrap();
    let header = view.header();
    (header.kind, header.seq, header.kind.ack())
}

/// A packet built by the test, in the direction of `like` and with its ports.
pub fn forge(like: &Datagram, kind: HeaderKind, seq: Seqno, options: &[OptionRef<'_>]) -> Datagram {
    forge_with(like, kind, seq, options, Payload::EMPTY)
}

/// A packet with data, built by the test.
pub fn forge_with(
    like: &Datagram,
    kind: HeaderKind,
    seq: Seqno,
    options: &[OptionRef<'_>],
    payload: Payload,
) -> Datagram {
    let header = PacketView::new(&like.header, like.transport_len()).unwrap().header();
    let header = Header { seq, kind, x: true, cscov: 0, ..header };
    finished(like, &header, options, payload)
}

/// The packet in the other direction: addresses and ports exchanged, no data.
pub fn reversed(d: &Datagram) -> Datagram {
    let header = PacketView::new(&d.header, d.transport_len()).unwrap().header();
    let (src_port, dst_port) = (header.dst_port, header.src_port);
    let like = Datagram { src: d.dst, dst: d.src, ..d.clone() };
    finished(&like, &Header { src_port, dst_port, ..header }, &[], Payload::EMPTY)
}

/// A packet with any header, built by the test, in the direction of `like`.
pub fn finished(
    like: &Datagram,
    header: &Header,
    options: &[OptionRef<'_>],
    payload: Payload,
) -> Datagram {
    let mut buf = bytes::BytesMut::new();
    let mut emitter = Emitter::new(&mut buf, header);
    for option in options {
        emitter.option(option).unwrap();
    }
    let data = payload.to_bytes();
    emitter.finish(&PseudoHeader::new(like.src.ip(), like.dst.ip()), &data, 0);
    Datagram { header: buf.freeze().into(), payload, ecn: Ecn::NotEct, ..like.clone() }
}

/// Header and data as one buffer, as they come from a socket.
pub fn in_one_piece(d: &Datagram) -> Datagram {
    let mut all = d.header.to_vec();
    all.extend_from_slice(&d.payload.to_bytes());
    Datagram { header: all.into(), payload: Payload::EMPTY, ..d.clone() }
}
