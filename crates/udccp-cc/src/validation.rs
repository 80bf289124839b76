//! Reduces a congestion window that is not used, according to a policy.

use udccp_base::{Duration, Instant, MaybeInstant};

use crate::control::CongestionControl;
use crate::cwv::NewCwv;
use crate::parts::THREE_QUARTERS;
use crate::pipe_ack::Delivered;

/// What happens to a window that is not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdlePolicy {
    /// Keep it while it was validated recently, otherwise for at most five minutes (RFC 7661).
    #[default]
    Rfc7661,
    /// Halve it for every timeout of idle time, and reduce it while it is not filled (RFC 2861).
    Rfc2861,
    /// Return to the initial window after one idle timeout (RFC 5681 section 4.1).
    Restart,
    /// Keep it for ever. For experiments.
    Keep,
    /// Let it grow without being used, too, as the CCID 2 of Linux did before 3.2 (commit
    /// 113ced1f52e5). For experiments: after a minute such a window no longer limits anything.
    Unchecked,
}

/// The state of an [`IdlePolicy`]. The sender reports events, and this adjusts the window.
#[derive(Clone, Debug)]
pub struct WindowValidation {
    initial_window: u32,
    policy: Policy,
}

#[derive(Clone, Debug)]
enum Policy {
    NewCwv(NewCwv),
    OldCwv { used: u32, filled_at: Instant, last_sent: MaybeInstant },
    Restart { last_sent: MaybeInstant },
    Keep,
    Unchecked,
}

impl WindowValidation {
    /// The state of `policy` for a sender whose initial window is `initial_window` packets.
    pub fn new(policy: IdlePolicy, initial_window: u32) -> Self {
        let policy = match policy {
            IdlePolicy::Rfc7661 => Policy::NewCwv(NewCwv::default()),
            IdlePolicy::Rfc2861 => {
                Policy::OldCwv { used: 0, filled_at: Instant::ZERO, last_sent: MaybeInstant::NONE }
            }
            IdlePolicy::Restart => Policy::Restart { last_sent: MaybeInstant::NONE },
            IdlePolicy::Keep => Policy::Keep,
            IdlePolicy::Unchecked => Policy::Unchecked,
        };
        Self { initial_window, policy }
    }

    /// Whether a window may grow; `cwnd_limited` says whether the acknowledged packets filled it. A
    /// validated window may grow in either case (RFC 7661 section 4.3).
    pub fn may_grow(&self, cwnd_limited: bool) -> bool {
        match &self.policy {
            Policy::NewCwv(cwv) => cwnd_limited || !cwv.is_non_validated(),
            Policy::Unchecked => true,
            _ => cwnd_limited,
        }
    }

    /// Whether bursts should be paced, because the window is not validated (RFC 7661 section
    /// 4.4.2).
    #[inline]
    pub fn is_non_validated(&self) -> bool {
        matches!(&self.policy, Policy::NewCwv(cwv) if cwv.is_non_validated())
    }

    /// Whether a packet that is about to be sent certainly changes nothing.
    #[inline]
    pub fn is_settled(&self, now: Instant) -> bool {
        matches!(&self.policy, Policy::NewCwv(cwv) if cwv.is_settled(now))
    }

    /// Until when that is so, unless packets are acknowledged or lost; `None` if it is not known.
    #[inline]
    pub fn settled_until(&self) -> Option<Instant> {
        match &self.policy {
            Policy::NewCwv(cwv) => cwv.settled_until(),
            _ => None,
        }
    }

    /// A packet is about to be sent; the timeout is `rto`.
    #[inline]
    pub fn before_send(&mut self, now: Instant, rto: Duration, cc: &mut dyn CongestionControl) {
        match &mut self.policy {
            Policy::NewCwv(cwv) => cwv.before_send(now, self.initial_window, cc),
            _ => self.before_send_after_idle(now, rto, cc),
        }
    }

