//! ns-2 as a backend of campaigns.

use udccp_scenario::schema::Scenario;
use udccp_scenario::{Backend, BackendError, Record};

use crate::error::Ns2Error;
use crate::run::{ID, Ns2};

impl Backend for Ns2 {
    fn id(&self) -> &str {
        ID
    }

    fn version(&self) -> String {
        format!("ns-2 {} {}", Self::version(self), udccp_agent::CODE)
    }

    fn run(&self, name: &str, scenario: &Scenario, seed: u64) -> Result<Record, BackendError> {
        match Self::run(self, name, scenario, seed) {
            Ok(run) => Ok(run.record),
            Err(error) => {
                // Whether ns-2 aborts depends on the scenario: others may run.
                let is_of_scenario =
                    matches!(error, Ns2Error::Scenario(_) | Ns2Error::Ended { .. });
                let hint = error.hint().map(str::to_owned);
                Err(BackendError { message: error.to_string(), hint, is_of_scenario })
            }
        }
    }
}
