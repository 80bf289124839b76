//! Maps values to pixels, and chooses round numbers for ticks.

/// A scale from values to pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// Whether the scale is logarithmic.
    pub(crate) is_log: bool,
    pub(crate) from_px: f64,
    pub(crate) to_px: f64,
}

impl Scale {
    /// A scale over `min..=max`; an empty range is widened.
    pub(crate) fn new(min: f64, max: f64) -> Self {
        let max = if max > min { max } else { min + 1.0 };
        Self { min, max, is_log: false, from_px: 0.0, to_px: 1.0 }
    }

    /// A logarithmic scale over positive values.
    pub(crate) fn log(min: f64, max: f64) -> Self {
        Self { is_log: true, ..Self::new(min, max) }
    }

    /// The same, extended to round numbers at both ends.
    pub(crate) fn rounded(min: f64, max: f64, ticks: usize) -> Self {
        let plain = Self::new(min, max);
        let step = plain.step(ticks);
        Self::new((min / step + 1e-9).floor() * step, (max / step - 1e-9).ceil() * step)
    }

    /// The same with its ends at these pixels.
    pub(crate) fn over(self, from_px: f64, to_px: f64) -> Self {
        Self { from_px, to_px, ..self }
    }

    /// The pixel of a value.
    pub(crate) fn px(self, value: f64) -> f64 {
        let part = if self.is_log {
            libm::log(value.max(f64::MIN_POSITIVE) / self.min) / libm::log(self.max / self.min)
        } else {
            (value - self.min) / (self.max - self.min)
        };
        self.from_px + part * (self.to_px - self.from_px)
    }

    /// The interval of about `ticks` round ticks: 1, 2 or 5 times a power of ten.
    fn step(self, ticks: usize) -> f64 {
        let rough = (self.max - self.min) / ticks.max(1) as f64;
        let power = libm::exp10(libm::log10(rough).floor());
        let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= rough * 0.999);
        factor.unwrap_or(10.0) * power
    }

    /// Round ticks with their labels.
    pub(crate) fn ticks(self, wanted: usize) -> Vec<(f64, String)> {
        if self.is_log {
            return self.powers();
        }
        let step = self.step(wanted);
        let digits = (-libm::log10(step).floor()).max(0.0) as usize;
        let first = (self.min / step - 1e-9).ceil();
        let mut ticks = Vec::new();
        for i in 0..1000 {
            let value = (first + f64::from(i)) * step;
            if value > self.max + step * 1e-6 {
                break;
            }
            let label = format!("{value:.digits$}").replace('-', "\u{2212}");
            let is_zero = label.chars().all(|c| "\u{2212}0.".contains(c));
            let label = if is_zero { label.trim_start_matches('\u{2212}') } else { &label };
            ticks.push((value, label.to_owned()));
        }
        ticks
    }

    /// Powers of ten within a logarithmic scale.
    fn powers(self) -> Vec<(f64, String)> {
        let mut ticks = Vec::new();
        for exponent in -12..=12 {
            let value = libm::exp10(f64::from(exponent));
            if value >= self.min * 0.999 && value <= self.max * 1.001 {
                ticks.push((value, value.to_string()));
            }
        }
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let labels = |s: Scale, n| s.ticks(n).into_iter().map(|t| t.1).collect::<Vec<_>>();
        assert_eq!(labels(Scale::new(0.0, 100.0), 5), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(Scale::new(0.6, 1.0), 4), ["0.6", "0.7", "0.8", "0.9", "1.0"]);
        assert_eq!(labels(Scale::new(-2.0, 2.0), 4), ["\u{2212}2", "\u{2212}1", "0", "1", "2"]);
        assert_eq!(labels(Scale::log(0.01, 100.0), 4), ["0.01", "0.1", "1", "10", "100"]);
    }

    #[test]
    fn a_rounded_scale_contains_its_values() {
        let scale = Scale::rounded(0.67, 0.98, 5);
        assert!(scale.min <= 0.67 && scale.max >= 0.98);
        let scale = scale.over(100.0, 0.0);
        assert!((scale.px(scale.min) - 100.0).abs() < 1e-9);
        assert!(scale.px(0.98) < scale.px(0.67));
    }

    #[test]
    fn a_factor_is_a_distance_on_a_logarithmic_scale() {
        let scale = Scale::log(0.01, 100.0).over(0.0, 400.0);
        assert!((scale.px(1.0) - 200.0).abs() < 1e-9);
        assert!((scale.px(10.0) - 300.0).abs() < 1e-9);
    }
}
