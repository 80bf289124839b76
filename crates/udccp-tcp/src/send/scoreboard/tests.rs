use udccp_base::Duration;

use super::*;
use crate::send::rack::Rack;

const MSS: u32 = 100;

fn board(segments: u64) -> Scoreboard {
    let mut b = Scoreboard::new(1, MSS, false);
    b.on_new_data(1 + segments * 100);
    b
}

/// Segments `from..to`, counted from zero.
fn segs(from: u64, to: u64) -> Range {
    Range::new(1 + from * 100, 1 + to * 100)
}

#[test]
fn the_third_segment_above_a_hole_makes_it_lost() {
    let mut b = board(10);
    assert_eq!(b.on_sack(&[segs(1, 2)]), 100);
    assert_eq!(b.on_sack(&[segs(1, 3)]), 100);
    assert!(!b.head_is_lost());
    assert_eq!(b.pipe(), 800);
    assert_eq!(b.on_sack(&[segs(1, 4)]), 100);
    assert!(b.head_is_lost());
    assert_eq!(b.pipe(), 600, "one lost, three SACKed");
    assert_eq!(b.next_lost(), Some(segs(0, 1)));
    b.on_retransmit(Instant::ZERO, segs(0, 1));
    assert_eq!(b.pipe(), 700);
    assert_eq!(b.next_lost(), None);
    assert_eq!(b.on_cumulative_ack(401), 300);
    assert_eq!((b.pipe(), b.flight()), (600, 600));
}

#[test]
fn three_small_stretches_count_like_three_segments() {
    let mut b = board(10);
    let at = |n: u64| Range::new(1 + n * 100, 11 + n * 100);
    b.on_sack(&[at(3)]);
    b.on_sack(&[at(5), at(3)]);
    assert!(!b.head_is_lost());
    b.on_sack(&[at(7), at(5), at(3)]);
    assert!(b.head_is_lost());
    assert_eq!(b.next_lost(), Some(segs(0, 1)));
}

#[test]
fn holes_are_retransmitted_in_order_and_only_once() {
    let mut b = board(20);
    b.on_sack(&[segs(1, 2)]);
    b.on_sack(&[segs(4, 5), segs(1, 2)]);
    b.on_sack(&[segs(6, 9), segs(4, 5), segs(1, 2)]);
    let mut sent = Vec::new();
    while let Some(r) = b.next_lost() {
        b.on_retransmit(Instant::ZERO, r);
        sent.push(r);
    }
    assert_eq!(sent, [segs(0, 1), segs(2, 3), segs(3, 4), segs(5, 6)]);
    assert_eq!(b.next_maybe_lost(), None);
    assert_eq!(b.last_unsacked(), Some(segs(19, 20)));
}

#[test]
fn a_timeout_makes_everything_lost_but_keeps_what_arrived() {
    let mut b = board(6);
    b.on_sack(&[segs(2, 3)]);
    b.on_timeout();
    assert_eq!(b.pipe(), 0);
    let mut sent = Vec::new();
    while let Some(r) = b.next_lost() {
        b.on_retransmit(Instant::ZERO, r);
        sent.push(r);
    }
    assert_eq!(sent, [segs(0, 1), segs(1, 2), segs(3, 4), segs(4, 5), segs(5, 6)]);
    assert_eq!(b.pipe(), 500);
    b.on_new_data(701);
    assert_eq!(b.pipe(), 600);
    assert_eq!(b.on_sack(&[segs(6, 7)]), 100);
    assert_eq!(b.pipe(), 500);
}

