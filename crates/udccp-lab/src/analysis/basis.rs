//! Counts the runs behind a number, and decides whether they suffice to judge it.

use super::results::Results;
use crate::plan::PlanOptions;
use crate::schema::{Case, Experiment};

/// The runs behind a number, compared with those that the file asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Basis {
    /// Runs that exist.
    pub runs: usize,
    /// Runs that the file asks for.
    pub asked: usize,
    /// Whether one of them is shorter than the file asks for (`--quick`).
    pub shortened: bool,
}

impl Basis {
    /// Whether the number may be judged: all runs exist, and none is shortened.
    pub fn is_enough(self) -> bool {
        self.runs >= self.asked && !self.shortened
    }

    /// Of two, the one that is further from being enough.
    #[must_use]
    pub fn weaker(self, other: Self) -> Self {
        let part = |b: Self| b.runs * other.asked.max(1) * self.asked.max(1) / b.asked.max(1);
        let rank = |b: Self| (b.is_enough(), part(b), !b.shortened);
        if rank(other) < rank(self) { other } else { self }
    }

    /// `2 of 5 runs, shortened`.
    pub fn text(self) -> String {
        let Self { runs, asked, shortened } = self;
        let plural = if asked == 1 { "" } else { "s" };
        let shortened = if shortened { ", shortened" } else { "" };
        format!("{runs} of {asked} run{plural}{shortened}")
    }

    /// The runs of a part, or of a variant of it, at a grid point.
    pub(crate) fn at(
        experiment: &Experiment,
        results: &Results,
        part: &Case,
        variant: Option<&str>,
        point: &[(String, String)],
    ) -> Self {
        let found = experiment.variants.iter().find(|v| Some(v.id.as_str()) == variant);
        let asked = PlanOptions::default().runs_of(part, found) as usize;
        let mut basis = Self { runs: 0, asked, shortened: false };
        for task in results.tasks_at(part.id.as_deref(), variant, point) {
            basis.runs += 1;
            basis.shortened |= task.shortened;
        }
        basis
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn basis(runs: usize, asked: usize, shortened: bool) -> Basis {
        Basis { runs, asked, shortened }
    }

    #[test]
    fn only_all_runs_at_full_length_are_enough() {
        assert!(basis(5, 5, false).is_enough() && basis(6, 5, false).is_enough());
        assert!(!basis(4, 5, false).is_enough() && !basis(5, 5, true).is_enough());
        assert_eq!(basis(2, 5, true).text(), "2 of 5 runs, shortened");
        assert_eq!(basis(0, 1, false).text(), "0 of 1 run");
    }

    #[test]
    fn weaker_basis_has_fewer_or_shorter_runs() {
        let weak = basis(1, 5, false);
        for other in [basis(5, 5, false), basis(1, 1, false), basis(2, 5, false)] {
            assert_eq!(weak.weaker(other), weak);
            assert_eq!(other.weaker(weak), weak);
        }
        assert_eq!(basis(1, 1, false).weaker(basis(1, 1, true)), basis(1, 1, true));
    }
}
