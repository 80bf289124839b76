//! Compares the public interface of the sockets with a committed text, so that changes show in
//! review.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use public_api::Builder;

use crate::Finding;

/// The committed text.
const FILE: &str = "crates/udccp/public-api.txt";
/// The crate that applications use.
const SOCKETS: &str = "udccp";
/// The crates whose types it re-exports.
const ORIGINS: [&str; 2] = ["udccp-proto", "udccp-wire"];
/// Left out: auto traits, which nobody looks up, and the methods of derived traits, which the
/// traits imply.
const OMITTED: [&str; 9] = [
    "core::marker::Freeze",
    "core::marker::StructuralPartialEq",
    "core::marker::Unpin",
    "core::marker::UnsafeUnpin",
    "core::panic::unwind_safe",
    "::clone(&self) ->",
    "::eq(&self,",
    "::fmt(&self,",
    "::hash<__H",
];
/// At most this many differences are shown.
const SHOWN: usize = 20;

/// Writes the text.
pub(crate) fn write(root: &Path) -> Result<Vec<Finding>> {
    std::fs::write(root.join(FILE), interface(root)?)?;
    Ok(Vec::new())
}

/// Reports differences from the text, and types that a program with only this crate cannot name.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>> {
    let committed = std::fs::read_to_string(root.join(FILE)).unwrap_or_default();
    let found = interface(root)?;
    let unnamed = unnamed(&found);
    let says = |ty| format!("{ty} is part of the interface, and {SOCKETS} does not export it");
    let unnamed: Vec<Finding> =
        unnamed.into_iter().map(|ty| Finding::new(FILE, says(ty))).collect();
    let mut findings = differences(&committed, &found);
    findings.extend(unnamed);
    Ok(findings)
}

fn differences(committed: &str, found: &str) -> Vec<Finding> {
    let (before, now): (BTreeSet<&str>, BTreeSet<&str>) =
        (committed.lines().collect(), found.lines().collect());
    let gone = before.difference(&now).map(|line| format!("- {line}"));
    let new = now.difference(&before).map(|line| format!("+ {line}"));
    let mut findings: Vec<Finding> = gone.chain(new).map(|line| Finding::new(FILE, line)).collect();
    let hidden = findings.len().saturating_sub(SHOWN);
    findings.truncate(SHOWN);
    if !findings.is_empty() || committed != found {
        if hidden > 0 {
            findings.push(Finding::new(FILE, format!("and {hidden} more lines")));
        }
        let says = "the public interface changed. If that is meant: cargo xtask api --accept, \
                    commit the text, and say so in CHANGELOG.md";
        findings.push(Finding::new(FILE, says));
    }
    findings
}

/// The interface of the sockets crate, with the items that it re-exports.
fn interface(root: &Path) -> Result<String> {
    let own = lines(root, SOCKETS, &["--all-features"])?;
    let exported = exported(own.iter().map(String::as_str));
    let mut text = format!("# The public interface of {SOCKETS}; `cargo xtask api` compares it.\n");
    own.iter().for_each(|line| text += &format!("{line}\n"));
    for origin in ORIGINS {
        text += &format!("\n# What it exports of {origin}.\n");
        let module = origin.replace('-', "_");
        for line in lines(root, origin, &[])? {
            if subject(&line, &module).is_some_and(|name| exported.contains(name)) {
                text += &format!("{line}\n");
            }
        }
    }
    Ok(text)
}

/// All words of the lines that re-export something.
fn exported<'a>(lines: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let exports = |line: &&str| line.starts_with("pub use") || line.starts_with("pub type");
    lines.filter(exports).flat_map(words).collect()
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Types of lower crates that occur in the interface but are not exported by the crate itself.
fn unnamed(interface: &str) -> BTreeSet<&str> {
    let exported = exported(interface.lines());
    let own = interface.split("\n# What").next().unwrap_or_default();
    let paths = own.lines().filter(|line| !line.starts_with("# "));
    let paths =
        paths.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && !"_:".contains(c)));
    let below = paths.filter(|path| path.starts_with("udccp_") && path.contains("::"));
    below.filter(|path| !words(path).skip(1).any(|word| exported.contains(word))).collect()
}

/// The item of the crate's root that a line describes.
fn subject<'a>(line: &'a str, module: &str) -> Option<&'a str> {
    let attribute_end =
        if line.starts_with("#[") { line.find("] ").map_or(0, |at| at + 2) } else { 0 };
    let line = &line[attribute_end..];
    // For `impl Trait for Type`, the type; for a function, the part before its arguments.
    let about = line.split_once(" for ").map_or(line, |(_, ty)| ty);
    let about = about.split(['(', '=']).next()?;
    let path = about.split(module).nth(1)?.strip_prefix("::")?;
    words(path).next()
}

/// One line for each public item of a crate, in order.
fn lines(root: &Path, name: &str, flags: &[&str]) -> Result<Vec<String>> {
    let api = Builder::from_rustdoc_json(document(root, name, flags)?)
        .omit_blanket_impls(true)
        .build()
        .with_context(|| {
            format!("the documentation of {name} has another format than public-api")
        })?;
    let lines = api.items().map(ToString::to_string);
    Ok(lines.filter(|line| !OMITTED.iter().any(|name| line.contains(name))).collect())
}

/// Lets rustdoc write the documentation of a crate as JSON.
fn document(root: &Path, name: &str, flags: &[&str]) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(root)
        .env("RUSTDOC", root.join("scripts/rustdoc.sh"))
        .args(["rustdoc", "--quiet", "--locked", "--lib", "--package", name])
        .args(flags)
        .args(["--", "-Zunstable-options", "--output-format", "json"])
        .status()
        .context("cannot run cargo rustdoc")?;
    ensure!(status.success(), "cargo rustdoc of {name} failed");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    Ok(root.join(target).join("doc").join(format!("{}.json", name.replace('-', "_"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_of_a_crate_below_has_to_be_exported() {
        let text = "pub use udccp::State\n\
                    pub fn udccp::f(udccp_proto::state::State) -> udccp_wire::Seqno\n";
        assert_eq!(unnamed(text), BTreeSet::from(["udccp_wire::Seqno"]));
    }

    #[test]
    fn a_line_is_about_the_item_that_it_names_first_or_implements_for() {
        for (line, name) in [
            ("pub enum udccp_proto::CloseReason", Some("CloseReason")),
            ("pub udccp_proto::CloseReason::Reset::code: u8", Some("CloseReason")),
            ("impl core::fmt::Display for udccp_proto::State", Some("State")),
            ("impl From<udccp_proto::A> for udccp_proto::B<u8>", Some("B")),
            ("pub fn udccp_proto::ccid::f(udccp_proto::State) -> u8", Some("ccid")),
            ("pub fn f(udccp_proto::State) -> u8", None),
            ("#[repr(C)] pub struct udccp_proto::State", Some("State")),
        ] {
            assert_eq!(subject(line, "udccp_proto"), name, "{line}");
        }
    }
}
