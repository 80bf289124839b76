//! Chooses the next segment, and the time of the next attempt (RFC 6675 NextSeg, RFC 9293 section
//! 3.8).

use udccp_base::{DataRate, Instant};

use super::detection::Detection;
use super::timeout::Frto;
use super::{Phase, Recovery, SendSide};
use crate::ranges::Range;

/// A segment to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Its sequence space, including the FIN.
    pub(crate) range: Range,
    /// Bytes of data.
    pub(crate) data: u32,
    /// Whether the last offset is the FIN.
    pub(crate) fin: bool,
    /// Whether no more new data is waiting.
    pub(crate) push: bool,
    /// Whether it was sent before.
    pub(crate) retransmission: bool,
}

/// Why no new data may be sent.
enum Blocked {
    /// No data is waiting, or the peer's window or the rules for small segments prevent sending.
    Elsewhere,
    /// The congestion window is full.
    Window,
}

impl SendSide {
    /// Whether [`Self::next_segment`] would find nothing and change nothing: a short answer for
    /// most calls that find nothing.
    #[inline]
    pub(crate) fn is_quiet(&self, now: Instant) -> bool {
        let has_none = || {
            let is_open = matches!(self.phase, Phase::Open | Phase::Reduced { .. });
            self.board.nxt() >= self.end() && is_open && self.observer.is_none()
        };
        let may_probe = self.detection.as_ref().is_some_and(Detection::probe_due);
        (self.blocked || has_none()) && !may_probe && !self.paced && now >= self.paced_until()
    }

    /// Whether only an acknowledgement or a timeout lets the next segment leave.
    #[inline]
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Whether [`Self::next_segment`] may find something, at any time.
    #[inline]
    pub(crate) fn may_send(&self) -> bool {
        let may_probe = self.detection.as_ref().is_some_and(Detection::probe_due);
        !self.blocked || may_probe || self.paced || self.paced_until() > Instant::ZERO
    }

    /// Takes the next segment if it is a full one of new data with more waiting behind it, at a
    /// connection where nothing is missing or duplicated: most are. Returns its offset and length.
    /// Otherwise does nothing: [`Self::next_segment`] decides.
    #[inline(always)]
    pub(crate) fn next_full(&mut self, now: Instant) -> Option<(u64, u32)> {
        let (start, mss) = (self.board.nxt(), u64::from(self.mss));
        let end = start + mss;
        let is_usual = !self.blocked
            && matches!(self.phase, Phase::Open)
            && self.dup_acks == 0
            && end < self.written
            && end <= self.window_end
            && self.board.flight() > 0
            && self.detection.as_ref().is_none_or(|d| !d.probe_due())
            && !self.pacing_holds(now);
        if !is_usual {
            return None;
        }
        let window = u64::from(self.cc.cwnd()) * mss;
        let room = window.checked_sub(self.board.pipe() + mss)?;
        self.paced = false;
        if self.waits_for_device(now, 1) {
            return None;
        }
        self.record_new(now, Range::new(start, end));
        self.record_sent(now, self.mss);
        self.schedule_probe(now);
        if room < mss {
            self.block_if_full(now);
        }
        Some((start, self.mss))
    }

    /// Takes the next segment; `None` if nothing may be sent now.
    #[inline(never)]
    pub(crate) fn next_segment(&mut self, now: Instant) -> Option<Segment> {
        if self.detection.as_ref().is_some_and(Detection::probe_due) {
            return self.probe_tail(now);
        }
        self.paced = self.pacing_holds(now);
        if self.paced || self.blocked {
            return None;
        }
        match self.phase {
            Phase::Open | Phase::Reduced { .. } => self.next_new(now),
            Phase::Loss { .. } | Phase::Recovery(_) => self.next_after_loss(now),
        }
    }

    /// Sends a tail loss probe regardless of the window: new data, or otherwise the last segment
    /// again (RFC 8985 section 7.3).
    #[cold]
    fn probe_tail(&mut self, now: Instant) -> Option<Segment> {
        let start = self.board.nxt();
        let waiting = self.end().saturating_sub(start).min(self.mss.into());
        let new = Range::new(start, start + waiting);
        if waiting > 0 && new.end <= self.window_end {
            let segment = self.send_new(now, new);
            self.on_probe_sent(now, false);
            return Some(segment);
        }
        let tail = self.board.last_unsacked();
        self.on_probe_sent(now, true);
        tail.map(|tail| self.send_again(now, tail))
    }

