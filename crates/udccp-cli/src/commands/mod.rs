//! One module a command: its flags, its help, its work.

pub(crate) mod cat;
pub(crate) mod decode;
pub(crate) mod doctor;
pub(crate) mod lab;
pub(crate) mod net;
pub(crate) mod perf;
pub(crate) mod sim;
