//! Transfers that arrive at random.

use udccp_base::{Duration, Rng};

use super::distribution::Distribution;

/// A transfer of the future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it starts.
    pub at: Duration,
    /// Its size.
    pub bytes: u64,
}

/// Arrivals of a Poisson process, all between `from` and `to`. The times from `from` to the first
/// arrival and between arrivals are exponential with mean `every`. Sizes (in bytes, at least 1) are
/// drawn independently. Returns at most `most` arrivals, so that a wrong setting cannot exhaust
/// memory.
pub fn poisson(
    from: Duration,
    to: Duration,
    every: Duration,
    sizes: Distribution,
    rng: &mut Rng,
    most: usize,
) -> Vec<Arrival> {
    let gap = Distribution::Exponential { mean: every.as_secs_f64() };
    let mut arrivals = Vec::new();
    let mut at = from;
    while arrivals.len() < most {
        at += Duration::from_secs_f64(gap.sample(rng)).max(Duration::from_nanos(1));
        if at >= to {
            break;
        }
        let bytes = (sizes.sample(rng) + 0.5) as u64;
        arrivals.push(Arrival { at, bytes: bytes.max(1) });
    }
    arrivals
}

#[cfg(test)]
mod tests {
    use udccp_base::Seed;

    use super::*;

    #[test]
    fn counts_gaps_and_sizes_are_those_of_the_process() {
        let seconds = Duration::from_secs;
        let sizes = Distribution::Exponential { mean: 30_000.0 };
        let mut rng = Seed(1).stream("arrivals");
        let every = Duration::from_millis(100);
        let found = poisson(seconds(10), seconds(2_010), every, sizes, &mut rng, usize::MAX);
        // 20 000 are expected, with a standard deviation of 141.
        let n = found.len() as f64;
        assert!((n - 20_000.0).abs() < 500.0, "{n}");
        let gaps: Vec<f64> = found.windows(2).map(|w| (w[1].at - w[0].at).as_secs_f64()).collect();
        // The squared coefficient of variation of an exponential time is 1.
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance =
            gaps.iter().map(|g| (g - mean) * (g - mean)).sum::<f64>() / gaps.len() as f64;
        assert!((variance / (mean * mean) - 1.0).abs() < 0.05);
        let size = found.iter().map(|a| a.bytes as f64).sum::<f64>() / n;
        assert!((size / 30_000.0 - 1.0).abs() < 0.03, "{size}");
        assert!(found.iter().all(|a| a.at > seconds(10) && a.at < seconds(2_010)));
    }
}
