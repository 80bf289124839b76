//! Ends connections (RFC 4340 section 8.3).

use udccp_base::{Duration, Instant};
use udccp_wire::ResetCode;

use super::outbox::ResetOut;
use super::timers::Timer;
use super::{Connection, Ctx};
use crate::error::CloseReason;
use crate::event::{DropReason, EventKind, MessageFate};
use crate::features::Role;
use crate::state::State;

/// Least time between two Closes. On a path within one host, two round-trip times may be almost 0,
/// and all retries would be over before the peer is scheduled.
const LEAST_CLOSE_TIMER: Duration = Duration::from_millis(10);

/// Time to send three Closes that are not answered, if the second is sent `first` after the first.
fn three_closes(first: Duration) -> Duration {
    first * (1 + 2 + 4)
}

impl Connection {
    /// Continues a `close` once the send queue is empty: a server that leaves TIMEWAIT to the
    /// client sends CloseReq, everyone else Close.
    pub(super) fn finish_close(&mut self, ctx: &mut Ctx<'_>) {
        match (self.state, self.who.role) {
            (State::Request | State::Respond, _) => self.give_up(ctx, CloseReason::LocalClose),
            (State::Open, Role::Server) if !self.config.server_timewait => {
                self.begin_closing(ctx, State::CloseReq);
            }
            (State::PartOpen | State::Open, _) => self.begin_closing(ctx, State::Closing),
            _ => {}
        }
    }

    /// Sends Close because the peer requested it.
    pub(super) fn send_close(&mut self, ctx: &mut Ctx<'_>) {
        if self.state.transfers() {
            self.begin_closing(ctx, State::Closing);
        }
    }

    /// Enters CLOSEREQ or CLOSING and schedules its packet. Queued messages are dropped, since
    /// nothing can be sent after a Close.
    fn begin_closing(&mut self, ctx: &mut Ctx<'_>, state: State) {
        self.drop_unsent(ctx, DropReason::ConnectionEnded);
        self.timers.stop(Timer::PartOpen);
        self.timers.stop(Timer::Handshake);
        self.timers.stop(Timer::KeepAlive);
        self.timers.stop(Timer::Pmtu);
        self.become_state(state);
        self.ending.begin_closing();
        self.outbox.close = true;
        let patience = self.config.close_linger.max(three_closes(self.first_close_wait()));
        self.timers.set(Timer::Linger, ctx.now + patience);
        self.note_writable(ctx);
    }

    /// Time from the first Close or CloseReq to the second.
    fn first_close_wait(&self) -> Duration {
        self.known_rtt().map_or(self.config.initial_rto, |rtt| (rtt * 2).max(LEAST_CLOSE_TIMER))
    }

    /// Sets the timer that sends Close or CloseReq again.
    pub(super) fn start_close_timer(&mut self, now: Instant) {
        let at = now + self.ending.close_wait(self.first_close_wait());
        self.timers.set(Timer::Close, at);
    }

    /// Whether the peer had its time to confirm, and Closes are still being sent.
    pub(crate) fn is_close_unconfirmed(&self) -> bool {
        matches!(self.state, State::CloseReq | State::Closing) && self.ending.is_unconfirmed()
    }

    /// The linger time is over, either for queued messages or for the peer's confirmation.
    pub(super) fn on_linger_timeout(&mut self, ctx: &mut Ctx<'_>) {
        if matches!(self.state, State::CloseReq | State::Closing) {
            self.ending.stays_unconfirmed();
            self.emit(ctx, EventKind::CloseUnconfirmed);
        } else {
            self.finish_close(ctx);
        }
    }

    /// Gives up with Reset, Aborted.
    pub(super) fn give_up(&mut self, ctx: &mut Ctx<'_>, reason: CloseReason) {
        //= 4340-5.6-2
        //= 4340-5.6-3
        //= 4340-8.1.1-4
        //= 4340-8.1.3-9
        //= 4340-8.1.5-4
        self.post_reset(ResetCode::Aborted, [0; 3]);
        self.tear_down(ctx, State::Closed, reason);
    }

