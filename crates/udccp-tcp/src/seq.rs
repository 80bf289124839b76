//! Sequence numbers: 64-bit offsets internally, 32-bit numbers on the wire.
//!
//! Offset 0 is the SYN, and offset 1 the first byte of data, so offsets never wrap and compare as
//! integers. Only these two functions handle the wire format modulo 2^32.

/// The 32-bit wire number of `offset` with initial sequence number `isn`.
#[inline]
pub(crate) const fn to_wire(isn: u32, offset: u64) -> u32 {
    isn.wrapping_add(offset as u32)
}

/// The offset nearest to `reference` with the wire number `wire`; `None` below offset 0.
#[inline]
pub(crate) fn from_wire(isn: u32, wire: u32, reference: u64) -> Option<u64> {
    let distance = wire.wrapping_sub(to_wire(isn, reference)) as i32;
    reference.checked_add_signed(i64::from(distance))
}

/// Whether 32-bit timestamp `a` is earlier than `b` (RFC 7323 section 5.2).
#[inline]
pub(crate) const fn timestamp_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_survive_the_wrap_of_the_wire() {
        let isn = u32::MAX - 10;
        for offset in [0, 1, 10, 11, 12, 1 << 31, (1 << 32) - 1, 1 << 32, 7 << 33] {
            let wire = to_wire(isn, offset);
            for reference in [offset, offset + 1_000_000, offset.saturating_sub(1_000_000)] {
                assert_eq!(from_wire(isn, wire, reference), Some(offset), "at {offset}");
            }
        }
    }

    #[test]
    fn numbers_before_the_syn_have_no_offset() {
        assert_eq!(from_wire(5, 4, 0), None);
        assert_eq!(from_wire(5, 5, 0), Some(0));
    }

    #[test]
    fn timestamps_compare_around_the_wrap() {
        assert!(timestamp_before(u32::MAX, 0));
        assert!(!timestamp_before(0, u32::MAX));
        assert!(!timestamp_before(7, 7));
    }
}
