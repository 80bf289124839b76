//! The published value of a cell, and what counts as agreement with it.

use core::num::NonZeroU64;

use udccp_scenario::diagnostic::Diagnostic;
use udccp_scenario::document::{DiagnosticSink, FromNode, Node, Value};

use super::Percent;
use super::metric_spec::MetricSpec;

/// What counts as agreement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Close {
    /// A distance in the printed unit.
    Within(f64),
    /// A share of the published value.
    Part(f64),
}

impl Close {
    /// The distance from this published value, in the printed unit.
    pub fn distance(self, published: f64) -> f64 {
        match self {
            Self::Within(distance) => distance,
            Self::Part(part) => part * published.abs(),
        }
    }

    /// The same in a unit of which this many make one of the present unit.
    pub(super) fn scaled(self, factor: f64) -> Self {
        match self {
            Self::Within(distance) => Self::Within(distance * factor),
            Self::Part(_) => self,
        }
    }

    /// In words: `0.05`, `5 Mbit/s`, `5 %`.
    pub fn text(self, unit: &str) -> String {
        match self {
            Self::Within(distance) => format!("{distance} {unit}").trim_end().to_owned(),
            Self::Part(part) => format!("{} %", part * 100.0),
        }
    }
}

impl FromNode for Close {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        match &node.value {
            Value::Text(_) => Percent::from_node(node, errors).map(|p| Self::Part(p.0 / 100.0)),
            _ => f64::from_node(node, errors).map(|distance| {
                if distance.is_nan() || distance < 0.0 {
                    let error = format!("{distance} is not a distance from a published value");
                    let hint = "write the largest difference that counts as agreement";
                    errors.push(Diagnostic::at(&node.span, error).hint(hint));
                }
                Self::Within(distance)
            }),
        }
    }
}

/// One published value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// The value in the unit of the table; `None` for a published "–": the study says that there is
    /// no value.
    pub value: Option<f64>,
    /// Its standard deviation over the study's runs, if published.
    pub stddev: Option<f64>,
    /// The number of the study's runs in the mean, if the file gives it.
    pub runs: Option<NonZeroU64>,
}

impl Published {
    /// A value without further information.
    pub fn value(value: Option<f64>) -> Self {
        Self { value, stddev: None, runs: None }
    }

    /// Two standard errors of the study's mean, if its standard deviation and number of runs are
    /// known.
    pub fn two_standard_errors(&self) -> Option<f64> {
        let (stddev, runs) = self.stddev.zip(self.runs)?;
        Some(2.0 * stddev / (runs.get() as f64).sqrt())
    }

    /// The distance that still counts as agreement, in the printed unit; `None` if the study says
    /// that there is no value. It is two standard errors of the study's mean if they are known, but
    /// at least one unit of the last printed digit, because of rounding; otherwise what the table
    /// says.
    pub fn tolerance(&self, shown: &MetricSpec) -> Option<f64> {
        let value = self.value?;
        let errors = self.two_standard_errors();
        Some(errors.map_or_else(|| shown.distance(value), |e| e.max(shown.last_digit())))
    }
}
