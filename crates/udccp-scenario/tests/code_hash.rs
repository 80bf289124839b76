//! The key of a stored result covers all code that the result depends on, and nothing else.

#[path = "../build/code.rs"]
#[allow(dead_code, reason = "Cargo asks for what is to be watched")]
mod code;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use code::{Code, Dependency, dependencies};
use serde_json::Value;

fn own() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The target triple of this machine.
fn host() -> String {
    let out = Command::new(env!("CARGO")).arg("-vV").output().expect("cargo -vV");
    let says = String::from_utf8(out.stdout).expect("text");
    says.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host").to_owned()
}

/// The crates of the workspace that one depends on, directly or indirectly, according to Cargo; and
/// the external packages that those depend on.
fn dependencies_according_to_cargo() -> (BTreeSet<String>, BTreeSet<String>) {
    // Limited to the packages of this system: those of other systems may never have been fetched.
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--offline", "--locked"])
        .args(["--filter-platform", &host()])
        .current_dir(own())
        .output()
        .expect("cargo metadata");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let all: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> =
        list(&all["packages"]).into_iter().map(|p| (text(&p["id"]), p)).collect();
    let below: BTreeMap<String, Vec<String>> = list(&all["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let is_normal = |d: &&Value| list(&d["dep_kinds"]).iter().any(|k| k["kind"].is_null());
            let deps = list(&node["deps"]);
            (text(&node["id"]), deps.iter().filter(is_normal).map(|d| text(&d["pkg"])).collect())
        })
        .collect();
    let is_local = |id: &str| packages[id]["source"].is_null();
    let this = packages.keys().find(|id| text(&packages[*id]["name"]) == "udccp-scenario");
    let this = this.expect("this crate").clone();
    let (mut local, mut others) = (BTreeSet::new(), BTreeSet::new());
    let mut open: Vec<String> = below[&this].clone();
    while let Some(id) = open.pop() {
        let package = &packages[&id];
        let into = if is_local(&id) { &mut local } else { &mut others };
        let version = text(&package["version"]);
        let name = text(&package["name"]);
        if into.insert(if is_local(&id) { name } else { format!("{name} {version}") }) {
            open.extend(below[&id].iter().cloned());
        }
    }
    (local, others)
}

#[test]
fn every_lower_crate_is_in_the_run_key() {
    let code = Code::of(&own());
    let (local, others) = dependencies_according_to_cargo();
    assert_eq!(code.crates.keys().cloned().collect::<BTreeSet<_>>(), local);
    assert!(local.contains("udccp-nat"), "hosts behind a NAT are simulated too");
    for name in &local {
        let file = format!("{name}/src/lib.rs");
        assert!(code.files.contains_key(&file), "{file} is not in the key");
    }
    // The lock file also has crates of other systems, so it may list more than Cargo uses here.
    let locked = |id: &String| code.others.iter().any(|o| o.starts_with(&format!("{id} ")));
    let missing: Vec<&String> = others.iter().filter(|id| !locked(id)).collect();
    assert!(missing.is_empty(), "not in the key: {missing:?}");
    assert!(!code.others.iter().any(|o| o.starts_with("parquet ")), "no result is made by it");
}

#[test]
fn report_code_is_not_in_the_run_key() {
    let code = Code::of(&own());
    assert!(code.files.contains_key("udccp-scenario/src/transports/nat.rs"));
    assert!(code.files.contains_key("udccp-scenario/src/document/reader.rs"));
    let outside = code.files.keys().find(|f| f.starts_with("udccp-lab/"));
    assert_eq!(outside, None, "the laboratory plans, stores and reports");
}

/// Creates a tree of two small crates.
fn tree(root: &Path, changes: &[(&str, &str)]) -> PathBuf {
    let mut files = BTreeMap::from([
        ("udccp-scenario/Cargo.toml", "[dependencies]\nudccp-sim.workspace = true\ncsv = \"1\"\n"),
        ("udccp-scenario/src/lib.rs", "mod run;"),
        ("udccp-scenario/src/run.rs", "fn run() {}"),
        ("udccp-sim/Cargo.toml", "[dependencies]\nudccp-nat = { path = \"../udccp-nat\" }\n"),
        ("udccp-sim/src/lib.rs", "fn sim() {}"),
        ("udccp-sim/src/tests.rs", "fn test() {}"),
        ("udccp-nat/Cargo.toml", "[dependencies.libm]\nversion = \"0.2\"\n"),
        ("udccp-nat/src/lib.rs", "fn nat() {}"),
    ]);
    files.extend(changes.iter().copied());
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    root.join("udccp-scenario")
}

