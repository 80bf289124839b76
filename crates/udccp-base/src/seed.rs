//! Randomness as an argument: each use draws from its own named stream of one seed, so that a new
//! use does not change the numbers of others.

use rand_core::Rng as _;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The seed of all random numbers of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seed(pub u64);

/// A named random stream. Same seed and name: same numbers, on every machine.
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Seed {
    /// The stream called `name`, independent of all other names.
    pub fn stream(self, name: &str) -> Rng {
        Rng(Xoshiro256PlusPlus::seed_from_u64(self.derive(name).0))
    }

    /// Derives a seed for the part called `name`, which then names its own streams.
    pub fn derive(self, name: &str) -> Self {
        // FNV-1a over the name, then a SplitMix64 finaliser. This must never change, because
        // results depend on it.
        let mut h = 0xcbf2_9ce4_8422_2325_u64 ^ self.0.rotate_left(32);
        for b in name.bytes() {
            h = (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        h = h.wrapping_add(self.0).wrapping_add(0x9e37_79b9_7f4a_7c15);
        h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self(h ^ (h >> 31))
    }
}

impl Rng {
    /// A uniform 64-bit number.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number in `0..n` (multiply-shift; bias below 2^-32 for `n` under 2^32).
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// A uniform number in `[0, 1)` with 53 random bits.
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with probability `p` (clamped to 0..=1).
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit_f64() < p
    }

    /// An exponential deviate with mean 1 (portable logarithm).
    pub fn exp_f64(&mut self) -> f64 {
        -libm::log(1.0 - self.unit_f64())
    }

    /// 32 random bytes, for keys.
    pub fn bytes32(&mut self) -> [u8; 32] {
        let mut out = [0; 32];
        self.0.fill_bytes(&mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ_by_name() {
        let draw = |seed: u64, name: &str| Seed(seed).stream(name).next_u64();
        assert_eq!(draw(7, "loss"), draw(7, "loss"));
        assert_ne!(draw(7, "loss"), draw(7, "phase"));
        assert_ne!(draw(7, "loss"), draw(8, "loss"));
    }

    #[test]
    fn the_first_numbers_of_a_stream_never_change() {
        let mut rng = Seed(2008).stream("phase");
        let got = [rng.next_u64(), rng.next_u64(), rng.below(1000)];
        assert_eq!(got, PINNED, "a change here moves every committed result");
    }

    const PINNED: [u64; 3] = [1_377_608_724_960_697_405, 1_186_751_608_422_529_368, 78];

    #[test]
    fn unit_numbers_are_uniform_enough() {
        let mut rng = Seed(1).stream("uniform");
        let mean = (0..100_000).map(|_| rng.unit_f64()).sum::<f64>() / 1e5;
        assert!((mean - 0.5).abs() < 0.01, "mean {mean}");
    }
}
