//! 48-bit sequence numbers and their circular arithmetic (RFC 4340 sections 3.1, 7 and 7.6).

use core::fmt;
use core::num::NonZeroU64;

/// A 48-bit sequence or acknowledgement number.
///
/// Numbers are circular, so there is no `Ord`. Use [`Seqno::is_before`] and similar methods, whose
/// results are right if the two numbers are less than 2^47 apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seqno(NonZeroU64);

const BITS: u32 = 48;
const MASK: u64 = (1 << BITS) - 1;
/// Always set, in a bit above the number, so that an `Option<Seqno>` is as small as a `Seqno`.
const PRESENT: NonZeroU64 = NonZeroU64::new(1 << 63).unwrap();
const LOW_MASK: u64 = (1 << 24) - 1;
const LOW_HALF: u64 = 1 << 23;

impl Seqno {
    /// Zero, the number that follows [`Seqno::MAX`].
    pub const ZERO: Self = Self::new(0);
    /// The largest number, 2^48 - 1.
    pub const MAX: Self = Self::new(MASK);

    /// The number `value` modulo 2^48.
    #[inline]
    pub const fn new(value: u64) -> Self {
        match NonZeroU64::new(value & MASK | PRESENT.get()) {
            Some(number) => Self(number),
            None => Self(PRESENT),
        }
    }

    /// The number as an integer in `0..2^48`.
    #[inline]
    pub const fn value(self) -> u64 {
        self.0.get() & MASK
    }

    /// The number `n` after this one, modulo 2^48.
    #[inline]
    #[must_use]
    pub const fn add(self, n: u64) -> Self {
        Self::new(self.0.get().wrapping_add(n))
    }

    /// The number `n` before this one, modulo 2^48.
    #[inline]
    #[must_use]
    pub const fn sub(self, n: u64) -> Self {
        Self::new(self.0.get().wrapping_sub(n))
    }

    /// The next number.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Self {
        self.add(1)
    }

    /// The previous number.
    #[inline]
    #[must_use]
    pub const fn prev(self) -> Self {
        self.sub(1)
    }

    /// Signed circular distance `self - other`, in `-2^47..2^47`: positive if `self` is later.
    #[inline]
    pub const fn distance_from(self, other: Self) -> i64 {
        // Moved to the top, so that the arithmetic shift extends the sign of the 48-bit difference.
        ((self.0.get().wrapping_sub(other.0.get()) << (64 - BITS)) as i64) >> (64 - BITS)
    }

    /// Whether `self` is circularly less than `other`.
    #[inline]
    pub const fn is_before(self, other: Self) -> bool {
        self.distance_from(other) < 0
    }

    /// Whether `self` is circularly greater than `other`.
    #[inline]
    pub const fn is_after(self, other: Self) -> bool {
        self.distance_from(other) > 0
    }

    /// Whether `self` is circularly less than or equal to `other`.
    #[inline]
    pub const fn at_most(self, other: Self) -> bool {
        self.distance_from(other) <= 0
    }

    /// Whether `self` is circularly greater than or equal to `other`.
    #[inline]
    pub const fn at_least(self, other: Self) -> bool {
        self.distance_from(other) >= 0
    }

    /// Whether `self` is in the window from `low` to `high`, both included. The window may have any
    /// width and is never empty (`low` after `high` is a window that wraps).
    #[inline]
    pub const fn in_window(self, low: Self, high: Self) -> bool {
        self.0.get().wrapping_sub(low.0.get()) & MASK
            <= high.0.get().wrapping_sub(low.0.get()) & MASK
    }

    /// The circularly greater of two numbers.
    #[inline]
    #[must_use]
    pub const fn max(self, other: Self) -> Self {
        if self.is_before(other) { other } else { self }
    }

    /// The circularly smaller of two numbers.
    #[inline]
    #[must_use]
    pub const fn min(self, other: Self) -> Self {
        if self.is_before(other) { self } else { other }
    }

    /// The low 24 bits, as in a packet with X=0 (RFC 4340 section 7.6).
    #[inline]
    pub const fn low24(self) -> u32 {
        (self.0.get() & LOW_MASK) as u32
    }

    /// The 48-bit number nearest to `reference` whose low 24 bits are `low` (RFC 4340 section 7.6,
    /// Extend_Sequence_Number). The reference is GSR for a Sequence Number and GSS for an
    /// Acknowledgement Number. Bits of `low` above the 24th are ignored.
    #[inline]
    pub const fn extend24(low: u32, reference: Self) -> Self {
        let s = low as u64 & LOW_MASK;
        let ref_low = reference.value() & LOW_MASK;
        let same_epoch = (reference.value() & !LOW_MASK) | s;
        if s < ref_low && s.wrapping_sub(ref_low) & LOW_MASK <= LOW_HALF {
            return Self::new(same_epoch + (1 << 24));
        }
        if s > ref_low && ref_low.wrapping_sub(s) & LOW_MASK <= LOW_HALF {
            return Self::new(same_epoch.wrapping_sub(1 << 24));
        }
        Self::new(same_epoch)
    }
}

impl Default for Seqno {
    fn default() -> Self {
        Self::ZERO
    }
}

impl fmt::Debug for Seqno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Seqno").field(&self.value()).finish()
    }
}

impl fmt::Display for Seqno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.value(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_circular() {
        let a = Seqno::MAX.sub(2);
        let b = a.add(5);
        assert_eq!(b.value(), 2);
        assert!(a.is_before(b) && b.is_after(a) && a.at_most(a) && a.at_least(a));
        assert_eq!(b.distance_from(a), 5);
        assert_eq!(a.distance_from(b), -5);
        assert_eq!(a.max(b), b);
        assert_eq!(a.min(b), a);
        assert_eq!(Seqno::new(1 << 47).distance_from(Seqno::ZERO), -(1 << 47));
    }

    #[test]
    fn windows_wrap() {
        let (low, high) = (Seqno::MAX.sub(1), Seqno::new(1));
        let inside = [low, Seqno::MAX, Seqno::ZERO, high];
        assert!(inside.iter().all(|s| s.in_window(low, high)));
        assert!(!high.next().in_window(low, high));
        assert!(!low.prev().in_window(low, high));
    }

    #[test]
    fn short_numbers_extend_to_the_nearest() {
        let reference = Seqno::new(0x0000_0002_00ff_fff0);
        for step in [0_u64, 1, 15, 16, 17, 1000, LOW_HALF - 1] {
            for truth in [reference.add(step), reference.sub(step)] {
                assert_eq!(Seqno::extend24(truth.low24(), reference), truth, "step {step}");
            }
        }
        let first = Seqno::new(3);
        assert_eq!(Seqno::extend24(0xff_ffff, first), first.sub(4));
    }
}
