//! Does what the application asks of a connection.

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

    /// Queues messages for as long as one of the maximum size would be taken.
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

    /// Whether a message is not too large; where it is, the largest size.
    #[inline]
    fn check_message(&mut self, ctx: &mut Ctx<'_>, size: usize) -> Result<(), usize> {
        let max = self.path.max_message_size();
        //= 4340-14.2-7
        //= 4340-14-5
        if size > max {
            return Err(max);
        }
        if self.path.on_message(size, self.state == State::Open) {
            self.start_probing(ctx);
        }
        Ok(())
    }

    /// Queues messages of `bytes` zeros for as long as one of the maximum size would be taken, at
    /// most `most` of them. Returns how many; `None` where they are too large.
    #[inline]
    pub(crate) fn fill(&mut self, ctx: &mut Ctx<'_>, bytes: u32, most: u32) -> Option<u32> {
        if most == 0 || !self.is_writable() {
            return Some(0);
        }
        self.check_message(ctx, bytes as usize).ok()?;
        let max = self.path.max_message_size();
        let mut taken = 0;
        while taken < most && self.send.queue().fits(max) {
            self.send.queue_mut().put_zeros(bytes);
            taken += 1;
        }
        Some(taken)
    }

    /// Takes all messages out; their bytes, and whether acknowledgements that were held back may
    /// leave now.
    #[inline]
    pub(crate) fn take_received(&mut self) -> (u64, bool) {
        let (messages, bytes) = self.recv.take_all();
        (bytes as u64, messages > 0 && self.resumes())
    }

    /// Queues a message for which others have to go.
    #[cold]
    fn send_when_full(&mut self, ctx: &mut Ctx<'_>, message: Message) -> Result<(), SendError> {
        let mut discarded = Vec::new();
        let taken = self.send.queue_mut().push(ctx.now, message, &mut |d| discarded.push(d));
        for d in discarded {
            self.report_discarded(ctx, d);
        }
        taken.map_err(SendError::Full)
    }

    /// Whether at this very instant congestion control was asked, and data has to wait.
    #[inline]
    pub(crate) fn is_blocked(&self, now: Instant) -> bool {
        self.cc.is_blocked(now)
    }

    /// Whether a message may be queued at all.
    pub(crate) fn may_send(&self) -> bool {
        self.state.is_sendable() && self.ending.lets_send()
    }

    /// Whether a message of the maximum size would be taken.
    pub(crate) fn is_writable(&self) -> bool {
        self.may_send() && self.send.queue().fits(self.path.max_message_size())
    }

    /// Messages of the maximum size that would be taken.
    pub(crate) fn send_queue_free(&self) -> usize {
        self.send.queue().free(self.path.max_message_size())
    }

    /// Counts and reports a message that will not leave.
    pub(super) fn report_discarded(&mut self, ctx: &mut Ctx<'_>, discarded: Discarded) {
        let Discarded { reason, bytes, token } = discarded;
        let drops = &mut self.counters.rare().drops;
        *match reason {
            DropReason::Expired => &mut drops.send_expired,
            DropReason::Displaced => &mut drops.send_displaced,
            DropReason::TooLarge => &mut drops.send_too_large,
            DropReason::ConnectionEnded | DropReason::PeerShutdownRead => {
                &mut drops.send_unfinished
            }
        } += 1;
        self.emit(ctx, EventKind::MessageDropped { reason, bytes });
        if let Some(token) = token {
            self.emit(ctx, EventKind::MessageFate { token, fate: MessageFate::Dropped(reason) });
        }
    }

    /// The same for some that the queue threw out. Who waits for room or for the last message
    /// goes on: nothing may be left that leaves.
    pub(super) fn after_discards(&mut self, ctx: &mut Ctx<'_>, discarded: Vec<Discarded>) {
        for d in discarded {
            self.report_discarded(ctx, d);
        }
        self.note_writable(ctx);
        self.after_data(ctx);
    }

    /// Throws out messages that grew too old.
    pub(super) fn purge_expired(&mut self, ctx: &mut Ctx<'_>) {
        let mut discarded = Vec::new();
        // A deadline is the last instant at which a message may leave.
        self.send.queue_mut().purge_expired(ctx.now, &mut |d| discarded.push(d));
        self.after_discards(ctx, discarded);
    }

    /// Says `Writable` where a refused application waits for it.
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

    /// Asks for a `Writable` event as soon as `is_writable` gives another answer.
    pub(crate) fn watch_writable(&mut self) {
        let is_writable = self.is_writable();
        self.send.queue_mut().watch(is_writable);
    }

    /// Asks for a `Writable` event once the send queue has fallen to half its limit.
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

    /// Sets what a full send queue does.
    pub(crate) fn set_queue_policy(&mut self, policy: QueuePolicy) {
        self.send.queue_mut().set_policy(policy);
    }

    /// The time that a close may take to deliver what is queued.
    pub(crate) fn close_linger(&self) -> Duration {
        self.config.close_linger
    }

    /// Sets that time; a close that is under way keeps its own.
    pub(crate) fn set_close_linger(&mut self, linger: Duration) {
        self.config.own().close_linger = linger;
    }

    /// Whether a server holds TIMEWAIT itself when it closes.
    pub(crate) fn server_timewait(&self) -> bool {
        self.config.server_timewait
    }

    /// Sets that.
    pub(crate) fn set_server_timewait(&mut self, holds: bool) {
        self.config.own().server_timewait = holds;
    }

    /// Checksum coverage of the data that we send now, and the least that we accept (section 9.2).
    pub(crate) fn coverage(&self) -> (u8, u8) {
        let agreed = self.negotiation.agreed();
        (self.send.coverage(agreed), agreed.min_cscov)
    }

    /// The message that `recv` would give.
    pub(crate) fn peek(&self) -> Option<Payload> {
        self.recv.front()
    }

    /// The next message; the flag is whether acknowledgements that were held back may leave
    /// now.
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

    /// Gives up to `max` messages to `take`; how many, and the flag of [`Self::recv`].
    #[inline]
    pub(crate) fn recv_many(
        &mut self,
        max: usize,
        take: &mut impl FnMut(Payload),
    ) -> (usize, bool) {
        let count = self.recv.take_many(max, take);
        (count, count > 0 && self.resumes())
    }

    /// Whether acknowledgements were held back that may leave now. If none is owed, the next one
    /// must not wait either.
    fn resumes(&mut self) -> bool {
        let resumes = self.acks.held_until().is_some() && self.recv.pressure() < Pressure::Slow;
        if resumes {
            self.acks.end_hold();
        }
        resumes
    }

    /// Whether `recv` would give a message or the end.
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

    /// Ends at once.
    pub(crate) fn abort(&mut self, ctx: &mut Ctx<'_>) {
        if !self.state.is_over() {
            self.give_up(ctx, CloseReason::LocalAbort);
        }
    }

    /// Reads no more.
    pub(crate) fn shutdown_read(&mut self) {
        self.recv.shut();
        self.resumes();
    }

    /// The application can hardly keep up, or can again (section 11.6).
    pub(crate) fn set_slow_receiver(&mut self, is_slow: bool) {
        self.recv.set_slow_receiver(is_slow);
    }

    /// The application lets go.
    pub(crate) fn release(&mut self, ctx: &mut Ctx<'_>) {
        self.close(ctx);
        self.shutdown_read();
        self.ending.release();
    }

    /// Whether the application has let go.
    pub(crate) fn is_released(&self) -> bool {
        self.ending.is_released()
    }

    /// Whether the handshake was ever finished.
    pub(crate) fn was_open(&self) -> bool {
        self.handshake.was_open()
    }

    /// The application accepts: the connection is no longer the listener's. Returns why it ended,
    /// if it has: no event reported that yet.
    pub(crate) fn accept(&mut self) -> Option<CloseReason> {
        self.who.listener = None;
        self.ending.reason()
    }

    /// The number of a packet that we sent lately, so that an ICMP message that quotes it may be
    /// believed (RFC 4340 section 14.1).
    pub(crate) fn sent_lately(&mut self, raw: udccp_wire::RawSeq) -> Option<udccp_wire::Seqno> {
        //= 4340-14.1-6
        // 24 bits are soon guessed: where we send no short numbers, none is quoted.
        if matches!(raw, udccp_wire::RawSeq::Short(_)) && !self.negotiation.agreed().short_out {
            return None;
        }
        let seq = raw.extend(self.seq.gss);
        self.seq.ack_in_window(seq).then_some(seq)
    }

    /// Begins the connection: the client's Request, the server's Response timers.
    pub(crate) fn start(&mut self, now: Instant) {
        match self.state {
            State::Request => self.outbox.handshake = true,
            _ => self.timers.set(Timer::Handshake, now + self.config.handshake_timeout),
        }
    }

    /// The connection answers one Request and is then forgotten: data on the Request cannot be
    /// kept.
    pub(crate) fn refuse_handshake_data(&mut self) {
        self.handshake.refuse_data();
    }

    /// The Response carries these Init Cookies.
    pub(crate) fn give_cookies(&mut self, cookies: Vec<Vec<u8>>) {
        self.handshake.give_cookies(cookies);
    }

    /// What may leave before the peer's address is proven.
    pub(crate) fn set_credit(&mut self, credit: Credit) {
        self.credit = credit;
    }

    /// An Init Cookie, good until then, made the connection: who brings it got our Response.
    pub(crate) fn came_by_cookie(&mut self, until: Instant) {
        self.handshake.came_by_cookie(until);
        self.credit = Credit::UNLIMITED;
    }

    /// The peer's first packet, before the steps that follow step 3.
    pub(crate) fn start_receiving(&mut self, isr: udccp_wire::Seqno) {
        self.seq.start_receiving(isr);
    }
}
