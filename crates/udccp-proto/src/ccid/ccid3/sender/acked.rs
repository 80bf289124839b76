//! Processes feedback: losses, receive rate and round-trip time (RFC 4342 sections 5 and 6).

use core::ops::ControlFlow;

use udccp_base::{Duration, Instant};
use udccp_wire::Seqno;

use super::{Ccid3Sender, DEFAULT_RTT, LEAST_SEQUENCE_WINDOW};
use crate::ackvec::{DropCode, DropState, for_each_drop};
use crate::ccid::ccid3::feedback::Options;
use crate::ccid::ccid3::verify::Sending;
use crate::ccid::tfrc::{NDUPACK, Rate, Report, Sent, equation};
use crate::ccid::{AckInfo, AckOutcome, LONGEST_RTT, PacketReport};

/// The longest first loss interval that fits into its field.
const LONGEST_INTERVAL: f64 = 16_777_215.0;

impl Ccid3Sender {
    /// The time at which the acknowledged packet was `sent`, and a round-trip time sample without
    /// the receiver's delay. The delay that the peer reports cannot lower the sample below the
    /// minimum that our own clock measured on this path.
    fn measure(
        &mut self,
        now: Instant,
        ack: &AckInfo<'_>,
        sent: Option<Sent>,
    ) -> (Instant, Option<Duration>) {
        let sent = sent.map(|sent| sent.at);
        let elapsed = ack.elapsed.unwrap_or_default();
        let by_packet = sent.map(|at| {
            let total = now - at;
            self.rtt_floor.measured(now, total);
            // An Elapsed Time longer than the whole is false. Ignoring it only enlarges the sample.
            if elapsed < total { total - elapsed } else { total }
        });
        let sample = by_packet.or(ack.timestamp_echo_rtt).filter(|rtt| *rtt <= LONGEST_RTT);
        let sample = sample.map(|rtt| rtt.max(self.rtt_floor.get()));
        let guess = self.rate.rtt().unwrap_or(DEFAULT_RTT) + elapsed;
        (sent.unwrap_or(now - guess), sample)
    }

    /// p, and the number of new loss events. `None` if the packet is not feedback.
    fn read_losses(&mut self, ack: &AckInfo<'_>, options: &Options) -> Option<(f64, u64)> {
        let rtt = self.rate.rtt().unwrap_or(DEFAULT_RTT);
        if !options.intervals().is_empty() {
            if self.loss_events == 0 {
                // Before the first loss, a receiver cannot have seen more than was ever allowed.
                let s = self.segment();
                let p = equation::loss_event_rate(s.nominal, rtt, self.fastest.with_headers(s));
                self.first_at_most = (1.0 / p).min(LONGEST_INTERVAL) as u32;
            }
            self.verifier();
            let verifier = self.verifier.as_deref_mut()?;
            let sending = Sending { log: &self.log, rtt, first_at_most: self.first_at_most };
            let fresh = verifier.take(ack.ackno, options, &sending).ok()?;
            let (rate, needed) = (verifier.rate(), verifier.needed_from(ack.ackno, options));
            if let Some(needed) = needed {
                self.log.forget_steps_before(needed);
            }
            return Some((rate, fresh));
        }
        //= 4342-6.1.1-2
        let inverse = options.loss_event_rate.filter(|_| self.accept_loss_event_rate)?;
        let p = match inverse {
            u32::MAX => 0.0,
            n => 1.0 / f64::from(n.max(1)),
        };
        Some((p, u64::from(p > self.rate.loss_event_rate())))
    }

    //= 4340-11.7.1-3
    //= 4342-5.2-1
    //= 4342-5.2-2
    /// The receive rate after corrections for a slow receiver and its drops (RFC 4342 section 5.2).
    fn adjust_x_recv(&mut self, x_recv: Rate) -> Rate {
        let slow = core::mem::take(&mut self.peer_is_slow);
        let dropped = core::mem::take(&mut self.buffer_drops);
        if !slow && dropped == 0 {
            return x_recv;
        }
        let rtt = self.rate.rtt().unwrap_or(DEFAULT_RTT);
        let one = Rate::of(u64::from(self.segment().bytes), rtt);
        let less = one.scaled(f64::from(dropped));
        let bound = x_recv.minus(less).max(x_recv.min(one));
        x_recv.min(bound.halved())
    }

    //= 4342-6-2
    /// Reads Data Dropped blocks. Returns how many packets are newly reported with Drop Code 2.
    fn read_drops(&mut self, ack: &AckInfo<'_>, out: &mut AckOutcome) -> u32 {
        let read = self.drops_read;
        let is_new = |seq: Seqno| read.is_none_or(|r| seq.is_after(r));
        let mut buffer_drops = 0_u32;
        for_each_drop(ack.ackno, ack.data_dropped, |state, newest, oldest| {
            let DropState::Dropped(code) = state else { return ControlFlow::Continue(()) };
            let oldest = read.map_or(oldest, |r| oldest.max(r.next()));
            if !is_new(newest) {
                return ControlFlow::Continue(());
            }
            let count = newest.distance_from(oldest).max(0) as u64 + 1;
            let packets = u32::try_from(count).unwrap_or(u32::MAX);
            out.data_dropped += packets;
            out.peer_drops.add(code, count);
            match code {
                //= 4340-11.7.2-1
                DropCode::ProtocolConstraints => out.constrained = true,
                DropCode::ApplicationNotListening => out.not_listening = true,
                //= 4340-11.7.2-6
                DropCode::ReceiveBuffer => buffer_drops += packets,
                DropCode::Corrupt | DropCode::Reserved(_) | DropCode::DeliveredCorrupt => {
                    self.verifier().on_corrupt(oldest);
                }
            }
            ControlFlow::Continue(())
        });
        self.drops_read = Some(read.map_or(ack.ackno, |r| r.max(ack.ackno)));
        buffer_drops
    }

