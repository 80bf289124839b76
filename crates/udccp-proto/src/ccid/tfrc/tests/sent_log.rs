//! The sender's log of its packets.

use udccp_wire::Seqno;

use super::at;
use crate::ccid::tfrc::{Sent, SentLog};

fn sent(seq: u64) -> Sent {
    Sent { seq: Seqno::new(seq), at: at(seq), data: seq }
}

#[test]
fn packets_are_found_until_they_are_forgotten() {
    let mut log = SentLog::default();
    assert!(log.newest().is_none() && log.get(Seqno::new(5)).is_none());
    (1..=100).for_each(|seq| log.push(sent(seq), seq / 10));
    let found = |log: &SentLog, seq| log.get(Seqno::new(seq)).map(|sent| sent.data);
    assert_eq!([1, 50, 100].map(|seq| found(&log, seq)), [Some(1), Some(50), Some(100)]);
    log.forget_before(Seqno::new(60));
    assert_eq!([59, 60, 61].map(|seq| found(&log, seq)), [None, Some(60), Some(61)]);
    log.forget_before(Seqno::new(100));
    assert_eq!(found(&log, 100), Some(100), "the newest stays");
    assert_eq!(log.counter(Seqno::new(38)), Some(3), "steps of the counter outlive packets");
}

#[test]
fn the_log_is_bounded_with_a_peer_that_acknowledges_nothing() {
    let mut log = SentLog::default();
    for seq in 1..=1_000_000 {
        log.push(sent(seq), seq);
        assert_eq!(log.newest().unwrap().data, seq);
    }
    assert!(log.memory_bytes() <= 80 << 10, "{}", log.memory_bytes());
    // Any packet is found to within a thousandth of the packets in flight, and never a later one.
    for seq in (1_000..=1_000_000).step_by(777) {
        let found = log.get(Seqno::new(seq)).unwrap().data;
        assert!((seq - 1_000..=seq).contains(&found), "{seq}: {found}");
    }
    // When little is in flight, every packet is stored again.
    log.forget_before(Seqno::new(1_000_000));
    for seq in 1_000_001..1_000_100 {
        log.push(sent(seq), seq);
        log.forget_before(Seqno::new(seq - 20));
    }
    for seq in 1_000_080..1_000_100 {
        assert_eq!(log.get(Seqno::new(seq)).unwrap().data, seq);
    }
}

#[test]
fn a_step_is_found_among_the_last_and_long_before() {
    let mut log = SentLog::default();
    (1..=900).for_each(|seq| log.push(sent(seq), seq / 3));
    for seq in 1..=905 {
        let first = seq.min(900) / 3 * 3;
        assert_eq!(log.counter(Seqno::new(seq)), Some(seq.min(900) / 3), "{seq}");
        assert_eq!(log.time(Seqno::new(seq)), Some(at(first.max(1))), "{seq}");
    }
    assert_eq!(log.counter(Seqno::ZERO), None);
}
