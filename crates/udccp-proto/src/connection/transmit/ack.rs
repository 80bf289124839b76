//! Sends acknowledgements without data.

use udccp_base::{Datagram, Instant};
use udccp_wire::Seqno;

use super::super::ack_state::Hold;
use super::super::recv_side::Pressure;
use super::super::{Connection, Ctx};
use crate::ccid::Feedback;

const ACK_HEADER: usize = 24;

/// More messages than this at once are a stream, rather than a request that waits for a reply.
const MESSAGES_OF_A_QUESTION: usize = 2;

impl Connection {
    /// The acknowledgement number: the newest acknowledgeable packet.
    pub(super) fn ackno(&self) -> Seqno {
        //= 4340-7.4-1
        self.acks.ackno().unwrap_or(self.seq.gsr)
    }

    /// Whether an Ack is due now that no data carried.
    #[inline(always)]
    pub(super) fn owes_ack_now(&mut self, now: Instant) -> bool {
        !self.outbox.is_ack_held && self.ack_is_due(now)
    }

    /// Sends an Ack.
    #[inline(never)]
    pub(super) fn transmit_ack(&mut self, ctx: &mut Ctx<'_>, out: &mut Option<Datagram>) {
        let ack = self.ackno();
        self.counters.acks_sent += 1;
        self.write_ack(ctx, out, ack);
        self.ask_for_ack_of_vector(ctx.now, ack);
    }

    /// Only an acknowledgement of our acknowledgement lets us forget. If that is urgent, a Sync
    /// with the whole vector elicits one (RFC 4340 section 11.2).
    #[inline(always)]
    pub(super) fn ask_for_ack_of_vector(&mut self, now: Instant, ack: Seqno) {
        let is_told = self.negotiation.agreed().send_ack_vector;
        if is_told
            && self.acks.is_nearly_full()
            && self.limits.allow_vector_sync(now, self.config.sync_interval)
        {
            self.forget_usual();
            self.outbox.sync = Some(ack);
            self.outbox.sync_with_vector = true;
        }
    }

    /// Delays an acknowledgement that is due, to send it with data. Returns whether one is due and
    /// may wait. If many messages arrive at once it may not: their sender paces itself by it.
    pub(crate) fn hold_ack(&mut self, now: Instant) -> bool {
        let may_wait = self.state.transfers() && self.recv.waiting().0 <= MESSAGES_OF_A_QUESTION;
        let is_owed = self.outbox.ack || self.cc.feedback(now) == Feedback::Due;
        self.outbox.is_ack_held = is_owed && may_wait;
        self.outbox.is_ack_held
    }

    /// Whether a due acknowledgement is delayed.
    pub(crate) fn holds_ack(&self) -> bool {
        self.outbox.is_ack_held
    }

    /// Ends the delay of an acknowledgement. Returns whether one was delayed.
    pub(crate) fn release_ack(&mut self) -> bool {
        core::mem::take(&mut self.outbox.is_ack_held)
    }

    #[inline(always)]
    fn ack_is_due(&mut self, now: Instant) -> bool {
        if self.outbox.ack || self.negotiation.take_packet_request(now) {
            return true;
        }
        self.feedback_leaves(now)
    }

    /// Whether an Ack is due to tell the peer what arrived, or to end a train.
    #[inline(always)]
    pub(super) fn feedback_leaves(&mut self, now: Instant) -> bool {
        let ends_train = self.cc.wants_ack_after_data();
        if ends_train && self.recv.pressure() < Pressure::Mark {
            return true;
        }
        let due = ends_train || self.cc.is_feedback_due(now);
        due && !self.feedback_is_held(now)
    }

    /// Whether feedback waits because the receive queue is full. Now and then a Sync shows the peer
    /// that we are alive.
    #[inline]
    pub(super) fn feedback_is_held(&mut self, now: Instant) -> bool {
        // Nearly always the receive queue is empty.
        let may_be = self.recv.waiting().0 > 0 || self.acks.held_until().is_some();
        may_be && self.config.hold_acks_when_full && self.holds_feedback(now)
    }

    #[inline(never)]
    fn holds_feedback(&mut self, now: Instant) -> bool {
        let hold = self.acks.hold(now, self.recv.pressure());
        match hold {
            Hold::No | Hold::Continues => {}
            Hold::Begins => self.counters.rare().acks_held += 1,
            // A Sync does not acknowledge data.
            Hold::Silent => {
                self.forget_usual();
                self.outbox.sync = Some(self.ackno());
            }
        }
        hold != Hold::No
    }

    /// Whether an Ack Vector and the other options of an acknowledgement fit next to `size` bytes
    /// of data.
    pub(super) fn acknowledgement_fits(&self, size: usize) -> bool {
        let options = self.acks.option_bytes(self.negotiation.agreed().send_ack_vector);
        let ccid = self.cc.feedback_len_bytes();
        ACK_HEADER + options + ccid + size <= self.path.max_transport_len()
    }
}
