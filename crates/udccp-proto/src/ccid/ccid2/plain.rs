//! What most packets need: Data leaves without an acknowledgement, and an acknowledgement reports
//! that the oldest packets in flight arrived.

use core::fmt;

use udccp_base::{Duration, Instant, MaybeInstant};
use udccp_wire::Seqno;

use crate::ccid::ccid2::history::PlainRun;
use crate::ccid::ccid2::sender::{Ccid2Sender, is_from, rtt_of};
use crate::ccid::{SendVerdict, SentInfo};

/// How many data packets without acknowledgements may leave, unpaced and without another decision.
/// Set after a decision and after a plain acknowledgement. Whatever may change a decision clears
/// it.
#[derive(Clone, Copy, Default)]
pub(super) struct Allowance {
    packets: u32,
    /// From then on, the window may have to be reduced first.
    until: Instant,
}

/// Leaves the contents out: tests compare senders that use fast paths with others.
impl fmt::Debug for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allowance").finish_non_exhaustive()
    }
}

impl Ccid2Sender {
    /// Whether a data packet without an acknowledgement may certainly leave now, unpaced.
    #[inline(always)]
    pub(crate) fn is_allowed(&self, now: Instant) -> bool {
        self.may_allow() && now < self.allowance.until
    }

    /// The same unless the window has to be validated first.
    #[inline(always)]
    pub(crate) fn may_allow(&self) -> bool {
        self.allowance.packets > 0
    }

    /// Finds out how many packets may leave as long as nothing changes.
    #[inline(always)]
    fn allow(&mut self, cwnd: u32) {
        let is_simple = !self.trains.are_on() && self.pacing_wake == MaybeInstant::NONE;
        self.allowance = match self.window.settled_until() {
            Some(until) if is_simple && self.is_unpaced() => {
                let unacknowledged = self.ack_of_ack.left(cwnd);
                Allowance { packets: self.room_in(cwnd).min(unacknowledged.into()) as u32, until }
            }
            _ => Allowance::default(),
        };
    }

    /// A data packet was sent.
    #[inline(always)]
    pub(super) fn use_allowance(&mut self) {
        self.allowance.packets = self.allowance.packets.saturating_sub(1);
    }

    /// Whether a data packet may be sent now (`poll_send`), and whether packets are not paced.
    #[inline(always)]
    pub(crate) fn decide(&mut self, now: Instant, size_bytes: u32) -> (SendVerdict, bool) {
        if self.is_allowed(now) {
            debug_assert_eq!(self.decide_anew(now, size_bytes), (SendVerdict::Now, true));
            return (SendVerdict::Now, true);
        }
        let decision = self.decide_anew(now, size_bytes);
        if decision == (SendVerdict::Now, true) {
            self.allow(self.window.cwnd());
        }
        decision
    }

    #[inline(always)]
    fn decide_anew(&mut self, now: Instant, size_bytes: u32) -> (SendVerdict, bool) {
        self.window.before_send(now, self.rtt.rto());
        self.pacing_wake = MaybeInstant::NONE;
        //= 4341-5-1
        if self.is_full() || self.is_resting() {
            self.on_full();
            return (SendVerdict::Blocked, false);
        }
        if let Some(at) = self.wait_for_train(now) {
            self.pacing_wake = MaybeInstant::some(at);
            return (SendVerdict::At(at), false);
        }
        //= 4341-5-6
        let is_unpaced = self.is_unpaced();
        if !is_unpaced {
            if let Some(at) = self.wait_for_pace(now, size_bytes) {
                self.pacing_wake = MaybeInstant::some(at);
                return (SendVerdict::At(at), false);
            }
        }
        (SendVerdict::Now, is_unpaced)
    }

    /// A Data packet without an acknowledgement was sent, as [`Self::decide`] has just let it be.
    #[inline(always)]
    pub(crate) fn on_plain_sent(&mut self, now: Instant, packet: SentInfo, is_unpaced: bool) {
        self.last_sent = Some(packet.seq);
        self.ack_of_ack.on_sent(true, false);
        self.note_data_sent(now, packet, is_unpaced);
    }

    /// The packets that an Ack Vector which begins at `ackno` with the cell `first` newly reports,
    /// if they are the oldest in flight, all arrived without a mark, and the window does nothing
    /// but grow. `None` in all other cases, which are for `on_ack`.
    #[inline(always)]
    pub(crate) fn plain_ack(&self, ackno: Seqno, first: u8) -> Option<PlainRun> {
        if !self.window.only_grows() || !self.probes.is_empty() {
            return None;
        }
        let (run, oldest) = self.history.plain_run(ackno, first)?;
        let is_plain = is_from(oldest, self.window.recover()) && is_from(oldest, self.pipe_floor);
        is_plain.then_some(run)
    }

    /// An acknowledgement reports those packets, and nothing else. Returns how many they are. Not
    /// inlined, so that it has all registers.
    #[inline(never)]
    pub(crate) fn take_plain_ack(
        &mut self,
        now: Instant,
        ackno: Seqno,
        run: PlainRun,
        elapsed: Duration,
    ) -> u32 {
        let acked = self.history.take_plain_run(run, ackno);
        let measured = run.sent_at.get().map(|sent_at| rtt_of(now - sent_at, elapsed));
        let sample = self.note_rtt(ackno, measured);
        self.ack_of_ack.on_ack_vector();
        let context = self.context(now, ackno, sample);
        self.window.on_plain_ack(acked, &context);
        let cwnd = self.window.cwnd();
        self.ack_ratio.on_ack(ackno, context.next, cwnd);
        self.history.trim(cwnd as usize);
        self.pipe -= acked;
        self.restart_timer(now);
        self.allow(cwnd);
        acked
    }
}
