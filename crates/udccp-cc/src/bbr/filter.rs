//! A maximum filter over recent rounds.

/// The maximum of the last rounds, by K. Nichols's windowed filter. It keeps three values for any
/// window: the best, the best after that, and the best after that one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowedMax {
    best: [Sample; 3],
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    round: u64,
    value: u64,
}

impl WindowedMax {
    /// The maximum.
    pub(super) fn get(&self) -> u64 {
        self.best[0].value
    }

    /// Expresses the values in another unit.
    pub(super) fn convert(&mut self, unit: impl Fn(u64) -> u64) {
        for sample in &mut self.best {
            sample.value = unit(sample.value);
        }
    }

    /// Adds the value of a round, and removes values older than `window` rounds.
    pub(super) fn update(&mut self, round: u64, value: u64, window: u64) {
        let new = Sample { round, value };
        let [first, second, third] = &mut self.best;
        if value >= first.value || round - third.round > window {
            self.best = [new; 3];
            return;
        }
        if value >= second.value {
            (*second, *third) = (new, new);
        } else if value >= third.value {
            *third = new;
        }
        if round - first.round > window {
            // The best is too old. The next two move up, and again if the second is too old as
            // well.
            (*first, *second, *third) = (*second, *third, new);
            if round - first.round > window {
                (*first, *second) = (*second, *third);
            }
        } else if second.round == first.round && round - first.round > window / 4 {
            // A quarter of the window has passed without a second best: use this value.
            (*second, *third) = (new, new);
        } else if third.round == second.round && round - first.round > window / 2 {
            // Half of the window has passed without a third best.
            *third = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_lasts_for_its_window() {
        let mut filter = WindowedMax::default();
        filter.update(0, 10, 10);
        for round in 1..=10 {
            filter.update(round, 5, 10);
            assert_eq!(filter.get(), 10, "round {round}");
        }
        filter.update(11, 5, 10);
        assert_eq!(filter.get(), 5);
    }

    /// The second best is from the third round. The third is from the sixth, which is more than
    /// half of the window after the best, and lasts until the 16th.
    #[test]
    fn a_third_is_taken_from_the_second_half_of_the_window() {
        let mut filter = WindowedMax::default();
        let values = [10, 5, 5, 7, 5, 5, 6, 5, 5, 5, 5];
        for (round, value) in (0..).zip(values) {
            filter.update(round, value, 10);
        }
        filter.update(11, 5, 10);
        assert_eq!(filter.get(), 7);
        filter.update(14, 5, 10);
        assert_eq!(filter.get(), 6);
    }

    #[test]
    fn the_second_best_follows_the_best() {
        let mut filter = WindowedMax::default();
        for (round, value) in [(0, 10), (4, 8), (8, 6), (11, 5)] {
            filter.update(round, value, 10);
        }
        assert_eq!(filter.get(), 8);
        filter.update(12, 20, 10);
        assert_eq!(filter.get(), 20);
    }

    /// The maximum after these rounds with their values.
    fn after(samples: &[(u64, u64)]) -> u64 {
        let mut filter = WindowedMax::default();
        for &(round, value) in samples {
            filter.update(round, value, 10);
        }
        filter.get()
    }

    /// The second best of the third round is less than the value of the fourth.
    #[test]
    fn a_later_and_larger_second_best_replaces_the_first_one() {
        assert_eq!(after(&[(0, 10), (3, 6), (4, 8), (11, 5)]), 8);
    }

    /// The same for the third best: the value of the sixth round is less than that of the eighth.
    #[test]
    fn a_later_and_larger_third_best_replaces_the_first_one() {
        let samples = [(0, 10), (3, 8), (6, 4), (8, 6), (11, 1), (14, 1)];
        assert_eq!((after(&samples[..5]), after(&samples)), (8, 6));
    }

    /// After rounds without samples, both the best and the second best are too old.
    #[test]
    fn two_values_are_forgotten_at_once_after_rounds_without_samples() {
        assert_eq!(after(&[(0, 10), (3, 8), (6, 6), (15, 5)]), 6);
        assert_eq!(after(&[(0, 10), (3, 8), (6, 6), (17, 5)]), 5);
    }
}
