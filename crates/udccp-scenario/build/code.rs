//! Finds the code that simulation results depend on, from the Cargo manifests: this crate, the
//! crates of this project that it depends on directly or indirectly, and the versions of all other
//! crates that these depend on.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Prefix of the names of this project's crates.
const PROJECT: &str = "udccp";

/// The code that results depend on.
#[derive(Debug, Default)]
pub(crate) struct Code {
    /// The crates below this one, with the folder of each, or `None` if its sources are not
    /// available.
    pub(crate) crates: BTreeMap<String, Option<PathBuf>>,
    /// Other crates that those depend on, directly or indirectly: `name version`, as locked.
    /// Without a lock file, the names of the direct dependencies.
    pub(crate) others: BTreeSet<String>,
    /// Source files by a name that is the same on all machines.
    pub(crate) files: BTreeMap<String, PathBuf>,
    /// Paths whose change requires a new run of the build script.
    pub(crate) watched: Vec<PathBuf>,
}

/// A dependency in a manifest.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Dependency {
    /// Its name.
    pub(crate) name: String,
    /// The required version, if the manifest itself has it.
    pub(crate) version: Option<String>,
}

impl Code {
    /// The code of the crate in the folder `own` and of all crates below it.
    pub(crate) fn of(own: &Path) -> Self {
        let mut code = Self::default();
        let mut direct = BTreeSet::new();
        code.take_crates(own, own, &mut direct);
        let name = own_name(own);
        for (name, folder) in code.crates.clone() {
            if let Some(folder) = folder {
                code.take_files(&name, &folder, "src");
            }
        }
        code.take_files(&name, own, "src");
        code.watched.push(own.join("Cargo.toml"));
        let lock = own.ancestors().map(|f| f.join("Cargo.lock")).find(|f| f.is_file());
        let locked = lock.as_ref().and_then(|path| fs::read_to_string(path).ok());
        code.watched.extend(lock);
        code.others = locked.map_or_else(|| direct.clone(), |text| closure(&text, &direct));
        code
    }

    /// Adds the project's crates that the one in `folder` depends on, and all below them. Their
    /// other dependencies are added to `direct`.
    fn take_crates(&mut self, own: &Path, folder: &Path, direct: &mut BTreeSet<String>) {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        for Dependency { name, version } in dependencies(&manifest) {
            if !is_of_project(&name) {
                direct.insert(name);
            } else if let Entry::Vacant(place) = self.crates.entry(name) {
                let found = neighbour(own, place.key(), version.as_deref());
                place.insert(found.clone());
                if let Some(found) = found {
                    self.take_crates(own, &found, direct);
                    self.watched.push(found.join("Cargo.toml"));
                }
            }
        }
    }

    fn take_files(&mut self, name: &str, folder: &Path, part: &str) {
        let root = folder.join(part);
        let mut found = Vec::new();
        collect(&root, &mut found);
        for path in found {
            let inside = path.strip_prefix(&root).unwrap_or(&path);
            let parts = inside.iter().map(|p| p.to_string_lossy());
            let label = parts.fold(format!("{name}/{part}"), |label, p| format!("{label}/{p}"));
            self.files.insert(label, path);
        }
        self.watched.push(root);
    }

    /// The hash over names and contents, which does not depend on the location of the sources.
    pub(crate) fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for (name, folder) in &self.crates {
            // Without sources, the version in the program's name identifies them.
            hash.update(format!("crate {name} {}\n", folder.is_some()));
        }
        for other in &self.others {
            hash.update(format!("other {other}\n"));
        }
        for (label, path) in &self.files {
            let bytes = fs::read(path).unwrap_or_default();
            // A checkout may have changed line endings.
            let bytes: Vec<u8> = bytes.into_iter().filter(|b| *b != b'\r').collect();
            hash.update(format!("file {label} {}\n", bytes.len()));
            hash.update(bytes);
        }
        hash.finalize().iter().take(6).map(|b| format!("{b:02x}")).collect()
    }
}

