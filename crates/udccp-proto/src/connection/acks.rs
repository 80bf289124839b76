//! Passes arriving acknowledgements to every part that waits for them.

use udccp_base::{Duration, Instant};
use udccp_wire::{PacketType, ResetCode, Seqno};

use super::options::AckOptions;
use super::recv_side::Pressure;
use super::send_side::FateLog;
use super::timing::DEFAULT_RTT;
use super::{Connection, Ctx, Received};
use crate::ackvec::{is_before_isn, is_invalid_drop};
use crate::ccid::{AckInfo, PeerDrops};
use crate::count::count;
use crate::event::{DropReason, EventKind, MessageFate};

/// Factor of the Sequence Window over the packets in flight (RFC 4340 section 7.5.2).
const WINDOW_PER_PACKET: u64 = 5;

impl Connection {
    /// Best known round-trip time, or the RFC's default.
    pub(super) fn rtt(&self) -> Duration {
        self.known_rtt().unwrap_or(DEFAULT_RTT)
    }

    pub(super) fn known_rtt(&self) -> Option<Duration> {
        self.cc.rtt().or(self.timing.handshake_rtt.get())
    }

    /// Passes an acknowledgement to the sender half, and to the parts that wait until the peer has
    /// our own acknowledgements.
    #[inline(always)]
    pub(super) fn process_acknowledgement(
        &mut self,
        ctx: &mut Ctx<'_>,
        packet: &Received<'_>,
        options: &AckOptions<'_>,
    ) {
        // The acknowledgement number of a Sync or SyncAck may be that of any packet.
        let is_sync = matches!(packet.ty, PacketType::Sync | PacketType::SyncAck);
        let acknowledges = packet.ackno.is_some() && !is_sync;
        if acknowledges && self.timing.on_greeting_known(ctx.now) {
            self.on_handshake_rtt(ctx, options.echo_rtt);
        }
        if options.slow_receiver {
            self.note_slow_receiver(ctx);
        }
        let Some(ackno) = packet.ackno else { return };
        let cells = options.cells;
        // An Ack Vector proves receipt even if the acknowledgement number of the packet does not.
        let may_promise_nothing = matches!(packet.ty, PacketType::Sync | PacketType::Reset);
        if may_promise_nothing && cells.is_none() && promises_nothing(packet) {
            return;
        }
        //= 4340-11.4-10
        if cells.is_some_and(|c| is_before_isn(ackno, c, self.seq.iss)) {
            self.counters.rare().drops.bad_options += 1;
            return;
        }
        if packet.ty != PacketType::Sync {
            self.outbox.ack |= self.handshake.owes_greeting(packet.ty, ackno);
            self.acks.on_ack(ackno, cells);
            self.cc.on_ack_of_ack(ackno);
        }
        let blocks = options.data_dropped;
        let invalid = !blocks.is_empty()
            && is_invalid_drop(ackno, self.seq.iss, cells.unwrap_or_default(), blocks);
        //= 4340-11.7-10
        if invalid {
            self.counters.rare().drops.bad_options += 1;
        }
        let info = AckInfo {
            ackno,
            seq: packet.seq,
            ack_vector: cells.map(|c| (c, options.nonce_echo)),
            data_dropped: if invalid { &[] } else { blocks },
            elapsed: options.elapsed,
            timestamp_echo_rtt: options.echo_rtt,
            ccid_options: options.ccid_options,
            slow_receiver: self.send.take_slow_peer() && self.cc.is_peer_slow(ctx.now),
            is_data_ack: packet.ty == PacketType::DataAck,
        };
        self.tell_sender_half(ctx, &info);
        // A CloseReq carries no reports of drops. The answer to our Close does.
        let tells_all = packet.ty != PacketType::CloseReq || cells.is_some();
        if self.send.has_open_fates() && tells_all {
            self.settle_fates(ctx, &info);
        }
        self.path.on_ack(ackno, cells, self.counters.data_packets_lost());
    }

    /// Acknowledges a report of drops at once if the peer sends data. Without an Ack Vector, only
    /// the acknowledgement number confirms it, and that would soon be the number of a data packet.
    #[cold]
    fn acknowledge_drops(&mut self, now: Instant) {
        let is_two_way = self.state.transfers() && self.counters.data_packets_received > 0;
        if is_two_way
            && !self.negotiation.agreed().send_ack_vector
            && self.recv.pressure() < Pressure::Mark
            && self.limits.allow_ack_of_drops(now, self.config.sync_interval)
        {
            self.forget_usual();
            self.outbox.ack = true;
        }
    }

    /// Reports the fates of messages that the application tracks.
    fn settle_fates(&mut self, ctx: &mut Ctx<'_>, info: &AckInfo<'_>) {
        let Some(mut fates) = self.send.take_fates() else { return };
        let is_ecn = self.config.ecn && !self.negotiation.agreed().peer_ecn_incapable;
        fates.on_ack(info, is_ecn, |visit| self.cc.read_reports(info, visit));
        self.report_fates(ctx, fates);
    }

