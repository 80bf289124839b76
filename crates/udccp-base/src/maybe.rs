//! Times and numbers that may be missing, in the size of one.

use core::fmt;

use crate::{Duration, Instant};

macro_rules! maybe {
    ($(#[$doc:meta])* $name:ident, $of:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub struct $name($of);

        impl $name {
            #[doc = concat!("No ", $what, ".")]
            pub const NONE: Self = Self($of::MAX);

            #[doc = concat!("This ", $what, ".")]
            #[inline]
            pub const fn some(value: $of) -> Self {
                Self(value)
            }

            #[doc = concat!("The ", $what, ", if there is one.")]
            #[inline]
            pub fn get(self) -> Option<$of> {
                (self.0 != $of::MAX).then_some(self.0)
            }

            #[doc = concat!("Takes the ", $what, " out.")]
            #[inline]
            pub fn take(&mut self) -> Option<$of> {
                core::mem::take(self).get()
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::NONE
            }
        }

        impl From<Option<$of>> for $name {
            #[inline]
            fn from(value: Option<$of>) -> Self {
                Self(value.unwrap_or($of::MAX))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.get().fmt(f)
            }
        }
    };
}

maybe!(
    /// An instant or none, in 8 bytes where an `Option` takes 16. Saves memory if there are many
    /// connections. [`Instant::MAX`], after 584 years, counts as none.
    MaybeInstant,
    Instant,
    "instant"
);

impl MaybeInstant {
    /// The earlier of both; the other one if one is none.
    #[inline]
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        // None is stored as the latest time.
        Self(self.0.min(other.0))
    }
}

maybe!(
    /// A span or none, in 8 bytes where an `Option` takes 16. [`Duration::MAX`] counts as none.
    MaybeDuration,
    Duration,
    "span"
);

impl MaybeDuration {
    /// The shorter of both; the other one if one is none.
    #[inline]
    #[must_use]
    pub fn shorter(self, other: Self) -> Self {
        // None is stored as the longest span.
        Self(self.0.min(other.0))
    }
}

/// A number or none, in 8 bytes where an `Option` takes 16. Not a number counts as none.
#[derive(Clone, Copy)]
pub struct MaybeNumber(f64);

impl MaybeNumber {
    /// No number.
    pub const NONE: Self = Self(f64::NAN);

    /// The number, if there is one.
    pub fn get(self) -> Option<f64> {
        (!self.0.is_nan()).then_some(self.0)
    }
}

impl Default for MaybeNumber {
    fn default() -> Self {
        Self::NONE
    }
}

impl From<Option<f64>> for MaybeNumber {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::NONE, Self)
    }
}

impl PartialEq for MaybeNumber {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl fmt::Debug for MaybeNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maybe_instant_converts_to_and_from_option() {
        let at = Instant::from_nanos(7);
        let mut maybe = MaybeInstant::some(at);
        assert_eq!((maybe.get(), format!("{maybe:?}")), (Some(at), format!("{:?}", Some(at))));
        assert_eq!((maybe.take(), maybe), (Some(at), MaybeInstant::NONE));
        assert_eq!((maybe.take(), MaybeInstant::default().get()), (None, None));
        assert_eq!(MaybeInstant::some(Instant::ZERO).get(), Some(Instant::ZERO));
        assert_eq!([Some(at), None].map(|it| MaybeInstant::from(it).get()), [Some(at), None]);
        let [none, early, late] =
            [None, Some(at), Some(at + Duration::from_secs(1))].map(MaybeInstant::from);
        assert_eq!(
            [none.earlier(late), late.earlier(early), none.earlier(none)],
            [late, early, none]
        );
        assert_eq!(size_of::<MaybeInstant>(), size_of::<Instant>());
    }

    #[test]
    fn absent_duration_differs_from_zero() {
        let none = MaybeDuration::from(None);
        assert_eq!((none.get(), none), (None, MaybeDuration::NONE));
        assert_eq!(MaybeDuration::some(Duration::ZERO).get(), Some(Duration::ZERO));
        let some = [2, 3].map(Duration::from_secs).map(MaybeDuration::some);
        assert_eq!([none.shorter(some[1]), some[1].shorter(some[0])], [some[1], some[0]]);
        assert_eq!(size_of::<MaybeDuration>(), size_of::<Duration>());
    }

    #[test]
    fn absent_number_differs_from_zero_and_equals_itself() {
        let none = MaybeNumber::from(None);
        assert_eq!((none.get(), none), (None, MaybeNumber::default()));
        let zero = MaybeNumber::from(Some(0.0));
        assert_eq!((zero.get(), format!("{zero:?}")), (Some(0.0), "Some(0.0)".to_owned()));
        assert_ne!(zero, none);
        assert_eq!(size_of::<MaybeNumber>(), size_of::<f64>());
    }
}
