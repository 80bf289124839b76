//! Computes the allowed sending rate X (RFC 5348 sections 4.2 to 4.5).

use udccp_base::{Duration, Instant, MaybeDuration};

use super::x_recv_set::XRecvSet;
use super::{Rate, Segment, equation};

/// W_init is at most this many bytes, or two segments if they are larger (RFC 3390).
const INITIAL_BYTES: u32 = 4380;
/// Time to wait for feedback while the round-trip time is unknown.
const FIRST_TIMEOUT: Duration = Duration::from_secs(2);
/// The shortest round-trip time that is distinguished from zero.
pub(crate) const LEAST_RTT: Duration = Duration::from_nanos(1_000);
/// Largest X_inst as a multiple of X. A queue that empties rarely takes the round-trip time below a
/// quarter of its mean. A sample far below that is from a packet that overtook others, or is false.
const MOST_INSTANTANEOUS: f64 = 2.0;

/// Contents of a feedback packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// R_sample.
    pub(crate) rtt: Option<Duration>,
    pub(crate) x_recv: Rate,
    /// p.
    pub(crate) loss_event_rate: f64,
    /// Whether a loss event is new, or p increased.
    pub(crate) more_loss: bool,
    /// Whether the covered interval was data-limited.
    pub(crate) data_limited: bool,
}

/// The sender's rate, and the state that determines it.
#[derive(Clone, Debug)]
pub(crate) struct RateControl {
    /// X; `None` until it is first determined.
    x: Option<Rate>,
    /// X_Bps, from the last feedback that reported a loss event rate above zero.
    x_bps: Rate,
    x_recv_set: Option<XRecvSet>,
    /// p.
    loss_event_rate: f64,
    /// R.
    rtt: MaybeDuration,
    /// Mean of the square roots of round-trip time samples in seconds, and X_inst/X. The latter is
    /// the mean divided by the root of the last sample, up to a limit.
    square_roots: Option<(f64, f64)>,
    min_rtt: MaybeDuration,
    has_feedback: bool,
    /// tld.
    last_doubled: Instant,
    reduces_oscillation: bool,
    /// Shortest nofeedback timer.
    least_timeout: Duration,
}

impl RateControl {
    pub(crate) fn new(reduces_oscillation: bool, least_timeout: Duration) -> Self {
        Self {
            x: None,
            x_bps: Rate::MAX,
            x_recv_set: None,
            loss_event_rate: 0.0,
            rtt: MaybeDuration::NONE,
            square_roots: None,
            min_rtt: MaybeDuration::NONE,
            has_feedback: false,
            last_doubled: Instant::ZERO,
            reduces_oscillation,
            least_timeout,
        }
    }

