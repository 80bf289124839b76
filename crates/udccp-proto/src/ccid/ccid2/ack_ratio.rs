//! Chooses the Ack Ratio to request: congestion control on acknowledgements (RFC 4341 section 6.1).

use udccp_wire::Seqno;

use crate::ccid::ccid2::AckRatioConfig;
use crate::ccid::ccid2::peer_log::PeerLog;
use crate::ccid::{ReceivedInfo, ReceivedRun};

/// Ack Ratio of new connections (RFC 4340 section 11.3).
pub(super) const INITIAL: u16 = 2;

/// The Ack Ratio to request, adjusted once per window of data.
#[derive(Clone, Debug)]
pub(super) struct AckRatio {
    config: AckRatioConfig,
    in_force: u16,
    wanted: u16,
    peer: PeerLog,
    /// An acknowledgement was lost or marked in the current window.
    congested: bool,
    clean_windows: u32,
    window_end: Option<Seqno>,
}

impl AckRatio {
    pub(super) fn new(config: AckRatioConfig, cwnd: u32) -> Self {
        let mut this = Self {
            config,
            in_force: INITIAL,
            wanted: INITIAL,
            peer: PeerLog::default(),
            congested: false,
            clean_windows: 0,
            window_end: None,
        };
        if let AckRatioConfig::Fixed(ratio) = config {
            this.wanted = this.bound(ratio, cwnd);
        }
        this
    }

    /// The ratio that the peer uses. If it is 0 (none), the initial ratio.
    pub(super) fn in_force(&self) -> u16 {
        if self.in_force == 0 { INITIAL } else { self.in_force }
    }

    pub(super) fn set_in_force(&mut self, ratio: u16) {
        self.in_force = ratio;
    }

    pub(super) fn wanted(&self) -> u16 {
        self.wanted
    }

    #[inline(always)]
    pub(super) fn on_peer_packet(&mut self, packet: &ReceivedInfo) {
        if self.peer.on_packet(packet) {
            self.congested = true;
        }
    }

    /// Does the same for data packets that arrived together.
    pub(super) fn on_peer_run(&mut self, run: &ReceivedRun<'_>) {
        for (n, packet) in run.each().enumerate() {
            if self.peer.is_whole() {
                // The remaining packets are in order and change nothing else.
                return self.peer.skip_to(run.last(), run.count() - n as u32);
            }
            self.on_peer_packet(&packet);
        }
    }

    /// The peer acknowledged `ackno`. `next` is the sequence number of the next packet.
    #[inline]
    pub(super) fn on_ack(&mut self, ackno: Seqno, next: Seqno, cwnd: u32) {
        match self.window_end {
            Some(end) if ackno.is_before(end) => return,
            Some(_) => self.on_window(cwnd),
            None => {}
        }
        self.window_end = Some(next);
    }

    /// The window was reduced: limits the ratio to half of it.
    pub(super) fn on_cut(&mut self, cwnd: u32) {
        self.wanted = self.bound(self.wanted, cwnd);
    }

    #[inline(never)]
    fn on_window(&mut self, cwnd: u32) {
        let ratio = match self.config {
            AckRatioConfig::Fixed(ratio) => ratio,
            AckRatioConfig::Adaptive { .. } => self.adapt(cwnd),
            AckRatioConfig::Thinned { acks, .. } => self.adapt(cwnd).max(thinned(cwnd, acks)),
        };
        //= 4341-6.1.2-2
        self.wanted = self.bound(ratio, cwnd);
    }

    /// Doubles the ratio after a window with lost or marked acknowledgements. Lowers it by one
    /// after cwnd / (R^2 - R) windows without (RFC 4341 section 6.1.2).
    fn adapt(&mut self, cwnd: u32) -> u16 {
        if core::mem::take(&mut self.congested) {
            self.clean_windows = 0;
            return self.wanted.saturating_mul(2);
        }
        self.clean_windows = self.clean_windows.saturating_add(1);
        let ratio = u64::from(self.wanted);
        let needed = u64::from(cwnd).div_ceil((ratio * ratio - ratio).max(1));
        if u64::from(self.clean_windows) < needed {
            return self.wanted;
        }
        self.clean_windows = 0;
        self.wanted.saturating_sub(1)
    }

    //= 4341-6.1.2-3
    /// At most half the window, rounded up, but 2 is always allowed. At least 2 if the window is
    /// four packets or more (three if thinned).
    fn bound(&self, ratio: u16, cwnd: u32) -> u16 {
        let (least, two_from) = match self.config {
            AckRatioConfig::Adaptive { min } => (min, 4),
            // In a window of three, an acknowledgement for each packet is no improvement.
            AckRatioConfig::Thinned { min, .. } => (min, 3),
            AckRatioConfig::Fixed(_) => (1, 4),
        };
        let low = if cwnd >= two_from { 2 } else { least.clamp(1, 2) };
        let high = u16::try_from(cwnd.div_ceil(2)).unwrap_or(u16::MAX).max(2);
        ratio.clamp(low, high)
    }
}

/// The smallest power of two that gives at most `acks` acknowledgements per window.
fn thinned(cwnd: u32, acks: u16) -> u16 {
    let ratio = cwnd.div_ceil(u32::from(acks.max(1))).next_power_of_two();
    u16::try_from(ratio).unwrap_or(u16::MAX)
}
