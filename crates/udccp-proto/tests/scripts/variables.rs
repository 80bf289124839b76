//! Named numbers of a script.

use std::collections::BTreeMap;

use crate::tokens::Number;

/// Values are taken modulo 2^48 when they are used as sequence numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables(BTreeMap<String, i128>);

impl Variables {
    pub(crate) fn set(&mut self, name: &str, value: i128) {
        self.0.insert(name.to_owned(), value);
    }

    pub(crate) fn get(&self, name: &str) -> Option<i128> {
        self.0.get(name).copied()
    }

    /// The value of an expression.
    pub(crate) fn value(&self, n: &Number) -> Result<i128, String> {
        match n {
            Number::Any => Err("a number is needed here, not *".into()),
            Number::Sum { variable: None, plus } => Ok(*plus),
            Number::Sum { variable: Some(name), plus } => match self.0.get(name) {
                Some(value) => Ok(value + plus),
                None => Err(format!("${name} has no value yet")),
            },
        }
    }

    /// Whether a number in a packet matches. A variable without a value takes the number.
    pub(crate) fn meets(&mut self, n: &Number, is: i128) -> bool {
        match n {
            Number::Any => true,
            Number::Sum { variable: Some(name), plus } if !self.0.contains_key(name) => {
                self.set(&name.clone(), is - plus);
                true
            }
            n => self.value(n) == Ok(is),
        }
    }

    /// The same, modulo 2^48.
    pub(crate) fn meets_seq(&mut self, n: &Number, is: u64) -> bool {
        match n {
            Number::Sum { variable: Some(name), .. } if !self.0.contains_key(name) => {
                self.meets(n, is.into())
            }
            Number::Any => true,
            n => self.value(n).is_ok_and(|v| wrapped(v) == is),
        }
    }
}

/// A number modulo 2^48.
pub(crate) fn wrapped(n: i128) -> u64 {
    n.rem_euclid(1 << 48) as u64
}
