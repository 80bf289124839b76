//! The receiving side of a connection: reassembly, the advertised window, and acknowledgements.

mod compression;
mod gaps;

use std::sync::Arc;

use udccp_base::{Duration, Instant};

use crate::ranges::Range;
use crate::send::{FIRST_DATA, Side};
use crate::shared::Shared;
pub(crate) use gaps::Gaps;

/// The first window, in bytes, of a receiver that opens it.
const FIRST_WINDOW: u32 = 65_535;
/// Segments shorter than this do not open the window, in bytes.
const LEAST_TO_OPEN: u64 = 128;

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
pub(crate) struct ReceiveSide {
    /// Next offset expected.
    nxt: u64,
    /// From data that arrived out of order or twice, until there is no more to report.
    gaps: Option<Box<Gaps>>,
    /// Bytes in order that the application has not read.
    readable: u32,
    /// Offset of the peer's FIN; [`u64::MAX`] if it has not arrived.
    fin_at: u64,
    /// Limit of the advertised window that does not depend on free space.
    opened: u32,
    /// The window shift that we announced.
    shift: u8,
    scaled: bool,
    /// First offset beyond the window we advertised; never moves back (RFC 9293 section 3.8.6).
    window_end: u64,
    /// Whether nothing has changed since the last acknowledgement, which had this window field.
    is_current: bool,
    last_field: u16,
    waiting_segments: u32,
    ack_now: bool,
    ack_deadline: Instant,
    quick_left: u32,
    /// When data last arrived.
    last_data: Instant,
    /// Segments with data that arrived, and acknowledgements sent that carried no data.
    segments: u64,
    pub(crate) pure_acks: u64,
    /// Segments that arrived after one with a higher sequence number, and those without any new
    /// byte.
    out_of_order: u32,
    duplicates: u32,
    shared: Arc<Shared>,
}