    /// R.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.rtt.get()
    }

    /// The smallest round-trip time so far.
    pub(crate) fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.get()
    }

    /// X_Bps; `None` before the first loss.
    pub(crate) fn calculated(&self) -> Option<Rate> {
        (self.loss_event_rate > 0.0).then_some(self.x_bps)
    }

    /// p.
    pub(crate) fn loss_event_rate(&self) -> f64 {
        self.loss_event_rate
    }

    /// X, or one segment per second while X is not determined. Never less than one segment in 64
    /// seconds, even if segments were smaller when X was determined.
    pub(crate) fn allowed(&self, s: impl Into<Segment>) -> Rate {
        let s = s.into();
        match self.x {
            Some(x) => x.max(Self::lowest(s)),
            None => Rate::from_bytes_per_sec(u64::from(s.bytes)),
        }
    }

    //= 5348-4.5-1
    //= 5348-4.5-3
    /// X_inst: the rate to send at now.
    pub(crate) fn instantaneous(&self, s: impl Into<Segment>) -> Rate {
        let s = s.into();
        let x = self.allowed(s);
        match self.square_roots {
            Some((_, factor)) if self.reduces_oscillation => x.scaled(factor).max(Self::lowest(s)),
            _ => x,
        }
    }

    /// Length of the nofeedback timer: max(4R, 2s/X).
    pub(crate) fn timeout(&self, s: impl Into<Segment>) -> Duration {
        let s = s.into();
        let two_packets = self.allowed(s).interval(s.bytes) * 2;
        match self.rtt() {
            Some(rtt) => (rtt * 4).max(two_packets).max(self.least_timeout),
            None => FIRST_TIMEOUT.max(two_packets),
        }
    }

    /// Number of bytes sent at X in 4R. In RFC 5348 the nofeedback timer expires then. If the timer
    /// is longer, because hosts pause for longer than that, this limit applies instead.
    pub(crate) fn unheard_limit(&self, s: impl Into<Segment>) -> Option<u64> {
        let span = self.rtt().map(|rtt| rtt * 4).filter(|span| *span < self.least_timeout)?;
        Some(self.allowed(s).bytes_in(span))
    }

    //= 5348-4.2-1
    /// initial_rate = W_init/R.
    fn initial_rate(s: Segment, rtt: Duration) -> Rate {
        let (two, four) = (s.nominal.saturating_mul(2), s.nominal.saturating_mul(4));
        let window = four.min(INITIAL_BYTES.max(two));
        Rate::of(u64::from(window), rtt).without_headers(s)
    }

    /// s/t_mbi. For packets larger than s, one of them in t_mbi.
    fn lowest(s: Segment) -> Rate {
        if s.bytes > s.nominal {
            return Rate::lowest(s.bytes);
        }
        Rate::lowest(s.nominal).without_headers(s).max(Rate::lowest(1))
    }

    /// The handshake measured a round-trip time.
    pub(crate) fn on_handshake_rtt(&mut self, now: Instant, rtt: Duration, s: impl Into<Segment>) {
        if self.rtt().is_none() && !self.has_feedback {
            self.take_first_rtt(now, rtt.max(LEAST_RTT), s.into());
        }
    }

    fn take_first_rtt(&mut self, now: Instant, rtt: Duration, s: Segment) {
        (self.rtt, self.min_rtt) = (MaybeDuration::some(rtt), MaybeDuration::some(rtt));
        self.x = Some(Self::initial_rate(s, rtt));
        self.last_doubled = now;
    }

    /// The segment size has only now become known. The initial rate depends on it.
    pub(crate) fn on_first_segment(&mut self, s: impl Into<Segment>) {
        if let (Some(rtt), false) = (self.rtt(), self.has_feedback) {
            self.x = Some(Self::initial_rate(s.into(), rtt));
        }
    }

    /// Quick-Start: raises X to at least this rate.
    pub(crate) fn raise(&mut self, rate: Rate) {
        self.x = self.x.map(|x| x.max(rate));
    }

    /// Quick-Start got no feedback: lowers X to at most this rate.
    pub(crate) fn lower(&mut self, rate: Rate) {
        self.x = self.x.map(|x| x.min(rate));
    }

    /// The first data packet was sent. From now on, Infinity in X_recv_set grows older.
    pub(crate) fn on_data_sent(&mut self, now: Instant) {
        self.x_recv_set.get_or_insert_with(|| XRecvSet::new(now));
    }

    //= 5348-4.3-1
    /// Processes feedback.
    pub(crate) fn on_feedback(&mut self, now: Instant, report: &Report, s: impl Into<Segment>) {
        let s = s.into();
        let had_rtt = self.rtt().is_some();
        let is_first = !self.has_feedback;
        if let Some(sample) = report.rtt {
            self.take_rtt(sample.max(LEAST_RTT));
        }
        self.has_feedback = true;
        self.loss_event_rate = report.loss_event_rate;
        let Some(rtt) = self.rtt() else { return };
        // The first report is always zero and means nothing. A later zero means that a loss before
        // a pause of ours was only detected during the pause.
        let recv_limit = match report.x_recv == Rate::default() && is_first {
            true => Rate::MAX,
            false => self.limit_by_receiver(now, report, rtt),
        };
        if !had_rtt {
            self.x = Some(Self::initial_rate(s, rtt));
            self.last_doubled = now;
        }
        if self.loss_event_rate > 0.0 {
            let x_bps = equation::throughput(s.nominal, rtt, self.loss_event_rate);
            // The receiver reports the rate without headers, and the limits derived from it have
            // none either.
            self.x_bps = x_bps.without_headers(s);
            if had_rtt {
                self.x = Some(self.x_bps.min(recv_limit).max(Self::lowest(s)));
            }
        } else if had_rtt && now - self.last_doubled >= rtt {
            let doubled = self.allowed(s).doubled();
            self.x = Some(doubled.min(recv_limit).max(Self::initial_rate(s, rtt)));
            self.last_doubled = now;
        }
    }

    //= 5348-4.3-2
    //= 5348-4.5-2
    /// Updates R and the mean of square roots, with q = q2 = 0.9.
    fn take_rtt(&mut self, sample: Duration) {
        let root = libm::sqrt(sample.as_secs_f64());
        let mean = match (self.rtt(), self.square_roots) {
            (Some(rtt), Some((mean, _))) if self.has_feedback => {
                self.rtt = MaybeDuration::some((rtt * 9 + sample) / 10);
                0.9 * mean + 0.1 * root
            }
            _ => {
                self.rtt = MaybeDuration::some(sample);
                root
            }
        };
        self.square_roots = Some((mean, (mean / root).min(MOST_INSTANTANEOUS)));
        self.min_rtt = self.min_rtt.shorter(MaybeDuration::some(sample));
    }

    /// recv_limit, after adding the new receive rate to X_recv_set.
    fn limit_by_receiver(&mut self, now: Instant, report: &Report, rtt: Duration) -> Rate {
        let set = self.x_recv_set.get_or_insert_with(|| XRecvSet::new(now));
        if report.data_limited {
            if report.more_loss {
                set.halve();
                set.maximize(now, report.x_recv.scaled(0.85));
                return set.max();
            }
            set.maximize(now, report.x_recv);
        } else {
            set.update(now, report.x_recv, rtt);
        }
        set.max().doubled()
    }

    //= 5348-4.4-1
    /// The nofeedback timer expired. `idle` means that nothing was sent since it was set. Returns
    /// whether the rate was reduced.
    pub(crate) fn on_no_feedback(
        &mut self,
        now: Instant,
        idle: bool,
        s: impl Into<Segment>,
    ) -> bool {
        let s = s.into();
        let x_recv = self.x_recv_set.as_ref().map_or(Rate::MAX, XRecvSet::max);
        let has_loss = self.loss_event_rate > 0.0;
        if let (Some(rtt), true) = (self.rtt(), idle) {
            let recover_rate = Self::initial_rate(s, rtt);
            let low = match has_loss {
                true => x_recv < recover_rate,
                false => self.allowed(s) < recover_rate.doubled(),
            };
            if low {
                return false;
            }
        }
        if self.rtt().is_none() && idle {
            return false;
        }
        if !has_loss {
            self.x = Some(self.allowed(s).halved().max(Self::lowest(s)));
        } else if self.x_bps > x_recv.doubled() {
            self.update_limits(now, x_recv, s);
        } else {
            self.update_limits(now, self.x_bps.halved(), s);
        }
        true
    }

    /// Update_Limits.
    fn update_limits(&mut self, now: Instant, timer_limit: Rate, s: Segment) {
        let limit = timer_limit.max(Self::lowest(s));
        let set = self.x_recv_set.get_or_insert_with(|| XRecvSet::new(now));
        set.replace(now, limit.halved());
        self.x = Some(self.x_bps.min(limit).max(Self::lowest(s)));
    }
}
