//! Sizes and times that are constant or random.

use serde::{Deserialize, Serialize};
use udccp_base::{DataSize, Duration};
use udccp_sim::Distribution;

use crate::diagnostic::{Diagnostic, suggestion};
use crate::document::{DiagnosticSink, FromNode, Node, Reader, Value};

/// A quantity alone, or a table such as `{ kind = "exponential", mean = ... }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum RandomVariable<T> {
    /// Constant.
    Constant {
        /// The value.
        value: T,
    },
    /// Exponential.
    Exponential {
        /// Its mean.
        mean: T,
    },
    /// Pareto.
    Pareto {
        /// Its mean.
        mean: T,
        /// Its shape, above 1.
        shape: f64,
    },
    /// Log-normal.
    Lognormal {
        /// Its mean.
        mean: T,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
}

/// A quantity as a number: sizes in bytes, times in seconds.
pub trait Quantity: FromNode + Copy {
    /// The number.
    fn number(self) -> f64;
}

impl Quantity for DataSize {
    fn number(self) -> f64 {
        self.bytes() as f64
    }
}

impl Quantity for Duration {
    fn number(self) -> f64 {
        self.as_secs_f64()
    }
}

const KINDS: [&str; 4] = ["constant", "exponential", "pareto", "lognormal"];

impl<T: Quantity> RandomVariable<T> {
    /// The mean.
    pub fn mean(self) -> T {
        match self {
            Self::Constant { value } => value,
            Self::Exponential { mean }
            | Self::Pareto { mean, .. }
            | Self::Lognormal { mean, .. } => mean,
        }
    }

    /// The simulator's distribution, in bytes or seconds.
    pub fn distribution(self) -> Distribution {
        match self {
            Self::Constant { value } => Distribution::Constant(value.number()),
            Self::Exponential { mean } => Distribution::Exponential { mean: mean.number() },
            Self::Pareto { mean, shape } => Distribution::Pareto { mean: mean.number(), shape },
            Self::Lognormal { mean, sigma } => {
                Distribution::LogNormal { mean: mean.number(), sigma }
            }
        }
    }
}

impl RandomVariable<Duration> {
    /// The mean, or the median of a distribution in which few times are as long as their mean.
    pub(super) fn typical(self) -> Duration {
        let of_mean = match self {
            Self::Constant { .. } | Self::Exponential { .. } => 1.0,
            Self::Pareto { shape, .. } => (shape - 1.0) / shape * libm::exp2(1.0 / shape),
            Self::Lognormal { sigma, .. } => libm::exp(-sigma * sigma / 2.0),
        };
        Duration::from_secs_f64(self.mean().as_secs_f64() * of_mean)
    }
}

impl<T: Quantity> FromNode for RandomVariable<T> {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        if !matches!(node.value, Value::Table(_)) {
            return T::from_node(node, errors).map(|value| Self::Constant { value });
        }
        let mut reader = Reader::new(node, "a distribution", errors)?;
        let kind: String = reader.need("kind")?;
        let drawn = match kind.as_str() {
            "constant" => reader.need("value").map(|value| Self::Constant { value }),
            "exponential" => reader.need("mean").map(|mean| Self::Exponential { mean }),
            "pareto" => {
                let (mean, shape) = (reader.need("mean"), read_shape(&mut reader, node));
                mean.zip(shape).map(|(mean, shape)| Self::Pareto { mean, shape })
            }
            "lognormal" => {
                let (mean, sigma) = (reader.need("mean"), read_sigma(&mut reader, node));
                mean.zip(sigma).map(|(mean, sigma)| Self::Lognormal { mean, sigma })
            }
            _ => {
                let span = node.get("kind").map_or(&node.span, |n| &n.span);
                let error = Diagnostic::at(span, format!("\"{kind}\" is not a distribution"));
                errors.push(error.hint(suggestion(&kind, "choose from", &KINDS)));
                return None;
            }
        };
        reader.finish();
        drawn
    }
}

/// The shape of a Pareto distribution that has a mean.
pub(super) fn read_shape(reader: &mut Reader<'_>, node: &Node) -> Option<f64> {
    let shape: f64 = reader.need("shape")?;
    if shape <= 1.0 {
        let span = node.get("shape").map_or(&node.span, |n| &n.span);
        let error =
            Diagnostic::at(span, format!("a Pareto distribution of shape {shape} has no mean"));
        reader.errors().push(error.hint("a shape must be above 1; 1.5 is usual"));
        return None;
    }
    Some(shape)
}

/// Beyond it nearly every value is zero, and the rest are larger than any run.
const LARGEST_SIGMA: f64 = 10.0;

fn read_sigma(reader: &mut Reader<'_>, node: &Node) -> Option<f64> {
    let sigma: f64 = reader.need("sigma")?;
    if !(0.0..=LARGEST_SIGMA).contains(&sigma) {
        let span = node.get("sigma").map_or(&node.span, |n| &n.span);
        let error = format!("a sigma of {sigma}; it must be 0 to {LARGEST_SIGMA}");
        reader.errors().push(Diagnostic::at(span, error));
        return None;
    }
    Some(sigma)
}
