//! Describes the build for `udccp --version` and for reports: commit, target, profile, compiler and
//! Cargo features.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=UDCCP_COMMIT");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../../docs/guides");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    // Packagers of sources without a git history set the commit.
    let commit = env::var("UDCCP_COMMIT").ok().filter(|c| !c.is_empty()).or_else(commit);
    println!("cargo:rustc-env=UDCCP_BUILD_COMMIT={}", commit.unwrap_or_default());
    println!("cargo:rustc-env=UDCCP_BUILD_TARGET={}", variable("TARGET"));
    println!("cargo:rustc-env=UDCCP_BUILD_PROFILE={}", variable("PROFILE"));
    let rustc = output(Command::new(variable("RUSTC")).arg("--version")).unwrap_or_default();
    println!("cargo:rustc-env=UDCCP_BUILD_RUSTC={rustc}");
    let mut features: Vec<String> = env::vars_os()
        .filter_map(|(name, _)| name.to_str()?.strip_prefix("CARGO_FEATURE_").map(str::to_owned))
        .map(|name| name.to_lowercase().replace('_', "-"))
        .collect();
    features.sort();
    println!("cargo:rustc-env=UDCCP_BUILD_FEATURES={}", features.join(" "));
}

/// The commit that is checked out, marked if the sources differ from it.
fn commit() -> Option<String> {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    let root = own.ancestors().nth(2)?;
    // A source tree inside another repository has no commit.
    if !root.join("crates/udccp-cli/build.rs").exists() || !root.join(".git").exists() {
        return None;
    }
    let git = |args: &[&str]| output(Command::new("git").current_dir(root).args(args));
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file])?;
        println!("cargo:rerun-if-changed={}", root.join(path).display());
    }
    println!("cargo:rerun-if-changed={}", root.join("Cargo.lock").display());
    for entry in std::fs::read_dir(root.join("crates")).ok()?.flatten() {
        println!("cargo:rerun-if-changed={}", entry.path().join("src").display());
    }
    let built =
        ["status", "--porcelain", "--untracked-files=no", "--", "Cargo.lock", "crates/*/src"];
    let changes = git(&built)?;
    Some(if changes.is_empty() { commit } else { format!("{commit}, with changes") })
}

/// The output of a command without the last newline, if it succeeds.
fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|o| o.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim_end().to_owned())
}
