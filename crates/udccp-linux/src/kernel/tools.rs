//! Programs of this machine: which are needed, where they are, and which package has them.

use std::env;
use std::path::PathBuf;

/// Programs for the build, with their Debian packages.
const BUILD: [(&str, &str); 8] = [
    ("make", "make"),
    ("gcc", "gcc"),
    ("ld", "binutils"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
];

/// Programs for a run, which the guest takes from the host's root file system.
const RUN: [(&str, &str); 2] = [("ip", "iproute2"), ("tc", "iproute2")];

/// Folders that may be missing in a user's search path.
const SYSTEM: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// Finds a program in the search path or in system folders.
pub fn tool(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(SYSTEM.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Missing programs, each with its Debian package: those for a run, and those for the build if
/// requested.
pub fn missing_tools(build: bool) -> Vec<(&'static str, &'static str)> {
    let mut needed = RUN.to_vec();
    if build {
        needed.extend(BUILD);
    }
    needed.retain(|(name, _)| tool(name).is_none());
    needed
}
