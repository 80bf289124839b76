//! The sender half: pipe, losses, timeouts and round-trip times (RFC 4341 section 5).

use core::ops::ControlFlow;

use udccp_base::{Duration, Ecn, Instant, MaybeInstant};
use udccp_cc::{Pacer, RttEstimator};
use udccp_wire::Seqno;

use crate::ackvec::{DropCode, DropState, for_each_drop};
use crate::ccid::ccid2::ack_of_ack::AckOfAck;
use crate::ccid::ccid2::ack_ratio::AckRatio;
use crate::ccid::ccid2::history::{Change, History};
use crate::ccid::ccid2::plain::Allowance;
use crate::ccid::ccid2::trains::Trains;
use crate::ccid::ccid2::window::{AckContext, Tally, Window};
use crate::ccid::ccid2::{Ccid2Config, NUMBER, Pacing};
use crate::ccid::probes::Probes;
use crate::ccid::{
    AckInfo, AckOutcome, CcidMetrics, CcidSender, LONGEST_RTT, QuickStartStep, ReceivedInfo,
    ReceivedRun, SendVerdict, SentInfo, TimeoutOutcome,
};

/// Round trips for which the Sequence Window should have numbers (RFC 4340 section 7.5.2).
const WINDOWS_IN_SEQUENCE_WINDOW: u64 = 5;
/// The Sequence Window of new connections (RFC 4340 section 7.5.2).
const LEAST_SEQUENCE_WINDOW: u64 = 100;
/// Limit of the acknowledgement delay in the transmit timer, without which it might never fire.
const LONGEST_ACK_DELAY: Duration = Duration::from_secs(64);

/// The sender half of CCID 2.
#[derive(Clone, Debug)]
pub struct Ccid2Sender {
    number: u8,
    pub(super) history: History,
    /// Packets sent with a mark of our own.
    pub(super) probes: Probes,
    pub(super) window: Window,
    pub(super) rtt: RttEstimator,
    pub(super) ack_ratio: AckRatio,
    pub(super) ack_of_ack: AckOfAck,
    pub(super) pacer: Pacer,
    pub(super) pacing: Pacing,
    pub(super) trains: Trains,
    /// Data bytes of a full packet, without headers.
    pub(super) packet_size_bytes: u32,
    /// During Quick-Start: the time between packets, and the window before.
    pub(super) quick_start: Option<Box<(Duration, u32)>>,
    peer_ack_delay: Duration,
    pub(super) allowance: Allowance,
    /// Data packets believed to be in the network.
    pub(super) pipe: u32,
    /// A timeout has removed all packets before this one from the pipe.
    pub(super) pipe_floor: Option<Seqno>,
    pub(super) last_sent: Option<Seqno>,
    /// The next round-trip time sample must acknowledge this packet or a later one.
    pub(super) next_sample: Option<Seqno>,
    pub(super) in_flight_limit: u32,
    timer: MaybeInstant,
    pub(super) pacing_wake: MaybeInstant,
    sent_total: u64,
    timeouts: u32,
    lost: u64,
    marked: u64,
}

impl Ccid2Sender {
    /// Creates a sender of packets of up to `packet_size_bytes` of data.
    pub fn new(config: &Ccid2Config, packet_size_bytes: u32) -> Self {
        Self::numbered(NUMBER, config, packet_size_bytes)
    }

    /// Creates the sender of an experimental CCID that differs only in `config`.
    pub(crate) fn numbered(number: u8, config: &Ccid2Config, packet_size_bytes: u32) -> Self {
        let window = Window::new(config, packet_size_bytes);
        let cwnd = window.cwnd();
        Self {
            number,
            history: History::new(window.max_window()),
            probes: Probes::default(),
            window,
            rtt: RttEstimator::new(config.rto),
            ack_ratio: AckRatio::new(config.ack_ratio, cwnd),
            ack_of_ack: AckOfAck::new(config.ack_of_ack_after),
            pacer: Pacer::new(cwnd),
            pacing: config.pacing,
            trains: Trains::new(config.max_train),
            packet_size_bytes,
            quick_start: None,
            peer_ack_delay: config.delayed_ack.min(LONGEST_ACK_DELAY),
            allowance: Allowance::default(),
            pipe: 0,
            pipe_floor: None,
            last_sent: None,
            next_sample: None,
            in_flight_limit: u32::MAX,
            timer: MaybeInstant::NONE,
            pacing_wake: MaybeInstant::NONE,
            sent_total: 0,
            timeouts: 0,
            lost: 0,
            marked: 0,
        }
    }

