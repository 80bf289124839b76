//! Holds both halves of congestion control, and drives them (RFC 4340 section 10).

mod mark_probe;
mod plain;
mod receiving;

use core::num::NonZeroU32;

use udccp_base::{Duration, Ecn, Instant, MaybeInstant};
use udccp_wire::{OptionRef, Seqno};

use super::timing::DEFAULT_RTT;
use crate::ccid::ccid2::{self, PlainRun};
use crate::ccid::ccid3::{self, UnusedCcid3};
use crate::ccid::{
    AckInfo, AckOutcome, CcidFactory, CcidMetrics, CcidReceiver as _, CcidSender as _, CcidSetup,
    FeatureNeed, PacketReport, QuickStartStep, ReceivedInfo, ReceivedRun, ReceiverHalf,
    SendVerdict, SenderHalf, SentInfo, TimeoutOutcome, of_receiver, of_sender,
};
use crate::config::ConnectionConfig;
use mark_probe::MarkProbe;
pub(super) use plain::PlainVerdict;

/// The CCIDs of one connection: a sender half for what we send, a receiver half for what we
/// receive. Until the handshake has chosen them, nothing happens.
#[derive(Clone, Debug, Default)]
pub(super) struct CongestionControl {
    tx: Option<SenderHalf>,
    rx: Option<ReceiverHalf>,
    /// When the sender half last refused to send the first message. Cleared by an acknowledgement,
    /// a timeout, or the time that it gave.
    kept_at: MaybeInstant,
    rare: Option<Box<Rare>>,
}

/// Fields that few connections need.
#[derive(Clone, Debug, Default)]
struct Rare {
    mark_probe: MarkProbe,
    /// Until then, the peer has asked us not to send faster.
    peer_slow_until: MaybeInstant,
}

/// Feature values that the sender half wants the peer to agree to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wants {
    /// Sequence Window, in packets.
    pub(super) sequence_window: u64,
    /// Ack Ratio; `None` leaves it unchanged.
    pub(super) ack_ratio: Option<u16>,
}

