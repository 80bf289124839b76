//! Shares and bursts compared with closed forms; patterns exact to the packet.

use std::sync::Arc;

use udccp_base::{Duration, Instant, Seed};

use super::{GilbertElliott, Loss, LossConfig};
use crate::{Change, DropReason, Rule, Verdict};

const LOST: Verdict = Verdict::Drop(DropReason::RandomLoss);

/// Which of `packets` packets, one per millisecond, are lost.
fn lost(config: LossConfig, packets: u64) -> Vec<u64> {
    let mut loss = Loss::new(config, Seed(1).stream("loss"));
    let at = |ms| Instant::from_nanos(ms * 1_000_000);
    (1..=packets).filter(|n| loss.judge(at(*n), 1500) == LOST).collect()
}

/// Mean length of runs of consecutive numbers.
fn mean_burst(lost: &[u64]) -> f64 {
    let begins = 1 + lost.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    lost.len() as f64 / begins as f64
}

#[test]
fn random_loss_has_its_share_and_no_more_bursts_than_chance() {
    let lost = lost(LossConfig::Random(0.03), 100_000);
    // Standard deviation 54 packets; a burst continues with probability 0.03.
    assert!(lost.len().abs_diff(3_000) < 220, "{} of 100000", lost.len());
    assert!((mean_burst(&lost) - 1.0 / 0.97).abs() < 0.02, "{}", mean_burst(&lost));
}

#[test]
fn zero_loses_none_and_one_loses_all() {
    assert_eq!(lost(LossConfig::Random(0.0), 1_000).len(), 0);
    assert_eq!(lost(LossConfig::Random(1.0), 1_000).len(), 1_000);
    assert_eq!(lost(LossConfig::None, 1_000).len(), 0);
}

#[test]
fn bursts_are_as_long_and_losses_as_many_as_asked_for() {
    let model = GilbertElliott::with_bursts(0.05, 8.0).expect("a channel");
    assert_eq!((model.r, model.h, model.k), (0.125, 0.0, 1.0));
    // p = 0.125 * 0.05 / 0.95.
    assert!((model.p - 0.006_578_947).abs() < 1e-9);
    assert!((model.loss() - 0.05).abs() < 1e-12);
    let lost = lost(LossConfig::GilbertElliott(model), 2_000_000);
    let share = lost.len() as f64 / 2e6;
    // Bursts are geometric with mean 8: deviation of the share about 0.0006, of the mean 0.07.
    assert!((share - 0.05).abs() < 0.002, "{share}");
    assert!((mean_burst(&lost) - 8.0).abs() < 0.25, "{}", mean_burst(&lost));
}

#[test]
fn the_stationary_loss_of_four_parameters_is_the_closed_form() {
    let model = GilbertElliott { p: 0.02, r: 0.1, h: 0.4, k: 0.99 };
    // In the good state 5/6 of the time, in the bad state 1/6: 0.01 * 5/6 + 0.6 * 1/6.
    assert!((model.loss() - (0.05 / 6.0 + 0.1)).abs() < 1e-12);
    let share = lost(LossConfig::GilbertElliott(model), 1_000_000).len() as f64 / 1e6;
    assert!((share - model.loss()).abs() < 0.003, "{share}");
}

#[test]
fn impossible_channels_are_rejected() {
    assert!(GilbertElliott::with_bursts(0.05, 0.5).is_none(), "shorter than a packet");
    assert!(GilbertElliott::with_bursts(1.0, 2.0).is_none());
    assert!(GilbertElliott::with_bursts(0.9, 2.0).is_none(), "p would be 4.5");
    assert_eq!(GilbertElliott { p: 0.0, r: 0.0, h: 0.0, k: 1.0 }.loss(), 0.0);
}

#[test]
fn periods_times_and_records_are_kept_to_the_packet() {
    assert_eq!(lost(LossConfig::EveryNth(4), 13), [4, 8, 12]);
    assert_eq!(lost(LossConfig::Every(Duration::from_millis(5)), 17), [5, 10, 15]);
    assert_eq!(lost(LossConfig::Every(Duration::from_micros(2_500)), 6), [3, 5]);
    let at = |us: u64| Instant::from_nanos(us * 1_000);
    let times: Arc<[Instant]> = [at(2_000), at(4_200), at(4_300), at(9_999)].into();
    assert_eq!(lost(LossConfig::At(times), 12), [2, 5, 10]);
    let flags: Arc<[bool]> = [false, true, true].into();
    assert_eq!(lost(LossConfig::Flags(flags), 7), [2, 3, 5, 6]);
    let numbers: Arc<[u64]> = [1, 2, 9].into();
    assert_eq!(lost(LossConfig::Numbers(numbers), 20), [1, 2, 9]);
}

#[test]
fn changed_loss_model_starts_from_its_initial_state() {
    let mut loss = Loss::new(LossConfig::EveryNth(2), Seed(1).stream("loss"));
    let now = Instant::ZERO;
    assert_eq!([(); 3].map(|()| loss.judge(now, 1) == LOST), [false, true, false]);
    loss.change(now, &Change::Loss(LossConfig::EveryNth(3)));
    assert_eq!([(); 3].map(|()| loss.judge(now, 1) == LOST), [false, false, true]);
    loss.change(now, &Change::Loss(LossConfig::None));
    assert_eq!([(); 3].map(|()| loss.judge(now, 1) == LOST), [false; 3]);
}