    /// The sequence number of the next packet. Wrong only before the first packet.
    fn next_seq(&self) -> Seqno {
        self.last_sent.map_or(Seqno::ZERO, Seqno::next)
    }

    /// Restarts the transmit timer while packets are in the network (RFC 6298 section 5). If they
    /// are too few for an immediate acknowledgement, the peer may delay it.
    pub(super) fn restart_timer(&mut self, now: Instant) {
        let waits = self.pipe < u32::from(self.ack_ratio.in_force());
        let delay = if waits { self.peer_ack_delay } else { Duration::ZERO };
        self.timer = (self.pipe > 0).then(|| now + self.rtt.rto() + delay).into();
    }

    /// Measures the round-trip time with the acknowledged packet, or else with a timestamp. The
    /// averages take one sample per window (RFC 4341 section 5). The minimum takes all samples.
    fn measure_rtt(&mut self, now: Instant, ack: &AckInfo<'_>, end: usize) -> Option<Duration> {
        let sent_at = ack.ack_vector.and_then(|_| self.history.open_since(ack.ackno, end));
        let by_packet =
            sent_at.map(|sent_at| rtt_of(now - sent_at, ack.elapsed.unwrap_or_default()));
        self.note_rtt(ack.ackno, by_packet.or(ack.timestamp_echo_rtt))
    }

    /// An acknowledgement of `ackno` measured this time. Returns it, unless it is no sample.
    #[inline(always)]
    pub(super) fn note_rtt(
        &mut self,
        ackno: Seqno,
        measured: Option<Duration>,
    ) -> Option<Duration> {
        let rtt = measured.filter(|rtt| *rtt <= LONGEST_RTT)?;
        self.rtt.observe(rtt);
        if self.next_sample.is_none_or(|first| ackno.at_least(first)) {
            self.rtt.sample(rtt);
            self.next_sample = Some(self.next_seq());
        }
        Some(rtt)
    }

    /// The state when an acknowledgement of `ackno` has measured `sample`.
    #[inline(always)]
    pub(super) fn context(
        &self,
        now: Instant,
        ackno: Seqno,
        sample: Option<Duration>,
    ) -> AckContext {
        AckContext {
            now,
            ackno,
            next: self.next_seq(),
            sent_total: self.sent_total,
            pipe: self.pipe,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            rto: self.rtt.rto(),
            sample,
            ack_ratio: self.ack_ratio.in_force(),
        }
    }

    /// Reads the Ack Vector, and removes received and lost packets from the pipe. `end` is the
    /// position of the first packet in the vector.
    #[inline]
    fn read_ack_vector(
        &mut self,
        now: Instant,
        ack: &AckInfo<'_>,
        end: usize,
        tally: &mut Tally,
        out: &mut AckOutcome,
    ) {
        let Some((cells, _)) = ack.ack_vector else { return };
        self.ack_of_ack.on_ack_vector();
        let (window, at) = (&self.window, (ack.ackno, end));
        let (floor, recover) = (self.pipe_floor, window.recover());
        // If we sent no marks, packets sent after the last cut are plain: they only count as
        // received.
        let is_unmarked = self.probes.is_empty();
        let is_plain = move |seq| is_unmarked && is_from(seq, recover) && is_from(seq, floor);
        let mut plain = 0;
        if window.observes() || !self.history.read_one_cell(at, cells, is_plain, &mut plain) {
            plain += self.read_cells(now, at, cells, is_plain, tally, out);
        }
        out.newly_acked += plain;
        tally.left_pipe += plain;
        tally.counted += plain;
        (tally.received, tally.lost) = (out.newly_acked, out.newly_lost);
    }

