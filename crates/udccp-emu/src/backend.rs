//! The emulator as a backend of campaigns.

use std::path::PathBuf;

use udccp_agent::OurTransport;
use udccp_scenario::schema::Scenario;
use udccp_scenario::{Backend, BackendError, Record, RunOptions};
use udccp_sim::IpVersion;

use crate::emulate::emulate;
use crate::error::EmuError;
use crate::kernel::release;
use crate::options::{EmuOptions, Path};

/// The emulator, which does one run at a time. The caller has [acquired](crate::acquire) the
/// required privileges.
#[derive(Clone, Debug)]
pub struct Emulator {
    program: PathBuf,
    path: Path,
}

impl Emulator {
    /// `program` is `udccp`; agents are processes of it.
    pub const fn new(program: PathBuf, path: Path) -> Self {
        Self { program, path }
    }
}

impl Backend for Emulator {
    fn id(&self) -> &str {
        self.path.backend_id()
    }

    /// The kernel's release, because its TCP runs flows, and the version of the agents' code.
    fn version(&self) -> String {
        format!("{} {}", release(), udccp_agent::CODE)
    }

    fn jobs(&self) -> Option<usize> {
        Some(1)
    }

    fn expected_s(&self, scenario: &Scenario) -> Option<f64> {
        Some(scenario.time.duration.as_secs_f64())
    }

    fn run(&self, name: &str, scenario: &Scenario, seed: u64) -> Result<Record, BackendError> {
        let options = EmuOptions {
            run: RunOptions::default(),
            program: self.program.clone(),
            dccp: OurTransport::UdpEncap,
            ip: IpVersion::V4,
            path: self.path,
        };
        let emulation = emulate(name, scenario, seed, &options).map_err(|error| {
            // Other scenarios of a campaign may fit this machine.
            let is_of_scenario = error.is_of_scenario()
                || matches!(
                    error,
                    EmuError::CongestionControl { .. }
                        | EmuError::TooFast { .. }
                        | EmuError::KernelLacks { .. }
                );
            let hint = error.advice();
            BackendError { message: error.to_string(), hint, is_of_scenario }
        })?;
        Ok(emulation.record)
    }
}
