//! Describes the build and the system for a bug report.

use std::fmt::Write as _;
use std::sync::OnceLock;

use serde::Serialize;
use udccp::ccid::{CcidRegistry, experimental};

/// The program's version and build.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Program {
    version: &'static str,
    /// `None` if built from a source without a git history.
    commit: Option<&'static str>,
    features: Vec<String>,
    target: &'static str,
}

impl Program {
    pub(crate) fn new() -> Self {
        let commit = env!("UDCCP_BUILD_COMMIT");
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: (!commit.is_empty()).then_some(commit),
            features: features(),
            target: env!("UDCCP_BUILD_TARGET"),
        }
    }
}

/// The program and the machine, as included in results.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct About {
    #[serde(flatten)]
    program: Program,
    host: Option<String>,
    /// Name, release and machine of the running kernel.
    pub(crate) kernel: Option<String>,
}

impl About {
    /// Describes this program and this machine.
    pub(crate) fn new() -> Self {
        let [host, kernel] = system();
        Self { program: Program::new(), host, kernel }
    }
}

/// The compiled features: congestion controls, carriers, backends, Cargo features.
fn features() -> Vec<String> {
    let registry = CcidRegistry::with_experiments();
    let ccids = registry.numbers();
    let name = |ccid| match ccid {
        experimental::CUBIC => "ccid-cubic".to_owned(),
        experimental::BBR => "ccid-bbr".to_owned(),
        number => format!("ccid{number}"),
    };
    let mut features: Vec<String> = ccids.map(name).collect();
    features.extend(["udp", "raw-ip"].map(str::to_owned));
    if cfg!(target_os = "linux") {
        features.extend(["emu", "linux"].map(str::to_owned));
    }
    features.extend(env!("UDCCP_BUILD_FEATURES").split_whitespace().map(str::to_owned));
    features
}

/// The name of this machine, and its kernel.
#[cfg(unix)]
fn system() -> [Option<String>; 2] {
    let uname = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let kernel = [uname.sysname(), uname.release(), uname.machine()].map(text).join(" ");
    [Some(text(uname.nodename())), Some(kernel)]
}

#[cfg(not(unix))]
fn system() -> [Option<String>; 2] {
    [None, None]
}

/// The text of `udccp --version` after the name. `-V` prints only its first word.
pub(crate) fn long_version() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let About { program: about, kernel, .. } = About::new();
        let unknown = "unknown (built without its history)";
        let mut text = about.version.to_owned();
        let rows = [
            ("commit", about.commit.unwrap_or(unknown).to_owned()),
            ("results", udccp_lab::VERSION.to_owned()),
            ("features", about.features.join(" ")),
            ("target", format!("{}, {}", about.target, env!("UDCCP_BUILD_PROFILE"))),
            ("compiler", env!("UDCCP_BUILD_RUSTC").to_owned()),
            ("system", kernel.unwrap_or_else(|| std::env::consts::OS.to_owned())),
        ];
        for (name, value) in rows {
            let _ = write!(text, "\n{:<10}{value}", format!("{name}:"));
        }
        text
    })
}
