//! Schedules the rows of the report.

use std::time::{Duration, Instant};

/// Rows are due at multiples of the interval since the start. A late row does not delay later ones:
/// the next row is shorter by the same amount.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    began: Instant,
    every: Duration,
    end: Option<Instant>,
}

impl Grid {
    /// Rows at intervals of `every` (zero: only the last) until `duration` is over (`None`:
    /// forever).
    pub(super) fn new(began: Instant, every: Duration, duration: Option<Duration>) -> Self {
        Self { began, every, end: duration.and_then(|d| began.checked_add(d)) }
    }

    /// Whether the time is over.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.end.is_some_and(|end| now >= end)
    }

    /// When the row that starts now is due; `None` if never.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        if self.every.is_zero() {
            return self.end;
        }
        // A row shorter than a tenth of the interval would be meaningless: it is merged with the
        // next.
        let since = (now - self.began + self.every / 10).as_nanos();
        let number = u32::try_from(since / self.every.as_nanos() + 1).unwrap_or(u32::MAX);
        // A time beyond the clock's range never comes.
        let due = self.began.checked_add(self.every.saturating_mul(number));
        due.into_iter().chain(self.end).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_rows_do_not_shift_later_ones() {
        let began = super::super::clock();
        let at = |ms| began + Duration::from_millis(ms);
        let grid = Grid::new(began, Duration::from_secs(1), Some(Duration::from_millis(4500)));
        for (now_ms, due_ms) in
            [(0, 1000), (1000, 2000), (1166, 2000), (1950, 3000), (3400, 4000), (4000, 4500)]
        {
            assert_eq!(grid.next(at(now_ms)), Some(at(due_ms)), "at {now_ms} ms");
        }
        assert!(!grid.is_over(at(4499)) && grid.is_over(at(4500)));
    }

    #[test]
    fn grid_works_without_rows_or_without_an_end() {
        let began = super::super::clock();
        let second = Duration::from_secs(1);
        let quiet = Grid::new(began, Duration::ZERO, Some(second));
        assert_eq!(quiet.next(began), Some(began + second));
        let endless = Grid::new(began, second, None);
        assert_eq!(endless.next(began + 7 * second), Some(began + 8 * second));
        assert!(!endless.is_over(began + 100 * second));
        assert_eq!(Grid::new(began, Duration::ZERO, None).next(began), None);
        let never = Duration::from_secs(u64::MAX);
        assert_eq!(Grid::new(began, never, Some(second)).next(began), Some(began + second));
        assert_eq!(Grid::new(began, never, Some(never)).next(began), None);
    }
}
