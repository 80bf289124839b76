//! The date and the machine, for the index page of a report.

use udccp_lab::report::About;

use super::progress::cores;

/// Describes today and this machine.
pub(super) fn about() -> About {
    let cores = cores();
    let plural = if cores == 1 { "" } else { "s" };
    let system = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    let processor = processor().map_or_else(String::new, |name| format!(" ({name})"));
    About {
        date: jiff::Timestamp::now().strftime("%-d %B %Y").to_string(),
        machine: format!("{cores} core{plural}{processor}, {system}"),
    }
}

/// The processor's model name, if the system reports it.
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned())
}
