//! `cargo xtask test`: runs all tests, and retries those that depend on the clock.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{Finding, print_line};

/// Lists the tests that may be retried; each line is `PACKAGE TARGET TEST`.
const LIST: &str = "scripts/clock-tests.txt";
/// Largest number of attempts for a test.
const TRIES: usize = 3;

/// A test by package, target (`--lib`, `--bin udccp`, `--test parity`, `--doc`) and name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    package: String,
    target: String,
    test: String,
}

/// The part of cargo's output about one test program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Target {
    /// Its name in the output.
    name: String,
    /// The crate, if cargo prints it, which it does only for unit tests.
    of: Option<String>,
    /// Each test, and whether it failed.
    tests: Vec<(String, bool)>,
    /// It ran to the end, and all tests passed.
    is_good: bool,
}

/// Runs all tests with these flags of `cargo test`. Returns the errors, one per line.
pub(crate) fn run(root: &Path, flags: &[&str]) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join(LIST)).context(LIST)?;
    let list: Vec<Named> = text.lines().filter_map(entry).collect();
    let (passed, log) = cargo_test(root, &[&["--no-fail-fast"], flags].concat())?;
    // With flags, some of the tests may have been left out.
    let stale = if flags.is_empty() { stale(&log, &list) } else { Vec::new() };
    if passed || !stale.is_empty() {
        return Ok(stale);
    }
    let again = match retryable(&log, &list) {
        Ok(again) => again,
        Err(findings) => return Ok(findings),
    };
    let mut findings = Vec::new();
    for one in again {
        if !retry_passes(root, &one)? {
            findings.push(format!("{one} failed {TRIES} times"));
        }
    }
    Ok(findings)
}

/// Reports entries of the list whose test is not in the source file of its target, without running
/// tests.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>> {
    let text = std::fs::read_to_string(root.join(LIST)).context(LIST)?;
    let mut findings = Vec::new();
    for one in text.lines().filter_map(entry) {
        // Entries for other targets are checked when all tests run.
        let Some(target) = one.target.strip_prefix("--test ") else { continue };
        let file = format!("crates/{}/tests/{target}.rs", one.package);
        let code = std::fs::read_to_string(root.join(&file)).unwrap_or_default();
        let name = one.test.rsplit("::").next().unwrap_or_default();
        if !code.contains(&format!("fn {name}(")) {
            findings.push(Finding::new(LIST, format!("{one}: {file} has no such test")));
        }
    }
    Ok(findings)
}

fn retry_passes(root: &Path, one: &Named) -> Result<bool> {
    for attempt in 2..=TRIES {
        print_line(&format!("{one} failed; try {attempt} of {TRIES}"));
        let mut words: Vec<&str> = one.target.split(' ').collect();
        words.extend(["--", "--exact", &one.test]);
        // Test the whole workspace, so that nothing is rebuilt.
        let (passed, log) = cargo_test(root, &words)?;
        let ran = targets(&log).iter().any(|t| t.tests.iter().any(|(name, _)| *name == one.test));
        if passed && ran {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Runs `cargo test`. Returns whether it passed, and its output, which is also printed.
fn cargo_test(root: &Path, words: &[&str]) -> Result<(bool, String)> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // One pipe for both streams, to keep their order.
    let (output, input) = std::io::pipe()?;
    let mut command = Command::new(cargo);
    command.args(["test", "--workspace", "--locked"]).args(words).current_dir(root);
    command.env("CARGO_TERM_COLOR", "never").stdout(input.try_clone()?).stderr(input);
    let mut child = command.spawn().context("cargo does not start")?;
    // The command holds the writing end; the reader ends only when it is closed.
    drop(command);
    let (mut log, mut out) = (String::new(), std::io::stdout().lock());
    for line in BufReader::new(output).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        writeln!(out, "{line}")?;
        log.push_str(&line);
        log.push('\n');
    }
    Ok((child.wait()?.success(), log))
}

/// A line of the list; `#` begins a comment.
fn entry(line: &str) -> Option<Named> {
    let words: Vec<&str> = line.split('#').next()?.split_whitespace().collect();
    let [package, target @ .., test] = words.as_slice() else { return None };
    let (package, test) = ((*package).to_owned(), (*test).to_owned());
    Some(Named { package, target: target.join(" "), test })
}

/// The test programs that cargo ran, in order.
fn targets(log: &str) -> Vec<Target> {
    let mut all: Vec<Target> = Vec::new();
    for line in log.lines() {
        if let Some(target) = heading(line) {
            all.push(target);
        }
        let Some(target) = all.last_mut() else { continue };
        if line.starts_with("test result: ok") {
            target.is_good = true;
        } else if let Some((name, verdict)) =
            line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "))
        {
            let name = name.strip_suffix(" - should panic").unwrap_or(name);
            target.tests.push((name.to_owned(), verdict.starts_with("FAILED")));
        }
    }
    all
}

/// `     Running tests/data.rs (target/debug/deps/data-0123456789abcdef)`,
/// `     Running unittests src/lib.rs (...)` or `   Doc-tests udccp`.
fn heading(line: &str) -> Option<Target> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (name, of) = match words.as_slice() {
        ["Doc-tests", of] => ("--doc".to_owned(), Some((*of).to_owned())),
        ["Running", "unittests", file, program] => {
            let program = program.rsplit('/').next()?.rsplit_once('-')?.0.to_owned();
            let is_library = file.ends_with("lib.rs");
            let name = if is_library { "--lib".into() } else { format!("--bin {program}") };
            (name, is_library.then_some(program))
        }
        ["Running", file, _] if file.ends_with(".rs") => {
            let name = file.rsplit('/').next()?.trim_end_matches(".rs");
            (format!("--test {name}"), None)
        }
        _ => return None,
    };
    Some(Target { name, of, ..Target::default() })
}