    /// Reads an acknowledgement of the newest packet acknowledged so far or a newer one.
    /// `sent` is that packet.
    pub(super) fn take_feedback(
        &mut self,
        now: Instant,
        ack: &AckInfo<'_>,
        sent: Option<Sent>,
        out: &mut AckOutcome,
    ) {
        // Without a Receive Rate there is nothing to adjust before the next feedback.
        self.buffer_drops = self.buffer_drops.saturating_add(self.read_drops(ack, out));
        let mut options = Options::read(ack);
        if let Some(first) = self.first_on_path() {
            options.leave_out_before(ack.ackno, first);
        }
        let Some(receive_rate) = options.receive_rate else { return };
        let Some((p, fresh)) = self.read_losses(ack, &options) else { return };
        if let Some(verifier) = &mut self.verifier {
            (out.probes_reported, out.probes_hidden) = verifier.take_probe_counts();
        }
        self.loss_events += fresh;
        if fresh > 0 {
            self.size.on_loss_event();
        }
        let (t_new, rtt) = self.measure(now, ack, sent);
        let known_rtt = rtt.or(self.rate.rtt()).unwrap_or(DEFAULT_RTT);
        let limited = self.data_limited.on_feedback(now, t_new, known_rtt);
        let reported = Rate::from_bytes_per_sec(u64::from(receive_rate));
        self.x_recv = self.adjust_x_recv(reported);
        let report = Report {
            rtt,
            x_recv: self.x_recv,
            loss_event_rate: p,
            more_loss: fresh > 0 || p > self.rate.loss_event_rate(),
            data_limited: limited,
        };
        let s = self.segment();
        self.rate_mut().on_feedback(now, &report, s);
        self.fastest = self.fastest.max(self.rate.allowed(s));
        self.unheard_limit = self
            .rate
            .unheard_limit(s)
            .map_or(u64::MAX, |bytes| (bytes / u64::from(s.bytes)).max(LEAST_SEQUENCE_WINDOW));
        self.set_no_feedback_timer(now);
        if let Some(sent) = sent {
            self.acknowledge(now, ack.ackno, &sent, fresh, out);
        }
    }

    /// Advances the counts to the acknowledged packet.
    fn acknowledge(
        &mut self,
        now: Instant,
        ackno: Seqno,
        sent: &Sent,
        lost: u64,
        out: &mut AckOutcome,
    ) {
        let before = self.acked.map_or(0, |(_, data)| data);
        let covered = sent.data.saturating_sub(before);
        // Loss Intervals do not show how many packets a loss event lost. At least one.
        let lost = lost.min(covered);
        out.newly_acked = u32::try_from(covered - lost).unwrap_or(u32::MAX);
        out.newly_lost = u32::try_from(lost).unwrap_or(u32::MAX);
        self.acked = Some((ackno, sent.data));
        if let Some(counter) = self.log.counter(ackno) {
            let rtt = self.rate.rtt().unwrap_or(DEFAULT_RTT);
            self.counter.on_ack(now, counter, rtt);
        }
    }

    /// Reports what the Loss Intervals say about each packet, newest first.
    pub(super) fn visit_reports(
        &self,
        ack: &AckInfo<'_>,
        visit: &mut dyn FnMut(PacketReport, Seqno, Seqno),
    ) {
        let options = Options::read(ack);
        let mut newest = ack.ackno.sub(u64::from(options.skip));
        // If a hole is longer than can be skipped, the rest of it counts as lossless for now.
        let mut is_settled = usize::from(options.skip) < NDUPACK;
        for interval in options.intervals() {
            let lossless = u64::from(interval.lossless_length);
            if lossless > 0 && is_settled {
                visit(PacketReport::Received, newest, newest.sub(lossless - 1));
            }
            is_settled = true;
            newest = newest.sub(lossless);
            let Some(after_first) = u64::from(interval.loss_length).checked_sub(1) else {
                continue;
            };
            let first = newest.sub(after_first);
            if after_first > 0 {
                visit(PacketReport::Unknown, newest, first.next());
            }
            // A lossy part begins with a loss.
            visit(PacketReport::LostOrMarked, first, first);
            newest = first.prev();
        }
        // Older packets are no longer reported. A loss event rate reports no packet individually.
        let is_feedback = !options.intervals().is_empty() || options.loss_event_rate.is_some();
        let first = self.log.first().filter(|first| is_feedback && first.at_most(newest));
        if let Some(first) = first {
            visit(PacketReport::Unknown, newest, first);
        }
    }
}
