//! Answers packets that belong to no connection (RFC 4340 section 8.3.1).

use core::net::SocketAddr;
use std::collections::VecDeque;

use udccp_base::{Datagram, Ecn, Payload};
use udccp_wire::{Emitter, Header, HeaderKind, PseudoHeader, RawSeq, ResetCode, Seqno};

use crate::connection::{Arena, Received};

/// Maximum number of answers in the queue. More are only needed in a flood, or while the network
/// takes nothing. A peer that gets no answer tries again.
const MAX_WAITING: usize = 1024;

/// Answers to send, oldest first.
#[derive(Clone, Debug, Default)]
#[expect(clippy::box_collection, reason = "few endpoints have any, and there are many")]
pub(super) struct Answers(Option<Box<VecDeque<Datagram>>>);

impl Answers {
    /// Whether there is no answer to send.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|answers| answers.is_empty())
    }

    /// Queues an answer. Returns false if there was no room.
    pub(super) fn push(&mut self, answer: Datagram) -> bool {
        let answers = self.0.get_or_insert_default();
        let has_room = answers.len() < MAX_WAITING;
        if has_room {
            answers.push_back(answer);
        }
        has_room
    }

    /// Removes the oldest answer.
    pub(super) fn pop(&mut self) -> Option<Datagram> {
        self.0.as_mut()?.pop_front()
    }
}

/// The Reset that answers `packet`. Its numbers come from the packet, since we have none.
pub(super) fn reset_for(
    packet: &Received<'_>,
    code: ResetCode,
    data: [u8; 3],
    arena: &mut Arena,
) -> Datagram {
    let view = &packet.view;
    // With short numbers, the upper 24 bits are zero.
    let seq = match view.ack_raw() {
        Some(RawSeq::Long(ackno)) => ackno.next(),
        Some(RawSeq::Short(low)) => Seqno::new(u64::from(low.wrapping_add(1) & 0xff_ffff)),
        None => Seqno::ZERO,
    };
    let ack = view.seq_raw().bits();
    let header = Header {
        src_port: view.dst_port(),
        dst_port: view.src_port(),
        ccval: 0,
        cscov: 0,
        x: true,
        seq,
        kind: HeaderKind::Reset { ack, code, data },
    };
    alone(&header, packet.arrival.datagram.dst, packet.arrival.datagram.src, arena)
}

/// A packet without options or data that belongs to no connection.
pub(super) fn alone(
    header: &Header,
    src: SocketAddr,
    dst: SocketAddr,
    arena: &mut Arena,
) -> Datagram {
    let emitter = Emitter::new(arena.buffer(), header);
    if dst.port() == 0 {
        emitter.finish(&PseudoHeader::new(src.ip(), dst.ip()), &[], 0);
    } else {
        emitter.finish_encapsulated(0);
    }
    let header = arena.take();
    let (ecn, payload) = (Ecn::NotEct, Payload::EMPTY);
    Datagram { src, dst, protocol: Datagram::DCCP, ecn, header, payload }
}
