//! The guest's kernel: User-Mode Linux of a version that has DCCP, built once and kept in the
//! user's cache folder.

mod build;
mod recipe;
mod tools;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

pub use build::Setup;
pub(crate) use build::last_lines;
pub use tools::{missing_tools, tool};

use crate::error::LinuxError;

/// A kernel that was built and booted successfully.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The kernel as an executable.
    pub binary: PathBuf,
    /// Version of Linux, and of the recipe that it was built by: `6.1.192 um 3f2a91c0`.
    pub version: String,
}

/// The folder of built kernels: `$XDG_CACHE_HOME/udccp/linux`, or `~/.cache/udccp/linux`.
///
/// # Errors
/// Neither of the two variables is set.
pub fn cache_folder() -> Result<PathBuf, LinuxError> {
    let set = |name: &str| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    base.map(|base| base.join("udccp").join("linux")).ok_or_else(|| LinuxError::Missing {
        what: "there is no cache folder: neither XDG_CACHE_HOME nor HOME is set".into(),
        hint: "set XDG_CACHE_HOME, or name a folder with --cache".into(),
    })
}

/// Processor time of the build, in minutes, as measured with gcc 12.
const BUILD_CPU_MINUTES: usize = 10;

/// The expected build time with this many parallel processes, in words.
pub fn build_time(jobs: usize) -> String {
    let minutes = BUILD_CPU_MINUTES.div_ceil(jobs.max(1));
    let unit = if minutes == 1 { "minute" } else { "minutes" };
    format!("about {minutes} {unit} ({BUILD_CPU_MINUTES} of processor time)")
}

/// Default number of parallel compiler processes.
fn jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl Kernel {
    /// The kernel of this program's recipe in a cache folder.
    ///
    /// # Errors
    /// It has not been built yet.
    pub fn find(cache: &Path) -> Result<Self, LinuxError> {
        let folder = recipe::folder(cache);
        let binary = folder.join("linux");
        let version = fs::read_to_string(folder.join("version")).unwrap_or_default();
        if !binary.is_file() || version.trim().is_empty() {
            return Err(LinuxError::Missing {
                what: format!("the guest's kernel is not built ({})", binary.display()),
                hint: format!("udccp linux --setup builds it, once: {}", build_time(jobs())),
            });
        }
        Ok(Self { binary, version: format!("{} um {}", version.trim(), recipe::hash()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_build_is_the_processors_over_the_processes() {
        assert_eq!(build_time(1), "about 10 minutes (10 of processor time)");
        assert_eq!(build_time(2), "about 5 minutes (10 of processor time)");
        assert_eq!(build_time(64), "about 1 minute (10 of processor time)");
        let says = Kernel::find(Path::new("/no/such/folder")).unwrap_err().hint().unwrap();
        assert!(says.contains("udccp linux --setup") && says.contains("processor time"), "{says}");
    }
}
