//! Window algorithms and validation against points computed by hand.

use udccp_base::{Duration, Instant};

use crate::{
    AckSample, AdditiveIncrease, Algorithm, CongestionControl, Cut, Delivered, GrowthAfterCut,
    IdlePolicy, InitialWindow, NewReno, RtoConfig, RttEstimator, SlowStart, WindowValidation,
};

const RTT: Duration = Duration::from_millis(100);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// One round trip: the whole window is acknowledged, with one acknowledgement per two packets.
fn round_trip(cc: &mut dyn CongestionControl) -> u32 {
    let window = cc.cwnd();
    for _ in 0..window / 2 {
        cc.on_ack(&AckSample::full_window(Instant::ZERO, 2));
    }
    cc.on_ack(&AckSample::full_window(Instant::ZERO, window % 2));
    cc.cwnd()
}

#[test]
fn slow_start_doubles_and_avoidance_adds_one_per_round_trip() {
    let mut cc = NewReno::new(4, Cut::HALF, GrowthAfterCut::Pauses);
    let trace: Vec<u32> = (0..4).map(|_| round_trip(&mut cc)).collect();
    assert_eq!(trace, [8, 16, 32, 64]);
    cc.on_congestion_event(Instant::ZERO, 64);
    assert_eq!((cc.cwnd(), cc.ssthresh()), (32, 32));
    let trace: Vec<u32> = (0..5).map(|_| round_trip(&mut cc)).collect();
    assert_eq!(trace, [33, 34, 35, 36, 37]);
}

#[test]
fn slow_start_ends_exactly_at_the_threshold() {
    assert_eq!(SlowStart::grow(6, 10, 3), (9, 0));
    assert_eq!(SlowStart::grow(6, 10, 9), (10, 5));
    assert_eq!(SlowStart::grow(12, 10, 9), (12, 9));
    let mut cc = NewReno::new(6, Cut::HALF, GrowthAfterCut::Pauses);
    cc.set_window(Instant::ZERO, 6, 8);
    // Two packets reach the threshold; the other seven count towards the next window of eight.
    cc.on_ack(&AckSample::full_window(Instant::ZERO, 9));
    assert_eq!(cc.cwnd(), 8);
    cc.on_ack(&AckSample::full_window(Instant::ZERO, 1));
    assert_eq!(cc.cwnd(), 9);
}

#[test]
fn additive_increase_needs_w_then_w_plus_1_acknowledgements() {
    for chunk in [1_u32, 2, 7, 1000] {
        let mut part = AdditiveIncrease::default();
        let (mut cwnd, mut acked) = (10_u32, 0_u32);
        while acked < 10_000 {
            cwnd += part.grow(cwnd, chunk);
            acked += chunk;
        }
        // 10 + 11 + ... + (cwnd - 1) <= acked < 10 + 11 + ... + cwnd
        let sum = |w: u32| (w * (w + 1) - 9 * 10) / 2;
        assert!(sum(cwnd - 1) <= acked && acked < sum(cwnd), "{chunk}: {cwnd} after {acked}");
    }
}

#[test]
fn cuts_round_down_and_the_window_stays_above_its_floors() {
    let cuts = [Cut::HALF, Cut::drop_percent(25), Cut::drop_percent(5)];
    let points: Vec<[u32; 4]> = cuts.map(|c| [100, 7, 2, 1].map(|w| c.apply(w))).to_vec();
    assert_eq!(points, [[50, 3, 1, 0], [75, 5, 1, 0], [95, 6, 1, 0]]);
    for cut in cuts {
        let mut cc = NewReno::new(3, cut, GrowthAfterCut::Pauses);
        for _ in 0..5 {
            cc.on_congestion_event(Instant::ZERO, 3);
        }
        assert_eq!((cc.cwnd(), cc.ssthresh()), (1, 2));
    }
}

#[test]
fn a_timeout_leaves_one_packet_and_half_the_window_as_threshold() {
    let mut cc =
        Algorithm::NewReno { cut: Cut::drop_percent(5), after_cut: GrowthAfterCut::Pauses }
            .build(21);
    cc.on_rto(Instant::ZERO, 21);
    assert_eq!((cc.cwnd(), cc.ssthresh()), (1, 10));
    let trace: Vec<u32> = (0..6).map(|_| round_trip(cc.as_mut())).collect();
    assert_eq!(trace, [2, 4, 8, 10, 11, 12]);
    cc.on_rto(Instant::ZERO, 12);
    cc.on_rto(Instant::ZERO, 1);
    assert_eq!((cc.cwnd(), cc.ssthresh()), (1, 2));
}

