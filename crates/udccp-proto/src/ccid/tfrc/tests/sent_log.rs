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

#[test]
fn an_end_that_only_acknowledges_keeps_its_last_few_packets() {
    let mut log = SentLog::default();
    for seq in 1..=10_000 {
        log.push(Sent { data: 0, ..sent(seq) }, seq);
    }
    assert!(log.memory_bytes() <= 512, "{}", log.memory_bytes());
    assert_eq!(log.first(), Some(Seqno::new(1)));
    assert_eq!(log.get(Seqno::new(9_999)).map(|sent| sent.at), Some(at(9_999)));
    assert_eq!(log.counter(Seqno::new(9_998)), Some(9_998));
    // From the first data on, everything is kept.
    for seq in 10_001..=10_100 {
        log.push(Sent { data: seq - 10_000, ..sent(seq) }, seq);
    }
    assert_eq!(log.get(Seqno::new(10_001)).map(|sent| sent.data), Some(1));
    assert_eq!(log.counter(Seqno::new(10_000)), Some(10_000));
}

#[test]
fn counters_are_whole_though_16_bits_of_them_are_stored() {
    let mut log = SentLog::default();
    let first = (1 << 16) - 300;
    (1..=600).for_each(|seq| log.push(sent(seq), first + 5 * seq));
    for seq in 1..=600 {
        assert_eq!(log.counter(Seqno::new(seq)), Some(first + 5 * seq));
    }
    let found = log.next_event(Seqno::new(50), Seqno::new(70), 6);
    assert_eq!(found, Some(Seqno::new(52)), "across 2^16");
}