    /// Reads any Ack Vector. Returns how many of the newly received packets are plain.
    #[inline(never)]
    fn read_cells(
        &mut self,
        now: Instant,
        at: (Seqno, usize),
        cells: &[u8],
        is_plain: impl Fn(Seqno) -> bool,
        tally: &mut Tally,
        out: &mut AckOutcome,
    ) -> u32 {
        let (window, floor) = (&mut self.window, self.pipe_floor);
        let (probes, is_observed) = (&mut self.probes, window.observes());
        let counts = |seq| !is_observed && is_plain(seq);
        let mut observed = 0;
        let plain = self.history.read_ack_vector(at, cells, counts, |sent, change| {
            let seq = sent.seq();
            if change == Change::Received && is_plain(seq) {
                window.on_packet_state(now, seq, change);
                observed += 1;
                return;
            }
            //= 4340-12.3-1
            //= 4340-12.3-2
            let change = without_probe(change, probes.take(seq), out);
            window.on_packet_state(now, seq, change);
            let after_cut = window.is_after_cut(seq);
            //= 4341-5-2
            //= 4341-5-4
            let leaves = matches!(change, Change::Received | Change::Marked | Change::Lost)
                && floor.is_none_or(|floor| seq.at_least(floor));
            tally.left_pipe += u32::from(leaves);
            match change {
                Change::Received => {
                    out.newly_acked += 1;
                    tally.counted += u32::from(window.counts(seq, leaves));
                }
                Change::Marked => {
                    (out.newly_acked, out.newly_marked) =
                        (out.newly_acked + 1, out.newly_marked + 1);
                    tally.congested |= after_cut;
                }
                Change::MarkedAgain => {
                    out.newly_marked += 1;
                    tally.congested |= after_cut;
                }
                Change::Lost => {
                    out.newly_lost += 1;
                    tally.congested |= after_cut;
                }
                Change::Late => out.late += 1,
            }
        });
        plain + observed
    }

    /// Reads Data Dropped blocks (RFC 4340 section 11.7.2). Reports about packets that the Ack
    /// Vector does not show as received have no effect.
    fn read_data_dropped(&mut self, ack: &AckInfo<'_>, tally: &mut Tally, out: &mut AckOutcome) {
        let (window, history) = (&self.window, &mut self.history);
        for_each_drop(ack.ackno, ack.data_dropped, |state, newest, oldest| {
            let DropState::Dropped(code) = state else { return ControlFlow::Continue(()) };
            history.mark_dropped(newest, oldest, |sent| {
                out.data_dropped += 1;
                out.peer_drops.add(code, 1);
                tally.data_dropped = true;
                match code {
                    //= 4340-11.7.2-1
                    DropCode::ProtocolConstraints => out.constrained = true,
                    DropCode::ApplicationNotListening => out.not_listening = true,
                    //= 4340-11.7.2-6
                    DropCode::ReceiveBuffer => tally.buffer_drops += 1,
                    //= 4340-11.7.2-7
                    //= 4340-11.7-1
                    DropCode::Corrupt | DropCode::Reserved(_) | DropCode::DeliveredCorrupt => {
                        tally.congested |= window.is_after_cut(sent.seq());
                    }
                }
            });
            ControlFlow::Continue(())
        });
    }