impl CongestionControl {
    /// Installs a new sender half. Returns the features that it needs.
    pub(super) fn install_sender(
        &mut self,
        factory: &dyn CcidFactory,
        setup: &CcidSetup<'_>,
    ) -> &'static [FeatureNeed] {
        self.tx = Some(factory.sender_half(setup));
        self.kept_at = MaybeInstant::NONE;
        self.sender_needs()
    }

    /// Installs a new receiver half, for a peer that requests this Ack Ratio.
    pub(super) fn install_receiver(
        &mut self,
        factory: &dyn CcidFactory,
        setup: &CcidSetup<'_>,
        ack_ratio: u16,
    ) {
        self.rx = Some(factory.receiver_half(setup));
        self.set_ack_ratio(ack_ratio);
    }

    /// Replaces a sender half that stands in for the whole one by that. The settings are those of
    /// `install_sender`.
    fn use_whole_sender(&mut self, config: &ConnectionConfig) {
        if let Some(whole) = self.tx.as_ref().and_then(|tx| tx.whole(config)) {
            self.tx = Some(whole);
        }
    }

    /// Replaces a receiver half that stands in for the whole one by that.
    fn use_whole_receiver(&mut self, config: &ConnectionConfig) {
        if let Some(whole) = self.rx.as_ref().and_then(|rx| rx.whole(config)) {
            self.rx = Some(whole);
        }
    }

    /// The path has changed, and both halves have been replaced. They continue with the existing
    /// sequence numbers: `newest` is the newest packet before the change.
    pub(super) fn on_path_changed(
        &mut self,
        config: &ConnectionConfig,
        now: Instant,
        newest: Option<(Seqno, Instant)>,
    ) {
        self.use_whole_sender(config);
        self.use_whole_receiver(config);
        if let Some(tx) = &mut self.tx {
            of_sender!(tx, tx => tx.on_path_changed());
        }
        if let Some(rx) = &mut self.rx {
            of_receiver!(rx, rx => rx.on_path_changed(now, newest));
        }
    }

    /// CCID of the sender half.
    pub(super) fn sender_ccid(&self) -> Option<u8> {
        self.tx.as_ref().map(|tx| of_sender!(tx, tx => tx.ccid()))
    }

    /// Whether the sender half understands this option of the peer's receiver half.
    pub(super) fn reads(&self, option: &OptionRef<'_>) -> bool {
        self.tx.as_ref().is_some_and(|tx| of_sender!(tx, tx => tx.reads_option(option)))
    }

    /// Features that the sender half needs.
    pub(super) fn sender_needs(&self) -> &'static [FeatureNeed] {
        match &self.tx {
            Some(SenderHalf::Ccid2(_) | SenderHalf::UnusedCcid2(_)) => ccid2::NEEDED_FEATURES,
            Some(SenderHalf::Tfrc(_) | SenderHalf::UnusedCcid3(_)) => ccid3::NEEDED_FEATURES,
            Some(SenderHalf::Other(other)) => other.needs,
            None => &[],
        }
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    fn has_given_up_marks(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.mark_probe.has_given_up())
    }

    /// Whether reports of data packets are still expected; `None` if the sender half does not track
    /// them.
    pub(super) fn awaits_reports(&self) -> Option<bool> {
        self.tx.as_ref().and_then(|tx| of_sender!(tx, tx => tx.awaits_reports()))
    }

    /// State of the sender half.
    pub(super) fn sender_metrics(&self, config: &ConnectionConfig) -> Option<CcidMetrics> {
        let tx = self.tx.as_ref()?;
        // What stands in for a sender half has no settings to report.
        let whole = tx.whole(config);
        Some(of_sender!(whole.as_ref().unwrap_or(tx), tx => tx.metrics()))
    }

    /// Smoothed round-trip time, once the sender half has a sample.
    #[inline]
    pub(super) fn rtt(&self) -> Option<Duration> {
        self.tx.as_ref().and_then(|tx| of_sender!(tx, tx => tx.rtt()))
    }

    /// The handshake measured a round-trip time: with our clock alone, and with the peer's echo.
    pub(super) fn on_handshake(
        &mut self,
        config: &ConnectionConfig,
        now: Instant,
        measured: Option<Duration>,
        echoed: Option<Duration>,
    ) {
        let is_for_whole = match &self.tx {
            Some(SenderHalf::UnusedCcid2(tx)) => tx.needs_whole_for_handshake(),
            Some(SenderHalf::UnusedCcid3(tx)) => tx.needs_whole_for_handshake(),
            _ => false,
        };
        if is_for_whole && measured.or(echoed).is_some() {
            self.use_whole_sender(config);
        }
        if let (Some(tx), Some(measured)) = (&mut self.tx, measured) {
            of_sender!(tx, tx => tx.on_handshake_measured(now, measured));
        }
        let Some(rtt) = echoed else { return };
        if let Some(tx) = &mut self.tx {
            of_sender!(tx, tx => tx.on_handshake_rtt(now, rtt));
        }
        if let Some(rx) = &mut self.rx {
            of_receiver!(rx, rx => rx.set_rtt(rtt));
        }
    }

    /// Quick-Start has reached this step. Returns whether the sender half uses it.
    pub(super) fn quick_start(
        &mut self,
        config: &ConnectionConfig,
        now: Instant,
        step: QuickStartStep,
    ) -> bool {
        self.use_whole_sender(config);
        self.tx.as_mut().is_some_and(|tx| of_sender!(tx, tx => tx.quick_start(now, step)))
    }

    /// Whether a data packet of `size_bytes` may be sent now.
    #[inline]
    pub(super) fn may_send(
        &mut self,
        config: &ConnectionConfig,
        now: Instant,
        size_bytes: u32,
    ) -> bool {
        if matches!(self.tx, Some(SenderHalf::UnusedCcid2(_) | SenderHalf::UnusedCcid3(_))) {
            self.use_whole_sender(config);
        }
        let Some(tx) = &mut self.tx else { return false };
        let verdict = of_sender!(tx, tx => tx.poll_send(now, size_bytes));
        let may_send = verdict == SendVerdict::Now;
        self.kept_at = if may_send { MaybeInstant::NONE } else { MaybeInstant::some(now) };
        may_send
    }

    /// Whether `keeps_rest` may be true, as far as is known without asking the sender half.
    #[inline]
    pub(super) fn may_keep_rest(&self) -> bool {
        match &self.tx {
            Some(SenderHalf::Ccid2(tx)) => tx.is_full(),
            Some(SenderHalf::Tfrc(_)) => true,
            _ => false,
        }
    }

    /// `may_send` has just let data be sent. Returns whether it certainly lets no more be sent, and
    /// then has the result of another call.
    #[inline]
    pub(super) fn keeps_rest(&mut self, now: Instant, size_bytes: u32) -> bool {
        let keeps = match &mut self.tx {
            Some(SenderHalf::Ccid2(tx)) if tx.is_full() => {
                tx.on_full();
                true
            }
            Some(SenderHalf::Tfrc(tx)) => tx.poll_send(now, size_bytes) != SendVerdict::Now,
            _ => false,
        };
        if keeps {
            self.kept_at = MaybeInstant::some(now);
        }
        keeps
    }

    /// Called right after `may_send` let data be sent: whether more is known to be allowed.
    #[inline]
    pub(super) fn may_follow(&self) -> bool {
        matches!(&self.tx, Some(SenderHalf::Ccid2(tx)) if tx.may_follow())
    }

    /// A train is full, and `waiting` more packets are in the send queue.
    #[inline]
    pub(super) fn end_train(&mut self, waiting: usize) {
        if let Some(SenderHalf::Ccid2(tx)) = &mut self.tx {
            tx.end_train(waiting);
        }
    }

    /// Whether the sender half, asked at this very instant, let no data be sent.
    #[inline]
    pub(super) fn is_blocked(&self, now: Instant) -> bool {
        self.kept_at == MaybeInstant::some(now)
    }

    /// CCVal of the data packet that is being written.
    #[inline(always)]
    pub(super) fn ccval(&mut self, now: Instant) -> u8 {
        match &mut self.tx {
            Some(SenderHalf::Tfrc(tx)) => tx.ccval(now),
            Some(SenderHalf::Other(tx)) => tx.ccval(now),
            // CCID 2 has no CCVal.
            _ => 0,
        }
    }

    /// ECN codepoint of the packet that is being sent. `probe` is how often to mark a data packet,
    /// to see whether the peer reports it. Uses ECT(0), since ECT(1) as a nonce is historic (RFC
    /// 8311).
    #[inline(always)]
    pub(super) fn ecn(&mut self, now: Instant, probe: Option<NonZeroU32>) -> Ecn {
        if self.has_given_up_marks() {
            return Ecn::NotEct;
        }
        probe.map_or(Ecn::Ect0, |every| self.probing_ecn(now, every))
    }

    /// The same where no data packet is marked.
    pub(super) fn unprobed_ecn(&self) -> Ecn {
        if self.has_given_up_marks() { Ecn::NotEct } else { Ecn::Ect0 }
    }

    #[cold]
    fn probing_ecn(&mut self, now: Instant, every: NonZeroU32) -> Ecn {
        let rtt = self.rtt().unwrap_or(DEFAULT_RTT);
        if self.rare().mark_probe.is_due(now, every, rtt) { Ecn::Ce } else { Ecn::Ect0 }
    }

    /// A packet was sent.
    #[inline(always)]
    pub(super) fn on_sent(&mut self, now: Instant, packet: SentInfo) {
        match &mut self.tx {
            Some(SenderHalf::Ccid2(tx)) => tx.on_sent(now, packet),
            Some(SenderHalf::UnusedCcid2(tx)) => tx.note_sent(packet.seq, packet.has_ack),
            _ => self.tell_other_sender(now, SentInfo { ..packet }),
        }
        match &mut self.rx {
            _ if !packet.has_ack => {}
            Some(ReceiverHalf::Ccid2(rx)) => rx.on_feedback_sent(now, packet.seq),
            _ => self.note_other_feedback(now, packet.seq),
        }
    }

    #[inline(never)]
    fn tell_other_sender(&mut self, now: Instant, packet: SentInfo) {
        if let Some(tx) = &mut self.tx {
            of_sender!(tx, tx => tx.on_sent(now, packet));
        }
    }

    /// A valid packet arrived for the first time.
    #[inline(always)]
    pub(super) fn on_packet(
        &mut self,
        config: &ConnectionConfig,
        now: Instant,
        packet: ReceivedInfo,
    ) {
        if let Some(ReceiverHalf::UnusedTfrc(_)) = &self.rx {
            self.use_whole_receiver_for(config, packet.seq, packet.is_data);
        }
        self.on_ordinary_packet(now, packet);
    }

    /// The same for a packet in order that has no data, or is not the first with data.
    #[inline(always)]
    pub(super) fn on_ordinary_packet(&mut self, now: Instant, packet: ReceivedInfo) {
        // One comparison each finds out that it is CCID 2.
        if let Some(ReceiverHalf::Ccid2(rx)) = &mut self.rx {
            rx.on_packet(now, &packet);
        } else if let Some(rx) = &mut self.rx {
            of_receiver!(rx, rx => rx.on_packet(now, &packet.clone()));
        }
        if let Some(SenderHalf::Ccid2(tx)) = &mut self.tx {
            tx.on_peer_packet(now, &packet);
        } else if let Some(SenderHalf::UnusedCcid2(tx)) = &mut self.tx {
            tx.on_peer_packet(now, &packet);
        } else if let Some(SenderHalf::Other(tx)) = &mut self.tx {
            tx.on_peer_packet(now, &packet.clone());
        }
    }

    /// Like [`Self::on_packet`], for data packets that arrived together.
    pub(super) fn on_run(
        &mut self,
        config: &ConnectionConfig,
        now: Instant,
        run: &ReceivedRun<'_>,
    ) {
        if matches!(self.rx, Some(ReceiverHalf::UnusedTfrc(_))) {
            self.use_whole_receiver(config);
        }
        if let Some(rx) = &mut self.rx {
            of_receiver!(rx, rx => rx.on_run(now, run));
        }
        if let Some(tx) = &mut self.tx {
            of_sender!(tx, tx => tx.on_peer_run(now, run));
        }
    }

    /// An acknowledgement arrived. Without a sender half it has no effect.
    #[inline]
    pub(super) fn on_ack(
        &mut self,
        config: &ConnectionConfig,
        now: Instant,
        ack: &AckInfo<'_>,
    ) -> AckOutcome {
        let is_for_whole = match &self.tx {
            Some(SenderHalf::UnusedCcid2(tx)) => tx.needs_whole_for(ack),
            Some(SenderHalf::UnusedCcid3(_)) => UnusedCcid3::needs_whole_for(ack),
            _ => false,
        };
        if is_for_whole {
            self.use_whole_sender(config);
        }
        let Some(tx) = &mut self.tx else { return AckOutcome::default() };
        let outcome = of_sender!(tx, tx => tx.on_ack(now, ack));
        if outcome.probes_reported | outcome.probes_hidden != 0 {
            self.rare
                .get_or_insert_default()
                .mark_probe
                .on_reports(outcome.probes_reported, outcome.probes_hidden);
        }
        if let (Some(rx), Some(rtt)) =
            (&mut self.rx, of_sender!(tx, tx => tx.rtt()).filter(|_| outcome.newly_acked > 0))
        {
            of_receiver!(rx, rx => rx.set_rtt(rtt));
        }
        outcome
    }

    /// The packets newly reported by an acknowledgement whose Ack Vector has this first cell, if
    /// the sender half is that of CCID 2 and they are plain (`Ccid2Sender::plain_ack`).
    #[inline(always)]
    pub(super) fn plain_ack(&self, ackno: Seqno, first: u8) -> Option<PlainRun> {
        match &self.tx {
            Some(SenderHalf::Ccid2(tx)) => tx.plain_ack(ackno, first),
            _ => None,
        }
    }

    /// That acknowledgement arrived. Returns how many packets were acknowledged.
    #[inline(always)]
    pub(super) fn take_plain_ack(
        &mut self,
        now: Instant,
        ackno: Seqno,
        run: PlainRun,
        elapsed: Duration,
    ) -> u32 {
        let Some(SenderHalf::Ccid2(tx)) = &mut self.tx else { return 0 };
        let acked = tx.take_plain_ack(now, ackno, run, elapsed);
        let Some(rtt) = tx.rtt() else { return acked };
        if let Some(ReceiverHalf::Ccid2(rx)) = &mut self.rx {
            rx.set_rtt(rtt);
        } else if let Some(rx) = &mut self.rx {
            of_receiver!(rx, rx => rx.set_rtt(rtt));
        }
        acked
    }

    /// Visits what an acknowledgement without an Ack Vector reports about single packets, newest
    /// first.
    pub(super) fn read_reports(
        &self,
        ack: &AckInfo<'_>,
        visit: &mut dyn FnMut(PacketReport, Seqno, Seqno),
    ) {
        if let Some(tx) = &self.tx {
            of_sender!(tx, tx => tx.read_reports(ack, visit));
        }
    }

    /// Feature values that the sender half now wants the peer to agree to.
    #[inline(always)]
    pub(super) fn wants(&self) -> Option<Wants> {
        if let Some(SenderHalf::Ccid2(tx)) = &self.tx {
            let (sequence_window, ack_ratio) = (tx.seq_window_needed(), tx.wanted_ack_ratio());
            return Some(Wants { sequence_window, ack_ratio });
        }
        self.wants_of_other()
    }

    #[inline(never)]
    fn wants_of_other(&self) -> Option<Wants> {
        let tx = self.tx.as_ref()?;
        let (sequence_window, ack_ratio) = (
            of_sender!(tx, tx => tx.seq_window_needed()),
            of_sender!(tx, tx => tx.wanted_ack_ratio()),
        );
        Some(Wants { sequence_window, ack_ratio })
    }

    /// The peer can hardly keep up, which counts for a round-trip time. Returns whether this is
    /// new.
    pub(super) fn on_slow_receiver(&mut self, now: Instant, rtt: Duration) -> bool {
        let peer_slow_until = &mut self.rare().peer_slow_until;
        let is_news = peer_slow_until.get().is_none_or(|until| until < now);
        *peer_slow_until = MaybeInstant::some(now + rtt);
        is_news
    }

    /// Whether the peer has asked us not to send faster, for now.
    pub(super) fn is_peer_slow(&self, now: Instant) -> bool {
        let until = self.rare.as_ref().and_then(|rare| rare.peer_slow_until.get());
        until.is_some_and(|until| now <= until)
    }

    /// At most this many packets may be in flight.
    pub(super) fn limit_in_flight(&mut self, packets: u64) {
        if let Some(tx) = &mut self.tx {
            of_sender!(tx, tx => tx.limit_in_flight(packets));
        }
    }

    /// The peer confirmed the Ack Ratio that we requested.
    pub(super) fn on_ack_ratio_confirmed(&mut self, ack_ratio: u16) {
        if let Some(tx) = &mut self.tx {
            of_sender!(tx, tx => tx.on_ack_ratio_confirmed(ack_ratio));
        }
    }

    /// Whether the next data packet should acknowledge the peer's acknowledgements.
    #[inline]
    pub(super) fn wants_ack_of_ack(&self) -> bool {
        self.tx.as_ref().is_some_and(|tx| of_sender!(tx, tx => tx.wants_ack_of_ack()))
    }

    /// Whether an Ack should do so, after the data that may leave now.
    #[inline(always)]
    pub(super) fn wants_ack_after_data(&self) -> bool {
        matches!(&self.tx, Some(SenderHalf::Ccid2(tx)) if tx.wants_ack_after_data())
    }

    /// The earliest timer of both halves, if they are those of CCID 2.
    #[inline(always)]
    pub(super) fn timer_of_ccid2(&self) -> Option<MaybeInstant> {
        let Some(ReceiverHalf::Ccid2(rx)) = &self.rx else { return None };
        match &self.tx {
            Some(SenderHalf::Ccid2(tx)) => Some(tx.next_wake().earlier(rx.next_wake())),
            Some(SenderHalf::UnusedCcid2(_)) => Some(rx.next_wake()),
            _ => None,
        }
    }

    /// When to call `handle_sender_timeout`.
    #[inline]
    pub(super) fn sender_timer(&self) -> MaybeInstant {
        match &self.tx {
            Some(SenderHalf::Ccid2(tx)) => tx.next_wake(),
            Some(SenderHalf::UnusedCcid2(_) | SenderHalf::UnusedCcid3(_)) => MaybeInstant::NONE,
            Some(other) => of_sender!(other, tx => tx.poll_timeout()).into(),
            None => MaybeInstant::NONE,
        }
    }

    /// Runs the timer of the sender half, if it is due.
    pub(super) fn handle_sender_timeout(&mut self, now: Instant) -> TimeoutOutcome {
        self.tx
            .as_mut()
            .map_or_else(TimeoutOutcome::default, |tx| of_sender!(tx, tx => tx.handle_timeout(now)))
    }
}
