//! Acknowledgements without data.

use udccp_base::{Datagram, Duration, Instant, Payload};
use udccp_wire::{HeaderKind, Seqno};

use super::super::{Connection, Ctx};
use crate::ccid::Feedback;

const ACK_HEADER: usize = 24;

/// Longest silence while acknowledgements are held back.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);

impl Connection {
    /// The acknowledgement number: the newest acknowledgeable packet.
    pub(super) fn ackno(&self) -> Seqno {
        //= 4340-7.4-1
        self.ackvec.ackno().unwrap_or(self.seq.gsr)
    }

    /// Sends an Ack if one is owed now and no data carried it.
    pub(super) fn transmit_ack(&mut self, ctx: &mut Ctx<'_>, out: &mut Option<Datagram>) -> bool {
        if !self.ack_is_due(ctx.now) {
            return false;
        }
        let ack = self.ackno();
        self.counters.acks_sent += 1;
        self.write_packet(ctx, out, HeaderKind::Ack { ack }, Payload::EMPTY);
        let is_told = self.agreed.send_ack_vector;
        if is_told && self.ackvec.is_nearly_full() && self.limits.vector_syncs.take(ctx.now) {
            // Only an acknowledgement of an acknowledgement lets us forget; a Sync with the whole
            // vector elicits one (RFC 4340 section 11.2).
            self.outbox.sync = Some(ack);
            self.outbox.sync_with_vector = true;
        }
        true
    }

    fn ack_is_due(&mut self, now: Instant) -> bool {
        if self.outbox.ack || self.features.take_packet_request(now) {
            return true;
        }
        let due = self.rx.as_ref().is_some_and(|rx| rx.feedback(now) == Feedback::Due);
        due && !self.feedback_is_held(now)
    }

    /// Whether feedback waits because the receive queue is half full. Once it waits, it does so
    /// until the queue is nearly empty, so that the peer resumes with room. Now and then a Sync,
    /// which acknowledges nothing, shows the peer that we live.
    pub(super) fn feedback_is_held(&mut self, now: Instant) -> bool {
        if !self.config.hold_acks_when_full {
            return false;
        }
        if self.recv_queue.may_resume() {
            self.held_until = None;
        } else if self.recv_queue.is_holding() && self.held_until.is_none() {
            self.held_until = Some(now + LONGEST_SILENCE);
            self.counters.acks_held += 1;
        }
        if self.held_until.is_some_and(|until| until <= now) {
            self.held_until = Some(now + LONGEST_SILENCE);
            self.outbox.sync = Some(self.ackno());
        }
        self.held_until.is_some()
    }

    /// Whether an Ack Vector and the like fit beside so many bytes of data.
    pub(super) fn acknowledgement_fits(&self, size: usize) -> bool {
        let cells = if self.agreed.send_ack_vector { self.ackvec.cells().len() + 2 } else { 0 };
        let dropped = if self.drops.is_empty() { 0 } else { 2 + super::packet::DROPPED_BLOCKS };
        let ccid = self.rx.as_ref().map_or(0, |rx| rx.feedback_len_bytes());
        ACK_HEADER + cells + dropped + ccid + size <= self.path.max_transport_len()
    }
}