    #[inline(never)]
    fn next_after_loss(&mut self, now: Instant) -> Option<Segment> {
        if matches!(self.phase, Phase::Recovery(_)) {
            return self.next_in_recovery(now);
        }
        if self.frto == Frto::SendsNew {
            if let Some(segment) = self.next_new_after_loss(now) {
                return Some(segment);
            }
            let Phase::Loss { point } = self.phase else { return None };
            if self.board.nxt() > point {
                return None;
            }
            self.frto = Frto::Off;
        }
        match self.board.next_lost() {
            Some(hole) => self.retransmit_within_window(now, hole),
            None => self.next_new_after_loss(now),
        }
    }

    #[inline(never)]
    fn next_new_after_loss(&mut self, now: Instant) -> Option<Segment> {
        self.next_new(now)
    }

    /// `NextSeg` of RFC 6675, rules 1 to 4.
    fn next_in_recovery(&mut self, now: Instant) -> Option<Segment> {
        if let Some(hole) = self.board.next_lost() {
            return self.retransmit_within_window(now, hole);
        }
        if let Some(recovery) = self.phase.recovery() {
            recovery.fast_retransmit = false;
        }
        if let Some(segment) = self.next_new_after_loss(now) {
            return Some(segment);
        }
        if self.has_new_data() {
            // New data is waiting for the congestion window, and goes first.
            return None;
        }
        if let Some(hole) = self.board.next_maybe_lost() {
            return self.retransmit_within_window(now, hole);
        }
        let tail = self.board.last_unsacked()?;
        let may_send = self.allows(tail.len());
        let recovery = self.phase.recovery().filter(|recovery| may_send && recovery.rescue)?;
        recovery.rescue = false;
        Some(self.send_again(now, tail))
    }

    fn retransmit_within_window(&mut self, now: Instant, hole: Range) -> Option<Segment> {
        let is_first = |recovery: &mut Recovery| recovery.fast_retransmit;
        if !self.allows(hole.len()) && !self.phase.recovery().is_some_and(is_first) {
            return None;
        }
        if self.waits_for_device(now, 2) {
            return None;
        }
        if let Some(recovery) = self.phase.recovery() {
            recovery.fast_retransmit = false;
        }
        self.board.on_retransmit(now, hole);
        Some(self.send_again(now, hole))
    }

    fn send_again(&mut self, now: Instant, range: Range) -> Segment {
        if let Some(rates) = self.observer.as_mut().and_then(|o| o.rates.as_mut()) {
            rates.on_retransmit(now, range);
        }
        self.times.on_retransmit(range.end);
        self.counts.retransmits += 1;
        if range.start == self.board.una() {
            // RFC 6675 section 6: the timer restarts when the first hole is sent again.
            self.rto_deadline = self.rto_at(now);
        }
        self.segment(now, range, true)
    }

    #[inline(always)]
    fn next_new(&mut self, now: Instant) -> Option<Segment> {
        if self.board.nxt() >= self.end() {
            if self.observer.is_some() {
                self.observe_silence();
            }
            return None;
        }
        self.restart_after_idle(now);
        let (range, room) = match self.new_range() {
            Ok(found) => found,
            Err(Blocked::Elsewhere) => {
                self.start_persist(now);
                return None;
            }
            Err(Blocked::Window) => {
                self.usage.on_limited(self.board.nxt(), self.times.count());
                // In these phases only an acknowledgement or a timeout can change this.
                self.blocked = matches!(self.phase, Phase::Open | Phase::Reduced { .. });
                return None;
            }
        };
        if self.waits_for_device(now, 1) {
            return None;
        }
        if self.dup_acks > 0 && matches!(self.phase, Phase::Open) {
            self.limited_transmit_bytes += range.len() as u32;
        }
        let segment = self.send_new(now, range);
        if room < self.mss.into() {
            self.block_if_full(now);
        }
        Some(segment)
    }

    /// The congestion window has no room for another full segment. If one is waiting, the next
    /// attempt would find only that: this has the same effect, and saves the attempt.
    #[inline(always)]
    fn block_if_full(&mut self, now: Instant) {
        let next = self.board.nxt() + u64::from(self.mss);
        let waits = next <= self.written.min(self.window_end) && !self.pacing_holds(now);
        if waits && matches!(self.phase, Phase::Open | Phase::Reduced { .. }) {
            self.usage.on_limited(self.board.nxt(), self.times.count());
            self.blocked = true;
        }
    }

