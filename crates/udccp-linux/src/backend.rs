//! The guest as a backend of campaigns.

use udccp_scenario::schema::Scenario;
use udccp_scenario::{Backend, BackendError, Record};
use udccp_testbed::DccpStack;

use crate::error::LinuxError;
use crate::run::{Linux, id};

/// Approximate wall-clock seconds per second of a scenario.
const PACE: f64 = 0.3;

impl Backend for Linux {
    fn id(&self) -> &str {
        id(self.dccp)
    }

    fn version(&self) -> String {
        let raw = if self.dccp == DccpStack::OursRaw { " raw" } else { "" };
        let more = self.arguments.iter().map(|word| format!(" {word}")).collect::<String>();
        format!("{} {}{raw}{more}", self.kernel.version, udccp_agent::CODE)
    }

    fn expected_s(&self, scenario: &Scenario) -> Option<f64> {
        Some(2.0 + PACE * scenario.time.duration.as_secs_f64())
    }

    fn run(&self, name: &str, scenario: &Scenario, seed: u64) -> Result<Record, BackendError> {
        match Self::run(self, name, scenario, seed) {
            Ok(outcome) => Ok(outcome.record),
            Err(error) => {
                let is_of_scenario = matches!(error, LinuxError::Scenario(_));
                Err(BackendError { message: error.to_string(), hint: error.hint(), is_of_scenario })
            }
        }
    }
}
