//! An instant that may be missing, in the room of one.

use core::fmt;

use crate::Instant;

/// An instant or none, in 8 bytes where an `Option` takes 16: for state that each of many
/// connections has. [`Instant::MAX`], after 584 years, counts as none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MaybeInstant(Instant);

impl MaybeInstant {
    /// No instant.
    pub const NONE: Self = Self(Instant::MAX);

    /// This instant.
    #[inline]
    pub const fn some(at: Instant) -> Self {
        Self(at)
    }

    /// The instant, if there is one.
    #[inline]
    pub fn get(self) -> Option<Instant> {
        (self.0 != Instant::MAX).then_some(self.0)
    }

    /// Takes the instant out.
    #[inline]
    pub fn take(&mut self) -> Option<Instant> {
        core::mem::take(self).get()
    }
}

impl Default for MaybeInstant {
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Debug for MaybeInstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_comes_back_and_none_stays_none() {
        let at = Instant::from_nanos(7);
        let mut maybe = MaybeInstant::some(at);
        assert_eq!((maybe.get(), format!("{maybe:?}")), (Some(at), format!("{:?}", Some(at))));
        assert_eq!((maybe.take(), maybe), (Some(at), MaybeInstant::NONE));
        assert_eq!((maybe.take(), MaybeInstant::default().get()), (None, None));
        assert_eq!(MaybeInstant::some(Instant::ZERO).get(), Some(Instant::ZERO));
        assert_eq!(size_of::<MaybeInstant>(), size_of::<Instant>());
    }
}
