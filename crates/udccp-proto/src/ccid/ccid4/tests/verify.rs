//! The sender's own loss event rate, computed from Loss Intervals and Dropped Packets.

use udccp_wire::{LossInterval, Seqno};

use super::{at, ms};
use crate::ccid::AckInfo;
use crate::ccid::ccid3::feedback::Options;
use crate::ccid::ccid3::verify::{Sending, Verifier};
use crate::ccid::tfrc::{Sent, SentLog};

/// Lossless, loss and data length of each interval, newest first, and their Drop Counts.
fn options(intervals: &[[u32; 3]], drops: &[u32]) -> Options {
    let mut bytes = vec![193, 3 + 9 * intervals.len() as u8, 0];
    for &[lossless_length, loss_length, data_length] in intervals {
        let nonce_echo = false;
        let i = LossInterval { lossless_length, nonce_echo, loss_length, data_length };
        bytes.extend_from_slice(&i.to_bytes());
    }
    if !drops.is_empty() {
        bytes.extend_from_slice(&[195, 2 + 3 * drops.len() as u8]);
        drops.iter().for_each(|n| bytes.extend_from_slice(&n.to_be_bytes()[1..]));
    }
    Options::read(&AckInfo { ccid_options: &bytes, ..AckInfo::default() })
}

/// Packets 1000 to 1999, one every `every` milliseconds. Round-trip times are 100 ms.
fn log(every: u64) -> SentLog {
    let mut log = SentLog::default();
    for i in 0..1000 {
        let sent = Sent { seq: Seqno::new(1000 + i), at: at(i * every), data: i + 1 };
        log.push(sent, i * every / 25);
    }
    log
}

fn rate(every: u64, ackno: u64, intervals: &[[u32; 3]], drops: &[u32]) -> f64 {
    let log = log(every);
    let sending = Sending { log: &log, rtt: ms(100), first_at_most: u32::MAX };
    let mut verifier = Verifier::new(false, true);
    verifier.take(Seqno::new(ackno), &options(intervals, drops), &sending).unwrap();
    verifier.rate()
}

/// After 100 packets, two events of 20 packets each with a lossy part of 8, then a long interval.
const TWO: [[u32; 3]; 4] = [[39, 1, 40], [12, 8, 20], [12, 8, 20], [100, 0, 100]];
const NEWEST: u64 = 1179;

//= 4828-3-8 test
#[test]
fn an_interval_of_two_round_trips_has_its_losses_counted() {
    // At 10 ms, 20 packets are two round-trip times. The lengths are 20/4, 20/2 and 100.
    let p = rate(10, NEWEST, &TWO, &[1, 4, 2, 0]);
    assert!((p - 3.0 / (5.0 + 10.0 + 100.0)).abs() < 1e-12, "{p}");
    // At 12 ms they are more, so the intervals are not short.
    let p = rate(12, NEWEST, &TWO, &[1, 4, 2, 0]);
    assert!((p - 3.0 / 140.0).abs() < 1e-12, "{p}");
}

//= 4828-3-9 test
#[test]
fn a_current_interval_that_is_short_does_not_count() {
    let now = [[18, 1, 19], [80, 1, 81], [50, 0, 50]];
    // The current interval of 19 packets has lasted 190 ms or 285 ms.
    let short = rate(10, 1149, &now, &[1, 1, 0]);
    assert!((short - 2.0 / 131.0).abs() < 1e-12, "{short}");
    let closed_only = rate(10, 1149, &[[18, 1, 5], [80, 1, 81], [50, 0, 50]], &[1, 1, 0]);
    assert_eq!(closed_only, short, "whatever its length");
}

//= 5622-8.7-4 test
//= 5622-8.7-6 test
#[test]
fn without_counts_the_whole_lossy_part_is_taken_for_lost() {
    let all = 3.0 / (20.0 / 8.0 * 2.0 + 100.0);
    assert!((rate(10, NEWEST, &TWO, &[]) - all).abs() < 1e-12);
    let last_missing = rate(10, NEWEST, &TWO, &[1, 8]);
    assert!((last_missing - all).abs() < 1e-12, "the second of them has no count");
}

//= 5622-8.7-5 test
//= 5622-8.7-8 test
#[test]
fn counts_too_many_or_too_large_are_cut() {
    let all = rate(10, NEWEST, &TWO, &[]);
    assert_eq!(rate(10, NEWEST, &TWO, &[9, 9, 99, 999]), all);
    let more = [1, 4, 2, 0, 7, 7, 7, 7, 7, 7, 7];
    assert_eq!(rate(10, NEWEST, &TWO, &more), rate(10, NEWEST, &TWO, &more[..4]));
}

#[test]
fn a_closed_interval_does_not_change() {
    let log = log(10);
    let mut v = Verifier::new(false, true);
    let mut take = |rtt, ackno, intervals: &[[u32; 3]], drops: &[u32]| {
        let sending = Sending { log: &log, rtt, first_at_most: u32::MAX };
        v.take(Seqno::new(ackno), &options(intervals, drops), &sending).unwrap();
        v.rate()
    };
    take(ms(100), 1119, &[[12, 8, 20], [100, 0, 100]], &[4, 0]);
    let p = take(ms(100), 1124, &[[4, 1, 5], [12, 8, 20], [100, 0, 100]], &[1, 4, 0]);
    // The round-trip time halves. The closed interval of 200 ms is still short.
    let later = [[9, 1, 10], [12, 8, 20], [100, 0, 100]];
    assert_eq!(take(ms(50), 1129, &later, &[1, 4, 0]), p);
}
