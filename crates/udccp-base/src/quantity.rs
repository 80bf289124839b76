//! A number with its unit, as text: parsing and printing shared by time, rate and size.

use core::fmt;

/// The error for a text that is not a quantity. The message names the text, the error and a right
/// example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityError(String);

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for QuantityError {}

/// Parses `"25 ms"` against a table of units (name, factor); rounds to the base unit.
pub(crate) fn parse(
    text: &str,
    units: &[(&str, u64)],
    example: &str,
) -> Result<u64, QuantityError> {
    let fail = |why: &str| {
        let names: Vec<&str> = units.iter().map(|u| u.0).collect();
        let list = names.join(", ");
        QuantityError(format!("\"{text}\" {why}; write for example \"{example}\" (units: {list})"))
    };
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let unit = unit.trim();
    if number.is_empty() {
        return Err(fail("does not start with a number"));
    }
    if unit.is_empty() {
        return Err(fail("has no unit"));
    }
    let factor = units.iter().find(|u| u.0 == unit).ok_or_else(|| fail("has an unknown unit"))?.1;
    let number = number.replace('_', "");
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(|| fail("is too large"));
    }
    let value: f64 = number.parse().map_err(|_| fail("is not a number"))?;
    let scaled = value * factor as f64;
    if scaled >= u64::MAX as f64 {
        return Err(fail("is too large"));
    }
    Ok((scaled + 0.5) as u64)
}

/// Prints in the largest unit in which the value is a whole number. `units` starts with the
/// largest.
pub(crate) fn print(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let smallest = units[units.len() - 1];
    let exact = |u: &&(&str, u64)| value != 0 && value % u.1 == 0;
    let (name, factor) = units.iter().find(exact).copied().unwrap_or(smallest);
    write!(f, "{} {name}", value / factor)
}

macro_rules! serde_as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use serde_as_text;