    /// Whether the window is full.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.pipe >= self.window.cwnd().min(self.in_flight_limit)
    }

    /// Data waits because the window is full.
    #[inline]
    pub(crate) fn on_full(&mut self) {
        if let Some(last) = self.last_sent {
            self.window.on_blocked(last, self.pipe);
        }
        self.trains.on_full();
    }

    /// Whether a long train should end with an Ack. An Ack is shorter than data, so it is sent in
    /// the same write. A DataAck is longer, and would split the train.
    #[inline]
    pub(crate) fn wants_ack_after_data(&self) -> bool {
        self.ack_of_ack_ends_train() && self.ack_of_ack.is_wanted(self.window.cwnd())
    }

    #[inline]
    fn ack_of_ack_ends_train(&self) -> bool {
        self.trains.most().is_some_and(|most| self.ack_of_ack.has_left(most))
    }

    /// The time of the next timer.
    #[inline]
    pub(crate) fn next_wake(&self) -> MaybeInstant {
        self.timer.earlier(self.pacing_wake)
    }

    #[inline(never)]
    fn on_data_sent(&mut self, now: Instant, packet: SentInfo) {
        self.note_data_sent(now, packet, self.is_unpaced());
    }

    #[inline(always)]
    pub(super) fn note_data_sent(&mut self, now: Instant, packet: SentInfo, is_unpaced: bool) {
        if !is_unpaced {
            self.on_paced(now, packet.size_bytes);
        }
        self.history.push(packet.seq, now);
        if packet.ecn == Ecn::Ce {
            self.probes.push(packet.seq);
        }
        self.use_allowance();
        self.pipe += 1;
        self.sent_total += 1;
        self.window.on_sent(now, &packet, self.pipe, self.rtt.rto());
        if self.timer == MaybeInstant::NONE {
            self.restart_timer(now);
        }
    }

    fn on_timeout(&mut self, now: Instant) {
        let next = self.next_seq();
        self.allowance = Allowance::default();
        self.window.on_timeout(now, self.pipe, next);
        self.ack_ratio.on_cut(self.window.cwnd());
        self.rtt.back_off();
        self.pipe = 0;
        self.pipe_floor = Some(next);
        self.timer = MaybeInstant::NONE;
        self.timeouts += 1;
    }
}

/// The Sequence Window for a congestion window of `cwnd` packets.
#[inline]
pub(super) fn sequence_window_for(cwnd: u32) -> u64 {
    (u64::from(cwnd) * WINDOWS_IN_SEQUENCE_WINDOW).max(LEAST_SEQUENCE_WINDOW)
}

/// The round-trip time of a packet acknowledged after `total`. An Elapsed Time longer than the
/// whole is false. Ignoring it only enlarges the sample.
pub(super) fn rtt_of(total: Duration, elapsed: Duration) -> Duration {
    if elapsed < total { total - elapsed } else { total }
}

/// Whether a packet is `from` or later. True if there is no `from`.
#[inline]
pub(super) fn is_from(seq: Seqno, from: Option<Seqno>) -> bool {
    from.is_none_or(|from| seq.at_least(from))
}

/// Corrects a report about a packet that we may have sent with a mark. Such a packet should have
/// arrived marked.
fn without_probe(change: Change, is_probe: bool, out: &mut AckOutcome) -> Change {
    match change {
        Change::Received if is_probe => {
            out.probes_hidden += 1;
            Change::Marked
        }
        Change::Marked if is_probe => {
            out.probes_reported += 1;
            Change::Received
        }
        change => change,
    }
}

impl CcidSender for Ccid2Sender {
    fn ccid(&self) -> u8 {
        self.number
    }

    fn poll_send(&mut self, now: Instant, size_bytes: u32) -> SendVerdict {
        self.decide(now, size_bytes).0
    }

    #[inline(always)]
    fn on_sent(&mut self, now: Instant, packet: SentInfo) {
        self.last_sent = Some(packet.seq);
        self.ack_of_ack.on_sent(packet.is_data, packet.has_ack);
        //= 4341-5-5
        if packet.is_data {
            self.on_data_sent(now, packet);
        }
    }

