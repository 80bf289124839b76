//! Sends data: one message, one packet.

use udccp_base::{Datagram, Duration, Instant};
use udccp_wire::Seqno;

use super::super::recv_side::Pressure;
use super::super::timers::Timer;
use super::super::{Connection, Ctx};
use crate::ccid::Feedback;
use crate::state::State;

impl Connection {
    /// Sends the first message of the queue if congestion control allows it.
    #[inline(never)]
    pub(super) fn transmit_data(&mut self, ctx: &mut Ctx<'_>, out: &mut Option<Datagram>) -> bool {
        let Some(size) = self.front_len(ctx) else { return false };
        if !self.may_leave(ctx, size) {
            self.start_deadline_timer();
            return false;
        }
        let ack = self.ack_on_data(ctx, size);
        let Some((payload, token)) = self.send.queue_mut().pop() else { return false };
        match ack {
            None => self.write_data(ctx, out, payload),
            Some(ack) => self.write_data_ack(ctx, out, ack, payload),
        }
        if let Some(token) = token {
            self.send.follow(self.seq.gss, token);
        }
        if self.send.queue().awaits_change() {
            self.note_writable(ctx);
        }
        self.after_data(ctx);
        true
    }

    /// Whether `size` bytes of data may be sent now.
    fn may_leave(&mut self, ctx: &Ctx<'_>, size: usize) -> bool {
        matches!(self.state, State::PartOpen | State::Open)
            && self.has_what_it_needs()
            && (self.handshake.cookies().is_empty() || self.cookies_fit(size))
            && self.cc.may_send(&self.config, ctx.now, size as u32)
    }

    /// Called after data was sent, if nothing but data is left to send. Returns whether no more can
    /// be sent now, because none is queued or the window is full. The state is then the same as
    /// after another attempt without result.
    #[inline(always)]
    pub(super) fn was_last_data(&mut self, now: Instant) -> bool {
        let waits = !self.send.queue().is_empty();
        if waits && !self.cc.may_keep_rest() || !self.is_drained(now) {
            return false;
        }
        if waits {
            if self.send.queue().has_deadlines() || !self.handshake.cookies().is_empty() {
                return false;
            }
            let size = self.send.queue().next_len().unwrap_or(0);
            if !self.cc.keeps_rest(now, size as u32) {
                return false;
            }
            self.start_deadline_timer();
        }
        true
    }

    /// Whether the peer agreed to the features that congestion control requires, such as Send Ack
    /// Vector.
    pub(in super::super) fn has_what_it_needs(&self) -> bool {
        self.negotiation.lets_data_leave(self.cc.sender_needs())
    }

    /// Whether the server's Init Cookies fit next to `size` bytes of data. A message too long for
    /// that waits until the server has received them.
    fn cookies_fit(&self, size: usize) -> bool {
        self.acknowledgement_fits(size + self.handshake.cookie_bytes())
    }

    /// Length of the next message. Discards and reports those that have expired.
    #[inline]
    fn front_len(&mut self, ctx: &mut Ctx<'_>) -> Option<usize> {
        match self.send.queue().has_deadlines() {
            false => self.send.queue().next_len(),
            true => self.front_len_in_time(ctx),
        }
    }

    fn front_len_in_time(&mut self, ctx: &mut Ctx<'_>) -> Option<usize> {
        let mut discarded = Vec::new();
        let size = self.send.queue_mut().front_len(ctx.now, &mut |d| discarded.push(d));
        if !discarded.is_empty() {
            self.after_discards(ctx, discarded);
        }
        size
    }

    /// The number to acknowledge in a data packet, if an acknowledgement is due and fits. Otherwise
    /// a Data packet without one is shorter.
    #[inline(always)]
    fn ack_on_data(&mut self, ctx: &Ctx<'_>, size: usize) -> Option<Seqno> {
        // Before the handshake is done, only an acknowledgement shows the server that its Response
        // arrived (RFC 4340 section 8.1.5).
        //= 4340-4.3-1
        //= 4340-8.1.5-1
        //= 4340-8.1.4-5
        if self.state == State::PartOpen {
            return Some(self.ackno());
        }
        if !self.wants_to_acknowledge(ctx) {
            return None;
        }
        //= 4340-11.2-1
        //= 4340-11.3-1
        if self.acknowledgement_fits(size) {
            return Some(self.ackno());
        }
        //= 4340-11.2-2
        // A separate Ack follows (section 11.2).
        self.outbox.set_ack_aside(ctx.now);
        None
    }

    fn wants_to_acknowledge(&mut self, ctx: &Ctx<'_>) -> bool {
        if self.outbox.ack || self.negotiation.has_due(ctx.now) {
            return true;
        }
        let is_wanted = self.cc.wants_ack_of_ack();
        if is_wanted && self.recv.pressure() < Pressure::Mark {
            return true;
        }
        // It would acknowledge data as well, and the peer would send more than there is room for.
        let owed = is_wanted || self.cc.feedback(ctx.now) != Feedback::None;
        owed && !self.feedback_is_held(ctx.now)
    }

    /// Continues a close that waited for the last message.
    #[inline]
    pub(in super::super) fn after_data(&mut self, ctx: &mut Ctx<'_>) {
        if self.ending.is_closed_by_us() && self.send.queue().is_empty() {
            self.finish_close(ctx);
        }
    }

    #[inline]
    pub(super) fn start_deadline_timer(&mut self) {
        if self.send.queue().has_deadlines() || self.timers.is_any() {
            self.set_deadline_timer();
        }
    }

    #[inline(never)]
    fn set_deadline_timer(&mut self) {
        // A message may still be sent at its deadline, so it expires just after.
        let just_after = Duration::from_nanos(1);
        let at = self.send.queue().next_deadline().map(|d| d + just_after);
        self.timers.set_or_stop(Timer::Deadline, at);
    }
}