#[test]
fn a_window_that_is_not_filled_does_not_grow() {
    let mut cc = NewReno::new(4, Cut::HALF, GrowthAfterCut::Pauses);
    cc.on_ack(&AckSample { newly_acked: 4, ..AckSample::default() });
    assert_eq!(cc.cwnd(), 4);
    cc.clamp(5);
    cc.on_ack(&AckSample::full_window(Instant::ZERO, 4));
    assert_eq!(cc.cwnd(), 5);
}

#[test]
fn slow_start_can_be_left_from_outside() {
    let mut cc = NewReno::new(10, Cut::HALF, GrowthAfterCut::Pauses);
    cc.exit_slow_start(Instant::ZERO);
    assert_eq!((cc.cwnd(), cc.ssthresh(), cc.in_slow_start()), (10, 10, false));
    cc.on_idle_restart(Instant::ZERO, 4);
    assert_eq!((cc.cwnd(), cc.ssthresh(), cc.in_slow_start()), (4, 10, true));
}

#[test]
fn initial_windows_follow_their_rfcs() {
    let rfc3390 = [500, 1095, 1096, 1400, 1460, 1500, 2190, 9000];
    let got = rfc3390.map(|mss| InitialWindow::Rfc3390.packets(mss));
    assert_eq!(got, [4, 4, 3, 3, 3, 2, 2, 2]);
    let got = [500, 1400, 1460, 1500, 8000].map(|mss| InitialWindow::Rfc6928.packets(mss));
    assert_eq!(got, [10, 10, 10, 9, 2]);
    assert_eq!(InitialWindow::Packets(0).packets(1400), 1);
}

#[test]
fn the_timeout_follows_rfc_6298() {
    let config = RtoConfig { min: ms(1), ..RtoConfig::default() };
    let mut rtt = RttEstimator::new(config);
    assert_eq!(rtt.rto(), ms(1000));
    rtt.sample(ms(100));
    assert_eq!((rtt.srtt(), rtt.rttvar(), rtt.rto()), (Some(ms(100)), Some(ms(50)), ms(300)));
    rtt.sample(ms(200));
    assert_eq!(rtt.srtt(), Some(Duration::from_micros(112_500)));
    assert_eq!(rtt.rttvar(), Some(Duration::from_micros(62_500)));
    assert_eq!(rtt.rto(), Duration::from_micros(362_500));
    assert_eq!((rtt.min_rtt(), rtt.latest()), (Some(ms(100)), Some(ms(200))));
}

#[test]
fn a_steady_path_brings_the_timeout_down_to_the_granularity_or_the_minimum() {
    let mut rtt = RttEstimator::new(RtoConfig { min: ms(1), ..RtoConfig::default() });
    (0..200).for_each(|_| rtt.sample(ms(100)));
    assert_eq!(rtt.rto(), ms(101));
    let mut rtt = RttEstimator::default();
    (0..200).for_each(|_| rtt.sample(ms(100)));
    assert_eq!(rtt.rto(), ms(200));
}

#[test]
fn back_off_doubles_up_to_the_maximum_and_ends_with_a_sample() {
    let mut rtt = RttEstimator::default();
    rtt.sample(ms(1000));
    let mut seen = Vec::new();
    for _ in 0..7 {
        seen.push(rtt.rto().as_millis() / 1000);
        rtt.back_off();
    }
    assert_eq!(seen, [3, 6, 12, 24, 48, 60, 60]);
    rtt.sample(ms(1000));
    assert_eq!((rtt.backoff(), rtt.rto()), (0, ms(2500)));
    let mut endless = RttEstimator::new(RtoConfig { max: Duration::MAX, ..RtoConfig::default() });
    (0..100).for_each(|_| endless.back_off());
    assert!(endless.rto() > Duration::from_secs(1_000_000));
}

/// A window of 40 in congestion avoidance, with `per_rtt` packets sent in each of `rounds`
/// round-trip times.
fn rate_limited(policy: IdlePolicy, per_rtt: u32, rounds: u64) -> (NewReno, WindowValidation, u64) {
    let mut cc = NewReno::new(40, Cut::HALF, GrowthAfterCut::Pauses);
    cc.exit_slow_start(Instant::ZERO);
    let mut state = WindowValidation::new(policy, 4);
    for k in 1..=rounds {
        let now = at(100 * k);
        state.before_send(now, ms(200), &mut cc);
        state.on_sent(now, per_rtt, ms(200), &mut cc);
        let ack = Delivered {
            now: now + ms(99),
            packets: per_rtt,
            sent_total: k * u64::from(per_rtt),
            in_flight: 0,
            srtt: RTT,
        };
        state.on_ack(&ack, cc.cwnd());
    }
    (cc, state, 100 * rounds)
}

#[test]
fn rfc_7661_keeps_an_unused_window_but_does_not_let_it_grow() {
    let (cc, state, _) = rate_limited(IdlePolicy::Rfc7661, 5, 30);
    assert!(state.is_non_validated());
    assert!(!state.may_grow(false) && state.may_grow(true));
    assert_eq!(cc.cwnd(), 40);
    let (_, state, _) = rate_limited(IdlePolicy::Rfc7661, 20, 30);
    assert!(!state.is_non_validated() && state.may_grow(false));
}

