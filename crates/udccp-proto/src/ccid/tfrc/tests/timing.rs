//! Pacing, window counter, the receiver's round-trip time, receive rates and data-limited times.

use udccp_base::{Duration, Instant};
use udccp_wire::Seqno;

use super::{at, ms};
use crate::ccid::tfrc::{
    CounterRtt, DataLimited, Rate, RatePacer, ReceiveRate, RttFloor, SegmentSize, WindowCounter,
};

/// A pacer whose packets all have paces of their own.
struct Paced(RatePacer);

impl Paced {
    fn new(granularity: Duration, max_credit: Duration) -> Self {
        Self(RatePacer::new(granularity, max_credit))
    }

    fn next(&self, interval: Duration, rtt: Option<Duration>) -> Instant {
        self.0.next(&self.0.pace(interval, interval, rtt, rtt))
    }

    fn on_sent(
        &mut self,
        now: Instant,
        interval: Duration,
        steady: Duration,
        rtt: Option<Duration>,
    ) -> bool {
        let pace = self.0.pace(interval, steady, rtt, rtt);
        self.0.on_sent(now, &pace)
    }
}

//= 5348-4.6-1 test
#[test]
fn packets_leave_one_interval_apart_and_half_a_tick_early() {
    let mut pacer = Paced::new(ms(1), ms(10));
    let (ipi, rtt) = (ms(10), Some(ms(100)));
    assert_eq!(pacer.next(ipi, rtt), Instant::ZERO, "the first leaves at once");
    assert!(pacer.on_sent(at(1000), ipi, ipi, rtt));
    // t_delta = min(t_ipi, t_gran, rtt)/2.
    assert_eq!(pacer.next(ipi, rtt), at(1010) - Duration::from_micros(500));
    // Sending late or early does not move the nominal times.
    pacer.on_sent(at(1012), ipi, ipi, rtt);
    pacer.on_sent(at(1020) - Duration::from_micros(500), ipi, ipi, rtt);
    assert_eq!(pacer.next(ipi, rtt), at(1030) - Duration::from_micros(500));
}

//= 5348-4.6-2 test
//= 5348-4.6-3 test
//= 5348-4.6-4 test
//= 5348-4.6-5 test
#[test]
fn a_pause_is_made_up_for_within_bounds() {
    let burst = |ipi: Duration, rtt: Duration, credit: Duration| {
        let mut pacer = Paced::new(ms(1), credit);
        pacer.on_sent(at(1000), ipi, ipi, Some(rtt));
        let mut left = 0;
        while pacer.next(ipi, Some(rtt)) <= at(9000) {
            pacer.on_sent(at(9000), ipi, ipi, Some(rtt));
            left += 1;
        }
        left
    };
    assert_eq!(burst(ms(1), ms(100), ms(10)), 11);
    assert_eq!(burst(ms(1), ms(5), ms(10)), 6, "never more than a round-trip time's worth");
    assert_eq!(burst(ms(20), ms(100), ms(10)), 3, "two intervals at least");
    assert_eq!(burst(ms(500), ms(100), ms(10)), 1, "slower than one packet a round-trip time");
}

#[test]
fn a_sender_with_too_little_data_is_told_from_a_paced_one() {
    let mut pacer = Paced::new(ms(1), ms(10));
    let all_sent = |pacer: &mut Paced, now| pacer.on_sent(now, ms(10), ms(10), Some(ms(100)));
    assert!(all_sent(&mut pacer, at(1000)));
    assert!(all_sent(&mut pacer, at(1010)));
    // One packet every 15 ms is less than is allowed.
    all_sent(&mut pacer, at(1025));
    all_sent(&mut pacer, at(1040));
    assert!(!all_sent(&mut pacer, at(1055)));
    assert!(!all_sent(&mut pacer, at(1070)));
}

