//! Acts when timers fire.

use udccp_base::{Duration, Instant, MaybeInstant};

use super::handshake::PARTOPEN_TIMER;
use super::timers::{Timer, backed_off};
use super::{Connection, Ctx};
use crate::ccid::TimeoutOutcome;
use crate::error::CloseReason;
use crate::event::MessageFate;
use crate::state::State;

/// A timer that fires later than this shows that this host did not run: it was suspended or
/// overloaded. That is no silence of the peer, who may have been asked nothing.
const LATE: Duration = Duration::from_millis(100);

/// Syncs that ask a peer for an answer before the silence counts as its end: the first when an
/// eighth of `silence_timeout` is left, and another whenever half of the rest is over.
const SILENCE_PROBES: u8 = 6;

/// So many unanswered probes of a kind show that the peer is gone, although this host always runs
/// late.
const MOST_PROBES: u8 = 100;

/// Shortest time between two looks at the timers of a connection that cannot send.
const RETRY_WHILE_BLOCKED: Duration = Duration::from_millis(1);

impl Connection {
    /// When to call `handle_timeout` while the driver cannot send: timers of packets that are due
    /// wait with those packets. A Request that has to wait has its timer nevertheless.
    pub(crate) fn timeout_while_blocked(&mut self, now: Instant) -> Option<Instant> {
        if self.state == State::Request && !self.timers.is_any() {
            self.start_request_timer(now);
        }
        self.own_timeout().get().map(|at| at.max(now + RETRY_WHILE_BLOCKED))
    }

    /// The timers of the connection and of its sender half.
    fn own_timeout(&self) -> MaybeInstant {
        let at = MaybeInstant::some(self.timers.next());
        if self.state.is_over() {
            return at;
        }
        at.earlier(self.cc.sender_timer()).earlier(self.silent_until())
    }

    /// The same as [`Self::poll_timeout`] for an open connection of CCID 2 with nothing unusual to
    /// do; `None` for others.
    #[inline(always)]
    pub(crate) fn usual_timeout(&self) -> Option<MaybeInstant> {
        if self.usual().is_none() || self.acks.held_until().is_some() {
            return None;
        }
        let at = self.cc.timer_of_ccid2()?.earlier(MaybeInstant::some(self.timers.next()));
        Some(at.earlier(self.silent_until()))
    }

