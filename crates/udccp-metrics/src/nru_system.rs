//! Normalised Resource Usage of a system of flows: the tuple, its case, its stability.
//!
//! Source: Bhatti et al., "Revisiting inter-flow fairness" (2008), equations (6) to (8) and (10),
//! Table II.

use core::fmt;

use crate::nru::FlowNru;
use crate::summary::{coefficient_of_variation, mean};
use crate::undefined::{Measured, Undefined, check_finite};

/// The system NRU tuple `<U_N+, U_N-, S_N>`, and the mean that the study's figures show in between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SystemNru {
    /// `U_N+`, the fair system NRU in decibels: the mean of the `U_n` that are zero or more.
    /// Equation (7).
    pub fair: Measured,
    /// `U_N-`, the unfair system NRU in decibels: the mean of the `U_n` below zero. Equation (8).
    pub unfair: Measured,
    /// `U_N`, the mean of all `U_n` in decibels (section III.B; the middle line of Figure 4).
    pub mean: Measured,
    /// `S_N`, the mean of the flows' stabilities. Equation (10).
    pub stability: Measured,
    /// The coefficient of variation of the flows' `U_n`: sample deviation divided by the absolute
    /// mean. The study's Table VI lists this as stability.
    pub variation: Measured,
}

impl SystemNru {
    /// The tuple for flows whose usage over time is known.
    ///
    /// All values are [`Undefined::NoSamples`] without flows; see [`Self::of_means`] for the rest.
    pub fn new(flows: &[FlowNru]) -> Self {
        let means: Result<Vec<f64>, Undefined> = flows.iter().map(FlowNru::mean).collect();
        let stabilities: Result<Vec<f64>, Undefined> =
            flows.iter().map(FlowNru::stability).collect();
        let tuple = match &means {
            Ok(means) => Self::of_means(means),
            Err(why) => Self::undefined(*why),
        };
        Self { stability: stabilities.and_then(|s| mean(&s)), ..tuple }
    }

    /// The tuple for flows of which only `U_n` (in decibels) is known. It has no stability. `fair`
    /// is [`Undefined::NoneFair`] if all flows are below zero, `unfair` is
    /// [`Undefined::NoneUnfair`] if none is.
    pub fn of_means(flow_nru_db: &[f64]) -> Self {
        if flow_nru_db.is_empty() {
            return Self::undefined(Undefined::NoSamples);
        }
        if let Err(why) = check_finite(flow_nru_db) {
            return Self::undefined(why);
        }
        let of = |fair: bool, none: Undefined| {
            let chosen: Vec<f64> =
                flow_nru_db.iter().copied().filter(|u| (*u >= 0.0) == fair).collect();
            if chosen.is_empty() { Err(none) } else { mean(&chosen) }
        };
        Self {
            fair: of(true, Undefined::NoneFair),
            unfair: of(false, Undefined::NoneUnfair),
            mean: mean(flow_nru_db),
            stability: Err(Undefined::TooFew { needed: 2, got: 1 }),
            variation: coefficient_of_variation(flow_nru_db).map(f64::abs),
        }
    }

    /// The case of Table II; see [`Case::of`].
    ///
    /// # Errors
    /// Why the tuple does not exist.
    pub fn case(&self, zero_within_db: f64) -> Result<Case, Undefined> {
        self.mean?;
        Case::of(self.fair.ok(), self.unfair.ok(), zero_within_db).ok_or(Undefined::NoSamples)
    }

    const fn undefined(why: Undefined) -> Self {
        let none = Err(why);
        Self { fair: none, unfair: none, mean: none, stability: none, variation: none }
    }
}

/// The case of a tuple. Table II.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Case {
    /// All flows have less than their fair share.
    A,
    /// Some flows have more than their fair share, some less.
    B,
    /// Some flows have exactly their fair share, some less.
    C,
    /// All flows have their fair share or more.
    D,
    /// All flows have exactly their fair share.
    E,
}

impl Case {
    /// The case of `U_N+` and `U_N-` in decibels, `None` standing for the dash of Table II (no flow
    /// on that side); `None` when both are absent.
    ///
    /// A measured value is never exactly zero: within `zero_within_db` it counts as zero. The study
    /// rounds to one decimal, which means 0.05.
    pub fn of(fair: Option<f64>, unfair: Option<f64>, zero_within_db: f64) -> Option<Self> {
        match (fair, unfair) {
            (None, None) => None,
            (None, Some(_)) => Some(Self::A),
            (Some(fair), Some(_)) if fair <= zero_within_db => Some(Self::C),
            (Some(_), Some(_)) => Some(Self::B),
            (Some(fair), None) if fair <= zero_within_db => Some(Self::E),
            (Some(_), None) => Some(Self::D),
        }
    }

