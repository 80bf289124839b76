//! The average loss interval (RFC 5348 sections 5.4 and 5.5).

use crate::ccid::tfrc::LossAverage;

/// An average of these intervals, newest first, built without discounts.
fn average(discounting: bool, lengths: &[u32]) -> LossAverage {
    let mut average = LossAverage::new(discounting);
    let (first, rest) = lengths.split_last().unwrap();
    average.start(*first);
    for (i, length) in rest.iter().enumerate().rev() {
        average.set_current(f64::from(*length));
        if i > 0 {
            average.begin(f64::from(*length));
        }
    }
    average
}

fn assert_rate(average: &LossAverage, expected: f64) {
    let rate = average.rate();
    assert!((rate - expected).abs() < 1e-12, "{rate}, not {expected}");
}

//= 5348-5.4-1 test
//= 5348-5.4-2 test
#[test]
fn eight_closed_intervals_have_the_weights_of_the_rfc() {
    assert_rate(&LossAverage::new(true), 0.0);
    let lengths = [1, 10, 20, 30, 40, 50, 60, 70, 80];
    // (10 + 20 + 30 + 40 + 0.8*50 + 0.6*60 + 0.4*70 + 0.2*80) / 6 = 220/6.
    assert_rate(&average(false, &lengths), 6.0 / 220.0);
}

#[test]
fn the_current_interval_counts_only_where_it_helps() {
    let mut one = average(false, &[1, 100]);
    assert_rate(&one, 0.01);
    one.set_current(100.0);
    assert_rate(&one, 0.01);
    one.set_current(400.0);
    assert_rate(&one, 1.0 / 400.0);
    // With n intervals, the oldest is replaced by the current one.
    let mut many = average(false, &[1, 10, 10, 10, 10, 10, 10, 10, 10]);
    assert_rate(&many, 0.1);
    many.set_current(70.0);
    assert_rate(&many, 6.0 / (70.0 + 3.0 * 10.0 + 2.0 * 10.0));
}

//= 5348-5.5-1 test
#[test]
fn a_long_interval_makes_old_ones_count_less() {
    let mut it = average(true, &[1, 10, 10, 10, 10, 10, 10, 10, 10]);
    it.set_current(20.0);
    assert_rate(&it, 6.0 / (20.0 + 50.0));
    // 40 > 2*10: DF = 2*10/40 = 0.5 for all intervals but the current one.
    it.set_current(40.0);
    assert_rate(&it, (1.0 + 5.0 * 0.5) / (40.0 + 50.0 * 0.5));
    // Never less than a quarter.
    it.set_current(1000.0);
    assert_rate(&it, (1.0 + 5.0 * 0.25) / (1000.0 + 50.0 * 0.25));
    // The old intervals keep the discount at the next event.
    it.begin(1000.0);
    let old = 5.0 * 0.25;
    assert_rate(&it, (1.0 + old) / (1000.0 + old * 10.0));
}

//= 5348-5.5-2 test
#[test]
fn without_discounting_a_long_interval_changes_no_weight() {
    let mut it = average(false, &[1, 10, 10, 10, 10, 10, 10, 10, 10]);
    it.set_current(1000.0);
    assert_rate(&it, 6.0 / (1000.0 + 50.0));
}

#[test]
fn joining_intervals_undoes_a_loss_event() {
    let mut it = average(false, &[5, 10, 20, 30]);
    it.join(1);
    assert_eq!(it.lengths(), [5.0, 30.0, 30.0]);
    it.join(0);
    assert_eq!(it.lengths(), [35.0, 30.0]);
    it.join(0);
    assert_rate(&it, 0.0);
}

#[test]
fn lengths_of_zero_count_as_one_and_rates_stay_within_one() {
    let mut it = LossAverage::new(true);
    it.start(0);
    assert_rate(&it, 1.0);
    it.begin(0.0);
    it.set_current(0.0);
    assert_rate(&it, 1.0);
    it.set_current(f64::from(u32::MAX));
    assert!(it.rate() > 0.0 && it.rate() < 1e-9);
}

//= 4828-3-9 test
#[test]
fn a_short_current_interval_neither_helps_nor_discounts() {
    let mut it = average(true, &[1, 10, 10, 10, 10, 10, 10, 10, 10]);
    it.set_current(1000.0);
    it.set_short(true);
    assert_rate(&it, 0.1);
    it.set_short(false);
    assert!(it.rate() < 0.01);
}
