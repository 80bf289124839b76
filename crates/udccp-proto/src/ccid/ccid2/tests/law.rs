//! Random loss: compares the mean window with the square-root law.

use std::collections::VecDeque;

use udccp_base::{Duration, Ecn, Instant, Rng, Seed};
use udccp_cc::{Algorithm, Cut, GrowthAfterCut};
use udccp_wire::Seqno;

use super::line::packet;
use crate::ackvec::{AckVectorBuffer, DEFAULT_MAX_CELLS};
use crate::ccid::ccid2::{Ccid2Config, Ccid2Receiver, Ccid2Sender};
use crate::ccid::{AckInfo, CcidReceiver, CcidSender, Feedback, SendVerdict, SentInfo};

const RTT: Duration = Duration::from_millis(100);

/// Both halves over a path of fixed delay and infinite rate that loses data with probability p.
struct Path {
    sender: Ccid2Sender,
    receiver: Ccid2Receiver,
    vector: AckVectorBuffer,
    now: Instant,
    next: Seqno,
    next_ack: Seqno,
    /// Data in flight: arrival time, sequence number, and the ack number it carries.
    data: VecDeque<(Instant, Seqno, Option<Seqno>)>,
    acks: VecDeque<(Instant, Seqno, Vec<u8>, Seqno)>,
    newest_ack: Option<Seqno>,
    rng: Rng,
}

impl Path {
    fn new(config: &Ccid2Config, seed: u64) -> Self {
        Self {
            sender: Ccid2Sender::new(config, 1400),
            receiver: Ccid2Receiver::new(config),
            vector: AckVectorBuffer::new(DEFAULT_MAX_CELLS),
            now: Instant::ZERO,
            next: Seqno::new(1),
            next_ack: Seqno::new(1),
            data: VecDeque::new(),
            acks: VecDeque::new(),
            newest_ack: None,
            rng: Seed(seed).stream("law"),
        }
    }

    fn send(&mut self, loss_per_million: u64) {
        while self.sender.poll_send(self.now, 1400) == SendVerdict::Now {
            let ackno = self.newest_ack.filter(|_| self.sender.wants_ack_of_ack());
            let seq = self.next;
            self.next = seq.next();
            self.sender.on_sent(
                self.now,
                SentInfo {
                    seq,
                    size_bytes: 1400,
                    is_data: true,
                    has_ack: ackno.is_some(),
                    app_limited: false,
                    ecn: Ecn::Ect0,
                },
            );
            if self.rng.below(1_000_000) >= loss_per_million {
                self.data.push_back((self.now + RTT / 2, seq, ackno));
            }
        }
    }

    fn deliver(&mut self) {
        while self.data.front().is_some_and(|d| d.0 <= self.now) {
            let (_, seq, ackno) = self.data.pop_front().unwrap();
            self.vector.on_packet(seq, Ecn::Ect0);
            self.receiver.on_packet(self.now, &packet(seq.value(), true, Ecn::Ect0));
            if let Some(ackno) = ackno {
                self.vector.on_ack_of_ack(ackno);
                self.receiver.on_ack_of_ack(ackno);
            }
            self.acknowledge();
        }
        self.acknowledge();
    }

    fn acknowledge(&mut self) {
        if self.receiver.feedback(self.now) != Feedback::Due {
            return;
        }
        let seq = self.next_ack;
        self.next_ack = seq.next();
        let cells = self.vector.cells().to_vec();
        self.acks.push_back((self.now + RTT / 2, seq, cells, self.vector.ackno().unwrap()));
        self.vector.on_ack_sent(seq);
        self.receiver.on_feedback_sent(self.now, seq);
    }

    fn receive_acks(&mut self) {
        while self.acks.front().is_some_and(|a| a.0 <= self.now) {
            let (_, seq, cells, ackno) = self.acks.pop_front().unwrap();
            self.newest_ack = Some(seq);
            let ack_vector = Some((&cells[..], false));
            self.sender.on_peer_packet(self.now, &packet(seq.value(), false, Ecn::Ect0));
            self.sender.on_ack(self.now, &AckInfo { ackno, seq, ack_vector, ..AckInfo::default() });
        }
    }

    fn step(&mut self, loss_per_million: u64) {
        self.send(loss_per_million);
        let events = [
            self.data.front().map(|d| d.0),
            self.acks.front().map(|a| a.0),
            self.receiver.poll_timeout(),
            self.sender.poll_timeout(),
        ];
        self.now = events.into_iter().flatten().min().unwrap();
        self.deliver();
        self.receive_acks();
        self.sender.handle_timeout(self.now);
    }
}

