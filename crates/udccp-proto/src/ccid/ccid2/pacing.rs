//! Decides when packets that fit into the window are sent: at once, in trains, or paced.

use udccp_base::Instant;

use crate::ccid::ccid2::Pacing;
use crate::ccid::ccid2::plain::Allowance;
use crate::ccid::ccid2::sender::Ccid2Sender;
use crate::ccid::ccid2::trains::Pace;

impl Ccid2Sender {
    /// A packet was sent that may be subject to pacing.
    #[inline(never)]
    pub(super) fn on_paced(&mut self, now: Instant, size_bytes: u32) {
        if let Some(pace) = self.pace(size_bytes) {
            self.trains.on_sent(now, pace, &mut self.pacer);
        }
    }

    /// When a packet that may be subject to pacing can be sent; `None` for now.
    #[inline(never)]
    pub(super) fn wait_for_pace(&mut self, now: Instant, size_bytes: u32) -> Option<Instant> {
        let pace = self.pace(size_bytes)?;
        let at = self.trains.next_paced(now, pace, &self.pacer);
        (at > now).then_some(at)
    }

    /// Whether packets are not paced now.
    #[inline(always)]
    pub(super) fn is_unpaced(&self) -> bool {
        let by_window = match self.pacing {
            Pacing::Off => false,
            Pacing::NonValidated => self.window.is_non_validated(),
            Pacing::Always => true,
        };
        let by_rate = self.quick_start.is_some() || self.window.algorithm().pacing_rate().is_some();
        !by_window && !by_rate
    }

    /// How packets are paced; `None` if they are not.
    fn pace(&mut self, size_bytes: u32) -> Option<Pace> {
        //= 5634-3.1.3-3
        if let Some(quick_start) = &self.quick_start {
            return Some(self.trains.pace(quick_start.0));
        }
        if let Some(rate) = self.window.algorithm().pacing_rate() {
            let trains = &self.trains;
            let pace = || trains.pace(rate.time_for(u64::from(size_bytes)));
            return Some(self.window.pace(rate, size_bytes, pace));
        }
        let paced = match self.pacing {
            Pacing::Off => false,
            Pacing::NonValidated => self.window.is_non_validated() && !self.sends_one_by_one(),
            Pacing::Always => true,
        };
        let srtt = self.rtt.srtt().filter(|_| paced)?;
        Some(self.trains.pace(srtt / u64::from(self.window.cwnd())))
    }

    /// Whether the next packet will be the only one in the network, as in an exchange of requests
    /// and responses. It is no burst, and must not wait because an earlier exchange took long.
    fn sends_one_by_one(&self) -> bool {
        self.trains.are_on() && self.pipe == 0
    }

    /// Whether `poll_send` would certainly allow another packet, after it allowed one that was sent
    /// at this time. That call has already reduced a window that was stale.
    #[inline]
    pub(crate) fn may_follow(&self) -> bool {
        self.pipe > 0 && !self.is_full() && self.trains.fill() && self.is_unpaced()
    }

    /// The time until which packets that fit into the window wait for more; `None` for now.
    #[inline]
    pub(super) fn wait_for_train(&mut self, now: Instant) -> Option<Instant> {
        // If nothing is in the network, no acknowledgement will free more of the window.
        if !self.trains.are_on() || self.pipe == 0 {
            return None;
        }
        self.train_leaves(now)
    }

    #[inline(never)]
    fn train_leaves(&mut self, now: Instant) -> Option<Instant> {
        self.trains.wait_for_room(now, self.room(), self.window.cwnd(), self.rtt.srtt())
    }

    /// A train is full, and the application has `waiting` more packets. A window that has room for
    /// a part of them, less than a train, counts as full until acknowledgements make more room.
    pub(crate) fn end_train(&mut self, waiting: usize) {
        self.allowance = Allowance::default();
        let room = self.room();
        let is_short = room < waiting as u64 && self.trains.rest(room, self.window.cwnd());
        if let Some(last) = self.last_sent.filter(|_| is_short) {
            self.window.on_filled(last);
        }
    }

    /// Whether the room that the window has waits for acknowledgements.
    #[inline]
    pub(super) fn is_resting(&mut self) -> bool {
        self.pipe > 0 && self.trains.is_resting(self.room(), self.window.cwnd())
    }

    /// Packets that the window has room for.
    #[inline]
    pub(super) fn room(&self) -> u64 {
        self.room_in(self.window.cwnd())
    }

    /// The same for a window of `cwnd`.
    #[inline]
    pub(super) fn room_in(&self, cwnd: u32) -> u64 {
        cwnd.min(self.in_flight_limit).saturating_sub(self.pipe).into()
    }
}
