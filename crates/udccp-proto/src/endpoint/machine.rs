//! Implements `Machine`, which drives the endpoint.

use udccp_base::{Datagram, Instant, Machine, MaybeInstant, Sent};

use super::Endpoint;
use super::slots::Slot;
use crate::connection::Ctx;
use crate::state::State;
use crate::tuple::FourTuple;

/// Maximum number of packets that a connection sends in one turn: enough for one batch of a driver.
pub(super) const PACKETS_PER_TURN: u32 = 16;

impl Machine for Endpoint {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram) {
        self.take_datagram(now, &datagram, None);
    }

    #[inline]
    fn handle_datagram_in(&mut self, now: Instant, place: &mut Option<Datagram>) {
        if let Some(datagram) = place {
            self.take_datagram(now, datagram, None);
        }
        *place = None;
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.rare_wake.get().is_some_and(|at| at <= now) {
            self.handle_rare_timeouts(now);
        }
        while let Some((at, index)) = self.timers.peek().filter(|(at, _)| *at <= now) {
            debug_assert!(at <= now);
            self.timers.set(index, MaybeInstant::NONE);
            if let Some((connection, mut ctx)) = self.as_usual_at(now, index) {
                connection.handle_timeout(&mut ctx);
                self.make_ready(index);
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let mut datagram = None;
        self.poll_transmit_into(now, &mut datagram);
        datagram
    }

    #[inline]
    fn poll_transmit_into(&mut self, now: Instant, out: &mut Option<Datagram>) -> Sent {
        //= 4340-7.3-1
        if self.quiet_until != MaybeInstant::NONE && self.is_quiet(now) || !self.may_transmit() {
            return Sent::Nothing;
        }
        self.next_datagram(now, out)
    }

    #[inline]
    fn may_transmit(&self) -> bool {
        !(self.ready.is_empty() && self.answers.is_empty())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        debug_assert_eq!(self.rare_wake, self.next_rare_wake());
        self.timers.earliest().earlier(self.rare_wake).get()
    }
}

impl Endpoint {
    /// As [`Machine::handle_datagram`], for a driver that keeps the datagram. Data that is read
    /// later is shared, not copied.
    #[inline]
    pub fn handle_borrowed(&mut self, now: Instant, datagram: &Datagram) {
        self.take_datagram(now, datagram, None);
    }

    /// The driver cannot send now. Connections that wait for their turn have no timers yet, because
    /// a drain sets them: without this call they would never give up.
    pub fn transmit_blocked(&mut self, now: Instant) {
        for index in self.ready.all() {
            if let Some(connection) = self.slots.at(index) {
                self.timers.set(index, connection.timeout_while_blocked(now).into());
            }
        }
    }

    /// Whether the quiet time has not ended yet. Once it has, it is cleared.
    #[cold]
    fn is_quiet(&mut self, now: Instant) -> bool {
        let quiet_until = self.quiet_until.get().filter(|until| now < *until);
        self.quiet_until = quiet_until.into();
        self.note_rare_wake();
        quiet_until.is_some()
    }

    /// Ends the quiet time and TIMEWAITs, and sends Listen packets, where they are due.
    #[cold]
    fn handle_rare_timeouts(&mut self, now: Instant) {
        // If there is nothing to send, no drain clears an expired quiet time, and its wake-up would
        // repeat forever. So it is cleared here.
        if self.quiet_until != MaybeInstant::NONE {
            self.is_quiet(now);
        }
        self.table.expire(now);
        self.send_listens(now);
        self.note_rare_wake();
    }

    fn next_rare_wake(&self) -> MaybeInstant {
        let timewait = MaybeInstant::from(self.table.next_end());
        let invitation = self.listeners.next_invitation().map(|(at, _)| at);
        timewait.earlier(invitation.into()).earlier(self.quiet_until)
    }

    /// Has to be called after a change of the quiet time, of TIMEWAITs or of invitations.
    pub(super) fn note_rare_wake(&mut self) {
        self.rare_wake = self.next_rare_wake();
    }

    /// Not inlined, because many calls find that there is nothing to send.
    #[inline(never)]
    fn next_datagram(&mut self, now: Instant, out: &mut Option<Datagram>) -> Sent {
        let sent = if self.answers.is_empty() {
            self.poll_connections(now, out)
        } else {
            *out = self.answers.pop();
            Sent::One
        };
        self.counters.datagrams_sent += u64::from(sent != Sent::Nothing);
        sent
    }

    /// Polls the connections that may have something to send, in turn.
    #[inline]
    fn poll_connections(&mut self, now: Instant, out: &mut Option<Datagram>) -> Sent {
        while let Some(index) = self.ready.front() {
            let sent = self.poll_connection(now, index, out);
            if sent == Sent::One {
                self.took_turn(index, 1);
                return Sent::One;
            }
            if sent == Sent::Last {
                self.last_sender = index;
                return if self.ready.is_empty() { Sent::Last } else { Sent::One };
            }
        }
        Sent::Nothing
    }

    /// Polls the first of the ready connections. If it has nothing more to send, its turn ends: its
    /// timer is set, and it is removed if it has ended.
    #[inline(always)]
    fn poll_connection(&mut self, now: Instant, index: u32, out: &mut Option<Datagram>) -> Sent {
        let Self { slots, events, arena, ccids, ready, timers, .. } = self;
        let Some(Slot { connection: Some(connection), is_ready, .. }) = slots.slot(index) else {
            ready.pop_front();
            return Sent::Nothing;
        };
        let sent = connection.poll_usual(now, arena, out).unwrap_or_else(|| {
            let mut ctx = Ctx { now, events, arena, registry: ccids };
            connection.poll_any(&mut ctx, out)
        });
        if sent == Sent::One {
            return sent;
        }
        ready.pop_front();
        *is_ready = false;
        match connection.usual_timeout() {
            Some(at) => timers.set(index, at),
            None => self.settle_any(index),
        }
        sent
    }

    /// Records that the first of the ready connections has sent this many packets. If others wait,
    /// the caller stays within what is left of its turn.
    #[inline]
    pub(super) fn took_turn(&mut self, index: u32, packets: u32) {
        self.ready.turn += packets;
        self.last_sender = index;
        let turn = self.ready.turn;
        if turn >= PACKETS_PER_TURN {
            self.ready.rotate();
            self.ready.turn = turn % PACKETS_PER_TURN;
        }
    }

    #[inline(never)]
    fn settle_any(&mut self, index: u32) {
        let Some(connection) = self.slots.look(index) else { return };
        let at = connection.poll_timeout();
        if connection.is_alive() {
            self.timers.set(index, at.into());
        } else {
            self.settle_ended(index, at);
        }
    }

    #[cold]
    fn settle_ended(&mut self, index: u32, at: Option<Instant>) {
        let Some(connection) = self.slots.at(index) else { return };
        let (tuple, state) = (*connection.tuple(), connection.state());
        let never_accepted = connection.who.listener.is_some() && !connection.was_open();
        let released = connection.is_released() || (never_accepted && state.is_over());
        if connection.is_finished() {
            if let Some((code, data)) = connection.reset_sent() {
                self.resets.note_end(tuple, code, data);
            }
            let was_there = self.table.remove(&tuple, index);
            if let Some(until) = connection.cookie_until().filter(|_| was_there) {
                // The same Init Cookie must not create the connection again.
                self.retire(&tuple, until);
            }
            self.timers.set(index, MaybeInstant::NONE);
        } else {
            let until = at.max(connection.cookie_until());
            // Only addresses and ports are kept, whether or not the application has released it.
            if state == State::TimeWait && self.table.remove(&tuple, index) {
                // Without a timer, it never ends.
                self.retire(&tuple, until.unwrap_or(Instant::MAX));
            }
            self.timers.set(index, at.into());
        }
        self.note_rare_wake();
        if released && state.is_over() {
            self.forget(index);
        }
    }

    fn retire(&mut self, tuple: &FourTuple, until: Instant) {
        self.table.retire(&self.secrets, self.max_timewaits, tuple, until);
    }

    fn forget(&mut self, index: u32) {
        self.timers.set(index, MaybeInstant::NONE);
        let Some(connection) = self.slots.remove(index) else { return };
        let listener = connection.who.listener.and_then(|l| self.listeners.get_mut(l));
        if let Some(listener) = listener {
            listener.pending -= 1;
            listener.ready.retain(|id| *id != connection.who.id);
        }
    }
}
