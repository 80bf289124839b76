//! Checks that crates depend only on lower layers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};

use crate::{Finding, sources};

/// The page that explains the crates.
const PAGE: &str = "ARCHITECTURE.md";

/// The layers from the bottom up. A crate may use crates of lower layers, but not of its own.
pub(crate) const LAYERS: [(&str, &[&str]); 12] = [
    ("bytes", &["udccp-base", "udccp-packet"]),
    ("packets", &["udccp-wire"]),
    ("parts", &["udccp-cc"]),
    ("machines", &["udccp-proto", "udccp-tcp", "udccp-link", "udccp-nat"]),
    ("machinery", &["udccp-sim", "udccp-metrics"]),
    ("scenario", &["udccp-scenario"]),
    ("drivers", &["udccp-lab", "udccp", "udccp-netns", "udccp-preload", "udccp-testkit"]),
    ("mappings", &["udccp-dtls", "udccp-rtp", "udccp-broker"]),
    ("agents", &["udccp-agent", "udccp-interop"]),
    ("testbeds", &["udccp-testbed"]),
    ("backends", &["udccp-emu", "udccp-linux", "udccp-ns2"]),
    ("faces", &["udccp-cli", "udccp-python", "udccp-capi", "udccp-bench"]),
];

/// Dependencies that point down but are forbidden, with the reason.
const FORBIDDEN: [(&str, &str, &str); 7] = [
    ("udccp-sim", "udccp-proto", "the simulator names no protocol"),
    ("udccp-sim", "udccp-tcp", "the simulator names no protocol"),
    ("udccp-sim", "udccp-cc", "the simulator names no protocol"),
    ("udccp-sim", "udccp-wire", "the simulator names no protocol"),
    ("udccp-link", "udccp-wire", "a link looks at no packet"),
    ("udccp-link", "udccp-cc", "a link knows no congestion control"),
    ("udccp-metrics", "udccp-base", "metrics are plain arithmetic on numbers"),
];

/// The crates that each crate below `crates/` uses, according to its manifest.
pub(crate) fn uses(root: &Path) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut all = BTreeMap::new();
    for folder in sources::crates(root)? {
        let file = folder.join("Cargo.toml");
        let text = std::fs::read_to_string(&file)?;
        let manifest: toml::Table =
            text.parse().with_context(|| format!("parsing {}", file.display()))?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        all.insert(name, dependencies(&manifest).into_iter().collect());
    }
    Ok(all)
}

/// Reads all manifests below `crates/`. Reports dependencies that break the rule, crates without a
/// layer, and crates that are missing in the table of `ARCHITECTURE.md`.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let page = std::fs::read_to_string(root.join(PAGE))?;
    for (name, uses) in uses(root)? {
        for used in uses {
            if let Some(says) = violation(&name, &used) {
                findings.push(Finding::new(format!("crates/{name}/Cargo.toml"), says));
            }
        }
        if layer_of(&name).is_none() {
            findings
                .push(Finding::new(format!("crates/{name}"), "no layer; add it to xtask layers"));
        }
        if !has_row(&page, &name) {
            findings.push(Finding::new(PAGE, format!("the table of crates has no row of {name}")));
        }
    }
    Ok(findings)
}

/// Whether the table of crates has a row for this one.
fn has_row(page: &str, name: &str) -> bool {
    page.lines().any(|line| line.starts_with(&format!("| `{name}` |")))
}

/// Dependencies of a crate on any system, without those of its tests, which are not restricted.
fn dependencies(manifest: &toml::Table) -> Vec<String> {
    let sections = ["dependencies", "build-dependencies"];
    let of_systems = manifest.get("target").and_then(|t| t.as_table()).into_iter().flatten();
    let places = of_systems.filter_map(|(_, system)| system.as_table()).chain([manifest]);
    let tables = places.flat_map(|place| sections.iter().filter_map(|s| place.get(*s)?.as_table()));
    tables.flat_map(|t| t.keys().cloned()).filter(|k| k.starts_with("udccp")).collect()
}

fn layer_of(name: &str) -> Option<usize> {
    LAYERS.iter().position(|(_, crates)| crates.contains(&name))
}

fn violation(name: &str, used: &str) -> Option<String> {
    if let Some(f) = FORBIDDEN.iter().find(|f| f.0 == name && f.1 == used) {
        return Some(format!("uses {used}, but {}", f.2));
    }
    let (own, other) = (layer_of(name)?, layer_of(used)?);
    (other >= own).then(|| {
        let (own, other) = (LAYERS[own].0, LAYERS[other].0);
        format!("{name} ({own}) uses {used} ({other}): arrows go down only")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_go_down_only() {
        assert!(violation("udccp-proto", "udccp-wire").is_none());
        assert!(violation("udccp-wire", "udccp-proto").unwrap().contains("down only"));
        assert!(violation("udccp-tcp", "udccp-proto").is_some(), "same layer");
        assert!(violation("udccp-sim", "udccp-tcp").unwrap().contains("names no protocol"));
    }

    #[test]
    fn dependencies_of_tests_do_not_count() {
        let text = "[dependencies]\nudccp-base = \"1\"\n[dev-dependencies]\nudccp-lab = \"1\"";
        assert_eq!(dependencies(&text.parse().unwrap()), ["udccp-base"]);
        let text = "[target.'cfg(unix)'.dependencies]\nudccp-lab = \"1\"\nlibc = \"1\"";
        assert_eq!(dependencies(&text.parse().unwrap()), ["udccp-lab"], "of one system");
    }

    #[test]
    fn a_crate_is_named_by_a_row_of_its_own() {
        let page = "`udccp-sim` in words\n| `udccp-base` | time |\n";
        assert!(has_row(page, "udccp-base") && !has_row(page, "udccp-sim"));
        assert!(!has_row(page, "udccp"));
    }
}
