//! Random sizes and times.

use core::f64::consts::TAU;

use udccp_base::Rng;

/// A distribution of positive numbers, in the unit of its mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Always this value.
    Constant(f64),
    /// Exponential.
    Exponential {
        /// Its mean.
        mean: f64,
    },
    /// Pareto (of the first kind): `P(X > x) = (m / x)^shape` above its minimum `m`.
    Pareto {
        /// Its mean, `m shape / (shape - 1)`.
        mean: f64,
        /// Above 1, so that a mean exists; up to 2 the variance is infinite.
        shape: f64,
    },
    /// Log-normal.
    LogNormal {
        /// Its mean, `exp(mu + sigma^2 / 2)`.
        mean: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
}

impl Distribution {
    /// The mean.
    pub const fn mean(self) -> f64 {
        match self {
            Self::Constant(mean)
            | Self::Exponential { mean }
            | Self::Pareto { mean, .. }
            | Self::LogNormal { mean, .. } => mean,
        }
    }

    /// Draws a number. A constant draws nothing from `rng`.
    pub fn sample(self, rng: &mut Rng) -> f64 {
        match self {
            Self::Constant(value) => value,
            Self::Exponential { mean } => mean * rng.exp_f64(),
            Self::Pareto { mean, shape } => {
                let least = mean * (shape - 1.0) / shape;
                least * libm::exp(rng.exp_f64() / shape)
            }
            Self::LogNormal { mean, sigma } => {
                let mu = libm::log(mean) - sigma * sigma / 2.0;
                libm::exp(mu + sigma * normal(rng))
            }
        }
    }
}

/// A standard normal deviate (G. Box and M. Muller, "A Note on the Generation of Random Normal
/// Deviates", 1958).
fn normal(rng: &mut Rng) -> f64 {
    let radius = libm::sqrt(2.0 * rng.exp_f64());
    radius * libm::cos(TAU * rng.unit_f64())
}

#[cfg(test)]
mod tests {
    use udccp_base::Seed;

    use super::*;

    const N: usize = 200_000;

    fn draw(distribution: Distribution) -> Vec<f64> {
        let mut rng = Seed(1).stream("test");
        let mut drawn: Vec<f64> = (0..N).map(|_| distribution.sample(&mut rng)).collect();
        drawn.sort_by(f64::total_cmp);
        drawn
    }

    fn near(found: f64, expected: f64, tolerance: f64) {
        assert!((found / expected - 1.0).abs() < tolerance, "{found} for {expected}");
    }

    #[test]
    fn means_and_medians_are_those_of_the_closed_forms() {
        let ln2 = core::f64::consts::LN_2;
        let cases = [
            (Distribution::Constant(3.0), 3.0),
            (Distribution::Exponential { mean: 3.0 }, 3.0 * ln2),
            // m = 3 * 1.5 / 2.5 = 1.8; the median is m 2^(1/shape).
            (Distribution::Pareto { mean: 3.0, shape: 2.5 }, 1.8 * libm::pow(2.0, 0.4)),
            // exp(mu) = mean / exp(sigma^2 / 2).
            (Distribution::LogNormal { mean: 3.0, sigma: 1.0 }, 3.0 / libm::exp(0.5)),
        ];
        for (distribution, median) in cases {
            let drawn = draw(distribution);
            near(drawn.iter().sum::<f64>() / N as f64, distribution.mean(), 0.02);
            near(drawn[N / 2], median, 0.01);
        }
    }

    #[test]
    fn tails_are_those_of_the_closed_forms() {
        // One in a thousand is above m 1000^(1/shape), and above mean ln 1000.
        let pareto = draw(Distribution::Pareto { mean: 3.0, shape: 2.5 });
        near(pareto[N - N / 1000], 1.8 * libm::pow(1000.0, 0.4), 0.05);
        near(pareto[0], 1.8, 0.001);
        let exponential = draw(Distribution::Exponential { mean: 3.0 });
        near(exponential[N - N / 1000], 3.0 * libm::log(1000.0), 0.03);
    }
}