/// Compares the counters with the definitions of RFC 6675, byte by byte, for random reports.
#[test]
fn the_counters_agree_with_the_definitions() {
    let mut rng = udccp_base::Seed(23).stream("scoreboard");
    for _ in 0..30 {
        let mut b = board(0);
        let mut model = Model { una: 1, nxt: 1, sacked: Vec::new(), high_rxt: 1, lost_edge: 1 };
        for _ in 0..50 {
            match rng.below(4) {
                0 => {
                    model.nxt += 1 + rng.below(300);
                    b.on_new_data(model.nxt);
                }
                1 if model.nxt > model.una => {
                    let start = model.una + rng.below(model.nxt - model.una);
                    let end = (start + 1 + rng.below(250)).min(model.nxt);
                    b.begin_ack();
                    let newly = b.on_sack(&[Range::new(start, end)]);
                    assert_eq!(newly, model.sack(start, end));
                    model.raise_lost_edge();
                }
                2 if rng.chance(0.3) => {
                    let ack = model.una + rng.below(model.nxt - model.una + 1);
                    let ack = model.first_unsacked(ack);
                    b.begin_ack();
                    b.on_cumulative_ack(ack);
                    model.una = ack;
                    model.high_rxt = model.high_rxt.max(ack);
                }
                _ => {
                    assert_eq!(b.next_lost().map(|r| r.start), model.next_lost());
                    if let Some(r) = b.next_lost() {
                        assert!((r.start..r.end).all(|s| !model.is_sacked(s)));
                        b.on_retransmit(Instant::ZERO, r);
                        model.high_rxt = r.end;
                    }
                }
            }
            assert_eq!(b.pipe(), model.pipe());
            assert_eq!(b.high_rxt(), model.high_rxt);
        }
    }
}

struct Model {
    una: u64,
    nxt: u64,
    sacked: Vec<u64>,
    high_rxt: u64,
    lost_edge: u64,
}

impl Model {
    fn is_sacked(&self, s: u64) -> bool {
        self.sacked.binary_search(&s).is_ok()
    }

    fn sack(&mut self, start: u64, end: u64) -> u64 {
        let before = self.sacked.len();
        self.sacked.extend(start..end);
        self.sacked.sort_unstable();
        self.sacked.dedup();
        (self.sacked.len() - before) as u64
    }

    fn first_unsacked(&self, from: u64) -> u64 {
        (from..).find(|s| !self.is_sacked(*s)).unwrap()
    }

    fn is_lost(&self, s: u64) -> bool {
        let above: Vec<u64> = self.sacked.iter().copied().filter(|x| *x > s).collect();
        let stretches = above.iter().filter(|x| **x == s + 1 || !self.is_sacked(**x - 1)).count();
        stretches >= 3 || above.len() as u64 > 2 * u64::from(MSS)
    }

    /// A hole stays lost, although merging ranges reduces their number.
    fn raise_lost_edge(&mut self) {
        let unsacked = (self.una..self.nxt).rev().filter(|s| !self.is_sacked(*s));
        let lost_below = unsacked.into_iter().find(|s| self.is_lost(*s)).map_or(0, |s| s + 1);
        self.lost_edge = self.lost_edge.max(lost_below);
    }

    fn pipe(&self) -> u64 {
        let unsacked = (self.una..self.nxt).filter(|s| !self.is_sacked(*s));
        let counts = |s| u64::from(s >= self.lost_edge) + u64::from(s < self.high_rxt);
        unsacked.map(counts).sum()
    }

    fn next_lost(&self) -> Option<u64> {
        let from = self.high_rxt.max(self.una);
        (from..self.lost_edge).find(|s| !self.is_sacked(*s))
    }
}

#[test]
fn when_nothing_is_missing_nothing_is_kept_of_losses() {
    let mut b = board(10);
    b.on_sack(&[segs(1, 4)]);
    b.on_retransmit(Instant::ZERO, segs(0, 1));
    b.on_cumulative_ack(401);
    assert!(b.losses.is_some(), "what it has seen is asked after the acknowledgement");
    b.begin_ack();
    assert!(b.losses.is_none());
    assert_eq!((b.pipe(), b.high_rxt(), b.is_in_order(401)), (600, 401, true));
    // A report of a duplicate shows no loss.
    assert_eq!(b.on_sack(&[segs(1, 2)]), 0);
    assert!(b.losses.is_none());
}

#[test]
fn segments_can_be_overtaken_where_nothing_is_sacked() {
    let mut b = Scoreboard::by_time(1, MSS);
    b.on_new_data(1001);
    let overtaken = Rack::new().overtaken(Instant::ZERO, Duration::ZERO);
    b.lose_overtaken(0, overtaken);
    assert!(b.losses.is_none() && !b.head_is_lost());
    b.lose_overtaken(301, overtaken);
    assert_eq!((b.head_is_lost(), b.pipe(), b.next_lost()), (true, 700, Some(segs(0, 1))));
}
