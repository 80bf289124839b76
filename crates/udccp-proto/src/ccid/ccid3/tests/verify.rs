//! Checks reported loss intervals against what was sent (RFC 4342 section 9.2).

use udccp_wire::{LossInterval, Seqno};

use super::{at, ms};
use crate::ccid::AckInfo;
use crate::ccid::ccid3::feedback::Options;
use crate::ccid::ccid3::verify::{ReportError, Sending, Verifier};
use crate::ccid::tfrc::{Sent, SentLog};

const ANY: u32 = u32::MAX;

/// Lossless, loss and data length of each interval, newest first.
fn options(skip_length: u8, intervals: &[[u32; 3]]) -> Options {
    let mut data = vec![skip_length];
    for &[lossless_length, loss_length, data_length] in intervals {
        let nonce_echo = false;
        let i = LossInterval { lossless_length, nonce_echo, loss_length, data_length };
        data.extend_from_slice(&i.to_bytes());
    }
    read(&[(193, data)])
}

fn read(all: &[(u8, Vec<u8>)]) -> Options {
    let mut bytes = Vec::new();
    for (kind, data) in all {
        bytes.extend_from_slice(&[*kind, data.len() as u8 + 2]);
        bytes.extend_from_slice(data);
    }
    Options::read(&AckInfo { ccid_options: &bytes, ..AckInfo::default() })
}

/// Packets 1000 to 1999, with `per_step` packets per step of the window counter.
fn log(per_step: u64) -> SentLog {
    let mut log = SentLog::default();
    for i in 0..1000 {
        let sent = Sent { seq: Seqno::new(1000 + i), at: at(i), data: i + 1 };
        log.push(sent, i / per_step);
    }
    log
}

fn take(
    verifier: &mut Verifier,
    ackno: u64,
    report: &Options,
    log: &SentLog,
) -> Result<u64, ReportError> {
    let sending = Sending { log, rtt: ms(100), first_at_most: ANY };
    verifier.take(Seqno::new(ackno), report, &sending)
}

//= 4342-9.2-1 test
#[test]
fn honest_reports_are_taken_as_they_are() {
    let (log, mut v) = (log(10), Verifier::new(false, false));
    assert_eq!(take(&mut v, 1099, &options(0, &[[100, 0, 0]]), &log), Ok(0));
    assert_eq!(v.rate(), 0.0);
    // 1100 is lost; the interval before it counts as 50.
    assert_eq!(take(&mut v, 1103, &options(0, &[[3, 1, 4], [100, 0, 50]]), &log), Ok(1));
    assert_eq!(v.rate(), 1.0 / 50.0);
    assert_eq!(take(&mut v, 1219, &options(0, &[[119, 1, 120], [100, 0, 50]]), &log), Ok(0));
    assert_eq!(v.rate(), 1.0 / 120.0);
    // Two more losses at once: 1220 and 1320.
    let three = options(2, &[[27, 1, 28], [99, 1, 100], [119, 1, 120], [100, 0, 50]]);
    assert_eq!(take(&mut v, 1349, &three, &log), Ok(2));
    assert!((v.rate() - 3.0 / 270.0).abs() < 1e-12);
    assert_eq!((v.split, v.lies), (0, 0));
}

#[test]
fn lost_feedback_leaves_no_gap() {
    let (log, mut v) = (log(10), Verifier::new(true, false));
    let mut late = Verifier::new(true, false);
    let first = options(0, &[[9, 1, 10], [100, 0, 50]]);
    let second = options(0, &[[9, 1, 10], [59, 1, 60], [100, 0, 50]]);
    let third = options(0, &[[9, 1, 10], [59, 1, 60], [59, 1, 60], [100, 0, 50]]);
    take(&mut v, 1109, &first, &log).unwrap();
    take(&mut v, 1169, &second, &log).unwrap();
    take(&mut v, 1229, &third, &log).unwrap();
    take(&mut late, 1109, &first, &log).unwrap();
    take(&mut late, 1229, &third, &log).unwrap();
    assert_eq!(v.rate(), late.rate());
}

/// Regression: the rate after a loss stayed for ever once the receiver no longer reported it.
#[test]
fn losses_that_are_no_longer_reported_do_not_limit_the_rate_for_ever() {
    for counts_losses in [false, true] {
        let (log, loss) = (log(10), options(0, &[[3, 1, 4], [6, 0, 3]]));
        let mut v = Verifier::new(true, counts_losses);
        assert_eq!(take(&mut v, 1009, &loss, &log), Ok(1));
        let rate = v.rate();
        assert!(rate > 0.2, "{rate}");
        // The receiver begins anew at 1050, as after a change of the path.
        let mut anew = v.clone();
        assert_eq!(take(&mut anew, 1059, &options(0, &[[10, 0, 0]]), &log), Ok(0));
        let less = anew.rate();
        assert!(less > 0.0 && less < rate / 2.0, "{less} after {rate}");
        take(&mut anew, 1999, &options(0, &[[950, 0, 0]]), &log).unwrap();
        assert!(anew.rate() > 0.0 && anew.rate() < less / 10.0, "{} after {less}", anew.rate());
        // The packet was only late.
        assert_eq!(take(&mut v, 1009, &options(0, &[[10, 0, 0]]), &log), Ok(0));
        assert_eq!(v.rate(), 0.0);
    }
}

