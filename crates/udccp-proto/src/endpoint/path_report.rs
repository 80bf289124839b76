//! What ICMP says (RFC 4340 section 14.1).

use core::net::SocketAddr;

use udccp_base::Instant;
use udccp_wire::{RawSeq, Seqno};

use super::{Endpoint, FourTuple};

/// What an ICMP message said about a packet that we sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathReport {
    /// Packet too big: the path takes IP packets up to this many bytes.
    PathMtu(u16),
    /// Host, protocol or port unreachable, or administratively prohibited. Ends a handshake;
    /// an open connection goes on.
    Unreachable,
}

/// The fields of a quoted DCCP header that matter.
struct Quoted {
    src_port: u16,
    dst_port: u16,
    seq: RawSeq,
}

impl Endpoint {
    /// An ICMP message about a packet that we sent from `local` to `remote`; `quoted` is the
    /// DCCP header that it quotes (at least 12 bytes, 16 with long sequence numbers). It is
    /// believed only if the quoted sequence number is of a packet that we sent lately.
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
        // A Listen made no connection yet: what is said of it changes nothing.
        //= 5596-2.2.2-4
        let Some(index) = self.table.find(&tuple) else { return };
        let Some((connection, mut ctx)) = self.connection_at(now, index) else { return };
        if !connection.is_alive() || !connection.sent_lately(quoted.seq) {
            return;
        }
        match report {
            PathReport::PathMtu(mtu) => connection.shrink_path_mtu(&mut ctx, mtu),
            PathReport::Unreachable => connection.on_unreachable(&mut ctx),
        }
        self.make_ready(index);
    }
}

fn parse(header: &[u8]) -> Option<Quoted> {
    let &[s0, s1, d0, d1, _, _, _, _, type_x, b9, b10, b11] = header.first_chunk()?;
    let seq = if type_x & 1 == 0 {
        RawSeq::Short(u32::from_be_bytes([0, b9, b10, b11]))
    } else {
        let word = header.get(8..)?.first_chunk()?;
        RawSeq::Long(Seqno::new(u64::from_be_bytes(*word)))
    };
    let (src_port, dst_port) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
    Some(Quoted { src_port, dst_port, seq })
}
