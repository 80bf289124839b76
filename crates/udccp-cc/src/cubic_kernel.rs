//! The arithmetic of CUBIC in Linux 6.1 (`tcp_cubic.c`): whole packets, ticks, integers.
//!
//! Time is in 1/1024 s, derived from ticks; the curve is computed at most once per tick. Constants
//! are the kernel's: `C = 410 / 1024`, and its inverse is 2^40 / 410.

use udccp_base::{Duration, Instant};

use crate::parts::{Cut, Ticks, WholePackets};

/// `cube_rtt_scale`: C in units of 1/1024.
const SCALE: u64 = 410;
/// The unit of [`SCALE`] times the cube of time in 1/1024 s, as a power of two.
const UNIT_BITS: u32 = 40;
/// The count for an unchanged window is kept for this many ticks (`HZ / 32`).
const KEPT_TICKS: u64 = Ticks::PER_SECOND / 32;
/// Packets acknowledged per packet of growth, at most, before a loss has shown the path's capacity.
const UNKNOWN_COUNT: u32 = 20;
/// The smallest count: the window grows by at most half per round trip.
const LEAST_COUNT: u32 = 2;

/// The state that Linux keeps for one connection (`struct bictcp`).
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    beta: u32,
    /// NewReno's growth with this cut: packets acknowledged per packet of growth, in eighths of the
    /// window (`beta_scale`).
    reno_eighths: u32,
    /// Packets acknowledged per packet of growth.
    count: u32,
    last_max: u32,
    last_cwnd: u32,
    last_tick: u64,
    origin: u32,
    /// Time from the start of the epoch to the plateau, in 1/1024 s.
    k: u64,
    delay_min: Option<Duration>,
    epoch: Option<u64>,
    acked: u32,
    reno: u32,
    whole: WholePackets,
}

impl Kernel {
    /// The state before the first packet; `cut` is the share kept at a loss.
    pub(crate) fn new(cut: Cut) -> Self {
        let beta = cut.in_1024ths();
        Self {
            beta,
            reno_eighths: 8 * (1024 + beta) / 3 / (1024 - beta).max(1),
            count: LEAST_COUNT,
            last_max: 0,
            last_cwnd: 0,
            last_tick: 0,
            origin: 0,
            k: 0,
            delay_min: None,
            epoch: None,
            acked: 0,
            reno: 0,
            whole: WholePackets::default(),
        }
    }

    /// Adds a round-trip time sample. Those in the first second of an epoch are ignored.
    pub(crate) fn on_rtt(&mut self, now: Instant, rtt: Duration) {
        let tick = Ticks::at(now);
        if self.epoch.is_none_or(|epoch| tick >= epoch + Ticks::PER_SECOND) {
            self.delay_min = Some(self.delay_min.map_or(rtt, |min| min.min(rtt)));
        }
    }

    /// The packets by which a window of `cwnd` grows in congestion avoidance.
    pub(crate) fn grow(&mut self, now: Instant, cwnd: u32, acked: u32) -> u32 {
        self.update(Ticks::at(now), cwnd, acked);
        self.whole.grow(self.count, acked)
    }

    /// `bictcp_update`: computes the count for this window and time.
    fn update(&mut self, tick: u64, cwnd: u32, acked: u32) {
        self.acked += acked;
        if self.last_cwnd == cwnd && tick - self.last_tick <= KEPT_TICKS {
            return;
        }
        if self.epoch.is_none() || tick != self.last_tick {
            (self.last_cwnd, self.last_tick) = (cwnd, tick);
            let epoch = match self.epoch {
                Some(epoch) => epoch,
                None => self.begin_epoch(tick, cwnd, acked),
            };
            self.count = self.count_to_curve(tick - epoch, cwnd);
        }
        self.follow_reno(cwnd);
        self.count = self.count.max(LEAST_COUNT);
    }

    fn begin_epoch(&mut self, tick: u64, cwnd: u32, acked: u32) -> u64 {
        self.epoch = Some(tick);
        (self.acked, self.reno) = (acked, cwnd);
        let missing = self.last_max.saturating_sub(cwnd);
        self.origin = cwnd + missing;
        let cube = (1 << UNIT_BITS) / SCALE * u64::from(missing);
        self.k = libm::cbrt(cube as f64) as u64;
        tick
    }