//= 4342-9.2-1 test
#[test]
fn impossible_loss_intervals_are_rejected() {
    let (log, mut v) = (log(10), Verifier::new(true, false));
    let mut refused = |skip, intervals: &[[u32; 3]]| {
        take(&mut v, 1099, &options(skip, intervals), &log).unwrap_err()
    };
    assert_eq!(refused(0, &[[5000, 0, 0]]), ReportError::BeforeFirst);
    assert_eq!(refused(0, &[[50, 1, 51], [0xff_ffff, 0, 1]]), ReportError::BeforeFirst);
    assert_eq!(refused(4, &[[50, 0, 0]]), ReportError::SkipsTooMuch);
    assert_eq!(refused(0, &[[50, 1, 52], [20, 0, 9]]), ReportError::MoreDataThanPackets);
    assert_eq!(refused(0, &[]), ReportError::Empty);
    assert_eq!(v.lies, 5);
    assert_eq!(v.rate(), 0.0);
}

//= 4342-9.2-1 test
#[test]
fn an_event_of_more_than_a_round_trip_time_is_counted_as_several() {
    // Four steps, a round-trip time, are 40 packets. The lossy part of 180 packets has 18 steps.
    let (log, mut v) = (log(10), Verifier::new(false, false));
    let report = options(0, &[[20, 180, 200], [100, 0, 100]]);
    assert_eq!(take(&mut v, 1299, &report, &log), Ok(4));
    assert_eq!(v.split, 3);
    // Split every five steps: 50, 50, 50, and the rest with the lossless part.
    assert!((v.rate() - 4.0 / 250.0).abs() < 1e-3, "{}", v.rate());
    // The second time, it is not new.
    assert_eq!(take(&mut v, 1309, &options(0, &[[30, 180, 210], [100, 0, 100]]), &log), Ok(0));
    // An honest receiver can report an event of one round-trip time and a step.
    let mut honest = Verifier::new(false, false);
    let report = options(0, &[[20, 55, 75], [100, 0, 100]]);
    assert_eq!(take(&mut honest, 1174, &report, &log), Ok(1));
    assert_eq!(honest.split, 0);
}

#[test]
fn the_interval_before_the_first_loss_is_bounded() {
    let (log, mut v) = (log(10), Verifier::new(false, false));
    let report = options(0, &[[3, 1, 4], [100, 0, 0xff_ffff]]);
    let sending = Sending { log: &log, rtt: ms(100), first_at_most: 400 };
    assert_eq!(v.take(Seqno::new(1103), &report, &sending), Ok(1));
    assert_eq!(v.rate(), 1.0 / 400.0);
}

//= 4340-11.7.2-7 test
#[test]
fn corrupt_data_counts_as_a_mark() {
    let (log, mut v) = (log(10), Verifier::new(false, false));
    v.on_corrupt(Seqno::new(1300));
    let report = options(0, &[[399, 1, 400], [100, 0, 50]]);
    assert_eq!(take(&mut v, 1499, &report, &log), Ok(2));
    assert!((v.rate() - 2.0 / 400.0).abs() < 1e-9, "{}", v.rate());
    // Within the round-trip time of a loss, it changes nothing.
    let mut same = Verifier::new(false, false);
    same.on_corrupt(Seqno::new(1110));
    assert_eq!(take(&mut same, 1499, &report, &log), Ok(1));
}

//= 4342-8.6.1-4 test
#[test]
fn further_options_continue_the_first_unless_they_skip() {
    let interval = |lossless_length, loss_length| {
        let (nonce_echo, data_length) = (false, 5);
        LossInterval { lossless_length, nonce_echo, loss_length, data_length }.to_bytes().to_vec()
    };
    let option = |skip: u8, i: Vec<u8>| (193, [vec![skip], i].concat());
    let both = read(&[option(2, interval(10, 1)), option(0, interval(20, 0))]);
    assert_eq!((both.skip, both.intervals().len()), (2, 2));
    let odd = read(&[option(2, interval(10, 1)), option(1, interval(20, 0))]);
    assert_eq!((odd.skip, odd.intervals().len()), (2, 1));
}

#[test]
fn any_bytes_leave_a_rate_between_zero_and_one() {
    let log = log(3);
    let mut rng = udccp_base::Seed(3).stream("reports");
    let mut v = Verifier::new(true, false);
    for _ in 0..20_000 {
        let n = rng.below(10) as usize;
        let small = rng.chance(0.8);
        let length = |rng: &mut udccp_base::Rng| rng.below(if small { 60 } else { 1 << 24 }) as u32;
        let intervals: Vec<[u32; 3]> =
            (0..n).map(|_| [length(&mut rng), length(&mut rng) / 2, length(&mut rng)]).collect();
        let ackno = 1000 + rng.below(1000);
        let _ = take(&mut v, ackno, &options(rng.below(5) as u8, &intervals), &log);
        assert!((0.0..=1.0).contains(&v.rate()), "{}", v.rate());
    }
    assert!(v.lies > 100);
}

