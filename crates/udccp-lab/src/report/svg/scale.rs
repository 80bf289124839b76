//! From values to pixels, and round numbers for the ticks.

/// A linear scale from values to pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) min: f64,
    pub(crate) max: f64,
    from_px: f64,
    to_px: f64,
}

impl Scale {
    /// A scale over `min..=max`; a range without length is widened.
    pub(crate) fn new(min: f64, max: f64) -> Self {
        let max = if max > min { max } else { min + 1.0 };
        Self { min, max, from_px: 0.0, to_px: 1.0 }
    }

    /// The same from the first round number below to the first above.
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
        let part = (value - self.min) / (self.max - self.min);
        self.from_px + part * (self.to_px - self.from_px)
    }

    /// The distance of about `ticks` round ticks: 1, 2 or 5 times a power of ten.
    fn step(self, ticks: usize) -> f64 {
        let rough = (self.max - self.min) / ticks.max(1) as f64;
        let power = 10_f64.powf(rough.log10().floor());
        let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= rough * 0.999);
        factor.unwrap_or(10.0) * power
    }

    /// Round ticks with their labels.
    pub(crate) fn ticks(self, wanted: usize) -> Vec<(f64, String)> {
        let step = self.step(wanted);
        let digits = (-step.log10().floor()).max(0.0) as usize;
        let first = (self.min / step - 1e-9).ceil();
        let mut ticks = Vec::new();
        for i in 0..1000 {
            let value = (first + f64::from(i)) * step;
            if value > self.max + step * 1e-6 {
                break;
            }
            ticks.push((value, format!("{value:.digits$}")));
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
    }

    #[test]
    fn a_rounded_scale_contains_its_values() {
        let scale = Scale::rounded(0.67, 0.98, 5);
        assert!(scale.min <= 0.67 && scale.max >= 0.98);
        let scale = scale.over(100.0, 0.0);
        assert!((scale.px(scale.min) - 100.0).abs() < 1e-9);
        assert!(scale.px(0.98) < scale.px(0.67));
    }
}