    /// The study's comment on the case, paraphrased.
    pub const fn says(self) -> &'static str {
        match self {
            Self::A => "all flows get less than their fair share",
            Self::B => "some flows get more than their fair share, some less",
            Self::C => "some flows get their fair share, some less",
            Self::D => "all flows get their fair share or more",
            Self::E => "all flows get their fair share",
        }
    }

    /// Whether the system as a whole is fair.
    pub const fn is_fair(self) -> bool {
        matches!(self, Self::D | Self::E)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_of_table_2() {
        let case = |fair, unfair| Case::of(fair, unfair, 0.05);
        assert_eq!(case(None, Some(-1.0)), Some(Case::A));
        assert_eq!(case(Some(1.0), Some(-1.0)), Some(Case::B));
        assert_eq!(case(Some(0.0), Some(-1.0)), Some(Case::C));
        assert_eq!(case(Some(1.0), None), Some(Case::D));
        assert_eq!(case(Some(0.0), None), Some(Case::E));
        assert_eq!(case(None, None), None);
        assert!(Case::D.is_fair() && !Case::C.is_fair());
    }

    #[test]
    fn cases_that_the_study_names() {
        // Table VI, NewReno at 125 ms, and Table IX at 125 ms ("to 1dp").
        assert_eq!(Case::of(None, Some(-0.27), 0.05), Some(Case::A));
        assert_eq!(Case::of(Some(0.02), Some(-15.57), 0.05), Some(Case::C));
        // Section VI.C calls CUBIC at 25 ms case C "to 1dp", although 0.06 rounds to 0.1.
        assert_eq!(Case::of(Some(0.06), Some(-0.40), 0.05), Some(Case::B));
    }

    #[test]
    fn a_tuple_by_hand() {
        let flow = |values: &[f64]| FlowNru { values: values.to_vec(), raised: 0 };
        // Means 2 and -3 dB; both deviations are sqrt(2).
        let tuple = SystemNru::new(&[flow(&[1.0, 3.0]), flow(&[-2.0, -4.0])]);
        assert_eq!((tuple.fair, tuple.unfair, tuple.mean), (Ok(2.0), Ok(-3.0), Ok(-0.5)));
        let stability = (2.0_f64.sqrt() / 2.0 + 2.0_f64.sqrt() / 3.0) / 2.0;
        assert!((tuple.stability.unwrap() - stability).abs() < 1e-12);
        assert_eq!(tuple.case(0.05), Ok(Case::B));
    }

    #[test]
    fn stabilities_of_table_6_are_variations_of_its_own_tuples() {
        // Fair and unfair NRU and stability of CUBIC at 75, 100, 150 and 175 ms, and of NewReno at
        // 25 and 50 ms. All are rounded, which affects the variation.
        for (fair, unfair, stability) in [
            (2.0, -4.27, 3.8),
            (2.0, -4.24, 3.83),
            (1.8, -3.23, 5.0),
            (1.75, -3.1, 5.06),
            (0.84, -1.29, 6.66),
            (0.91, -1.43, 6.35),
        ] {
            let variation = SystemNru::of_means(&[fair, unfair]).variation.unwrap();
            assert!((variation - stability).abs() < 0.11, "{variation} for {stability}");
        }
        assert!(SystemNru::of_means(&[1.0, -1.0]).variation.is_err(), "the mean is zero");
        assert!(SystemNru::of_means(&[1.0]).variation.is_err(), "one flow does not vary");
    }

    #[test]
    fn zero_counts_as_fair_and_absent_sides_say_so() {
        let tuple = SystemNru::of_means(&[0.0, 0.0]);
        assert_eq!((tuple.fair, tuple.unfair), (Ok(0.0), Err(Undefined::NoneUnfair)));
        assert_eq!(tuple.case(0.05), Ok(Case::E));
        assert_eq!(SystemNru::of_means(&[-1.0]).fair, Err(Undefined::NoneFair));
        assert_eq!(SystemNru::of_means(&[]).case(0.05), Err(Undefined::NoSamples));
        assert_eq!(SystemNru::of_means(&[f64::NAN]).mean, Err(Undefined::BadInput));
    }

    #[test]
    fn a_flow_whose_mean_is_zero_takes_the_systems_stability_away() {
        let even = FlowNru { values: vec![-1.0, 1.0], raised: 0 };
        assert_eq!(SystemNru::new(&[even]).stability, Err(Undefined::ZeroReference));
    }
}
