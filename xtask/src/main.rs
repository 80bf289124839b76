//! Checks the house rules of the repository (`cargo xtask tidy|layers|picture|spec|api`), and runs
//! its tests.

mod api;
mod layers;
mod links;
mod picture;
mod retry;
mod sources;
mod spec;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};

const USAGE: &str = "\
usage: cargo xtask RULE

  tidy            file, function and line length; banned clocks and randomness; dead links
  layers          arrows between crates point down only; ARCHITECTURE.md names every crate
  picture         writes docs/images/layers.svg from the manifests
  spec            every requirement row is claimed and tested; writes spec/coverage.txt
  spec --check    the same, but a coverage.txt that is out of date is an error
  api             the public interface of the sockets is that of crates/udccp/public-api.txt
  api --accept    writes that file
  all             tidy, layers and spec --check; a picture that is out of date is an error
  test [FLAGS]    cargo test of everything; scripts/clock-tests.txt names what is tried again";

/// One broken rule: where, and what to do about it.
pub(crate) struct Finding {
    place: String,
    says: String,
}

impl Finding {
    pub(crate) fn new(place: impl Into<String>, says: impl Into<String>) -> Self {
        Self { place: place.into(), says: says.into() }
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(findings) => {
            print_line(&format!("{findings} findings"));
            ExitCode::FAILURE
        }
        Err(error) => {
            print_line(&format!("error: {error:#}"));
            ExitCode::from(2)
        }
    }
}

fn run(words: &[&str]) -> Result<usize> {
    let root = root()?;
    let findings = match words {
        ["test", flags @ ..] => {
            let findings = retry::run(&root, flags)?;
            findings.into_iter().map(|says| Finding::new("test", says)).collect()
        }
        ["tidy"] => {
            let mut all = tidy::check(&root)?;
            all.extend(retry::check(&root)?);
            all
        }
        ["layers"] => layers::check(&root)?,
        ["picture"] => picture::write(&root)?,
        ["spec"] => spec::check(&root, spec::Snapshot::Write)?,
        ["spec", "--check"] => spec::check(&root, spec::Snapshot::Compare)?,
        ["api"] => api::check(&root)?,
        ["api", "--accept"] => api::write(&root)?,
        ["all"] => {
            let mut all = tidy::check(&root)?;
            all.extend(retry::check(&root)?);
            all.extend(layers::check(&root)?);
            all.extend(picture::check(&root)?);
            all.extend(spec::check(&root, spec::Snapshot::Compare)?);
            all
        }
        _ => {
            print_line(USAGE);
            anyhow::bail!("no rule is called \"{}\"", words.join(" "));
        }
    };
    for finding in &findings {
        print_line(&format!("{}: {}", finding.place, finding.says));
    }
    Ok(findings.len())
}

fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here.parent().context("xtask lies one folder below the root")?.to_path_buf())
}

#[expect(clippy::print_stderr, reason = "a program that reports to a person")]
fn print_line(line: &str) {
    eprintln!("{line}");
}
