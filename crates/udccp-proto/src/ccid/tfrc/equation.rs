//! Computes the TCP throughput equation and its inverse (RFC 5348 sections 3.1 and 8.1).
//!
//! With t_RTO = 4 R and b = 1, the rate is X = s / (R f(p)), where
//! f(p) = sqrt(2p/3) + 12 sqrt(3p/8) p (1 + 32 p^2).

use udccp_base::Duration;

use super::Rate;

/// sqrt(2/3) and 12 sqrt(3/8): f(p) = A u + B u^3 (1 + 32 u^4) with u = sqrt(p).
const A: f64 = 0.816_496_580_927_726;
const B: f64 = 7.348_469_228_349_534;

/// The smallest loss event rate that is distinguished from zero.
const LEAST_RATE: f64 = 1e-18;

//= 5348-3.1-1
//= 5348-3.1-2
//= 5348-3.1-5
/// f(p) for a loss event rate `p` in 0..=1: the number of round-trip times per packet.
pub fn response(p: f64) -> f64 {
    polynomial(libm::sqrt(p.clamp(0.0, 1.0)))
}

/// The loss event rate p in 0..=1 with f(p) = `f`, or 1 if `f` is greater than f(1).
pub fn inverse_response(f: f64) -> f64 {
    if f >= polynomial(1.0) {
        return 1.0;
    }
    if f.is_nan() || f <= 0.0 {
        return 0.0;
    }
    // The polynomial is convex, so Newton's method from above never passes the root.
    let mut u = (f / A).min(1.0);
    loop {
        let next = u - (polynomial(u) - f) / slope(u);
        if next >= u || u - next < 1e-14 * u {
            return u * u;
        }
        u = next;
    }
}

/// The rate of TCP (X_Bps) at loss event rate `p`, 0..=1. The largest rate if `p` is zero.
pub fn throughput(segment_bytes: u32, rtt: Duration, p: f64) -> Rate {
    let round = rtt.as_nanos() as f64 * 1e-9 * response(p.max(LEAST_RATE));
    if round <= 0.0 {
        return Rate::MAX;
    }
    Rate::from_bytes_per_sec_f64(f64::from(segment_bytes) / round)
}

/// The loss event rate at which TCP has the rate `x`.
pub fn loss_event_rate(segment_bytes: u32, rtt: Duration, x: Rate) -> f64 {
    let round = rtt.as_nanos() as f64 * 1e-9 * x.bytes_per_sec();
    if round <= 0.0 {
        return 1.0;
    }
    inverse_response(f64::from(segment_bytes) / round)
}

fn polynomial(u: f64) -> f64 {
    let p = u * u;
    u * (A + B * p * (1.0 + 32.0 * p * p))
}

fn slope(u: f64) -> f64 {
    let p = u * u;
    A + B * p * (3.0 + 224.0 * p * p)
}