    #[inline(always)]
    fn send_new(&mut self, now: Instant, range: Range) -> Segment {
        if self.board.flight() == 0 {
            self.rto_deadline = self.rto_at(now);
        }
        self.record_new(now, range);
        let segment = self.segment(now, range, false);
        self.schedule_probe(now);
        segment
    }

    /// Records that new data leaves.
    #[inline(always)]
    fn record_new(&mut self, now: Instant, range: Range) {
        if let Some(rates) = self.observer.as_mut().and_then(|o| o.rates.as_mut()) {
            rates.on_new_data(now, range, self.board.flight() == 0);
        }
        self.board.on_new_data(range.end);
        self.times.on_new_data(now, range.end);
        self.usage.on_sent(self.board.una(), range.end, self.times.count());
    }

    /// The range of new data that may be sent now, and the room that it leaves in the congestion
    /// window.
    #[inline(always)]
    fn new_range(&self) -> Result<(Range, u64), Blocked> {
        let start = self.board.nxt();
        let waiting = self.written.saturating_sub(start);
        let room = self.window_end.saturating_sub(start);
        let data = waiting.min(self.mss.into()).min(room);
        let is_full = data == u64::from(self.mss);
        let is_last = data == waiting;
        if !is_full && !self.small_may_leave(is_last) {
            return Err(Blocked::Elsewhere);
        }
        // The FIN is sent with the last data and needs no room in the peer's window.
        match data + u64::from(self.fin && is_last) {
            0 => Err(Blocked::Elsewhere),
            len => match self.room_after(len) {
                Some(room) => Ok((Range::new(start, start + len), room)),
                None => Err(Blocked::Window),
            },
        }
    }

    /// Whether a segment that is not full may leave, with the last of the data or not (Nagle).
    #[inline(never)]
    fn small_may_leave(&self, is_last: bool) -> bool {
        self.board.flight() == 0 || (is_last && (self.shared.limits.nodelay || self.fin))
    }

    /// Whether unsent data is waiting and fits in the peer's window.
    pub(super) fn has_new_data(&self) -> bool {
        self.board.nxt() < self.end().min(self.window_end)
    }

    /// Whether the congestion window has room for `len` bytes.
    #[inline]
    fn allows(&self, len: u64) -> bool {
        self.room_after(len).is_some()
    }

    /// The room that `len` bytes leave in the congestion window (unlimited in a recovery, which has
    /// its own rules); `None` if they do not fit. A FIN on a full segment does not count.
    #[inline]
    fn room_after(&self, len: u64) -> Option<u64> {
        let len = len.min(self.mss.into());
        let window = u64::from(self.cc.cwnd()) * u64::from(self.mss);
        let pipe = self.board.pipe();
        match &self.phase {
            Phase::Recovery(recovery) => {
                recovery.reduction.allows(len, pipe, window).then_some(u64::MAX)
            }
            Phase::Open if self.dup_acks > 0 && !self.shared.limits.limited_transmit => {
                window.checked_sub(self.board.flight() + len)
            }
            _ => window.checked_sub(pipe + len),
        }
    }

    /// Creates the segment and updates the state that all segments have in common.
    #[inline(always)]
    fn segment(&mut self, now: Instant, range: Range, retransmission: bool) -> Segment {
        if let Phase::Recovery(recovery) = &mut self.phase {
            recovery.reduction.on_sent(range.len());
        }
        let fin = self.fin && range.end == self.end();
        let data = (range.len() - u64::from(fin)) as u32;
        self.record_sent(now, data);
        let push = range.end == self.end();
        Segment { range, data, fin, push, retransmission }
    }

    /// Records that a segment leaves.
    #[inline(always)]
    fn record_sent(&mut self, now: Instant, data: u32) {
        self.last_sent = now;
        self.counts.segments_sent += 1;
        if self.pacing.is_some() {
            self.pace(now, data);
        }
    }

    /// Sets the earliest time of the segment after this one.
    #[inline(never)]
    fn pace(&mut self, now: Instant, data: u32) {
        let Some(pacing) = &mut self.pacing else { return };
        match self.cc.pacing_rate() {
            Some(_) if self.counts.segments_sent <= self.shared.limits.unpaced => {
                pacing.on_unpaced(now);
            }
            Some(rate) => pacing.on_sent(now, rate, data),
            None => {}
        }
    }

    /// Until when the congestion control's rate keeps the next segment back.
    #[inline]
    pub(super) fn paced_until(&self) -> Instant {
        self.pacing.as_ref().map_or(Instant::ZERO, |pacing| pacing.until())
    }

