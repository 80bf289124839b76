//! The receiving side of a connection: reassembly, the advertised window, and acknowledgements.

mod arrivals;
mod compression;
mod gaps;

use std::sync::Arc;

use udccp_base::Instant;

use crate::ranges::Range;
use crate::send::{FIRST_DATA, Side};
use crate::shared::Shared;
pub(crate) use arrivals::{Arrivals, Hold};
#[cfg(test)]
pub(crate) use gaps::Gaps;

/// Counters of the receiving side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecvStats {
    /// Segments with data that arrived.
    pub segments: u64,
    /// Segments that arrived after one with a higher sequence number.
    pub out_of_order: u64,
    /// Segments without any new byte.
    pub duplicates: u64,
    /// Bytes delivered to the application.
    pub delivered_bytes: u64,
    /// Acknowledgements sent that carried no data.
    pub pure_acks: u64,
}

/// The receiving side. Offsets count from the peer's SYN.
#[derive(Debug)]
pub(crate) struct ReceiveSide<A> {
    /// Next offset expected.
    nxt: u64,
    arrivals: A,
    /// The window shift that we announced.
    shift: u8,
    scaled: bool,
    /// First offset beyond the window we advertised; never moves back (RFC 9293 section 3.8.6).
    window_end: u64,
    /// Whether nothing has changed since the last acknowledgement, which had this window field.
    is_current: bool,
    last_field: u16,
    ack_now: bool,
    /// Acknowledgements sent that carried no data.
    pub(crate) pure_acks: u64,
    shared: Arc<Shared>,
}