    #[inline(never)]
    fn before_send_after_idle(
        &mut self,
        now: Instant,
        rto: Duration,
        cc: &mut dyn CongestionControl,
    ) {
        let last_sent = match &mut self.policy {
            Policy::OldCwv { last_sent, .. } | Policy::Restart { last_sent } => last_sent,
            Policy::NewCwv(_) | Policy::Keep | Policy::Unchecked => return,
        };
        let idle = now - last_sent.get().unwrap_or(now);
        if idle < rto || rto.is_zero() {
            return;
        }
        *last_sent = MaybeInstant::some(now);
        let (cwnd, floor) = (cc.cwnd(), self.initial_window.min(cc.cwnd()));
        match &mut self.policy {
            Policy::Restart { .. } => cc.on_idle_restart(now, floor),
            Policy::OldCwv { used, filled_at, .. } => {
                let halvings = (idle.as_nanos() / rto.as_nanos()).min(31) as u32;
                let ssthresh = cc.ssthresh().max(THREE_QUARTERS.apply(cwnd));
                cc.set_window(now, (cwnd >> halvings).max(floor), ssthresh);
                (*used, *filled_at) = (0, now);
            }
            Policy::NewCwv(_) | Policy::Keep | Policy::Unchecked => {}
        }
    }

    /// The same as [`Self::on_sent`] if that changes nothing but the time. Returns false if it has
    /// to be called.
    #[inline(always)]
    pub fn on_usual_sent(&mut self, now: Instant) -> bool {
        match &mut self.policy {
            Policy::NewCwv(_) | Policy::Keep | Policy::Unchecked => true,
            Policy::Restart { last_sent } => {
                *last_sent = MaybeInstant::some(now);
                true
            }
            Policy::OldCwv { last_sent, .. } => {
                *last_sent = MaybeInstant::some(now);
                false
            }
        }
    }

    /// A packet was sent, and `in_flight` packets are now outstanding.
    #[inline]
    pub fn on_sent(
        &mut self,
        now: Instant,
        in_flight: u32,
        rto: Duration,
        cc: &mut dyn CongestionControl,
    ) {
        if !self.on_usual_sent(now) {
            self.note_use(now, in_flight, rto, cc);
        }
    }

    #[inline(never)]
    fn note_use(
        &mut self,
        now: Instant,
        in_flight: u32,
        rto: Duration,
        cc: &mut dyn CongestionControl,
    ) {
        let Policy::OldCwv { used, filled_at, .. } = &mut self.policy else { return };
        let cwnd = cc.cwnd();
        if in_flight >= cwnd {
            (*used, *filled_at) = (0, now);
            return;
        }
        *used = in_flight.max(*used);
        if *filled_at == Instant::ZERO {
            *filled_at = now;
        } else if now - *filled_at >= rto {
            let target = u32::midpoint(cwnd, *used).max(1);
            cc.set_window(now, target, cc.ssthresh().max(THREE_QUARTERS.apply(cwnd)));
            (*used, *filled_at) = (0, now);
        }
    }

    /// Packets were acknowledged.
    #[inline(always)]
    pub fn on_ack(&mut self, ack: &Delivered, cwnd: u32) {
        if let Policy::NewCwv(cwv) = &mut self.policy {
            cwv.on_ack(ack, cwnd);
        }
    }

    /// Congestion occurred. The caller makes its cut after this call.
    pub fn before_cut(&mut self, now: Instant, in_flight: u32, cc: &mut dyn CongestionControl) {
        if let Policy::NewCwv(cwv) = &mut self.policy {
            cwv.before_cut(now, in_flight, cc);
        }
    }

    /// `packets` were lost.
    pub fn on_lost(&mut self, packets: u32) {
        if let Policy::NewCwv(cwv) = &mut self.policy {
            cwv.on_lost(packets);
        }
    }

    /// The fate of all packets sent before the last cut is known.
    pub fn on_recovery_end(&mut self, now: Instant, cc: &mut dyn CongestionControl) {
        if let Policy::NewCwv(cwv) = &mut self.policy {
            cwv.on_recovery_end(now, cc);
        }
    }

    /// The timer expired.
    pub fn on_rto(&mut self) {
        if let Policy::NewCwv(cwv) = &mut self.policy {
            cwv.on_rto();
        }
    }
}
