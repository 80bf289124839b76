//! The integer arithmetic of the kernel: bandwidths in 2^-24 packets per microsecond, gains in
//! 1/256.

use udccp_base::{Duration, Instant};

/// Fraction bits of a bandwidth (`BW_SCALE`).
const SCALE: u32 = 24;
/// Fraction bits of a gain (`BBR_SCALE`).
const GAIN_SCALE: u32 = 8;
/// Larger samples in bytes would overflow.
const MOST_BYTES: u64 = 1 << 39;

/// A gain in units of 1/256.
pub(super) fn parts(gain: f64) -> u64 {
    (gain * f64::from(1 << GAIN_SCALE) + 0.5) as u64
}

/// `value` times a gain in units of 1/256.
pub(super) fn scaled(value: u64, gain: u64) -> u64 {
    value.saturating_mul(gain) >> GAIN_SCALE
}

/// A time in whole microseconds.
pub(super) fn micros(time: Duration) -> u64 {
    time.as_nanos() / 1_000
}

/// The bandwidth at which packets of `packet_bytes` delivered `bytes` in `interval` (not zero). It
/// is zero only if nothing was delivered: a kernel counts whole packets, so a short message never
/// rounds down to zero there.
pub(super) fn bandwidth(bytes: u64, packet_bytes: u64, interval: Duration) -> u64 {
    let parts =
        (bytes.min(MOST_BYTES) << SCALE) / packet_bytes.saturating_mul(micros(interval)).max(1);
    parts.max(u64::from(bytes > 0))
}

/// A bandwidth of packets of `from` bytes, in packets of `to` bytes. Zero only if it is nothing.
pub(super) fn resized(bandwidth: u64, from: u32, to: u32) -> u64 {
    let bytes = u128::from(bandwidth) * u128::from(from);
    let parts = u64::try_from(bytes / u128::from(to.max(1))).unwrap_or(u64::MAX);
    parts.max(u64::from(bandwidth > 0))
}

/// The bandwidth of `packets` in `time`.
pub(super) fn bandwidth_of(packets: u32, time: Duration) -> u64 {
    (u64::from(packets) << SCALE) / micros(time).max(1)
}

/// `gain` times the packets that fill a path of `bandwidth` and `min_rtt`, rounded up (`bbr_bdp`).
pub(super) fn packets_of(bandwidth: u64, min_rtt: Duration, gain: u64) -> u32 {
    let path = scaled(bandwidth.saturating_mul(micros(min_rtt)), gain);
    u32::try_from(path.div_ceil(1 << SCALE)).unwrap_or(u32::MAX)
}

/// Packets that `bandwidth` delivers in `time`, rounded down.
pub(super) fn carried(bandwidth: u64, time: Duration) -> u32 {
    u32::try_from(bandwidth.saturating_mul(micros(time)) >> SCALE).unwrap_or(u32::MAX)
}

/// `gain` times `bandwidth` in bytes per second, reduced by the fraction `margin`
/// (`bbr_rate_bytes_per_sec`).
pub(super) fn pacing_rate(bandwidth: u64, packet_bytes: u64, gain: u64, margin: f64) -> u64 {
    let per_second = ((1.0 - margin) * 1e6 + 0.5) as u64;
    let rate = scaled(bandwidth.saturating_mul(packet_bytes), gain);
    rate.saturating_mul(per_second) >> SCALE
}

/// Whether more than `wait` has passed from `since` to `now`, on a clock with ticks (continuous if
/// `tick` is zero).
pub(super) fn is_over(since: Instant, now: Instant, wait: Duration, tick: Duration) -> bool {
    if tick.is_zero() {
        return now - since > wait;
    }
    let ticks = |at: Instant| (at - Instant::ZERO).as_nanos() / tick.as_nanos();
    ticks(now) > ticks(since) + wait.as_nanos().div_ceil(tick.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_path_of_40_packets_keeps_its_fractions_down() {
        // 40 packets in 24.4 ms: 27,503.2 units per microsecond.
        let found = bandwidth(40 * 1_448, 1_448, Duration::from_nanos(24_400_900));
        assert_eq!(found, (40 << 24) / 24_400);
        let rtt = Duration::from_nanos(24_400_999);
        // The lost fraction makes it less than 40 packets, and rounding up makes it 40 again.
        assert_eq!(packets_of(found, rtt, parts(1.0)), 40);
        assert_eq!(carried(found, rtt), 39);
        assert_eq!(packets_of(found, rtt, parts(1.25)), 50);
        // 99 % of 27,503 units times 1,448 bytes.
        assert_eq!(pacing_rate(found, 1_448, parts(1.0), 0.01), 2_349_978);
    }

    #[test]
    fn a_short_message_on_a_long_path_is_some_bandwidth() {
        let found = bandwidth(40, 8_960, MS * 400);
        assert!(pacing_rate(found, 8_960, parts(1.0), 0.01) > 400);
        assert_eq!(bandwidth(0, 8_960, MS), 0);
    }

    #[test]
    fn a_bandwidth_in_packets_of_another_size_is_the_same_in_bytes() {
        assert_eq!(resized(27_503, 1_400, 20), 27_503 * 70);
        assert_eq!(resized(27_503 * 70, 20, 1_400), 27_503);
        assert_eq!((resized(3, 20, 1_400), resized(0, 20, 1_400)), (1, 0));
        assert_eq!(resized(u64::MAX, 1_400, 20), u64::MAX);
    }

    #[test]
    fn a_span_is_over_at_the_tick_that_its_end_falls_on() {
        let at = |us: u64| Instant::ZERO + Duration::from_micros(us);
        let tick = MS * 4;
        assert!(
            is_over(at(3_900), at(204_000), MS * 200, tick)
                == is_over(at(0), at(204_000), MS * 200, tick)
        );
        assert!(!is_over(at(3_900), at(203_999), MS * 200, tick));
        assert!(!is_over(at(3_900), at(203_999), MS * 200, tick));
        assert!(is_over(at(3_900), at(204_000), MS * 200, tick));
        assert!(is_over(at(3_900), at(203_901), MS * 200, Duration::ZERO));
    }
}