/// Mean packets per round-trip time over `packets` packets, congestion events and timeouts.
fn mean_window(algorithm: Algorithm, loss_per_million: u64, packets: u64) -> (f64, u64, u64) {
    let config = Ccid2Config { algorithm, ..Ccid2Config::default() };
    let mut path = Path::new(&config, 4341);
    while path.next.value() < packets / 10 {
        path.step(loss_per_million);
    }
    let (seq, at, events) = (path.next.value(), path.now, path.sender.metrics().congestion_events);
    while path.next.value() < packets {
        path.step(loss_per_million);
    }
    let rtts = (path.now - at).as_secs_f64() / RTT.as_secs_f64();
    let metrics = path.sender.metrics();
    let mean = (path.next.value() - seq) as f64 / rtts;
    (mean, metrics.congestion_events - events, metrics.timeouts)
}

/// The law for a window that keeps the fraction `keep` at each loss event and gains one packet per
/// window acknowledged. Losses are of single packets, at random.
///
/// The path has no rate, so a window leaves at one time and is acknowledged at one time: the
/// process is one of rounds. In a round of W packets none is lost with probability (1 - p)^W.
/// Otherwise the window is cut once, since all packets of the round were sent before the cut. A cut
/// comes every 1 / (1 - (1 - p)^W) rounds. If packets left evenly, it would come every 1 / pW + 1
/// round trips, because the window would go on growing until the loss is detected.
///
/// Windows are integers, and a cut rounds down. What a round leaves of a window counts towards the
/// next packet. Unless growth continues, a cut discards it, and what follows in the round. Of an
/// odd number of packets, the last is acknowledged with the next round.
fn law(keep: f64, p: f64, after_cut: GrowthAfterCut) -> f64 {
    const CUTS: u32 = 20_000;
    let mut rng = Seed(1).stream("losses");
    let grows = after_cut == GrowthAfterCut::Continues;
    let (mut window, mut acked, mut held) = ((1.0 / p.sqrt()).floor(), 0.0, 0.0);
    let (mut packets, mut rounds, mut cuts) = (0.0, 0.0, 0);
    let mut until_loss = 0.0;
    while cuts < CUTS {
        let (mut left, mut is_cut) = (window - held, false);
        (packets, rounds, held) = (packets + left, rounds + 1.0, (held + left) % 2.0);
        while left > 0.0 {
            let received = f64::min(until_loss, left);
            acked += if grows || !is_cut { received } else { 0.0 };
            while acked >= window {
                (acked, window) = (acked - window, window + 1.0);
            }
            (left, until_loss) = (left - received, until_loss - received);
            if left > 0.0 {
                (left, until_loss) = (left - 1.0, (rng.exp_f64() / p).floor());
                if !is_cut {
                    (is_cut, cuts) = (true, cuts + 1);
                    window = (keep * window).floor().max(1.0);
                    acked = if grows { acked } else { 0.0 };
                }
            }
        }
    }
    packets / rounds
}

#[test]
fn the_law_itself_has_the_constants_of_the_literature() {
    // 1.31 / sqrt(p) for halving under random loss (Mathis and others, 1997). It makes no
    // difference that windows leave at one time, because p is small.
    for after_cut in [GrowthAfterCut::Pauses, GrowthAfterCut::Continues] {
        let constant = law(0.5, 1e-5, after_cut) * 1e-5_f64.sqrt();
        assert!((1.29..1.33).contains(&constant), "{constant}");
    }
}

#[test]
fn the_mean_window_follows_the_law_for_every_cut() {
    let packets = if cfg!(debug_assertions) { 400_000 } else { 4_000_000 };
    for (percent, loss_per_million) in [(50, 1000), (50, 4000), (25, 1000), (5, 4000)] {
        let cut = Cut::drop_percent(percent);
        let p = loss_per_million as f64 / 1e6;
        for after_cut in [GrowthAfterCut::Pauses, GrowthAfterCut::Continues] {
            let algorithm = Algorithm::NewReno { cut, after_cut };
            let (mean, _, _) = mean_window(algorithm, loss_per_million, packets);
            let expected = law(f64::from(cut.keep_permille) / 1000.0, p, after_cut);
            let ratio = mean / expected;
            assert!(
                (0.97..1.03).contains(&ratio),
                "{after_cut:?}, cut {percent} %, p {p}: mean window {mean:.1}, law {expected:.1}"
            );
        }
    }
}

#[test]
fn single_losses_are_repaired_without_timeouts_and_cut_once_each() {
    let (_, events, timeouts) = mean_window(Algorithm::NEW_RENO, 1000, 200_000);
    // 180 losses are expected. A few share a window, and none counts twice.
    assert!((130..=210).contains(&events), "{events} events");
    assert_eq!(timeouts, 0);
}

#[test]
fn vectors_stay_short_because_acknowledgements_are_acknowledged() {
    let mut path = Path::new(&Ccid2Config::default(), 1);
    let mut longest = 0;
    while path.next.value() < 100_000 {
        path.step(0);
        longest = longest.max(path.vector.cells().len());
        if path.sender.metrics().cwnd > Some(500) {
            path.sender.on_ack(path.now, &AckInfo { slow_receiver: true, ..AckInfo::default() });
        }
    }
    // A window is about 600 packets: ten cells, and half as many again between two DataAcks.
    assert!(longest <= 24, "{longest} cells");
}