fn digest(changes: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    Code::of(&tree(folder.path(), changes)).digest()
}

#[test]
fn nat_changes_change_the_run_key_and_report_changes_do_not() {
    let before = digest(&[]);
    assert_eq!(before, digest(&[]), "the place of the folder is not in it");
    for kept in [
        ("udccp-lab/src/report/mod.rs", "fn page() {}"),
        ("udccp-sim/src/tests.rs", "fn other() {}"),
        ("udccp-sim/src/lib.rs", "fn sim() {}"),
        ("udccp-other/src/lib.rs", "fn unused() {}"),
    ] {
        assert_eq!(digest(&[kept]), before, "{kept:?}");
    }
    for changed in [
        ("udccp-scenario/src/document/mod.rs", "fn read() {}"),
        ("udccp-nat/src/lib.rs", "fn nat() { }"),
        ("udccp-nat/src/deep/filter.rs", "fn filter() {}"),
        ("udccp-scenario/src/run.rs", "fn run() { }"),
        ("udccp-sim/Cargo.toml", "[dependencies]\n"),
        ("udccp-nat/Cargo.toml", "[dependencies]\nrand_core.workspace = true\n"),
    ] {
        assert_ne!(digest(&[changed]), before, "{changed:?}");
    }
    assert_eq!(
        digest(&[("udccp-nat/src/lib.rs", "fn nat() {}\n")]),
        digest(&[("udccp-nat/src/lib.rs", "fn nat() {}\r\n")]),
        "ends of lines are those of a checkout"
    );
}

/// Cargo unpacks a package next to others, with its version in the folder's name, and rewrites its
/// manifest.
#[test]
fn unpacked_packages_have_the_key_of_the_checkout() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (checkout, unpacked) = (folder.path().join("crates"), folder.path().join("registry"));
    let own = tree(&checkout, &[]);
    tree(
        &unpacked,
        &[
            (
                "udccp-scenario/Cargo.toml",
                "[dependencies.csv]\nversion = \"1\"\n\
                 [dependencies.udccp-sim]\nversion = \"0.1.0\"\n",
            ),
            ("udccp-sim/Cargo.toml", "[dependencies.udccp-nat]\nversion = \"=0.1.0\"\n"),
        ],
    );
    for name in ["udccp-scenario", "udccp-sim", "udccp-nat"] {
        let to = unpacked.join(format!("{name}-0.1.0"));
        fs::rename(unpacked.join(name), to).expect("a rename");
    }
    let unpacked = Code::of(&unpacked.join("udccp-scenario-0.1.0"));
    let checkout = Code::of(&own);
    assert_eq!(unpacked.digest(), checkout.digest());
    assert_eq!(checkout.files.len(), 4);
}

#[test]
fn dependencies_are_read_in_every_form() {
    let manifest = r#"
[package]
name = "x"
[dependencies]
udccp-base.workspace = true
udccp-wire = { path = "../udccp-wire", version = "0.1.0" } # a comment
libm = "0.2"
[dependencies.udccp-cc]
version = "0.2.0"
features = ["a"]
[target.'cfg(unix)'.dependencies]
nix = "1"
[dev-dependencies]
proptest = "1"
[dev-dependencies.insta]
version = "1"
[build-dependencies]
sha2 = "1"
[features]
default = ["std"]
"#;
    let found = dependencies(manifest);
    let named: Vec<(&str, Option<&str>)> =
        found.iter().map(|Dependency { name, version }| (&**name, version.as_deref())).collect();
    let expected = [
        ("libm", None),
        ("nix", None),
        ("udccp-base", None),
        ("udccp-cc", Some("0.2.0")),
        ("udccp-wire", Some("0.1.0")),
    ];
    assert_eq!(named, expected);
}