//= 4340-12.3-1 test
#[test]
fn a_mark_of_our_own_that_is_reported_is_no_loss_event() {
    let (log, mut v) = (log(10), Verifier::new(false, false));
    v.on_probe(Seqno::new(1100));
    assert_eq!(take(&mut v, 1109, &options(0, &[[9, 1, 10], [100, 0, 50]]), &log), Ok(0));
    assert_eq!((v.rate(), v.take_probe_counts()), (0.0, (1, 0)));
    // A real loss later counts, and the interval before it includes the mark.
    let report = options(0, &[[9, 1, 10], [199, 1, 200], [100, 0, 50]]);
    assert_eq!(take(&mut v, 1309, &report, &log), Ok(1));
    assert_eq!((v.rate(), v.take_probe_counts()), (1.0 / 250.0, (0, 0)));
    // A loss soon after a mark is part of the same event, which is then real.
    v.on_probe(Seqno::new(1400));
    let report = options(0, &[[20, 5, 25], [99, 1, 100], [199, 1, 200], [100, 0, 50]]);
    assert_eq!(take(&mut v, 1424, &report, &log), Ok(1));
}

//= 4340-12.3-2 test
#[test]
fn a_mark_of_our_own_that_is_hidden_is_a_loss_event() {
    let (log, mut v) = (log(10), Verifier::new(false, false));
    take(&mut v, 1109, &options(0, &[[9, 1, 10], [100, 0, 50]]), &log).unwrap();
    v.on_probe(Seqno::new(1300));
    // The mark is not covered yet, so the receiver may still report it.
    take(&mut v, 1299, &options(0, &[[199, 1, 200], [100, 0, 50]]), &log).unwrap();
    assert_eq!(v.take_probe_counts(), (0, 0));
    let report = options(0, &[[399, 1, 400], [100, 0, 50]]);
    assert_eq!(take(&mut v, 1499, &report, &log), Ok(1));
    assert_eq!(v.take_probe_counts(), (0, 1));
    assert!((v.rate() - 2.0 / 400.0).abs() < 1e-9, "{}", v.rate());
}

/// Loss events of an honest receiver: the first lost packet, how many numbers its lossy part has,
/// and where the next event begins.
fn reported(events: &[(u64, u64)], skip: u8, ackno: u64) -> Options {
    let mut end = ackno - u64::from(skip) + 1;
    let mut intervals = Vec::new();
    for &(start, lossy) in events.iter().rev().take(8) {
        let lossy = lossy.min(end - start);
        let [lossless, all] = [end - start - lossy, end - start].map(|n| n as u32);
        intervals.push([lossless, lossy as u32, all]);
        end = start;
    }
    if events.len() <= 8 {
        intervals.push([(end - 1) as u32, 0, (end - 1) as u32]);
    }
    options(skip, &intervals)
}

#[test]
fn steps_that_no_report_needs_any_more_change_nothing() {
    for seed in 0..60 {
        let mut rng = udccp_base::Seed(seed).stream("steps");
        let counts_losses = seed % 3 == 0;
        let [mut all, mut few] = [SentLog::default(), SentLog::default()];
        let [mut with_all, mut with_few] = [0; 2].map(|_| Verifier::new(true, counts_losses));
        let (per_step, loss) = (1 + rng.below(6), [0.0, 0.002, 0.02, 0.1][rng.below(4) as usize]);
        let mut events: Vec<(u64, u64)> = Vec::new();
        for seq in 1..6000 {
            let sent = Sent { seq: Seqno::new(seq), at: at(seq), data: seq };
            [&mut all, &mut few].into_iter().for_each(|log| log.push(sent, seq / per_step));
            // A lossy part lasts for a round-trip time, at times for much more.
            let most = per_step * if rng.chance(0.1) { 60 } else { 4 };
            let lost = seq > 20 && rng.chance(loss);
            match events.last_mut() {
                Some((start, lossy)) if lost && seq - *start < most => *lossy = seq - *start + 1,
                _ if lost => events.push((seq, 1)),
                _ => {}
            }
            if seq % (4 * per_step) != 0 || lost {
                continue;
            }
            let report = reported(&events, 0, seq);
            let taken = [(&mut with_all, &all), (&mut with_few, &few)]
                .map(|(verifier, log)| take(verifier, seq, &report, log));
            assert_eq!(taken[0], taken[1], "{seed}: {seq}");
            assert_eq!((with_all.rate(), with_all.split), (with_few.rate(), with_few.split));
            let needed = with_few.needed_from(Seqno::new(seq), &report).unwrap();
            few.forget_steps_before(needed);
        }
        assert!(few.steps_bytes() <= all.steps_bytes());
        assert!(loss > 0.0 || few.steps_bytes() <= 1024, "{}", few.steps_bytes());
    }
}
