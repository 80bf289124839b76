//! Whole numbers on the command line.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// A reader of the whole numbers in `range`, whose error tells the range; clap adds the flag and
/// what was written. The words of the standard library tell neither.
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