fn is_of_project(name: &str) -> bool {
    name.strip_prefix(PROJECT).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// The name of a crate from its folder, without the version that an unpacked crate has there.
fn own_name(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match name.rsplit_once('-') {
        Some((name, version)) if version.starts_with(|c: char| c.is_ascii_digit()) => {
            name.to_owned()
        }
        _ => name,
    }
}

/// The folder of another crate of the project: next to this one, with the version in its name if
/// Cargo unpacked the crates.
fn neighbour(own: &Path, name: &str, version: Option<&str>) -> Option<PathBuf> {
    let beside = own.parent()?;
    let version = version.map(|v| v.trim_start_matches(['=', '^', ' ']));
    let folders = [Some(name.to_owned()), version.map(|v| format!("{name}-{v}"))];
    let mut folders = folders.into_iter().flatten().map(|folder| beside.join(folder));
    folders.find(|folder| folder.join("Cargo.toml").is_file())
}

/// The names under `[dependencies]` (also of a target), with versions if the manifest has them.
/// Dependencies of tests and of build scripts do not count.
pub(crate) fn dependencies(manifest: &str) -> BTreeSet<Dependency> {
    let mut found: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut inside = false;
    let mut current: Option<String> = None;
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            let is_of = |part: &str| part == "dependencies" || part.ends_with(".dependencies");
            inside = is_of(header);
            // `[dependencies.name]`
            let table = header.rsplit_once('.').filter(|(part, _)| is_of(part));
            current = table.map(|(_, name)| name.trim_matches('"').to_owned());
            found.extend(current.iter().map(|name| (name.clone(), None)));
        } else if let Some(name) = &current {
            if let Some(version) = line.strip_prefix("version").and_then(quoted) {
                found.insert(name.clone(), Some(version));
            }
        } else if inside && line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '"') {
            let end = line.trim_start_matches('"').find(['.', '=', ' ', '"']);
            let name = line.trim_start_matches('"').split_at(end.unwrap_or(0)).0;
            let version = line.split_once("version").and_then(|(_, rest)| quoted(rest));
            found.insert(name.to_owned(), version);
        }
    }
    found.into_iter().map(|(name, version)| Dependency { name, version }).collect()
}

/// The text in the first quotes.
fn quoted(text: &str) -> Option<String> {
    text.split('"').nth(1).map(str::to_owned)
}

/// The packages with these names in a lock file, and all that they depend on, as
/// `name version checksum`. If a name has several versions, all of them count.
fn closure(lock: &str, names: &BTreeSet<String>) -> BTreeSet<String> {
    let mut packages: BTreeMap<String, Vec<(String, Vec<String>)>> = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let line = package.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(" = "));
            line.and_then(quoted).unwrap_or_default()
        };
        let name = value("name");
        let list = package.split_once("dependencies = [").map_or("", |(_, rest)| rest);
        let list = list.split(']').next().unwrap_or_default();
        let below = list.split('"').skip(1).step_by(2);
        let below = below.filter_map(|d| d.split(' ').next()).map(str::to_owned).collect();
        let id = format!("{name} {} {}", value("version"), value("checksum"));
        packages.entry(name).or_default().push((id.trim_end().to_owned(), below));
    }
    let mut found = BTreeSet::new();
    let mut open: Vec<&String> = names.iter().collect();
    while let Some(name) = open.pop() {
        for (id, below) in packages.get(name).into_iter().flatten() {
            if found.insert(id.clone()) {
                open.extend(below);
            }
        }
    }
    found
}

/// All files at or below `path`, except for tests.
fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if path.file_stem().is_some_and(|name| name == "tests") {
        return;
    }
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().for_each(|entry| collect(&entry.path(), files)),
        Err(_) if path.is_file() => files.push(path.to_owned()),
        Err(_) => {}
    }
}
