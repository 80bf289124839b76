//! Makes the backend that runs the scenarios of a campaign, and checks that it can run here.

use udccp_lab::{BACKENDS, Backend, SIM, Simulator, suggest};

use crate::commands::{emu, linux, ns2};
use crate::exit::{CliResult, Exit, Failure};

/// The backend of this name, ready to run.
pub(super) fn ready(id: &str) -> CliResult<Box<dyn Backend>> {
    match id {
        SIM => Ok(Box::new(Simulator)),
        udccp_emu::ID => Ok(Box::new(emu::backend(udccp_emu::Path::Own)?)),
        udccp_emu::NETEM_ID => Ok(Box::new(emu::backend(udccp_emu::Path::Netem)?)),
        id if udccp_linux::IDS.contains(&id) => Ok(Box::new(linux::backend(id)?)),
        udccp_ns2::ID => Ok(Box::new(ns2::backend()?)),
        _ => {
            let ids = BACKENDS.map(|(id, _)| id);
            let known = ids.contains(&id);
            let message = match known {
                true => format!("this program was built without the backend \"{id}\""),
                false => format!("there is no backend \"{id}\""),
            };
            let hint = match known {
                true => "`udccp doctor` reports what this machine can do".to_owned(),
                false => suggest(id, "there are", &ids),
            };
            Err(Failure::new(if known { Exit::Unsupported } else { Exit::Usage }, message)
                .hint(hint))
        }
    }
}
