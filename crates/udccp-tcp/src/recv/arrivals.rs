//! Data that arrives, and when it is acknowledged.

use core::fmt;

use udccp_base::{Duration, Instant};

use super::gaps::Gaps;
use crate::ranges::Range;
use crate::send::Side;
use crate::shared::Shared;

/// The first window, in bytes, of a receiver that opens it.
const FIRST_WINDOW: u32 = 65_535;
/// Segments shorter than this do not open the window, in bytes.
const LEAST_TO_OPEN: u64 = 128;

/// What an end knows of the data that has arrived.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// From data that arrived out of order or twice, until there is no more to report.
    pub(super) gaps: Option<Box<Gaps>>,
    /// Bytes in order that the application has not read.
    pub(super) readable: u32,
    /// Offset of the peer's FIN; [`u64::MAX`] if it has not arrived.
    pub(super) fin_at: u64,
    /// Limit of the advertised window that does not depend on free space.
    opened: u32,
    waiting_segments: u32,
    ack_deadline: Instant,
    quick_left: u32,
    /// When data last arrived.
    last_data: Instant,
    /// Segments with data.
    pub(super) segments: u64,
    /// Segments that arrived after one with a higher sequence number, and those without any new
    /// byte.
    pub(super) out_of_order: u32,
    pub(super) duplicates: u32,
}

/// [`Arrivals`] that may not exist yet: there from the start at an end that receives, and made for
/// the first data at an end that usually only sends.
pub(crate) trait Hold: fmt::Debug {
    fn new(shared: &Shared) -> Self;
    fn get(&self) -> Option<&Arrivals>;
    fn get_mut(&mut self) -> Option<&mut Arrivals>;
    /// Those that exist, or new ones.
    fn made(&mut self, shared: &Shared) -> &mut Arrivals;
}

impl Hold for Arrivals {
    fn new(shared: &Shared) -> Self {
        Self::new(shared)
    }

    #[inline(always)]
    fn get(&self) -> Option<&Arrivals> {
        Some(self)
    }

    #[inline(always)]
    fn get_mut(&mut self) -> Option<&mut Arrivals> {
        Some(self)
    }

    #[inline(always)]
    fn made(&mut self, _shared: &Shared) -> &mut Arrivals {
        self
    }
}

impl Hold for Option<Box<Arrivals>> {
    fn new(_shared: &Shared) -> Self {
        None
    }

    #[inline(always)]
    fn get(&self) -> Option<&Arrivals> {
        self.as_deref()
    }

    #[inline(always)]
    fn get_mut(&mut self) -> Option<&mut Arrivals> {
        self.as_deref_mut()
    }

    fn made(&mut self, shared: &Shared) -> &mut Arrivals {
        self.get_or_insert_with(|| Box::new(Arrivals::new(shared)))
    }
}

impl Arrivals {
    fn new(shared: &Shared) -> Self {
        Self {
            gaps: None,
            readable: 0,
            fin_at: u64::MAX,
            opened: Self::first_opened(shared),
            waiting_segments: 0,
            ack_deadline: Instant::MAX,
            quick_left: shared.delayed_ack.quick,
            last_data: Instant::ZERO,
            segments: 0,
            out_of_order: 0,
            duplicates: 0,
        }
    }

    fn first_opened(shared: &Shared) -> u32 {
        if shared.opens_window { FIRST_WINDOW } else { u32::MAX }
    }

    /// Bytes that may be advertised before any data has arrived.
    pub(super) fn first_room(shared: &Shared) -> u32 {
        shared.recv_buffer_bytes.min(Self::first_opened(shared))
    }

    /// Bytes that may be advertised.
    #[inline(always)]
    pub(super) fn room(&self, shared: &Shared) -> u32 {
        self.space(shared).min(self.opened)
    }

    /// Free bytes of the buffer.
    #[inline(always)]
    pub(super) fn space(&self, shared: &Shared) -> u32 {
        shared.recv_buffer_bytes.saturating_sub(self.readable)
    }