    /// Whether the congestion control's rate keeps the next segment back at `now`.
    #[inline]
    fn pacing_holds(&self, now: Instant) -> bool {
        self.pacing.as_ref().is_some_and(|pacing| pacing.holds(now))
    }

    /// The segment sent at `now` leaves the host's device at `leaves`.
    #[inline]
    pub(crate) fn on_device(&mut self, now: Instant, leaves: Instant) {
        if let Some(device) = &mut self.device {
            device.on_sent(now, leaves);
        }
    }

    /// Whether the next segment has to wait for earlier ones to leave the device; `factor` is 1 for
    /// new data, and 2 for retransmissions.
    #[inline]
    fn waits_for_device(&mut self, now: Instant, factor: u64) -> bool {
        let has_several = self.device.as_mut().is_some_and(|device| device.has_several(now));
        has_several && self.device_holds(factor)
    }

    #[inline(never)]
    fn device_holds(&mut self, factor: u64) -> bool {
        let rate = self.device_rate();
        self.device.as_mut().is_some_and(|device| device.holds(self.mss, factor, rate))
    }

    /// The rate that limits the device's queue to a millisecond of data (`tcp_update_pacing_rate`).
    fn device_rate(&self) -> DataRate {
        const MOST: u64 = u64::MAX / 8;
        if let Some(rate) = self.cc.pacing_rate() {
            return rate;
        }
        let Some(srtt) = self.rtt.srtt() else { return DataRate::from_bytes_per_sec(MOST) };
        let (cwnd, threshold) = (self.cc.cwnd(), self.cc.ssthresh());
        let percent = if cwnd < threshold / 2 { 200 } else { 120 };
        let window = u128::from(cwnd.max(self.times.count())) * u128::from(self.mss);
        let bytes = window * percent * 10_000_000 / u128::from(srtt.as_nanos().max(1));
        DataRate::from_bytes_per_sec(u64::try_from(bytes).map_or(MOST, |rate| rate.min(MOST)))
    }

    /// RFC 5681 section 4.1: after an idle time longer than the RTO the window is no longer valid.
    fn restart_after_idle(&mut self, now: Instant) {
        let idle = self.shared.limits.idle_restart
            && self.board.flight() == 0
            && self.counts.segments_sent > 0
            && now - self.last_sent > self.rtt.rto();
        if idle {
            self.cc.on_idle_restart(now, self.shared.limits.initial_window);
            self.last_sent = now;
        }
    }

    /// Starts window probes if the window is closed and nothing in flight could open it.
    fn start_persist(&mut self, now: Instant) {
        if self.board.flight() == 0 && self.persist_deadline == Instant::MAX {
            self.persist_deadline = now + self.rtt.rto();
        }
    }

    /// When [`SendSide::on_timeout`] is due.
    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        let timers = self.rto_deadline.min(self.persist_deadline);
        let timers = self.detection.as_ref().map_or(timers, |d| timers.min(d.deadline()));
        let is_held = self.paced || matches!(&self.device, Some(device) if device.is_holding());
        if is_held { self.end_of_wait(timers) } else { timers }
    }

    /// The same while a segment waits, for its departure time or for the device: few do.
    #[cold]
    fn end_of_wait(&self, timers: Instant) -> Instant {
        let timers = self.device.as_ref().map_or(timers, |d| timers.min(d.until()));
        if self.paced { timers.min(self.paced_until()) } else { timers }
    }

    /// Handles expired timers; true if a window probe must be sent.
    pub(crate) fn on_timeout(&mut self, now: Instant) -> bool {
        self.blocked = false;
        if let Some(device) = &mut self.device {
            device.release();
        }
        self.on_detection_timeout(now);
        if now >= self.rto_deadline {
            self.on_rto(now);
        }
        let probe = now >= self.persist_deadline;
        if probe {
            self.rtt.back_off();
            self.unanswered += 1;
            self.persist_deadline = now + self.rtt.rto();
        }
        probe
    }

    /// Consecutive timeouts and probes that the peer did not answer.
    pub(crate) fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// Whether the next segment of new data carries CWR (RFC 3168 section 6.1.2); resets the flag.
    pub(crate) fn take_cwr(&mut self) -> bool {
        core::mem::take(&mut self.cwr_owed)
    }

    /// Doubles the timeout (a SYN was not answered).
    pub(crate) fn back_off(&mut self) {
        self.rtt.back_off();
        self.unanswered += 1;
    }
}