    /// When to call `handle_timeout`.
    #[inline(never)]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let mut at = self.own_timeout();
        // In other states, no acknowledgement can be sent.
        if self.state.transfers() {
            // While acknowledgements are held back, a due one waits for the next keep-alive.
            let held = self.acks.held_until();
            let rx = match (self.cc.receiver_timer(), held) {
                (timer, None) => timer,
                (timer, Some(until)) => timer.get().map(|at| at.max(until)).into(),
            };
            at = at.earlier(rx);
            if !self.negotiation.is_settled() {
                at = at.earlier(self.negotiation.poll_timeout().into());
            }
        }
        at.get()
    }

    /// Runs every timer that is due.
    pub(crate) fn handle_timeout(&mut self, ctx: &mut Ctx<'_>) {
        let late = ctx.now.saturating_since(self.timers.next());
        while let Some(timer) = self.timers.take_due(ctx.now) {
            self.forget_usual();
            self.fire(ctx, timer, late);
        }
        if self.state.is_over() {
            return;
        }
        let TimeoutOutcome { timed_out, gave_up } = self.cc.handle_sender_timeout(ctx.now);
        if timed_out {
            self.forget_usual();
            self.doubt_path(ctx);
        }
        if gave_up {
            self.settle_all_fates(ctx, MessageFate::Lost);
        }
        if self.silent_until().get().is_some_and(|until| until <= ctx.now) {
            self.forget_usual();
            if self.is_given_up(ctx.now) {
                self.give_up(ctx, CloseReason::PeerSilent);
                return;
            }
            self.ask_silent_peer(ctx.now);
        }
        self.cc.handle_receiver_timeout(ctx.now);
    }

    fn fire(&mut self, ctx: &mut Ctx<'_>, timer: Timer, late: Duration) {
        match timer {
            Timer::Request => self.on_request_timeout(ctx),
            Timer::PartOpen => {
                self.handshake.acknowledge_again();
                self.outbox.ack = true;
            }
            Timer::Handshake => self.give_up(ctx, CloseReason::HandshakeTimeout),
            Timer::KeepAlive => self.on_keep_alive(ctx, late),
            Timer::Deadline => self.purge_expired(ctx),
            Timer::Linger => self.on_linger_timeout(ctx),
            Timer::Close => self.on_close_timeout(ctx),
            Timer::TimeWait => self.end_timewait(),
            Timer::QuickStart => self.on_quick_start_timer(ctx.now),
            Timer::Pmtu => self.on_pmtu_timeout(ctx),
        }
    }

    /// Whether the peer was asked, and had the time to answer.
    fn is_given_up(&self, now: Instant) -> bool {
        let probes = self.timing.silence_probes;
        let is_late = now - self.silent_until().get().unwrap_or(now) >= LATE;
        probes >= SILENCE_PROBES && (!is_late || probes >= MOST_PROBES)
    }

    /// The time for an answer to sent data runs out. The data may have been lost, so the peer gets
    /// a Sync that it has to answer; and some more time if all of it has passed, because this host
    /// did not run.
    fn ask_silent_peer(&mut self, now: Instant) {
        let Some(since) = self.timing.unanswered_since.get() else { return };
        let limit = self.config.silence_timeout;
        self.timing.silence_probes += 1;
        if since + limit <= now {
            let spent = limit.saturating_sub(self.answer_time());
            self.timing.unanswered_since = MaybeInstant::some(now - spent);
            self.timing.silence_probes = self.timing.silence_probes.max(SILENCE_PROBES);
        }
        while self.timing.silence_probes < SILENCE_PROBES && self.silent_until().get() <= Some(now)
        {
            self.timing.silence_probes += 1;
        }
        self.outbox.sync = Some(self.seq.gsr);
    }

    /// How long to wait for the answer to a first probe.
    fn answer_time(&self) -> Duration {
        self.rtt().max(PARTOPEN_TIMER) * 2
    }

    /// Until when the peer may leave the data that we sent unanswered before it is asked, or is
    /// gone.
    #[inline]
    fn silent_until(&self) -> MaybeInstant {
        let Some(since) = self.timing.unanswered_since.get() else { return MaybeInstant::NONE };
        let (limit, probes) = (self.config.silence_timeout, self.timing.silence_probes);
        let is_asked = probes >= SILENCE_PROBES;
        let left = if is_asked { 0 } else { limit.as_nanos() >> (3 + probes) };
        MaybeInstant::some(since + (limit - Duration::from_nanos(left)))
    }

    fn on_request_timeout(&mut self, ctx: &mut Ctx<'_>) {
        //= 4340-8.1.1-3
        if !self.handshake.request_again(self.config.request_retries) {
            self.give_up(ctx, CloseReason::ConnectTimeout);
            return;
        }
        self.repeat_request();
    }

    /// Retransmits the Request.
    fn repeat_request(&mut self) {
        self.counters.rare().requests_retransmitted += 1;
        self.outbox.handshake = true;
    }

    //= 5596-2.2.3.1-2
    //= 5596-2.2.3.1-3
    //= 5596-2.2.3.1-4
    /// A server invites us (RFC 5596 section 2.2.3). In REQUEST, the first such packet retransmits
    /// the Request at once, since a firewall may have dropped the one before.
    pub(crate) fn on_listen(&mut self) {
        let may_repeat = self.state == State::Request && !self.outbox.handshake;
        if may_repeat && self.handshake.on_listen() {
            self.repeat_request();
        }
    }

    /// Sets the timer that retransmits the Request.
    pub(super) fn start_request_timer(&mut self, now: Instant) {
        let at = self.handshake.request_timer(now, self.config.initial_rto);
        self.timers.set(Timer::Request, at);
    }

    /// A packet was sent in PARTOPEN: another Ack follows unless the server answers.
    pub(super) fn start_partopen_timer(&mut self, now: Instant) {
        self.timers.set(Timer::PartOpen, self.handshake.partopen_timer(now));
    }

    fn on_close_timeout(&mut self, ctx: &mut Ctx<'_>) {
        if !self.ending.close_again(self.config.close_retries) {
            self.give_up(ctx, CloseReason::CloseTimeout);
            return;
        }
        self.counters.rare().closes_retransmitted += 1;
        self.outbox.close = true;
    }

    /// Starts to watch for silence, if the settings require it.
    pub(super) fn start_keep_alive(&mut self, now: Instant) {
        let idle = self.config.keep_alive.or(self.config.idle_limit);
        if let Some(idle) = idle {
            self.timers.set(Timer::KeepAlive, now + idle);
        }
    }

    /// The timer is not moved for every packet. When it fires, the time of the last packet decides.
    fn on_keep_alive(&mut self, ctx: &mut Ctx<'_>, late: Duration) {
        let limit = self.config.idle_limit;
        let Some(idle) = self.config.keep_alive.or(limit) else { return };
        if !matches!(self.state, State::PartOpen | State::Open) {
            return;
        }
        let first = self.answer_time();
        let is_late = late >= LATE && self.timing.keep_alive_probes < MOST_PROBES.into();
        let mut silent_for = ctx.now.saturating_since(self.timing.silent_since());
        if is_late {
            silent_for = silent_for.saturating_sub(late);
            let most = limit.map(|limit| limit.saturating_sub(first));
            silent_for = most.map_or(silent_for, |most| silent_for.min(most));
            self.timing.excused_until = ctx.now - silent_for;
        }
        if silent_for < idle {
            self.timing.keep_alive_probes = 0;
            self.timers.set(Timer::KeepAlive, ctx.now + (idle - silent_for));
            return;
        }
        let probes = u32::from(self.timing.keep_alive_probes);
        let most = self.config.keep_alive_probes.min(u16::MAX.into());
        let is_gone = limit.map_or(probes >= most, |limit| silent_for >= limit);
        if is_gone && !is_late {
            self.give_up(ctx, CloseReason::PeerSilent);
            return;
        }
        self.outbox.sync = Some(self.seq.gsr);
        self.counters.rare().keep_alives_sent += 1;
        self.timing.keep_alive_probes = self.timing.keep_alive_probes.saturating_add(1);
        let mut wait = backed_off(first, probes);
        if let Some(limit) = limit {
            // The last probes are sent shortly before the end, to notice a path that works again by
            // then.
            let left = limit.saturating_sub(silent_for);
            wait = wait.min(idle).min((left / 2).max(first)).min(left);
        }
        self.timers.set(Timer::KeepAlive, ctx.now + wait);
    }
}
