//! Processes ICMP messages. With one exception, they are accepted only if they quote a packet that
//! we sent (RFC 4340 section 14.1).

use core::net::SocketAddr;

use udccp_base::Instant;
use udccp_wire::{RawSeq, Seqno};

use super::Endpoint;
use crate::tuple::FourTuple;

/// What an ICMP message reports about a packet that we sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathReport {
    /// Packet too big: the path carries IP packets up to this many bytes.
    PathMtu(u16),
    /// The MTU of our own interface in bytes. It is believed whatever it is.
    InterfaceMtu(u16),
    /// Network or host unreachable, or administratively prohibited. This ends a handshake, but not
    /// an open connection.
    Unreachable,
    /// The peer's host reports that no program uses this UDP port, or that it does not support the
    /// protocol. This ends a handshake. It ends an open connection after three reports, each about
    /// a packet sent after the one before, without a valid packet from the peer in between.
    PortUnreachable,
}

/// The fields of a quoted DCCP header that are needed.
struct Quoted {
    src_port: u16,
    dst_port: u16,
    /// `None` if the message quotes too little.
    seq: Option<RawSeq>,
}

impl Endpoint {
    /// Processes an ICMP message about a packet that we sent from `local` to `remote`. `quoted` is
    /// the DCCP header that it quotes (at least 12 bytes, 16 with long sequence numbers). It is
    /// believed only if the quoted sequence number is that of a recent packet of ours. Reports of
    /// packets that are too big are also believed if they recur while packets are lost.
    pub fn handle_path_report(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        quoted: &[u8],
        report: PathReport,
    ) {
        let Some(quoted) = parse(quoted) else { return };
        let tuple =
            FourTuple { local, local_port: quoted.src_port, remote, remote_port: quoted.dst_port };
        // After a Listen there is no connection yet, so the report changes nothing.
        //= 5596-2.2.2-4
        let Some(index) = self.table.find(&self.slots, &tuple) else { return };
        let Some((connection, mut ctx)) = self.connection_at(now, index) else { return };
        if !connection.is_alive() {
            return;
        }
        let ours = quoted.seq.and_then(|seq| connection.sent_lately(seq));
        match (report, ours) {
            (PathReport::PathMtu(mtu), _) => connection.on_too_big(&mut ctx, mtu, ours),
            (PathReport::InterfaceMtu(mtu), _) => connection.limit_path_mtu(&mut ctx, mtu),
            (PathReport::Unreachable, Some(_)) => connection.on_unreachable(&mut ctx),
            (PathReport::PortUnreachable, Some(seq)) => {
                connection.on_port_unreachable(&mut ctx, seq);
            }
            (PathReport::Unreachable | PathReport::PortUnreachable, None) => {}
        }
        self.make_ready(index);
    }
}

/// The sequence number in a header from its ninth byte on.
fn quoted_seq(rest: &[u8]) -> Option<RawSeq> {
    let &[type_x, b9, b10, b11] = rest.first_chunk()?;
    if type_x & 1 == 0 {
        return Some(RawSeq::Short(u32::from_be_bytes([0, b9, b10, b11])));
    }
    Some(RawSeq::Long(Seqno::new(u64::from_be_bytes(*rest.first_chunk()?))))
}

fn parse(header: &[u8]) -> Option<Quoted> {
    let &[s0, s1, d0, d1] = header.first_chunk()?;
    let seq = header.get(8..).and_then(quoted_seq);
    let (src_port, dst_port) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
    Some(Quoted { src_port, dst_port, seq })
}
