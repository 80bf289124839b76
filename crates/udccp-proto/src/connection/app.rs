//! Calls of the application on a connection.

use udccp_base::{Duration, Instant, Message, Payload};

use super::recv_side::{Delivery, Pressure};
use super::send_side::Discarded;
use super::timers::Timer;
use super::{Connection, Credit, Ctx};
use crate::config::QueuePolicy;
use crate::error::{CloseReason, RecvError, SendError};
use crate::event::{DropReason, EventKind, MessageFate};
use crate::state::State;

impl Connection {
    /// Queues a message.
    pub(crate) fn send(&mut self, ctx: &mut Ctx<'_>, message: Message) -> Result<(), SendError> {
        if !self.may_send() {
            return Err(SendError::NotOpen(message));
        }
        if let Err(max) = self.check_message(ctx, message.payload.len()) {
            return Err(SendError::TooLarge { max, message });
        }
        if self.send.queue().fits(message.payload.len()) {
            self.send.queue_mut().put(message);
            return Ok(());
        }
        self.send_when_full(ctx, message)
    }

    /// Queues messages while there is room for one of the maximum size.
    #[inline]
    pub(crate) fn send_many(
        &mut self,
        ctx: &mut Ctx<'_>,
        messages: &mut impl Iterator<Item = Message>,
    ) -> Result<(), SendError> {
        if !self.may_send() {
            return Ok(());
        }
        while self.send.queue().fits(self.path.max_message_size()) {
            let Some(message) = messages.next() else { break };
            if let Err(max) = self.check_message(ctx, message.payload.len()) {
                return Err(SendError::TooLarge { max, message });
            }
            self.send.queue_mut().put(message);
        }
        Ok(())
    }

    /// Checks that a message is not too large. The error is the largest size.
    #[inline]
    fn check_message(&mut self, ctx: &mut Ctx<'_>, size: usize) -> Result<(), usize> {
        let max = self.path.max_message_size();
        //= 4340-14.2-7
        //= 4340-14-5
        if size > max {
            return Err(max);
        }
        if self.path.on_message(size, self.state == State::Open) {
            self.forget_usual();
            self.start_probing(ctx);
        }
        Ok(())
    }

    /// Queues messages of `bytes` zeros, at most `most`, while there is room for one of the maximum
    /// size. There is room for the first. Returns how many, or `None` if they are too large.
    #[inline]
    pub(crate) fn fill(&mut self, ctx: &mut Ctx<'_>, bytes: u32, most: u32) -> Option<u32> {
        if most == 0 || bytes == 0 || !self.may_send() {
            return Some(0);
        }
        self.check_message(ctx, bytes as usize).ok()?;
        let largest = self.path.max_message_size();
        Some(self.send.queue_mut().put_zeros(bytes, most, largest))
    }

    /// Removes all messages if they are zeros and nothing else follows from it. Returns their
    /// bytes; `None` if [`Self::take_received`] has to do it.
    #[inline]
    pub(crate) fn take_received_zeros(&mut self) -> Option<u64> {
        if self.acks.held_until().is_some() {
            return None;
        }
        self.recv.take_zeros().map(|bytes| bytes as u64)
    }

    /// Removes all messages. Returns their bytes, and whether acknowledgements that were held back
    /// may be sent now.
    #[inline]
    pub(crate) fn take_received(&mut self) -> (u64, bool) {
        let (messages, bytes) = self.recv.take_all();
        (bytes as u64, messages > 0 && self.resumes())
    }

    /// Queues a message when the queue is full: other queued messages may be discarded.
    #[cold]
    fn send_when_full(&mut self, ctx: &mut Ctx<'_>, message: Message) -> Result<(), SendError> {
        let mut discarded = Vec::new();
        let taken = self.send.queue_mut().push(ctx.now, message, &mut |d| discarded.push(d));
        for d in discarded {
            self.report_discarded(ctx, d);
        }
        taken.map_err(SendError::Full)
    }

    /// Whether congestion control, asked at this very instant, let no data be sent.
    #[inline]
    pub(crate) fn is_blocked(&self, now: Instant) -> bool {
        self.cc.is_blocked(now)
    }

    /// Whether a message may be queued at all.
    pub(crate) fn may_send(&self) -> bool {
        self.state.is_sendable() && self.ending.lets_send()
    }

    /// Whether there is room for a message of the maximum size.
    pub(crate) fn is_writable(&self) -> bool {
        self.may_send() && self.has_room()
    }

