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
/// round-trip time. Losses are of single packets, at random.
///
/// A cycle starts with a cut to `start`. The window is constant in the first round trip. Then its
/// square grows by twice the packets sent. The loss that ends the cycle is detected one round trip
/// later, and losses in that round trip belong to it. Windows are integers: a cut rounds down and
/// discards partial growth.
fn law(keep: f64, p: f64) -> f64 {
    let mut rng = Seed(1).stream("gaps");
    let (mut end, mut packets, mut rtts) = (1.0 / p.sqrt(), 0.0, 0.0);
    for _ in 0..200_000 {
        let gap = rng.exp_f64() / p;
        let start = (keep * f64::floor(end)).floor().max(1.0);
        let growing = (gap - start).max(0.0);
        let at_loss = (start * start + 2.0 * growing).sqrt();
        let until_loss = gap.min(start) / start + at_loss - start;
        end = start + until_loss;
        packets += gap + f64::midpoint(at_loss, end);
        rtts += until_loss + 1.0;
    }
    packets / rtts
}

/// The same law for a window that keeps growing after a cut.
///
/// The packets in flight at the cut are acknowledged in the round trip after it. Each adds its part
/// of a packet to the smaller window, as do those counted before the cut. From then on the square
/// grows by twice the packets sent. The loss that ends the cycle is detected one round trip later.
fn law_of_growth(keep: f64, p: f64) -> f64 {
    let mut rng = Seed(1).stream("gaps");
    let (mut end, mut packets, mut rtts) = (1.0 / p.sqrt(), 0.0, 0.0);
    for _ in 0..200_000 {
        let gap = rng.exp_f64() / p;
        let whole = f64::floor(keep * f64::floor(end)).max(1.0);
        let cut = whole + end.fract() * end / whole;
        let start = (cut * cut + 2.0 * end).sqrt();
        let at_loss = (start * start + 2.0 * (gap - start).max(0.0)).sqrt();
        let until_loss = gap.min(start) / start + at_loss - start;
        end = at_loss + 1.0;
        packets += gap + f64::midpoint(at_loss, end);
        rtts += until_loss + 1.0;
    }
    packets / rtts
}

#[test]
fn the_law_itself_has_the_constants_of_the_literature() {
    // 1.31 / sqrt(p) for halving under random loss (Mathis and others, 1997). The round trip
    // without growth is negligible because p is small.
    for law in [law, law_of_growth] {
        let constant = law(0.5, 1e-7) * 1e-7_f64.sqrt();
        assert!((1.29..1.33).contains(&constant), "{constant}");
    }
}

#[test]
fn the_mean_window_follows_the_law_for_every_cut() {
    let packets = if cfg!(debug_assertions) { 400_000 } else { 4_000_000 };
    for (percent, loss_per_million) in [(50, 1000), (50, 4000), (25, 1000), (5, 4000)] {
        let cut = Cut::drop_percent(percent);
        let p = loss_per_million as f64 / 1e6;
        type Law = fn(f64, f64) -> f64;
        let laws =
            [(GrowthAfterCut::Pauses, law as Law), (GrowthAfterCut::Continues, law_of_growth)];
        for (after_cut, law) in laws {
            let algorithm = Algorithm::NewReno { cut, after_cut };
            let (mean, _, _) = mean_window(algorithm, loss_per_million, packets);
            let expected = law(f64::from(cut.keep_permille) / 1000.0, p);
            let ratio = mean / expected;
            assert!(
                (0.9..1.1).contains(&ratio),
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
