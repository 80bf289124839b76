//! Jitter, by two definitions.

use crate::summary::mean;
use crate::undefined::{Measured, Undefined};

/// Jitter of each packet from its arrival gap, in nanoseconds: `|gap_n - gap_(n-1)|` with `gap_n =
/// |arrival_n - arrival_(n-1)|`, from the third packet on.
///
/// It ignores when packets were sent, so a bursty sender has jitter even on a path with constant
/// delay. Source: Nor et al., "Performance Enhancement of DCCP TCP-like over Long Delay Link
/// Networks" (2012), equation (4).
pub fn arrival_gap_jitter_ns(arrivals_ns: &[u64]) -> Vec<u64> {
    let gaps: Vec<u64> = arrivals_ns.windows(2).map(|w| w[1].abs_diff(w[0])).collect();
    gaps.windows(2).map(|w| w[1].abs_diff(w[0])).collect()
}

/// The mean of [`arrival_gap_jitter_ns`] in milliseconds: the "average jitter" of the study's
/// Table I.
///
/// # Errors
/// [`Undefined::TooFew`] before the third packet.
pub fn mean_arrival_gap_jitter_ms(arrivals_ns: &[u64]) -> Measured {
    let values: Vec<f64> =
        arrival_gap_jitter_ns(arrivals_ns).iter().map(|ns| *ns as f64 / 1e6).collect();
    mean(&values).map_err(|_| Undefined::TooFew { needed: 3, got: arrivals_ns.len() })
}

/// Interarrival jitter, updated packet by packet: `J += (|D| - J) / 16`, where `D` is the change
/// in transit time from one received packet to the next (RFC 3550 section 6.4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rfc3550Jitter {
    last_transit_ns: Option<u64>,
    jitter_ns: f64,
    sum_ns: f64,
    samples: u64,
}

impl Rfc3550Jitter {
    /// An estimate without packets.
    pub const fn new() -> Self {
        Self { last_transit_ns: None, jitter_ns: 0.0, sum_ns: 0.0, samples: 0 }
    }

    /// Adds a received packet with this transit time.
    pub fn push(&mut self, transit_ns: u64) {
        if let Some(last) = self.last_transit_ns {
            let change = last.abs_diff(transit_ns) as f64;
            self.jitter_ns += (change - self.jitter_ns) / 16.0;
            self.sum_ns += self.jitter_ns;
            self.samples += 1;
        }
        self.last_transit_ns = Some(transit_ns);
    }

    /// The estimate after the last packet, in milliseconds.
    ///
    /// # Errors
    /// [`Undefined::TooFew`] before the second packet.
    pub fn current_ms(&self) -> Measured {
        self.value(self.jitter_ns)
    }

    /// The mean of the estimate over all packets so far, in milliseconds.
    ///
    /// # Errors
    /// [`Undefined::TooFew`] before the second packet.
    pub fn mean_ms(&self) -> Measured {
        self.value(self.sum_ns / self.samples.max(1) as f64)
    }

    fn value(&self, ns: f64) -> Measured {
        if self.samples == 0 {
            let got = usize::from(self.last_transit_ns.is_some());
            return Err(Undefined::TooFew { needed: 2, got });
        }
        Ok(ns / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_follows_the_recurrence_of_rfc_3550() {
        let mut jitter = Rfc3550Jitter::new();
        assert_eq!(jitter.current_ms(), Err(Undefined::TooFew { needed: 2, got: 0 }));
        // Transit times 10, 26, 10 ms: |D| = 16 twice, so J = 1 and then 1 + 15/16.
        for transit_ms in [10, 26, 10] {
            jitter.push(transit_ms * 1_000_000);
        }
        assert_eq!(jitter.current_ms(), Ok(1.9375));
        assert_eq!(jitter.mean_ms(), Ok((1.0 + 1.9375) / 2.0));
    }

    #[test]
    fn a_constant_delay_has_no_jitter() {
        let mut jitter = Rfc3550Jitter::new();
        (0..10).for_each(|_| jitter.push(50_000_000));
        assert_eq!(jitter.mean_ms(), Ok(0.0));
    }

    #[test]
    fn equation_4_by_hand() {
        // Arrivals at 0, 10, 15 and 35 ms: gaps 10, 5, 20; changes 5 and 15.
        let arrivals = [0, 10, 15, 35].map(|ms| ms * 1_000_000);
        assert_eq!(arrival_gap_jitter_ns(&arrivals), [5_000_000, 15_000_000]);
        assert_eq!(mean_arrival_gap_jitter_ms(&arrivals), Ok(10.0));
        let few = Err(Undefined::TooFew { needed: 3, got: 2 });
        assert_eq!(mean_arrival_gap_jitter_ms(&arrivals[..2]), few);
    }

    #[test]
    fn bursts_have_jitter_by_the_gaps_and_none_by_the_transit() {
        let arrivals: Vec<u64> = (0..20).map(|i| (i / 2 * 10 + i % 2) * 1_000_000).collect();
        assert_eq!(mean_arrival_gap_jitter_ms(&arrivals), Ok(8.0));
        let mut transit = Rfc3550Jitter::new();
        arrivals.iter().for_each(|_| transit.push(300_000_000));
        assert_eq!(transit.mean_ms(), Ok(0.0));
    }
}