    /// Whether the send queue has room for a message of the maximum size.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.send.queue().fits(self.path.max_message_size())
    }

    /// How many messages of the maximum size there is room for.
    pub(crate) fn send_queue_free(&self) -> usize {
        self.send.queue().free(self.path.max_message_size())
    }

    /// Counts and reports a message that will not be sent.
    pub(super) fn report_discarded(&mut self, ctx: &mut Ctx<'_>, discarded: Discarded) {
        let Discarded { reason, bytes, token } = discarded;
        let drops = &mut self.counters.rare().drops;
        *match reason {
            DropReason::Expired => &mut drops.send_expired,
            DropReason::Displaced => &mut drops.send_displaced,
            DropReason::TooLarge => &mut drops.send_too_large,
            DropReason::ConnectionEnded | DropReason::PeerShutdownRead => &mut drops.send_ended,
        } += 1;
        self.emit(ctx, EventKind::MessageDropped { reason, bytes });
        if let Some(token) = token {
            self.emit(ctx, EventKind::MessageFate { token, fate: MessageFate::Dropped(reason) });
        }
    }

    /// Handles messages that the queue discarded. Continues what waited for room, or for the last
    /// message: the queue may now be empty.
    pub(super) fn after_discards(&mut self, ctx: &mut Ctx<'_>, discarded: Vec<Discarded>) {
        for d in discarded {
            self.report_discarded(ctx, d);
        }
        self.note_writable(ctx);
        self.after_data(ctx);
    }

    /// Discards messages that are past their deadline.
    pub(super) fn purge_expired(&mut self, ctx: &mut Ctx<'_>) {
        let mut discarded = Vec::new();
        // A deadline is the last instant at which a message may be sent.
        self.send.queue_mut().purge_expired(ctx.now, &mut |d| discarded.push(d));
        self.after_discards(ctx, discarded);
    }

    /// Reports `Writable` if the application was refused before and waits for it.
    pub(super) fn note_writable(&mut self, ctx: &mut Ctx<'_>) {
        let is_wanted = self.send.queue_mut().take_writable() && self.may_send();
        let is_change = self.send.queue().is_watched() && self.takes_change();
        if is_wanted || is_change {
            self.emit(ctx, EventKind::Writable);
        }
    }

    fn takes_change(&mut self) -> bool {
        let is_writable = self.is_writable();
        self.send.queue_mut().take_change(is_writable)
    }

    /// Requests a `Writable` event as soon as the result of `is_writable` changes.
    pub(crate) fn watch_writable(&mut self) {
        let is_writable = self.is_writable();
        self.send.queue_mut().watch(is_writable);
    }

    /// Requests a `Writable` event once the send queue has fallen to half its limit.
    pub(crate) fn want_writable(&mut self) {
        self.send.queue_mut().want_room();
    }

    /// Limits and policy of the send queue.
    pub(crate) fn send_queue_limits(&self) -> ((usize, usize), QueuePolicy) {
        (self.send.queue().limits(), self.send.queue().policy())
    }

    /// Sets limits of the send queue, in messages and bytes.
    pub(crate) fn set_send_queue(&mut self, ctx: &mut Ctx<'_>, packets: usize, bytes: usize) {
        self.send.queue_mut().set_limits(packets, bytes);
        self.note_writable(ctx);
    }

    /// Sets what happens when the send queue is full.
    pub(crate) fn set_queue_policy(&mut self, policy: QueuePolicy) {
        self.send.queue_mut().set_policy(policy);
    }

    /// The time that a close may take to deliver what is queued.
    pub(crate) fn close_linger(&self) -> Duration {
        self.config.close_linger
    }

    /// Sets the linger time; a close in progress keeps its own.
    pub(crate) fn set_close_linger(&mut self, linger: Duration) {
        self.config.own().close_linger = linger;
    }

    /// Whether a server enters TIMEWAIT itself when it closes.
    pub(crate) fn server_timewait(&self) -> bool {
        self.config.server_timewait
    }

    /// Sets whether a server enters TIMEWAIT itself when it closes.
    pub(crate) fn set_server_timewait(&mut self, holds: bool) {
        self.config.own().server_timewait = holds;
    }

    /// Checksum coverage with which we send data now, and the least that we accept (section 9.2).
    pub(crate) fn coverage(&self) -> (u8, u8) {
        let agreed = self.negotiation.agreed();
        (self.send.coverage(agreed), agreed.min_cscov)
    }

    /// The message that `recv` would return.
    pub(crate) fn peek(&self) -> Option<Payload> {
        self.recv.front()
    }

    /// Returns the next message, and whether acknowledgements that were held back may be sent now.
    pub(crate) fn recv(&mut self) -> (Result<Option<Delivery>, RecvError>, bool) {
        if let Some(message) = self.recv.pop() {
            return (Ok(Some(message)), self.resumes());
        }
        let end = match self.ending.reason() {
            Some(reason) => Err(RecvError::Closed(reason)),
            None if self.recv.is_shut() => Err(RecvError::ReadShutdown),
            None => Ok(None),
        };
        (end, false)
    }

    /// Passes up to `max` messages to `take`. Returns how many, and the flag of [`Self::recv`].
    #[inline]
    pub(crate) fn recv_many(
        &mut self,
        max: usize,
        take: &mut impl FnMut(Payload),
    ) -> (usize, bool) {
        let count = self.recv.take_many(max, take);
        (count, count > 0 && self.resumes())
    }

    /// Whether acknowledgements were held back that may be sent now. Ends holding them back even if
    /// none is owed: the next one must not wait.
    fn resumes(&mut self) -> bool {
        let resumes = self.acks.held_until().is_some() && self.recv.pressure() < Pressure::Slow;
        if resumes {
            self.acks.end_hold();
        }
        resumes
    }

    /// Whether `recv` would return a message or the end.
    pub(crate) fn is_readable(&self) -> bool {
        self.recv.is_readable() || self.ending.reason().is_some()
    }

    /// Whether the receive queue is half full or more.
    pub(crate) fn is_filling(&self) -> bool {
        self.recv.pressure() >= Pressure::Hold
    }

    /// Closes when the send queue is empty, or the linger time is over.
    pub(crate) fn close(&mut self, ctx: &mut Ctx<'_>) {
        if self.state.is_over() || !self.ending.close() {
            return;
        }
        if self.send.queue().is_empty() && !matches!(self.state, State::Request | State::Respond) {
            self.finish_close(ctx);
        } else if self.send.queue().is_empty() {
            self.give_up(ctx, CloseReason::LocalClose);
        } else {
            self.timers.set(Timer::Linger, ctx.now + self.config.close_linger);
        }
    }

    /// Ends the connection at once.
    pub(crate) fn abort(&mut self, ctx: &mut Ctx<'_>) {
        if !self.state.is_over() {
            self.give_up(ctx, CloseReason::LocalAbort);
        }
    }

    /// The application stops reading.
    pub(crate) fn shutdown_read(&mut self) {
        self.recv.shut();
        self.resumes();
    }

    /// The application can hardly keep up, or no longer has that problem (section 11.6).
    pub(crate) fn set_slow_receiver(&mut self, is_slow: bool) {
        self.recv.set_slow_receiver(is_slow);
    }

    /// The application has released the id.
    pub(crate) fn release(&mut self, ctx: &mut Ctx<'_>) {
        self.close(ctx);
        self.shutdown_read();
        self.ending.release();
    }

    /// Whether the application has released the id.
    pub(crate) fn is_released(&self) -> bool {
        self.ending.is_released()
    }

    /// Whether the handshake was ever finished.
    pub(crate) fn was_open(&self) -> bool {
        self.handshake.was_open()
    }

    /// The application accepts the connection, which no longer belongs to the listener. Returns why
    /// it ended, if it has: no event has reported that yet.
    pub(crate) fn accept(&mut self) -> Option<CloseReason> {
        self.who.listener = None;
        self.ending.reason()
    }

    /// Returns the number of a packet if we sent it recently. Only then is an ICMP message that
    /// quotes it credible (RFC 4340 section 14.1).
    pub(crate) fn sent_lately(&mut self, raw: udccp_wire::RawSeq) -> Option<udccp_wire::Seqno> {
        //= 4340-14.1-6
        // 24 bits are easy to guess. If we send no short numbers, no quote has one.
        if matches!(raw, udccp_wire::RawSeq::Short(_)) && !self.negotiation.agreed().short_out {
            return None;
        }
        let seq = raw.extend(self.seq.gss);
        self.seq.ack_in_window(seq).then_some(seq)
    }

    /// Starts the connection: the client's Request, or the timer of the server's handshake.
    pub(crate) fn start(&mut self, now: Instant) {
        match self.state {
            State::Request => self.outbox.handshake = true,
            _ => self.timers.set(Timer::Handshake, now + self.config.handshake_timeout),
        }
    }

    /// The connection answers one Request and is then forgotten, so data on the Request cannot be
    /// kept.
    pub(crate) fn refuse_handshake_data(&mut self) {
        self.handshake.refuse_data();
    }

    /// Sets the Init Cookies of the Response.
    pub(crate) fn give_cookies(&mut self, cookies: Vec<Vec<u8>>) {
        self.handshake.give_cookies(cookies);
    }

    /// Sets how much may be sent before the peer's address is validated.
    pub(crate) fn set_credit(&mut self, credit: Credit) {
        self.credit = credit;
    }

    /// The connection was created from an Init Cookie that is valid until `until`. The peer's
    /// address is validated: it received our Response.
    pub(crate) fn came_by_cookie(&mut self, until: Instant) {
        self.handshake.came_by_cookie(until);
        self.credit = Credit::UNLIMITED;
    }

    /// Takes the peer's first sequence number, before the steps that follow step 3.
    pub(crate) fn start_receiving(&mut self, isr: udccp_wire::Seqno) {
        self.seq.start_receiving(isr);
    }
}