impl<A: Hold> ReceiveSide<A> {
    /// The state before anything arrives.
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            nxt: FIRST_DATA,
            arrivals: A::new(shared),
            shift: 0,
            scaled: false,
            window_end: FIRST_DATA,
            is_current: false,
            last_field: 0,
            ack_now: false,
            pure_acks: 0,
            shared: Arc::clone(shared),
        }
    }

    /// Counters so far.
    pub(crate) fn stats(&self) -> RecvStats {
        let none = RecvStats { pure_acks: self.pure_acks, ..RecvStats::default() };
        let Some(arrivals) = self.arrivals.get() else { return none };
        let in_order = self.nxt - FIRST_DATA - u64::from(self.is_finished());
        RecvStats {
            segments: arrivals.segments,
            out_of_order: arrivals.out_of_order.into(),
            duplicates: arrivals.duplicates.into(),
            delivered_bytes: in_order - u64::from(arrivals.readable),
            ..none
        }
    }

    /// The shift with which a 16-bit field can express the whole buffer (RFC 7323 section 2.2).
    pub(crate) fn wanted_shift(&self) -> u8 {
        (0..14).find(|s| self.shared.recv_buffer_bytes >> s <= 0xffff).unwrap_or(14)
    }

    /// Window scaling was negotiated.
    pub(crate) fn set_shift(&mut self, shift: u8) {
        self.shift = shift;
        self.scaled = true;
        self.is_current = false;
    }

    /// Next offset expected.
    pub(crate) fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Whether the peer's FIN and all data before it have arrived.
    pub(crate) fn is_finished(&self) -> bool {
        self.arrivals.get().is_some_and(|arrivals| self.nxt > arrivals.fin_at)
    }

    /// Whether a segment may be processed: it overlaps the window (RFC 9293 section 3.10.7.4), or
    /// is at its left edge if the window is closed.
    pub(crate) fn is_acceptable(&self, range: Range) -> bool {
        let beyond_left = range.end > self.nxt || range.start == self.nxt;
        beyond_left && range.start <= self.window_end.max(self.nxt)
    }

    /// A segment outside the window arrived. The acknowledgement tells the peer the next offset,
    /// and which data it sent unnecessarily.
    pub(crate) fn on_unacceptable(&mut self, range: Range) {
        self.is_current = false;
        self.ack_now = true;
        let is_data = range.start >= FIRST_DATA && range.start < range.end;
        if is_data && range.end <= self.nxt {
            let arrivals = self.arrivals.made(&self.shared);
            arrivals.segments += 1;
            arrivals.note_duplicate(range, &self.shared);
        }
    }

    /// Handles data (and the FIN at its end); `times` has those of this connection.
    #[inline(never)]
    pub(crate) fn on_segment(&mut self, now: Instant, range: Range, fin: bool, times: &impl Side) {
        self.is_current = false;
        let (arrivals, shared) = (self.arrivals.made(&self.shared), &self.shared);
        arrivals.begin_segment(now, times, shared);
        // Data beyond the window is not kept; the left edge is always accepted.
        let limit = self.window_end.max(self.nxt) + u64::from(fin);
        let taken = range.clamp(self.nxt, limit);
        if taken.start >= taken.end {
            arrivals.note_duplicate(range, shared);
            self.ack_now = true;
            return;
        }
        if fin && taken.end == range.end {
            arrivals.fin_at = range.end - 1;
        }
        arrivals.open_window(taken.len(), shared);
        if taken.start > self.nxt {
            let rtt = times.min_rtt().unwrap_or_default();
            self.ack_now |= arrivals.keep_beyond(now, self.nxt, (range, taken), rtt, shared);
        } else {
            self.advance(now, taken.end);
        }
    }

    /// Handles `len` bytes of data that begin at the next offset expected. Returns false, and does
    /// nothing, where that takes [`Self::on_segment`].
    #[inline(always)]
    pub(crate) fn on_next(&mut self, now: Instant, len: u64) -> bool {
        let Some(arrivals) = self.arrivals.get_mut() else { return false };
        let end = self.nxt + len;
        let is_usual = arrivals.gaps.is_none()
            && arrivals.fin_at == u64::MAX
            && end <= self.window_end
            && !arrivals.is_late(now, &self.shared);
        if is_usual {
            self.is_current = false;
            self.nxt = end;
            self.ack_now |= arrivals.take_next(now, len, &self.shared);
        }
        is_usual
    }

    /// Everything up to `end` has arrived; ranges adjacent to it become readable.
    fn advance(&mut self, now: Instant, end: u64) {
        let arrivals = self.arrivals.made(&self.shared);
        let mut end = end;
        if let Some(joined) = arrivals.gaps.as_mut().and_then(|gaps| gaps.advance(end)) {
            end = joined;
            // A hole was filled, or there is still one (RFC 5681 section 4.2).
            self.ack_now = true;
        }
        let fin = u64::from(arrivals.fin_at < end);
        arrivals.readable += (end - self.nxt - fin) as u32;
        self.nxt = end;
        self.ack_now |= arrivals.count_segment(now, &self.shared) || fin == 1;
    }

    /// Requests an immediate acknowledgement (for a probe or an unacceptable segment).
    pub(crate) fn owe_ack(&mut self) {
        self.is_current = false;
        self.ack_now = true;
    }

    /// Whether an acknowledgement must be sent now.
    pub(crate) fn ack_due(&self, now: Instant) -> bool {
        self.ack_now || self.arrivals.get().is_some_and(|arrivals| now >= arrivals.deadline())
    }

    /// When the delayed acknowledgement must be sent.
    pub(crate) fn deadline(&self) -> Instant {
        let waits = self.arrivals.get().map_or(Instant::MAX, Arrivals::deadline);
        if self.ack_now { Instant::ZERO } else { waits }
    }

    /// A segment with the acknowledgement number `nxt` is sent; returns its window field.
    #[inline(always)]
    pub(crate) fn acknowledge(&mut self) -> u16 {
        if !self.is_current {
            self.last_field = self.window_field();
            self.on_ack_sent();
        }
        self.last_field
    }

    fn on_ack_sent(&mut self) {
        self.is_current = true;
        self.ack_now = false;
        if let Some(arrivals) = self.arrivals.get_mut() {
            arrivals.on_ack_sent();
        }
    }

    /// The window field of a segment that is sent now.
    #[inline(always)]
    fn window_field(&mut self) -> u16 {
        let room = match self.arrivals.get() {
            Some(arrivals) => arrivals.room(&self.shared),
            None => Arrivals::first_room(&self.shared),
        };
        let wanted = (self.nxt + u64::from(room)).max(self.window_end) - self.nxt;
        let field = (wanted >> self.shift).min(0xffff);
        self.window_end = self.window_end.max(self.nxt + (field << self.shift));
        field as u16
    }

    /// Whether window scaling was negotiated.
    pub(crate) fn is_scaled(&self) -> bool {
        self.scaled
    }

    /// A SYN with this window, which is not scaled, is sent.
    pub(crate) fn promise(&mut self, window: u16) {
        self.on_ack_sent();
        self.is_current = false;
        self.window_end = self.window_end.max(FIRST_DATA + u64::from(window));
    }

    /// Whether the next acknowledgement carries SACK blocks.
    #[inline]
    pub(crate) fn has_blocks(&self) -> bool {
        let gaps = self.arrivals.get().and_then(|arrivals| arrivals.gaps.as_ref());
        gaps.is_some_and(|gaps| gaps.has_blocks())
    }

    /// Calls `block` for the SACK blocks of the next acknowledgement, in order.
    pub(crate) fn for_each_block(&self, block: impl FnMut(Range)) {
        if let Some(gaps) = self.arrivals.get().and_then(|arrivals| arrivals.gaps.as_ref()) {
            gaps.for_each_block(block);
        }
    }

    /// Takes all data in order; `None` if there is none.
    pub(crate) fn read(&mut self) -> Option<u32> {
        let taken = self.read_all() as u32;
        (taken > 0).then_some(taken)
    }

    /// Takes all data in order; returns how many bytes.
    #[inline]
    pub(crate) fn read_all(&mut self) -> u64 {
        match self.arrivals.get() {
            Some(arrivals) if arrivals.readable > 0 => self.take(),
            _ => 0,
        }
    }

    fn take(&mut self) -> u64 {
        let arrivals = self.arrivals.made(&self.shared);
        self.is_current = false;
        let taken = core::mem::take(&mut arrivals.readable);
        // If the advertised window is less than two segments, the peer gets an update as soon as
        // the window doubles. Otherwise the acknowledgement of its next data has it (RFC 9293
        // 3.8.6.2.2).
        let seen = self.window_end.saturating_sub(self.nxt);
        let is_small = seen < 2 * u64::from(self.shared.mss);
        let space = u64::from(arrivals.space(&self.shared));
        if is_small && space >= 2 * seen.max(1) && !self.is_finished() {
            self.ack_now = true;
        }
        taken.into()
    }
}