    /// No more reports will come for messages in flight: all get this fate.
    pub(super) fn settle_all_fates(&mut self, ctx: &mut Ctx<'_>, fate: MessageFate) {
        let Some(mut fates) = self.send.take_fates() else { return };
        fates.settle_all(fate);
        self.report_fates(ctx, fates);
    }

    fn report_fates(&mut self, ctx: &mut Ctx<'_>, mut fates: Box<FateLog>) {
        fates.report_news(|token, fate| self.emit(ctx, EventKind::MessageFate { token, fate }));
        self.send.keep_fates(fates);
    }

    /// The peer can hardly keep up. This counts for one round-trip time, and is reported once while
    /// it lasts.
    fn note_slow_receiver(&mut self, ctx: &mut Ctx<'_>) {
        self.counters.rare().slow_receiver_received += 1;
        self.send.note_slow_peer();
        if self.cc.on_slow_receiver(ctx.now, self.rtt()) {
            self.emit(ctx, EventKind::PeerSlow);
        }
    }

    /// Reports to the application what the peer received but did not deliver normally.
    pub(super) fn report_peer_drops(&mut self, ctx: &mut Ctx<'_>, drops: PeerDrops) {
        for (code, packets) in drops.by_code().into_iter().filter(|(_, packets)| *packets > 0) {
            self.counters.rare().peer_drops.add(code, packets);
            self.emit(ctx, EventKind::PeerDropped { code, packets });
        }
    }

    fn tell_sender_half(&mut self, ctx: &mut Ctx<'_>, info: &AckInfo<'_>) {
        let outcome = self.cc.on_ack(&self.config, ctx.now, info);
        let c = &mut self.counters;
        c.data_packets_acked += u64::from(outcome.newly_acked) + u64::from(outcome.late);
        count!(*c, data_packets_lost += outcome.newly_lost);
        if outcome.probes_reported | outcome.probes_hidden != 0 {
            c.rare().ecn_probes_reported += u64::from(outcome.probes_reported);
            c.rare().ecn_probes_hidden += u64::from(outcome.probes_hidden);
        }
        if self.quick_start.is_some() {
            self.quick_start_ack(ctx.now, info.ackno, &outcome);
        }
        if outcome.newly_lost > 0 {
            self.doubt_path(ctx);
        }
        if outcome.data_dropped > 0 {
            self.report_peer_drops(ctx, outcome.peer_drops);
        }
        if !info.data_dropped.is_empty() {
            self.acknowledge_drops(ctx.now);
        }
        if outcome.constrained {
            // The cause is most likely the coverage: send further data fully covered.
            //= 4340-11.7.2-2
            self.send.cover_fully();
        }
        if outcome.not_listening {
            self.stop_sending(ctx);
        }
        self.renegotiate(info.ackno);
    }

    /// The peer's application has stopped reading (Drop Code 1): nothing more is sent (section
    /// 11.7.2).
    fn stop_sending(&mut self, ctx: &mut Ctx<'_>) {
        if self.ending.peer_stops_reading() {
            self.emit(ctx, EventKind::PeerShutdownRead);
        }
        //= 4340-11.7.2-5
        self.drop_unsent(ctx, DropReason::PeerShutdownRead);
        self.after_data(ctx);
    }

    /// Adapts Sequence Window and Ack Ratio to the connection's speed.
    #[inline(always)]
    pub(super) fn renegotiate(&mut self, ackno: Seqno) {
        let Some(wants) = self.cc.wants() else { return };
        let in_flight = self.seq.gss.distance_from(ackno).max(0) as u64;
        let needed = wants.sequence_window.max(in_flight * WINDOW_PER_PACKET);
        if let Some(window) = self.negotiation.ask_sequence_window(needed) {
            // For acknowledgements of our own packets, the new window holds at once. The peer's
            // window for our packets widens when it confirms.
            self.seq.window_local = window;
        }
        if let Some(ratio) = wants.ack_ratio {
            self.negotiation.ask_ack_ratio(ratio);
        }
    }

    fn on_handshake_rtt(&mut self, ctx: &Ctx<'_>, echo: Option<Duration>) {
        self.timing.handshake_rtt = echo.into();
        if let Some(rtt) = echo {
            self.negotiation.set_rtt(rtt);
        }
        self.pass_on_handshake_rtt(ctx);
    }

    /// Passes the round-trip times measured in the handshake to both halves of congestion control.
    pub(super) fn pass_on_handshake_rtt(&mut self, ctx: &Ctx<'_>) {
        let (measured, echoed) =
            (self.timing.handshake_measured.get(), self.timing.handshake_rtt.get());
        self.cc.on_handshake(&self.config, ctx.now, measured, echoed);
    }
}

/// Whether the acknowledgement number of a Sync (section 5.7) or Reset may be that of a packet that
/// the peer did not accept. A Reset from a host without the connection, or because of an error,
/// names the packet that it refuses.
#[cold]
fn promises_nothing(packet: &Received<'_>) -> bool {
    //= 4340-5.7-2
    let code = packet.view.reset_code();
    !matches!(code, Some(ResetCode::Closed | ResetCode::Aborted))
}
