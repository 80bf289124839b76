//! Reads the guest's answer at the end of a run.

use serde::{Deserialize, Serialize};
use udccp_testbed::Observations;

/// File names in the folder that host and guest share: the plan.
pub(crate) const PLAN: &str = "plan.json";
/// The guest's answer.
pub(crate) const ANSWER: &str = "answer.json";
/// The recorded packets.
pub(crate) const EVENTS: &str = "packets.bin";

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub(crate) enum Answer {
    /// The run is complete.
    Done(Box<Observations>),
    /// The run failed.
    Failed {
        /// The error.
        what: String,
        /// What to do about it.
        hint: Option<String>,
    },
}
