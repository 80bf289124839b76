//! Congestion window validation for rate-limited senders (RFC 7661).

use udccp_base::{Duration, Instant, MaybeInstant};

use crate::control::CongestionControl;
use crate::parts::THREE_QUARTERS;
use crate::pipe_ack::{Delivered, PipeAck, SHORTEST_PERIOD};

/// The non-validated period: how long an unused window may be kept (RFC 7661 section 4.4).
const NON_VALIDATED_PERIOD: Duration = Duration::from_secs(300);

/// Congestion window validation. A window is validated while at least half of it is used. Otherwise
/// it is kept for five minutes, does not grow, and is reduced to the used part when congestion
/// occurs. A new one is in the validated phase.
#[derive(Clone, Debug, Default)]
pub struct NewCwv {
    /// Created when the first data is acknowledged.
    pipe_ack: Option<Box<PipeAck>>,
    last_ack: MaybeInstant,
    srtt: Duration,
    /// Start of the non-validated phase, advanced by each expired period.
    non_validated_since: MaybeInstant,
    recovery: Option<Recovery>,
}

#[derive(Clone, Copy, Debug)]
struct Recovery {
    lost: u32,
    non_validated: bool,
}

impl NewCwv {
    /// Whether the window is larger than its use has validated.
    #[inline]
    pub fn is_non_validated(&self) -> bool {
        self.non_validated_since != MaybeInstant::NONE
    }

    /// Packets were acknowledged: updates pipeACK and the phase.
    #[inline(always)]
    pub fn on_ack(&mut self, ack: &Delivered, cwnd: u32) {
        self.srtt = ack.srtt;
        if self.recovery.is_none() {
            match &mut self.pipe_ack {
                Some(pipe_ack) => pipe_ack.on_ack(ack),
                None => self.pipe_ack.insert(Box::default()).on_ack(ack),
            }
        }
        self.decide_phase(ack.now, cwnd);
        self.last_ack = MaybeInstant::some(ack.now);
    }

    /// A packet is about to be sent: reduces a window that was kept too long (RFC 7661 section
    /// 4.4.3), to at most `initial_window` packets.
    #[inline]
    pub fn before_send(
        &mut self,
        now: Instant,
        initial_window: u32,
        cc: &mut dyn CongestionControl,
    ) {
        if !self.is_settled(now) {
            self.before_unsettled_send(now, initial_window, cc);
        }
    }

    /// Until when a packet that is about to be sent changes nothing; `None` if it may now.
    #[inline]
    pub fn settled_until(&self) -> Option<Instant> {
        // While acknowledgements still arrive, the last one has set the phase.
        let until = self.last_ack.get().map_or(Instant::MAX, |at| at + SHORTEST_PERIOD);
        (!self.is_non_validated()).then_some(until)
    }

    /// Whether a packet that is about to be sent changes nothing.
    #[inline]
    pub fn is_settled(&self, now: Instant) -> bool {
        self.settled_until().is_some_and(|until| now < until)
    }

    #[inline(never)]
    fn before_unsettled_send(
        &mut self,
        now: Instant,
        initial_window: u32,
        cc: &mut dyn CongestionControl,
    ) {
        if self.non_validated_since == MaybeInstant::NONE {
            self.decide_phase(now, cc.cwnd());
        }
        let Some(mut since) = self.non_validated_since.get() else { return };
        while now - since >= NON_VALIDATED_PERIOD && cc.cwnd() > initial_window {
            let ssthresh = cc.ssthresh().max(THREE_QUARTERS.apply(cc.cwnd()));
            cc.set_window(now, (cc.cwnd() / 2).max(initial_window), ssthresh);
            since += NON_VALIDATED_PERIOD;
        }
        if now - since >= NON_VALIDATED_PERIOD {
            since = now;
        }
        self.non_validated_since = MaybeInstant::some(since);
    }

    /// Congestion occurred with `in_flight` packets outstanding: first reduces a non-validated
    /// window to the used part (RFC 7661 section 4.4.1). The caller then makes the usual cut.
    pub fn before_cut(&mut self, now: Instant, in_flight: u32, cc: &mut dyn CongestionControl) {
        let non_validated = self.is_non_validated();
        if non_validated {
            let used = self.used(now).unwrap_or(0).max(in_flight);
            if used < cc.cwnd() {
                cc.set_window(now, used, cc.ssthresh());
            }
        }
        self.non_validated_since = MaybeInstant::NONE;
        self.recovery = Some(Recovery { lost: 0, non_validated });
    }

    /// `packets` were lost in the recovery in progress.
    pub fn on_lost(&mut self, packets: u32) {
        if let Some(recovery) = &mut self.recovery {
            recovery.lost += packets;
        }
    }

    /// Handles the end of a recovery, when the fate of all packets sent before the cut is known.
    /// After a non-validated phase, the window is also reduced by half of the lost packets, and
    /// pipeACK starts again.
    pub fn on_recovery_end(&mut self, now: Instant, cc: &mut dyn CongestionControl) {
        let Some(recovery) = self.recovery.take() else { return };
        if recovery.non_validated && recovery.lost > 1 {
            let cwnd = cc.cwnd().saturating_sub(recovery.lost / 2).max(1);
            cc.set_window(now, cwnd, cwnd);
        }
        self.forget_use();
    }

    /// A timeout: the standard response applies, and ends the phase (RFC 7661 section 4.4).
    pub fn on_rto(&mut self) {
        self.recovery = None;
        self.non_validated_since = MaybeInstant::NONE;
        self.forget_use();
    }

    /// How much of the path was used; `None` if unknown.
    fn used(&self, now: Instant) -> Option<u32> {
        self.pipe_ack.as_ref()?.value(now, self.srtt)
    }

    fn forget_use(&mut self) {
        if let Some(pipe_ack) = &mut self.pipe_ack {
            pipe_ack.reset();
        }
    }

    #[inline(always)]
    fn decide_phase(&mut self, now: Instant, cwnd: u32) {
        // No closure, which would be a call.
        let is_used = match &self.pipe_ack {
            Some(pipe_ack) => pipe_ack.reaches(now, self.srtt, cwnd.div_ceil(2)),
            None => true,
        };
        if is_used {
            self.non_validated_since = MaybeInstant::NONE;
        } else if self.non_validated_since == MaybeInstant::NONE {
            // After a silence, the phase began when acknowledgements stopped.
            self.non_validated_since = MaybeInstant::some(self.last_ack.get().unwrap_or(now));
        }
    }
}