    /// The peer broke a rule: sends Reset with this code.
    pub(super) fn reset_for_error(&mut self, ctx: &mut Ctx<'_>, code: ResetCode, data: [u8; 3]) {
        self.post_reset(code, data);
        if let Some(reset) = &mut self.outbox.reset {
            reset.is_explained = true;
        }
        self.tear_down(ctx, State::Closed, CloseReason::ProtocolError { code, data });
    }

    /// Schedules a Reset. In REQUEST, unless it is about a Response, no sequence number of the peer
    /// is known. GSR is then zero, as the acknowledgement number must be (section 8.1.1).
    pub(super) fn post_reset(&mut self, code: ResetCode, data: [u8; 3]) {
        //= 4340-8.1.1-5
        let ackno = self.seq.gsr;
        let reset = ResetOut { code, data, ackno, is_explained: false };
        self.outbox.reset = Some(Box::new(reset));
    }

    /// Ends the connection for the application. What was received can still be read.
    pub(super) fn tear_down(&mut self, ctx: &mut Ctx<'_>, next: State, reason: CloseReason) {
        self.drop_request_data(ctx);
        self.drop_unsent(ctx, DropReason::ConnectionEnded);
        self.settle_all_fates(ctx, MessageFate::Unknown);
        self.timers.stop_all();
        self.become_state(next);
        self.outbox.keep_only_reset();
        if next == State::TimeWait {
            self.outbox.reset = None;
            self.timers.set(Timer::TimeWait, ctx.now + self.config.timewait);
        }
        self.ending.end(reason);
        self.emit(ctx, EventKind::Closed(reason));
    }

    /// Drops messages that wait to be sent, and reports them.
    pub(super) fn drop_unsent(&mut self, ctx: &mut Ctx<'_>, reason: DropReason) {
        while let Some(discarded) = self.send.queue_mut().discard(reason) {
            self.report_discarded(ctx, discarded);
        }
        self.timers.stop(Timer::Deadline);
    }

    /// TIMEWAIT is over.
    pub(super) fn end_timewait(&mut self) {
        self.become_state(State::Closed);
    }

    /// Whether the last packet of the connection has yet to be sent.
    pub(crate) fn has_reset_to_send(&self) -> bool {
        self.outbox.reset.is_some()
    }

    /// Whether there is nothing left to send or to wait for. The endpoint may then forget the
    /// addresses, and the rest once the application has released the id.
    pub(crate) fn is_finished(&self) -> bool {
        self.state == State::Closed && self.outbox.is_empty()
    }

    /// Whether another connection may use its addresses and ports at once.
    pub(crate) fn leaves_its_ports(&self) -> bool {
        self.is_finished() && self.cookie_until().is_none()
    }

    /// Code and data of the Reset that ended the connection, if we sent it.
    pub(crate) fn reset_sent(&self) -> Option<(ResetCode, [u8; 3])> {
        self.ending.reset_sent()
    }

    /// Error Text of the Reset that ended the connection, if the peer sent it.
    pub(crate) fn reset_text(&self) -> Option<&str> {
        self.ending.reset_text()
    }

    /// Until when an Init Cookie could create the connection again.
    pub(crate) fn cookie_until(&self) -> Option<Instant> {
        self.handshake.cookie_until()
    }
}

impl ResetOut {
    /// The reason, for people who read packets (RFC 4340 section 5.6).
    pub(super) const fn error_text(&self) -> &'static str {
        match self.code {
            _ if !self.is_explained => "",
            ResetCode::OptionError => {
                "an option is wrong; its type and first bytes are in the data"
            }
            ResetCode::MandatoryError => {
                "a Mandatory option could not be obeyed; it is in the data"
            }
            _ => "",
        }
    }
}
