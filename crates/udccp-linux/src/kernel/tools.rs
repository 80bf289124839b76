//! Programs of this machine: which are needed, where they are, and what package has them.

use std::env;
use std::path::PathBuf;

/// Programs and the Debian packages that have them.
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

/// What a run needs, in the guest, from the host's own root.
const RUN: [(&str, &str); 2] = [("ip", "iproute2"), ("tc", "iproute2")];

/// Folders that a user's search path may not have.
const SYSTEM: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// A program in the search path or where systems keep theirs.
pub fn tool(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(SYSTEM.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Programs that are not there, each with its Debian package: those of a run, and those of the
/// build too if asked for.
pub fn missing_tools(build: bool) -> Vec<(&'static str, &'static str)> {
    let mut needed = RUN.to_vec();
    if build {
        needed.extend(BUILD);
    }
    needed.retain(|(name, _)| tool(name).is_none());
    needed
}