#[test]
fn rfc_7661_cuts_from_what_was_used_and_gives_up_half_the_losses() {
    let (mut cc, mut state, end) = rate_limited(IdlePolicy::Rfc7661, 5, 30);
    // A burst of 30 into the unused window loses 8 packets.
    state.before_cut(at(end), 30, &mut cc);
    cc.on_congestion_event(at(end), 30);
    state.on_lost(8);
    assert_eq!((cc.cwnd(), cc.ssthresh()), (15, 15));
    state.on_recovery_end(at(end + 100), &mut cc);
    assert_eq!((cc.cwnd(), cc.ssthresh()), (11, 11));
    assert!(!state.is_non_validated());
    // A validated window is cut as usual.
    let (mut cc, mut state, end) = rate_limited(IdlePolicy::Rfc7661, 39, 30);
    state.before_cut(at(end), 30, &mut cc);
    cc.on_congestion_event(at(end), 30);
    state.on_lost(8);
    state.on_recovery_end(at(end + 100), &mut cc);
    assert_eq!(cc.cwnd(), 20);
}

/// RFC 7661 section 4.4: only the usual response to a timeout applies.
#[test]
fn rfc_7661_a_timeout_ends_the_phase_and_the_recovery() {
    let (_, mut state, _) = rate_limited(IdlePolicy::Rfc7661, 5, 30);
    assert!(state.is_non_validated());
    state.on_rto();
    assert!(!state.is_non_validated());
    let (mut cc, mut state, end) = rate_limited(IdlePolicy::Rfc7661, 5, 30);
    state.before_cut(at(end), 30, &mut cc);
    cc.on_congestion_event(at(end), 30);
    state.on_lost(8);
    cc.on_rto(at(end + 300), 8);
    state.on_rto();
    state.on_recovery_end(at(end + 400), &mut cc);
    assert_eq!((cc.cwnd(), cc.ssthresh()), (1, 7));
}

#[test]
fn rfc_7661_halves_after_five_minutes_without_use() {
    let (mut cc, mut state, end) = rate_limited(IdlePolicy::Rfc7661, 39, 30);
    state.before_send(at(end + 299_000), ms(200), &mut cc);
    assert_eq!(cc.cwnd(), 40);
    state.before_send(at(end + 301_000), ms(200), &mut cc);
    assert_eq!((cc.cwnd(), cc.ssthresh()), (20, 40));
    state.before_send(at(end + 302_000), ms(200), &mut cc);
    assert_eq!(cc.cwnd(), 20);
    state.before_send(at(end + 3_000_000), ms(200), &mut cc);
    assert_eq!((cc.cwnd(), cc.ssthresh()), (4, 40));
}

#[test]
fn rfc_2861_halves_for_every_timeout_of_silence() {
    for (idle, cwnd) in [(199, 40), (200, 20), (410, 10), (700, 5), (800, 4), (60_000, 4)] {
        let (mut cc, mut state, end) = rate_limited(IdlePolicy::Rfc2861, 40, 1);
        state.before_send(at(end + idle), ms(200), &mut cc);
        assert_eq!(cc.cwnd(), cwnd, "after {idle} ms");
    }
}

#[test]
fn rfc_2861_lets_an_unfilled_window_decay_towards_its_use() {
    let (cc, _, _) = rate_limited(IdlePolicy::Rfc2861, 8, 4);
    // Reduced twice in four round-trip times (a timeout is two): halfway from 40 to 8; ssthresh
    // keeps 40.
    assert_eq!((cc.cwnd(), cc.ssthresh()), (24, 40));
    let (cc, _, _) = rate_limited(IdlePolicy::Rfc2861, 8, 60);
    assert!(cc.cwnd() <= 10, "{}", cc.cwnd());
}

#[test]
fn idle_policies_restart_and_keep_the_window() {
    let (mut cc, mut state, end) = rate_limited(IdlePolicy::Restart, 40, 1);
    state.before_send(at(end + 150), ms(200), &mut cc);
    assert_eq!(cc.cwnd(), 40);
    state.before_send(at(end + 201), ms(200), &mut cc);
    assert_eq!((cc.cwnd(), cc.ssthresh()), (4, 40));
    for policy in [IdlePolicy::Keep, IdlePolicy::Unchecked] {
        let (mut cc, mut state, end) = rate_limited(policy, 40, 1);
        state.before_send(at(end + 1_000_000), ms(200), &mut cc);
        assert_eq!(cc.cwnd(), 40);
        assert!(state.may_grow(true));
        assert_eq!(state.may_grow(false), policy == IdlePolicy::Unchecked);
    }
}