//= 4342-8.1-1 test
//= 5348-3.2.1-3 test
//= 5348-5.2-1 test
//= 4342-8.1-2 test
#[test]
fn the_window_counter_ticks_four_times_a_round_trip_and_steps_by_five_at_most() {
    let mut counter = WindowCounter::default();
    let mut next = |millis| counter.next(at(millis), ms(100));
    assert_eq!([next(0), next(24), next(25), next(49), next(50)], [0, 0, 1, 1, 2]);
    assert_eq!(next(150), 6);
    assert_eq!(next(100_000), 11, "five steps after any pause");
}

#[test]
fn with_two_packets_in_a_round_trip_time_the_counter_loses_no_quarter() {
    let mut counter = WindowCounter::default();
    // 43 ms are 1.72 quarters, so twenty times that are 34.4.
    let last = (0..=20).map(|i| counter.next(at(43 * i), ms(100))).last();
    assert_eq!(last, Some(34));
    // An acknowledgement without new information does not set the clock back.
    counter.on_ack(at(900), 30, ms(100));
    assert_eq!(counter.next(at(903), ms(100)), 36);
}

//= 4342-8.1-1 test
//= 4342-8.1-3 test
#[test]
fn an_acknowledged_packet_is_a_round_trip_time_old() {
    let mut counter = WindowCounter::default();
    assert_eq!(counter.next(at(0), ms(100)), 0);
    assert_eq!(counter.next(at(25), ms(100)), 1);
    counter.on_ack(at(40), 1, ms(100));
    assert_eq!(counter.next(at(41), ms(100)), 5);
    counter.on_ack(at(42), 1, ms(100));
    assert_eq!(counter.next(at(43), ms(100)), 5, "no need");
    counter.on_ack(at(50), 5, ms(100));
    assert_eq!(counter.next(at(500), ms(100)), 10, "adjacent packets stay five apart");
}

//= 4342-8.1-4 test
//= 4342-8.1-5 test
#[test]
fn the_receiver_reads_the_round_trip_time_off_the_counter() {
    let mut rtt = CounterRtt::default();
    let mut numbers = (1..).map(Seqno::new);
    let mut on = |millis, ccval| rtt.on_data(at(millis), numbers.next()?, ccval, None);
    assert_eq!([on(0, 14), on(5, 14), on(25, 15)], [None; 3]);
    assert_eq!(on(50, 0), Some(ms(100)), "two steps, times 4/2");
    assert_eq!(on(60, 0), None);
    assert_eq!(on(75, 1), Some(ms(100)), "three steps, times 4/3");
    assert_eq!(on(104, 2), Some(ms(104)), "four steps are preferred");
    assert_eq!(on(200, 7), None, "five steps say nothing");
    assert_eq!(on(900, 15), None, "more steps than one packet can make: packets are missing");
    assert_eq!(on(950, 1), Some(ms(100)));
}

#[test]
fn a_counter_that_may_have_gone_round_while_packets_were_lost_says_nothing() {
    // Number of missing packets, time since the packet before in ms, and the sample.
    for (missing, after, sample) in [
        (0, 900, Some(900)),
        (2, 900, Some(900)),
        (3, 199, Some(199)),
        (3, 200, None),
        (9, 900, None),
    ] {
        let mut rtt = CounterRtt::default();
        let known = Some(ms(100));
        assert_eq!(rtt.on_data(at(0), Seqno::new(1), 1, known), None);
        let on = rtt.on_data(at(after), Seqno::new(2 + missing), 5, known);
        assert_eq!(on, sample.map(ms), "{missing} missing after {after} ms");
        // The measurement starts again with that packet.
        let next = rtt.on_data(at(after + 100), Seqno::new(3 + missing), 9, known);
        assert_eq!(next, Some(ms(100)));
    }
    // First nothing is known about the path. Last, a counter that seems unchanged has wrapped.
    let mut rtt = CounterRtt::default();
    assert_eq!(rtt.on_data(at(0), Seqno::new(1), 1, None), None);
    assert_eq!(rtt.on_data(at(100), Seqno::new(9), 5, None), None);
    assert_eq!(rtt.on_data(at(200), Seqno::new(10), 9, None), Some(ms(100)));
    assert_eq!(rtt.on_data(at(9000), Seqno::new(20), 9, Some(ms(100))), None);
    assert_eq!(rtt.on_data(at(9050), Seqno::new(21), 11, Some(ms(100))), Some(ms(100)));
}