/// Packages and targets that failed, in order. Cargo's last lines list them, for example
/// `` `-p udccp-cli --test parity` ``.
fn failed_targets(log: &str) -> Vec<(String, String)> {
    let quoted = |line: &str| {
        let rest = line.trim().strip_prefix("`-p ")?.strip_suffix('`')?.to_owned();
        let (package, target) = rest.split_once(' ')?;
        Some((package.to_owned(), target.to_owned()))
    };
    log.lines().filter_map(quoted).collect()
}

/// The tests that failed, if all of them may be retried; otherwise those that may not.
fn retryable(log: &str, list: &[Named]) -> Result<Vec<Named>, Vec<String>> {
    let targets: Vec<Target> = targets(log).into_iter().filter(|t| !t.is_good).collect();
    let packages = failed_targets(log);
    let fits = packages.len() == targets.len()
        && packages.iter().zip(&targets).all(|((_, name), target)| *name == target.name);
    if !fits || targets.is_empty() {
        return Err(vec!["cargo test failed, and not by a test alone".to_owned()]);
    }
    let (mut again, mut findings) = (Vec::new(), Vec::new());
    for ((package, name), target) in packages.into_iter().zip(targets) {
        let failed: Vec<String> =
            target.tests.into_iter().filter(|(_, failed)| *failed).map(|(test, _)| test).collect();
        if failed.is_empty() {
            findings.push(format!("{package} {name} did not finish"));
        }
        for test in failed {
            let one = Named { package: package.clone(), target: name.clone(), test };
            if list.contains(&one) {
                again.push(one);
            } else {
                findings.push(format!(
                    "{one} failed; {LIST} does not have it, so it is not tried again"
                ));
            }
        }
    }
    if findings.is_empty() { Ok(again) } else { Err(findings) }
}

/// Entries without a test. A later test of that name would be retried unnoticed.
fn stale(log: &str, list: &[Named]) -> Vec<String> {
    let targets = targets(log);
    let ran = |one: &&Named| {
        let crate_name = one.package.replace('-', "_");
        targets.iter().any(|target| {
            target.name == one.target
                && target.of.as_ref().is_none_or(|of| *of == crate_name)
                && target.tests.iter().any(|(test, _)| *test == one.test)
        })
    };
    let gone = list.iter().filter(|one| !ran(one));
    gone.map(|one| format!("{LIST} has {one}, which did not run: was it renamed?")).collect()
}

impl core::fmt::Display for Named {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} {} {}", self.package, self.target, self.test)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log of two crates with a target of the same name; `verdict` is the result of the second
    /// one's test.
    fn log(verdict: &str, closing: &str) -> String {
        format!(
            "     Running unittests src/lib.rs (target/debug/deps/udccp_emu-a9ff67cb9ecbafac)\n\n\
             running 1 test\ntest pacer::tests::waits ... ok\n\n\
             test result: ok. 1 passed; 0 failed; 0 ignored\n\n\
             \x20    Running tests/data.rs (target/debug/deps/data-e3b1f2cc8d2b1a70)\n\n\
             running 1 test\ntest both_ways ... ok\n\n\
             test result: ok. 1 passed; 0 failed; 0 ignored\n\n\
             \x20    Running tests/data.rs (target/debug/deps/data-0b1f2cc8d2b1a70e)\n\n\
             running 2 tests\ntest both_ways ... {verdict}\ntest bounds - should panic ... ok\n\n\
             {closing}"
        )
    }

    fn failed_log() -> String {
        log(
            "FAILED",
            "failures:\n    both_ways\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n\n\
             error: test failed, to rerun pass `-p udccp-dtls --test data`\n\
             error: 1 target failed:\n    `-p udccp-dtls --test data`\n",
        )
    }

    fn list(text: &str) -> Vec<Named> {
        text.lines().filter_map(entry).collect()
    }

    #[test]
    fn a_listed_test_is_retried() {
        let list = list("# By the clock.\nudccp-dtls --test data both_ways # a relay\n");
        let again = retryable(&failed_log(), &list).unwrap();
        assert_eq!(again[0].to_string(), "udccp-dtls --test data both_ways");
        assert_eq!(again.len(), 1);
    }

    #[test]
    fn another_test_of_the_same_crate_or_name_fails_at_once() {
        let of_others = "udccp-dtls --test data bounds\nudccp-proto --test data both_ways\n\
                         udccp-dtls --lib both_ways\n";
        let findings = retryable(&failed_log(), &list(of_others)).unwrap_err();
        assert_eq!(findings.len(), 1);
        assert!(findings[0].starts_with("udccp-dtls --test data both_ways failed"), "{findings:?}");
    }

    #[test]
    fn crashes_and_compile_errors_are_never_retried() {
        let list = list("udccp-dtls --test data both_ways\n");
        let died = log("ok", "error: 1 target failed:\n    `-p udccp-dtls --test data`\n");
        let findings = retryable(&died, &list).unwrap_err();
        assert_eq!(findings, ["udccp-dtls --test data did not finish"]);
        let broken = "error[E0308]: mismatched types\nerror: could not compile `udccp-dtls`\n";
        assert_eq!(retryable(broken, &list).unwrap_err().len(), 1);
    }

    #[test]
    fn a_listed_name_without_a_test_is_reported() {
        let good = log("ok", "test result: ok. 2 passed; 0 failed; 0 ignored\n");
        let there = "udccp-emu --lib pacer::tests::waits\nudccp-dtls --test data bounds\n";
        assert_eq!(stale(&good, &list(there)), [""; 0]);
        let gone = "udccp-lab --lib pacer::tests::waits\nudccp-dtls --test data no_such\n";
        assert_eq!(stale(&good, &list(gone)).len(), 2);
    }
}