    /// Opens the window when new data arrives, and lets the peer know soon that there is room.
    pub(super) fn open_window(&mut self, len: u64, shared: &Shared) {
        let space = self.space(shared);
        if self.opened < space && len >= LEAST_TO_OPEN {
            let more = 2 * u64::from(shared.mss).max(len) as u32;
            self.opened = self.opened.saturating_add(more).min(space);
            self.quick_left |= 1;
        }
    }

    /// Whether data that arrives at `now` follows a pause that the peer may have taken for a loss.
    #[inline(always)]
    pub(super) fn is_late(&self, now: Instant, shared: &Shared) -> bool {
        now - self.last_data > shared.delayed_ack.timeout
    }

    /// Counts a segment with data; `times` has those of this connection.
    pub(super) fn begin_segment(&mut self, now: Instant, times: &impl Side, shared: &Shared) {
        self.segments += 1;
        // The first comparison is a shortcut: the RTO is never shorter than the delay of an
        // acknowledgement.
        if self.is_late(now, shared) && now - self.last_data > times.rto() {
            self.acknowledge_quickly(shared);
        }
        self.last_data = now;
    }

    /// Takes `len` bytes in order, of an end where nothing is unusual. Returns whether they are to
    /// be acknowledged at once.
    #[inline(always)]
    pub(super) fn take_next(&mut self, now: Instant, len: u64, shared: &Shared) -> bool {
        self.segments += 1;
        self.last_data = now;
        self.open_window(len, shared);
        self.readable += len as u32;
        self.count_segment(now, shared)
    }

    /// Records a segment without new bytes, which the next acknowledgement reports.
    pub(super) fn note_duplicate(&mut self, range: Range, shared: &Shared) {
        self.gaps_mut(shared).note_duplicate(range);
        self.duplicates += 1;
        self.acknowledge_quickly(shared);
    }

    /// The peer seems to restart: each of the next segments is acknowledged at once.
    fn acknowledge_quickly(&mut self, shared: &Shared) {
        if shared.delayed_ack.quick_again {
            self.quick_left = shared.delayed_ack.quick;
        }
    }

    fn gaps_mut(&mut self, shared: &Shared) -> &mut Gaps {
        self.gaps.get_or_insert_with(|| Box::new(Gaps::new(shared.compresses_sacks)))
    }

    /// Keeps an out-of-order segment, of which there is room for `taken`, beyond `hole`. Returns
    /// whether it is acknowledged at once, and not together with the following ones.
    pub(super) fn keep_beyond(
        &mut self,
        now: Instant,
        hole: u64,
        (range, taken): (Range, Range),
        rtt: Duration,
        shared: &Shared,
    ) -> bool {
        let (place, is_fresh) = self.gaps_mut(shared).keep(taken);
        self.out_of_order += 1;
        if !is_fresh {
            self.gaps_mut(shared).note_duplicate(range);
            self.duplicates += 1;
        }
        let is_quick = self.quick_left > 0;
        if shared.compresses_sacks {
            self.quick_left = self.quick_left.saturating_sub(1);
        }
        is_quick || self.gaps_mut(shared).acknowledges(now, (hole, place), rtt)
    }

    /// Decides whether another segment is to be acknowledged at once, or when.
    #[inline(always)]
    pub(super) fn count_segment(&mut self, now: Instant, shared: &Shared) -> bool {
        self.waiting_segments += 1;
        let is_quick = self.quick_left > 0;
        if is_quick {
            self.quick_left -= 1;
        }
        let is_due = self.waiting_segments >= shared.delayed_ack.every;
        if !is_due && self.waiting_segments == 1 {
            self.ack_deadline = shared.limits.tick.after(now, shared.delayed_ack.timeout);
        }
        is_quick || is_due
    }

    /// When an acknowledgement must be sent.
    #[inline(always)]
    pub(super) fn deadline(&self) -> Instant {
        let gaps = self.gaps.as_ref().map_or(Instant::MAX, |gaps| gaps.deadline());
        self.ack_deadline.min(gaps)
    }

    #[inline(always)]
    pub(super) fn on_ack_sent(&mut self) {
        self.waiting_segments = 0;
        self.ack_deadline = Instant::MAX;
        if self.gaps.is_some() {
            self.report_gaps();
        }
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
}