    fn count_to_curve(&self, ticks: u64, cwnd: u32) -> u32 {
        let ticks = ticks + Ticks::for_time(self.delay_min.unwrap_or_default());
        let t = ticks * 1024 / Ticks::PER_SECOND;
        let off = t.abs_diff(self.k);
        let delta = ((SCALE * off * off * off) >> UNIT_BITS) as u32;
        let target =
            if t < self.k { self.origin.saturating_sub(delta) } else { self.origin + delta };
        let count = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if self.last_max == 0 { count.min(UNKNOWN_COUNT) } else { count }
    }

    /// Limits the count by NewReno's estimate (RFC 9438 section 4.3).
    fn follow_reno(&mut self, cwnd: u32) {
        let step = (cwnd * self.reno_eighths) >> 3;
        while self.acked > step {
            self.acked -= step;
            self.reno += 1;
        }
        if self.reno > cwnd {
            self.count = self.count.min(cwnd / (self.reno - cwnd));
        }
    }

    /// Handles a loss at a window of `cwnd`; returns the new threshold.
    pub(crate) fn cut(&mut self, cwnd: u32, fast_convergence: bool) -> u32 {
        self.restart();
        let makes_room = fast_convergence && cwnd < self.last_max;
        self.last_max = if makes_room { cwnd * (1024 + self.beta) / 2048 } else { cwnd };
        (cwnd * self.beta / 1024).max(2)
    }

    /// Starts a new epoch.
    pub(crate) fn restart(&mut self) {
        self.epoch = None;
        self.whole.reset();
    }

    /// Resets all state at a timeout.
    pub(crate) fn reset(&mut self) {
        let whole =
            Self { beta: self.beta, reno_eighths: self.reno_eighths, ..Self::new(Cut::HALF) };
        *self = whole;
    }

    /// Stops the curve's time while nothing is sent.
    pub(crate) fn hold_still(&mut self, now: Instant, silence: Duration) {
        if let Some(epoch) = &mut self.epoch {
            *epoch = (*epoch + Ticks::at(Instant::ZERO + silence)).min(Ticks::at(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: Cut = Cut { keep_permille: 700 };

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn constants_are_those_of_the_kernel() {
        let kernel = Kernel::new(KEPT);
        assert_eq!((kernel.beta, kernel.reno_eighths), (717, 15));
        assert_eq!(Cut { keep_permille: 800 }.in_1024ths(), 819);
    }

    /// 100 packets were cut to 70: (30 / 0.4)^(1/3) = 4.2 s to the plateau.
    #[test]
    fn a_cut_makes_room_and_the_curve_returns() {
        let mut kernel = Kernel::new(KEPT);
        assert_eq!(kernel.cut(100, true), 70);
        kernel.update(Ticks::at(at(1_000)), 70, 1);
        assert_eq!((kernel.origin, kernel.last_max), (100, 100));
        assert!((4_305..=4_325).contains(&kernel.k), "{}", kernel.k);
        // Below the last maximum: 90 * (1024 + 717) / 2048.
        assert_eq!(kernel.cut(90, true), 63);
        assert_eq!(kernel.last_max, 76);
    }

    /// Before a loss: a packet per 20 acknowledged. An unchanged window keeps its count for 7
    /// ticks.
    #[test]
    fn the_count_is_computed_for_a_new_window_or_after_seven_ticks() {
        let mut kernel = Kernel::new(KEPT);
        kernel.update(250, 1_000, 1);
        assert_eq!(kernel.count, UNKNOWN_COUNT);
        kernel.count = 55;
        kernel.update(257, 1_000, 1);
        assert_eq!(kernel.count, 55);
        kernel.update(258, 1_000, 1);
        assert_eq!(kernel.count, UNKNOWN_COUNT);
    }

    #[test]
    fn round_trips_of_the_first_second_of_an_epoch_do_not_count() {
        let mut kernel = Kernel::new(KEPT);
        kernel.update(250, 10, 1);
        kernel.on_rtt(at(1_500), Duration::from_millis(20));
        assert_eq!(kernel.delay_min, None);
        kernel.on_rtt(at(2_000), Duration::from_millis(30));
        assert_eq!(kernel.delay_min, Some(Duration::from_millis(30)));
    }
}
