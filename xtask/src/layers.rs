//! Arrows between crates point down only.

use std::path::Path;

use anyhow::{Context, Result};

use crate::{Fault, sources};

/// Layer by layer, from the bottom. A crate may use crates of lower layers, never its own.
const LAYERS: [(&str, &[&str]); 12] = [
    ("bytes", &["udccp-base", "udccp-packet"]),
    ("packets", &["udccp-wire"]),
    ("parts", &["udccp-cc"]),
    ("machines", &["udccp-proto", "udccp-tcp", "udccp-link", "udccp-nat"]),
    ("machinery", &["udccp-sim", "udccp-metrics"]),
    ("scenario", &["udccp-scenario"]),
    ("drivers", &["udccp-lab", "udccp"]),
    ("mappings", &["udccp-dtls", "udccp-rtp"]),
    ("agents", &["udccp-agent", "udccp-interop"]),
    ("testbeds", &["udccp-testbed"]),
    ("backends", &["udccp-emu", "udccp-linux"]),
    ("faces", &["udccp-cli", "udccp-python", "udccp-preload"]),
];

/// Arrows that point down and are wrong all the same, with the reason.
const FORBIDDEN: [(&str, &str, &str); 7] = [
    ("udccp-sim", "udccp-proto", "the simulator names no protocol"),
    ("udccp-sim", "udccp-tcp", "the simulator names no protocol"),
    ("udccp-sim", "udccp-cc", "the simulator names no protocol"),
    ("udccp-sim", "udccp-wire", "the simulator names no protocol"),
    ("udccp-link", "udccp-wire", "a link looks at no packet"),
    ("udccp-link", "udccp-cc", "a link knows no congestion control"),
    ("udccp-metrics", "udccp-base", "metrics are plain arithmetic on numbers"),
];

/// Reads every manifest below `crates/` and returns the arrows that break the rule.
pub(crate) fn check(root: &Path) -> Result<Vec<Fault>> {
    let mut faults = Vec::new();
    for folder in sources::crates(root)? {
        let file = folder.join("Cargo.toml");
        let text = std::fs::read_to_string(&file)?;
        let manifest: toml::Table =
            text.parse().with_context(|| format!("parsing {}", file.display()))?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for used in dependencies(&manifest) {
            if let Some(says) = fault_of(&name, &used) {
                faults.push(Fault::new(format!("crates/{name}/Cargo.toml"), says));
            }
        }
        if layer_of(&name).is_none() {
            faults.push(Fault::new(format!("crates/{name}"), "no layer; add it to xtask layers"));
        }
    }
    Ok(faults)
}

/// What a crate is built from (what only its tests use may point anywhere).
fn dependencies(manifest: &toml::Table) -> Vec<String> {
    let sections = ["dependencies", "build-dependencies"];
    let tables = sections.iter().filter_map(|s| manifest.get(*s)?.as_table());
    tables.flat_map(|t| t.keys().cloned()).filter(|k| k.starts_with("udccp")).collect()
}

fn layer_of(name: &str) -> Option<usize> {
    LAYERS.iter().position(|(_, crates)| crates.contains(&name))
}

fn fault_of(name: &str, used: &str) -> Option<String> {
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
        assert!(fault_of("udccp-proto", "udccp-wire").is_none());
        assert!(fault_of("udccp-wire", "udccp-proto").unwrap().contains("down only"));
        assert!(fault_of("udccp-tcp", "udccp-proto").is_some(), "same layer");
        assert!(fault_of("udccp-sim", "udccp-tcp").unwrap().contains("names no protocol"));
    }

    #[test]
    fn only_what_a_crate_is_built_from_counts() {
        let text = "[dependencies]\nudccp-base = \"1\"\n[dev-dependencies]\nudccp-lab = \"1\"";
        assert_eq!(dependencies(&text.parse().unwrap()), ["udccp-base"]);
    }
}
