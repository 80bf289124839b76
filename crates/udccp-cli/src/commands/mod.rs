//! One module a command: its flags, its help, its work.

pub(crate) mod agent;
pub(crate) mod capture;
pub(crate) mod cat;
pub(crate) mod chart;
pub(crate) mod completions;
pub(crate) mod decode;
pub(crate) mod doctor;
#[cfg(target_os = "linux")]
pub(crate) mod emu;
pub(crate) mod found;
pub(crate) mod guide;
#[cfg(target_os = "linux")]
pub(crate) mod interop;
pub(crate) mod lab;
#[cfg(target_os = "linux")]
pub(crate) mod linux;
pub(crate) mod man;
pub(crate) mod net;
#[cfg(target_os = "linux")]
pub(crate) mod ns2;
pub(crate) mod numbers;
#[cfg(target_os = "linux")]
pub(crate) mod old_program;
pub(crate) mod perf;
pub(crate) mod scenario;
pub(crate) mod sim;