    fn on_ack(&mut self, now: Instant, ack: &AckInfo<'_>) -> AckOutcome {
        let (mut tally, mut out) = (Tally::default(), AckOutcome::default());
        self.allowance = Allowance::default();
        let end = ack.ack_vector.map_or(0, |_| self.history.position(ack.ackno));
        let sample = self.measure_rtt(now, ack, end);
        self.read_ack_vector(now, ack, end, &mut tally, &mut out);
        if !ack.data_dropped.is_empty() {
            self.read_data_dropped(ack, &mut tally, &mut out);
        }
        if ack.slow_receiver {
            self.window.on_slow_receiver(now, self.rtt.srtt().unwrap_or_else(|| self.rtt.rto()));
        }
        let context = self.context(now, ack.ackno, sample);
        if self.window.on_ack(&tally, &context) {
            self.ack_ratio.on_cut(self.window.cwnd());
        }
        self.ack_ratio.on_ack(ack.ackno, context.next, self.window.cwnd());
        self.history.trim(self.window.cwnd() as usize);
        //= 4341-5-3
        if tally.left_pipe > 0 {
            self.pipe -= tally.left_pipe;
            self.restart_timer(now);
        }
        self.lost += u64::from(out.newly_lost);
        self.marked += u64::from(out.newly_marked);
        out
    }

    #[inline]
    fn on_peer_packet(&mut self, _now: Instant, packet: &ReceivedInfo) {
        self.ack_ratio.on_peer_packet(packet);
    }

    fn on_peer_run(&mut self, _now: Instant, run: &ReceivedRun<'_>) {
        self.ack_ratio.on_peer_run(run);
    }

    fn on_handshake_rtt(&mut self, now: Instant, rtt: Duration) {
        self.rtt.sample(rtt);
        self.allowance = Allowance::default();
        self.window.on_handshake_rtt(now, rtt);
    }

    fn quick_start(&mut self, now: Instant, step: QuickStartStep) -> bool {
        self.allowance = Allowance::default();
        self.take_quick_start(now, step)
    }

    #[inline]
    fn wants_ack_of_ack(&self) -> bool {
        self.ack_of_ack.is_wanted(self.window.cwnd()) && !self.ack_of_ack_ends_train()
    }

    #[inline]
    fn wanted_ack_ratio(&self) -> Option<u16> {
        Some(self.ack_ratio.wanted())
    }

    fn on_ack_ratio_confirmed(&mut self, ack_ratio: u16) {
        self.ack_ratio.set_in_force(ack_ratio);
    }

    #[inline]
    fn seq_window_needed(&self) -> u64 {
        sequence_window_for(self.window.cwnd())
    }

    fn limit_in_flight(&mut self, packets: u64) {
        self.allowance = Allowance::default();
        // As large as the pipe can be, which counts in 32 bits.
        self.in_flight_limit = u32::try_from(packets.max(1)).unwrap_or(u32::MAX);
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        self.next_wake().get()
    }

    fn handle_timeout(&mut self, now: Instant) -> TimeoutOutcome {
        if self.pacing_wake.get().is_some_and(|wake| wake <= now) {
            self.pacing_wake = MaybeInstant::NONE;
        }
        let timed_out = self.timer.get().is_some_and(|timer| timer <= now);
        if timed_out {
            self.on_timeout(now);
        }
        TimeoutOutcome { timed_out, gave_up: timed_out }
    }

    /// Every packet in the pipe will be reported or considered lost.
    fn awaits_reports(&self) -> Option<bool> {
        Some(self.pipe > 0)
    }

    #[inline]
    fn rtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    fn metrics(&self) -> CcidMetrics {
        let cc = self.window.algorithm();
        CcidMetrics {
            cwnd: Some(cc.cwnd()),
            ssthresh: Some(cc.ssthresh()).filter(|&s| s != u32::MAX),
            pipe: Some(self.pipe),
            srtt: self.rtt.srtt(),
            rttvar: self.rtt.rttvar(),
            min_rtt: self.rtt.min_rtt(),
            rto: Some(self.rtt.rto()),
            ack_ratio: Some(self.ack_ratio.wanted()),
            congestion_events: self.window.congestion_events(),
            timeouts: self.timeouts.into(),
            packets_lost: self.lost,
            packets_marked: self.marked,
            ..CcidMetrics::default()
        }
    }
}