//= 5348-6.2-1 test
#[test]
fn the_receive_rate_covers_a_round_trip_time_or_more() {
    let mut rate = ReceiveRate::default();
    let measured = |rate: &ReceiveRate, millis| rate.rate(at(millis), ms(100)).bytes_per_sec();
    rate.on_data(at(1000), 1000);
    assert_eq!(measured(&rate, 1000), 0.0, "the first report says zero");
    rate.on_report(at(1000), ms(100), Rate::default());
    (0..10).for_each(|_| rate.on_data(at(1050), 1000));
    assert_eq!(measured(&rate, 1100), 100_000.0);
    // A report sent early because of a loss covers a whole round-trip time.
    rate.on_report(at(1100), ms(100), Rate::from_bytes_per_sec(100_000));
    rate.on_data(at(1105), 1000);
    assert_eq!(measured(&rate, 1110), 100_000.0, "11 packets since 1000 ms, in 110 ms");
    // If no report is that old, a round-trip time is used.
    let mut young = ReceiveRate::default();
    young.on_report(at(0), ms(100), Rate::default());
    young.on_data(at(5), 500);
    assert_eq!(measured(&young, 10), 5_000.0);
    assert_eq!(rate.largest(), Rate::from_bytes_per_sec(100_000));
    // If reports come much faster than once per assumed round-trip time, their own time is used.
    for report in 1..20 {
        young.on_report(at(10 * report), ms(100), Rate::default());
        young.on_data(at(10 * report + 5), 500);
    }
    assert_eq!(measured(&young, 200), 50_000.0);
}

//= 5348-6.2-1 test
#[test]
fn a_silence_before_data_is_no_low_receive_rate() {
    let mut rate = ReceiveRate::default();
    rate.on_report(at(1000), ms(100), Rate::default());
    rate.on_data(at(9050), 1000);
    let measured =
        |rate: &ReceiveRate, millis| rate.rate(at(millis), ms(100)).bytes_per_sec() as u64;
    // Timers expired at 8900 and 9000. The latter is less than a round-trip time ago.
    assert_eq!(measured(&rate, 9050), 1000 * 1000 / 150);
    assert_eq!(measured(&rate, 9110), 1000 * 1000 / 110);
    rate.on_report(at(9110), ms(100), Rate::default());
    // One packet every 190 ms gives exactly that rate.
    rate.on_data(at(9300), 1000);
    assert_eq!(measured(&rate, 9300), 1000 * 1000 / 190);
}

#[test]
fn a_silence_before_an_earlier_report_is_no_low_receive_rate() {
    let mut rate = ReceiveRate::default();
    rate.on_report(at(1000), ms(400), Rate::default());
    rate.on_data(at(9050), 1000);
    rate.on_report(at(9060), ms(400), Rate::default());
    rate.on_data(at(9200), 1000);
    // The newest report is not a round-trip time ago. 19 silent round-trip times precede it.
    let since = 9200 - 1000 - 19 * 400;
    assert_eq!(rate.rate(at(9200), ms(400)), Rate::of(2000, ms(since)));
}

#[test]
fn an_interval_is_data_limited_only_if_all_of_it_was() {
    let mut it = DataLimited::default();
    it.on_not_limited(at(1000));
    assert!(!it.on_feedback(at(1110), at(1010), ms(100)));
    // Nothing was recorded since.
    assert!(it.on_feedback(at(1310), at(1210), ms(100)));
    it.on_not_limited(at(1320));
    it.on_not_limited(at(1330));
    assert!(!it.on_feedback(at(1410), at(1325), ms(100)));
    assert!(!it.on_feedback(at(1510), at(1425), ms(100)), "the second time was kept");
    assert!(it.on_feedback(at(1610), at(1525), ms(100)));
}

