//! Creates the backend for a campaign, and checks that it can run here.

use udccp_lab::{BACKENDS, Backend, SIM, Simulator, suggest};

use crate::exit::{CliResult, Exit, Failure};

/// The backend of this name, ready to run.
pub(super) fn ready(id: &str) -> CliResult<Box<dyn Backend>> {
    if id == SIM {
        return Ok(Box::new(Simulator));
    }
    system::ready(id)?.ok_or_else(|| unknown_backend(id))
}

/// Stops what backends have started.
pub(super) fn stop_all() {
    system::stop_all();
}

fn unknown_backend(id: &str) -> Failure {
    let ids = BACKENDS.map(|(id, _)| id);
    let known = ids.contains(&id);
    let message = match known {
        true => format!("this program was built without the backend \"{id}\""),
        false => format!("there is no backend \"{id}\""),
    };
    let hint = match known {
        true => "all but \"sim\" need Linux".to_owned(),
        false => suggest(id, "choose from", &ids),
    };
    Failure::new(if known { Exit::Unsupported } else { Exit::Usage }, message).hint(hint)
}

/// Backends that need Linux.
#[cfg(target_os = "linux")]
mod system {
    use udccp_lab::Backend;

    use crate::commands::{emu, linux, ns2};
    use crate::exit::CliResult;

    pub(super) fn ready(id: &str) -> CliResult<Option<Box<dyn Backend>>> {
        Ok(Some(match id {
            udccp_emu::ID => Box::new(emu::backend(udccp_emu::Path::Own)?),
            udccp_emu::NETEM_ID => Box::new(emu::backend(udccp_emu::Path::Netem)?),
            id if udccp_linux::IDS.contains(&id) => Box::new(linux::backend(id)?),
            udccp_ns2::ID => Box::new(ns2::backend()?),
            _ => return Ok(None),
        }))
    }

    pub(super) fn stop_all() {
        udccp_linux::stop_all();
    }
}

/// Other systems have none of these backends.
#[cfg(not(target_os = "linux"))]
mod system {
    use udccp_lab::Backend;

    use crate::exit::CliResult;

    #[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
    pub(super) fn ready(_: &str) -> CliResult<Option<Box<dyn Backend>>> {
        Ok(None)
    }

    pub(super) fn stop_all() {}
}
