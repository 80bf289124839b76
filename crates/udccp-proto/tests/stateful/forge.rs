//! Forged packets.

use udccp_base::{Datagram, Ecn, HeaderBytes, Payload};
use udccp_wire::{
    Emitter, Header, HeaderKind, PacketType, PseudoHeader, ResetCode, Seqno, ServiceCode,
};

use super::{Input, SERVICE, Session};

impl Session {
    /// A header as if from `from`, with numbers near those in use.
    fn forged_header(&self, from: usize, input: &mut Input<'_>) -> Option<(Datagram, Header)> {
        let (like, mine) = match (&self.last[from], &self.last[1 - from]) {
            (Some(last), _) => last.clone(),
            (None, Some((d, header))) => {
                let (src_port, dst_port) = (header.dst_port, header.src_port);
                let like = Datagram { src: d.dst, dst: d.src, ..d.clone() };
                (like, Header { src_port, dst_port, seq: Seqno::new(900), ..*header })
            }
            (None, None) => return None,
        };
        let theirs = self.last[1 - from].as_ref().map_or(Seqno::ZERO, |(_, h)| h.seq);
        let ty = PacketType::ALL[input.below(PacketType::ALL.len())];
        let seq = near(mine.seq, input.byte());
        let ack = near(theirs, input.byte().wrapping_sub(1));
        let flags = input.byte();
        let kind = kind_of(ty, ack, flags);
        let ccval = flags & 15;
        let cscov = if flags & 32 == 0 { 0 } else { flags & 7 };
        Some((like, Header { seq, kind, x: flags & 64 == 0, ccval, cscov, ..mine }))
    }

    /// Sends a well-formed packet with any type, numbers and options.
    pub(super) fn forge(&mut self, input: &mut Input<'_>) {
        let from = input.below(2);
        let Some((like, header)) = self.forged_header(from, input) else { return };
        let shape = input.byte();
        let mut buf = bytes::BytesMut::with_capacity(128);
        let mut emitter = Emitter::new(&mut buf, &header);
        for _ in 0..shape & 3 {
            let kind = option_type(input.byte());
            let len = if kind < 32 { 0 } else { input.below(12) };
            let _ = emitter.raw_option(kind, input.bytes(len));
        }
        let data = u32::from(shape >> 2) * u32::from(shape & 4 != 0);
        let pseudo = PseudoHeader::new(like.src.ip(), like.dst.ip());
        emitter.finish(&pseudo, &[], data as usize);
        let header = HeaderBytes::take_from(&mut buf);
        let ecn = if shape & 8 == 0 { Ecn::Ect0 } else { Ecn::Ce };
        self.arrive(1 - from, Datagram { header, ecn, payload: Payload::Zeros(data), ..like });
    }

    /// Sends a packet with some bytes changed or appended, and a correct checksum. (With a wrong
    /// one it would be dropped before anything else is checked.)
    pub(super) fn raw(&mut self, input: &mut Input<'_>) {
        let from = input.below(2);
        let Some((like, _)) = self.last[from].clone().or_else(|| self.last[1 - from].clone())
        else {
            return;
        };
        let mut bytes = like.header.to_vec();
        for _ in 0..=input.below(4) {
            let (place, value) = (input.below(bytes.len()), input.byte());
            bytes[place] ^= value;
        }
        bytes.extend_from_slice(input.bytes(12));
        fix_checksum(&mut bytes, &PseudoHeader::new(like.src.ip(), like.dst.ip()));
        let header = bytes.into();
        self.arrive(1 - from, Datagram { header, payload: Payload::EMPTY, ..like });
    }
}

fn near(number: Seqno, step: u8) -> Seqno {
    match step {
        0..=99 => number.add(u64::from(step)),
        100..=199 => number.sub(u64::from(step - 100)),
        _ => number.add(1 << (u32::from(step) - 200).min(47)),
    }
}

fn kind_of(ty: PacketType, ack: Seqno, flags: u8) -> HeaderKind {
    let service = if flags & 128 == 0 { SERVICE } else { ServiceCode(7) };
    HeaderKind::of(ty, ack, service).with_reset(ResetCode::from_number(flags & 15), [0; 3])
}

/// Maps a byte to an option type, mostly one that exists.
fn option_type(byte: u8) -> u8 {
    match byte {
        0..=95 => [0, 1, 2, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44][byte as usize % 16],
        96..=127 => 192 + byte % 4,
        other => other,
    }
}

fn fix_checksum(bytes: &mut [u8], pseudo: &PseudoHeader) {
    if bytes.len() < 12 {
        return;
    }
    bytes[5] &= 0xf0;
    bytes[6..8].copy_from_slice(&[0, 0]);
    let mut sum = pseudo.sum(udccp_wire::IP_PROTOCOL, bytes.len());
    sum.add(bytes);
    let checksum = sum.checksum().to_be_bytes();
    bytes[6..8].copy_from_slice(&checksum);
}