//= 5348-4.1-3 test
#[test]
fn the_segment_size_is_the_mean_of_four_loss_intervals() {
    let mut size = SegmentSize::new(1400);
    assert_eq!(size.bytes(), 1400, "nothing sent yet");
    size.expect(200);
    assert_eq!(size.bytes(), 200);
    size.on_sent(100);
    size.on_sent(300);
    assert_eq!(size.bytes(), 200);
    for bytes in [1000, 1000, 1000, 1000] {
        size.on_loss_event();
        size.on_sent(bytes);
    }
    assert_eq!(size.bytes(), 1000, "the first interval is forgotten");
    size.on_loss_event();
    (0..4).for_each(|_| size.on_sent(0));
    assert!(size.bytes() >= 1);
}

//= 5348-4.6-4 test
#[test]
fn a_late_timer_catches_up_what_the_allowed_rate_sends_in_a_round_trip_time() {
    // X allows a packet every 10 ms, ten per round-trip time. X_inst is twice that, or more.
    for interval in [ms(10), ms(5), Duration::from_micros(50)] {
        let mut pacer = Paced::new(ms(1), Duration::MAX);
        pacer.on_sent(at(1000), interval, ms(10), Some(ms(100)));
        let mut left = 0;
        while pacer.next(interval, Some(ms(100))) <= at(9000) {
            pacer.on_sent(at(9000), interval, ms(10), Some(ms(100)));
            left += 1;
        }
        assert_eq!(left, 11, "{interval}");
    }
}

#[test]
fn the_rtt_floor_needs_three_samples_to_fall_far_and_expires() {
    let mut floor = RttFloor::default();
    let mut measured = |secs: u64, millis| {
        floor.measured(Instant::ZERO + Duration::from_secs(secs), Duration::from_micros(millis));
        floor.get().as_micros()
    };
    assert_eq!(measured(1, 40_000), 40_000, "the first is taken as it is");
    assert_eq!(measured(2, 50_000), 40_000);
    assert_eq!(measured(3, 30_000), 30_000);
    // One packet overtakes the others. Then two do, but not in a row.
    assert_eq!([measured(3, 1), measured(3, 41_000), measured(3, 1), measured(3, 2)], [30_000; 4]);
    assert_eq!(measured(3, 40_000), 30_000);
    // The path has changed: the largest of three measurements counts.
    assert_eq!([measured(4, 5_100), measured(4, 5_300)], [30_000; 2]);
    assert_eq!(measured(4, 5_200), 5_300);
    // The path has become longer. The old minimum is used for ten to twenty seconds more.
    assert_eq!([measured(9, 80_000), measured(12, 80_000), measured(19, 80_000)], [5_300; 3]);
    assert_eq!(measured(23, 80_000), 80_000);
}

/// Regression: two acknowledgements that were in flight when a host was suspended for a day raised
/// the floor to a day. Every later sample was then a day.
#[test]
fn sleep_of_a_day_does_not_raise_the_rtt_floor() {
    let mut floor = RttFloor::default();
    let day = Duration::from_secs(86_400);
    let mut now = Instant::ZERO + day;
    for total in [ms(40), ms(40), day, day + ms(40), day, ms(41), ms(41)] {
        now += Duration::from_secs(11);
        floor.measured(now, total);
        assert!(floor.get() <= ms(41), "{} at {now}", floor.get());
    }
}

/// An hour of sleep is not a round-trip time, however seldom packets are sent.
#[test]
fn one_late_acknowledgement_after_sleep_does_not_raise_the_rtt_floor() {
    let minute = Duration::from_secs(60);
    let mut floor = RttFloor::default();
    let mut now = Instant::ZERO;
    for total in [1, 1, 1, 3_600_000, 1, 1, 1].map(|n| ms(40) * n) {
        now += minute;
        floor.measured(now, total);
        assert_eq!(floor.get(), ms(40), "{now}");
    }
    // On a path that has become longer, every packet takes longer.
    for total in [ms(90); 5] {
        now += minute;
        floor.measured(now, total);
    }
    assert_eq!(floor.get(), ms(90));
}
