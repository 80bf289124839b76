//! Whole numbers on the command line.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// A parser for whole numbers in `range` whose error names the range; clap adds the flag and the
/// value. The standard library's error names neither.
pub(crate) fn whole<T>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: std::str::FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("a whole number from {} to {}", range.start(), range.end()))
    }
}