#[cfg(test)]
mod tests {
    use udccp_base::Duration;
    use udccp_cc::Algorithm;

    use super::*;
    use crate::config::TcpConfig;
    use crate::send::LazySide;
    use crate::shared::SharedTcpConfig;

    type Later = Option<Box<Arrivals>>;

    /// Segments in order, with holes, twice and late: window fields, deadlines and counters.
    fn play<A: Hold>(shared: &Arc<Shared>) -> (ReceiveSide<A>, String) {
        let mut side = ReceiveSide::<A>::new(shared);
        let times = <LazySide as Side>::new(shared);
        let mut seen = String::new();
        side.promise(60_000);
        side.set_shift(side.wanted_shift());
        for (n, start) in [0, 0, 1, 3, 3, 2, 4, 9, 5].into_iter().enumerate() {
            let now = Instant::ZERO + Duration::from_millis(500) * n as u64;
            seen += &format!("{} {} ", side.acknowledge(), side.deadline());
            let range = Range::new(FIRST_DATA + start * 1448, FIRST_DATA + start * 1448 + 1448);
            // The first acknowledgement is of no data.
            if n > 0 && (range.start > side.nxt() || !side.on_next(now, 1448)) {
                side.on_segment(now, range, false, &times);
            }
            let read = side.read_all();
            seen += &format!("{read} {} {:?}\n", side.ack_due(now), side.stats());
        }
        let has_gaps =
            |side: &ReceiveSide<A>| side.arrivals.get().is_some_and(|a| a.gaps.is_some());
        assert!(has_gaps(&side), "the tenth segment has arrived, and three before it have not");
        side.on_segment(Instant::ZERO, Range::new(side.nxt(), 14_481), false, &times);
        seen += &side.acknowledge().to_string();
        assert!(!has_gaps(&side), "there is nothing more to report");
        side.on_segment(Instant::ZERO, Range::new(14_481, 14_482), true, &times);
        seen += &format!("{} {:?}", side.is_finished(), side.stats());
        (side, seen)
    }

    #[test]
    fn arrivals_that_are_made_for_the_first_data_are_those_that_were_always_there() {
        for opens_window in [false, true] {
            let config = TcpConfig { opens_window, ..TcpConfig::new(Algorithm::NEW_RENO) };
            let SharedTcpConfig(shared) = config.into();
            let (always, expected) = play::<Arrivals>(&shared);
            let (late, seen) = play::<Later>(&shared);
            assert_eq!(seen, expected);
            assert!(expected.contains("out_of_order: 3, duplicates: 1"), "{expected}");
            assert_eq!(
                format!("{:?}", late.arrivals.get()),
                format!("{:?}", always.arrivals.get())
            );
        }
    }
}