impl ReceiveSide {
    /// The state before anything arrives.
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            nxt: FIRST_DATA,
            gaps: None,
            readable: 0,
            fin_at: u64::MAX,
            opened: if shared.opens_window { FIRST_WINDOW } else { u32::MAX },
            shift: 0,
            scaled: false,
            window_end: FIRST_DATA,
            is_current: false,
            last_field: 0,
            waiting_segments: 0,
            ack_now: false,
            ack_deadline: Instant::MAX,
            last_data: Instant::ZERO,
            quick_left: shared.delayed_ack.quick,
            segments: 0,
            pure_acks: 0,
            out_of_order: 0,
            duplicates: 0,
            shared: Arc::clone(shared),
        }
    }

    /// Counters so far.
    pub(crate) fn stats(&self) -> RecvStats {
        let in_order = self.nxt - FIRST_DATA - u64::from(self.is_finished());
        RecvStats {
            segments: self.segments,
            out_of_order: self.out_of_order.into(),
            duplicates: self.duplicates.into(),
            delivered_bytes: in_order - u64::from(self.readable),
            pure_acks: self.pure_acks,
        }
    }

    #[inline(always)]
    fn mss(&self) -> u64 {
        self.shared.mss.into()
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
        self.nxt > self.fin_at
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
            self.segments += 1;
            self.note_duplicate(range);
        }
    }

    /// Records a segment without new bytes, which the next acknowledgement reports.
    fn note_duplicate(&mut self, range: Range) {
        self.gaps_mut().note_duplicate(range);
        self.duplicates += 1;
        self.acknowledge_quickly();
    }

    /// The peer seems to restart: each of the next segments is acknowledged at once.
    fn acknowledge_quickly(&mut self) {
        if self.shared.delayed_ack.quick_again {
            self.quick_left = self.shared.delayed_ack.quick;
        }
    }

    /// Handles data (and the FIN at its end); `times` has those of this connection.
    #[inline(never)]
    pub(crate) fn on_segment(&mut self, now: Instant, range: Range, fin: bool, times: &impl Side) {
        self.is_current = false;
        self.segments += 1;
        let silence = now - self.last_data;
        // The first comparison is a shortcut: the RTO is never shorter than the delay of an
        // acknowledgement.
        if silence > self.shared.delayed_ack.timeout && silence > times.rto() {
            self.acknowledge_quickly();
        }
        self.last_data = now;
        // Data beyond the window is not kept; the left edge is always accepted.
        let limit = self.window_end.max(self.nxt) + u64::from(fin);
        let taken = range.clamp(self.nxt, limit);
        if taken.start >= taken.end {
            self.note_duplicate(range);
            self.ack_now = true;
            return;
        }
        if fin && taken.end == range.end {
            self.fin_at = range.end - 1;
        }
        self.open_window(taken.len());
        if taken.start > self.nxt {
            let rtt = times.min_rtt().unwrap_or_default();
            self.keep_beyond(now, range, taken, rtt);
        } else {
            self.advance(now, taken.end);
        }
    }

    /// Handles `len` bytes of data that begin at the next offset expected. Returns false, and does
    /// nothing, where that takes [`Self::on_segment`].
    #[inline(always)]
    pub(crate) fn on_next(&mut self, now: Instant, len: u64) -> bool {
        let end = self.nxt + len;
        let silence = now - self.last_data;
        let is_usual = self.gaps.is_none()
            && self.fin_at == u64::MAX
            && end <= self.window_end
            && silence <= self.shared.delayed_ack.timeout;
        if !is_usual {
            return false;
        }
        self.is_current = false;
        self.segments += 1;
        self.last_data = now;
        self.open_window(len);
        self.readable += len as u32;
        self.nxt = end;
        self.count_segment(now);
        true
    }

    /// Opens the window when new data arrives, and lets the peer know soon that there is room.
    fn open_window(&mut self, len: u64) {
        let space = self.space();
        if self.opened < space && len >= LEAST_TO_OPEN {
            let more = 2 * self.mss().max(len) as u32;
            self.opened = self.opened.saturating_add(more).min(space);
            self.quick_left |= 1;
        }
    }

    /// Free bytes of the buffer.
    fn space(&self) -> u32 {
        self.shared.recv_buffer_bytes.saturating_sub(self.readable)
    }

    fn gaps_mut(&mut self) -> &mut Gaps {
        self.gaps.get_or_insert_with(|| Box::new(Gaps::new(self.shared.compresses_sacks)))
    }

    /// Keeps an out-of-order segment, of which there is room for `taken`. It is acknowledged at
    /// once, or together with the following ones.
    fn keep_beyond(&mut self, now: Instant, range: Range, taken: Range, rtt: Duration) {
        let (place, is_fresh) = self.gaps_mut().keep(taken);
        self.out_of_order += 1;
        if !is_fresh {
            self.gaps_mut().note_duplicate(range);
            self.duplicates += 1;
        }
        let is_quick = self.quick_left > 0;
        if self.shared.compresses_sacks {
            self.quick_left = self.quick_left.saturating_sub(1);
        }
        let hole = self.nxt;
        self.ack_now |= is_quick || self.gaps_mut().acknowledges(now, (hole, place), rtt);
    }

    /// Everything up to `end` has arrived; ranges adjacent to it become readable.
    fn advance(&mut self, now: Instant, end: u64) {
        let mut end = end;
        if let Some(joined) = self.gaps.as_mut().and_then(|gaps| gaps.advance(end)) {
            end = joined;
            // A hole was filled, or there is still one (RFC 5681 section 4.2).
            self.ack_now = true;
        }
        let fin = u64::from(self.fin_at < end);
        self.readable += (end - self.nxt - fin) as u32;
        self.nxt = end;
        self.ack_now |= fin == 1;
        self.count_segment(now);
    }

    /// Decides when to acknowledge another segment.
    #[inline(always)]
    fn count_segment(&mut self, now: Instant) {
        self.waiting_segments += 1;
        if self.quick_left > 0 {
            self.quick_left -= 1;
            self.ack_now = true;
        }
        if self.waiting_segments >= self.shared.delayed_ack.every {
            self.ack_now = true;
        } else if self.waiting_segments == 1 {
            self.ack_deadline = self.shared.limits.tick.after(now, self.shared.delayed_ack.timeout);
        }
    }

    /// Requests an immediate acknowledgement (for a probe or an unacceptable segment).
    pub(crate) fn owe_ack(&mut self) {
        self.is_current = false;
        self.ack_now = true;
    }

    /// Whether an acknowledgement must be sent now.
    pub(crate) fn ack_due(&self, now: Instant) -> bool {
        self.ack_now || now >= self.ack_deadline || now >= self.gaps_deadline()
    }

    /// When the delayed acknowledgement must be sent.
    pub(crate) fn deadline(&self) -> Instant {
        if self.ack_now { Instant::ZERO } else { self.ack_deadline.min(self.gaps_deadline()) }
    }

    #[inline]
    fn gaps_deadline(&self) -> Instant {
        self.gaps.as_ref().map_or(Instant::MAX, |gaps| gaps.deadline())
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
        self.waiting_segments = 0;
        self.ack_deadline = Instant::MAX;
        if self.gaps.is_some() {
            self.report_gaps();
        }
    }

    /// The window field of a segment that is sent now.
    #[inline(always)]
    fn window_field(&mut self) -> u16 {
        let space = u64::from(self.space().min(self.opened));
        let wanted = (self.nxt + space).max(self.window_end) - self.nxt;
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

    /// An acknowledgement has reported what there is to report.
    #[inline(never)]
    fn report_gaps(&mut self) {
        let Some(gaps) = &mut self.gaps else { return };
        gaps.on_ack_sent();
        if gaps.is_closed() {
            self.gaps = None;
        }
    }

    /// Whether the next acknowledgement carries SACK blocks.
    #[inline]
    pub(crate) fn has_blocks(&self) -> bool {
        self.gaps.as_ref().is_some_and(|gaps| gaps.has_blocks())
    }

    /// Calls `block` for the SACK blocks of the next acknowledgement, in order.
    pub(crate) fn for_each_block(&self, block: impl FnMut(Range)) {
        if let Some(gaps) = &self.gaps {
            gaps.for_each_block(block);
        }
    }

    /// Takes all data in order; `None` if there is none.
    pub(crate) fn read(&mut self) -> Option<u32> {
        (self.readable > 0).then(|| self.take())
    }

    /// Takes all data in order; returns how many bytes.
    #[inline]
    pub(crate) fn read_all(&mut self) -> u64 {
        if self.readable == 0 { 0 } else { self.take().into() }
    }

    fn take(&mut self) -> u32 {
        self.is_current = false;
        let taken = core::mem::take(&mut self.readable);
        // If the advertised window is less than two segments, the peer gets an update as soon as
        // the window doubles. Otherwise the acknowledgement of its next data has it (RFC 9293
        // 3.8.6.2.2).
        let seen = self.window_end.saturating_sub(self.nxt);
        let is_small = seen < 2 * self.mss();
        if is_small && u64::from(self.space()) >= 2 * seen.max(1) && !self.is_finished() {
            self.ack_now = true;
        }
        taken
    }
}
