//! Checks lengths of files, functions and lines, what must not be used below the drivers, and
//! links.

use std::path::Path;

use anyhow::Result;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::sources::{self, Source};
use crate::{Finding, links};

const FILE_LINES: usize = 800;
const FUNCTION_LINES: usize = 70;
const LINE_COLUMNS: usize = 100;
const PROSE_COLUMNS: usize = 120;

/// Crates below the drivers: no clock, no I/O, no threads, and randomness only from named streams.
const PURE: [&str; 10] =
    ["base", "packet", "wire", "cc", "proto", "tcp", "link", "nat", "sim", "metrics"];

/// Words that must not occur in a pure crate, with the reason.
const BANNED: [(&str, &str); 11] = [
    ("std::time::", "time is an argument (udccp_base::Instant)"),
    ("core::time::", "time is an argument (udccp_base::Duration)"),
    ("SystemTime", "time is an argument (udccp_base::Instant)"),
    ("std::thread", "a machine is driven, it starts nothing"),
    ("UdpSocket", "only a driver opens a socket"),
    ("TcpStream", "only a driver opens a socket"),
    ("std::fs", "only a driver opens a file"),
    ("thread_rng", "chance comes from a named stream of one seed"),
    ("RandomState", "the order of a map must repeat"),
    ("HashMap::new()", "the order of a map must repeat; use a BTreeMap or a keyed hasher"),
    ("f64::powf", "not the same bits on every machine; use libm"),
];

/// Text that was probably left by accident.
const LEFTOVERS: [&str; 3] = ["FIXME", "XXX", "dbg!("];

/// Exceptions: the only conversion of clock types, and this list itself.
const ALLOWED: [(&str, &str); 2] =
    [("crates/udccp-base/src/time.rs", "core::time::"), ("xtask/src/tidy.rs", "")];

/// Applies all rules to all sources.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for source in sources::read(root, &[".rs", ".py", ".js"])? {
        findings.extend(check_lengths(&source));
        findings.extend(check_words(&source));
        if source.path.ends_with(".rs") {
            findings.extend(check_functions(&source));
            findings.extend(check_unsafe(&source));
            findings.extend(check_marks(&source));
            findings.extend(check_module(root, &source));
        }
    }
    for page in sources::read(root, &[".md"])? {
        findings.extend(check_prose(&page));
        findings.extend(links::check(root, &page));
    }
    Ok(findings)
}

fn check_lengths(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = source.text.lines().count();
    if lines > FILE_LINES {
        let says = format!("{lines} lines; split it (at most {FILE_LINES}, better 500)");
        findings.push(Finding::new(&source.path, says));
    }
    for (i, line) in source.text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > LINE_COLUMNS && !line.contains("://") {
            let place = format!("{}:{}", source.path, i + 1);
            findings
                .push(Finding::new(place, format!("{columns} columns (at most {LINE_COLUMNS})")));
        }
    }
    findings
}

/// Checks the length of prose lines. Table rows and lines with a picture cannot be wrapped.
fn check_prose(page: &Source) -> Vec<Finding> {
    let too_long = |line: &str| {
        let line = line.trim_start();
        line.chars().count() > PROSE_COLUMNS && !line.starts_with('|') && !line.starts_with("![")
    };
    links::prose_lines(&page.text)
        .filter(|(_, line)| too_long(line))
        .map(|(number, _)| {
            let says = format!("prose of more than {PROSE_COLUMNS} columns; wrap it");
            Finding::new(format!("{}:{number}", page.path), says)
        })
        .collect()
}

fn check_words(source: &Source) -> Vec<Finding> {
    if ALLOWED.iter().any(|(file, word)| *file == source.path && word.is_empty()) {
        return Vec::new();
    }
    let in_pure = PURE.iter().any(|c| source.path.starts_with(&format!("crates/udccp-{c}/src/")));
    let pure = in_pure && !source.path.contains("/tests/") && !source.path.ends_with("/tests.rs");
    let mut findings = Vec::new();
    for (i, line) in source.text.lines().enumerate() {
        let place = || format!("{}:{}", source.path, i + 1);
        // Tests may read files, and by convention only test code follows.
        if line.trim() == "#[cfg(test)]" && source.text.lines().nth(i + 1) == Some("mod tests {") {
            break;
        }
        for word in LEFTOVERS.iter().filter(|w| line.contains(**w)) {
            findings.push(Finding::new(place(), format!("{word} left behind")));
        }
        if !pure || line.trim_start().starts_with("//") {
            continue;
        }
        for (word, why) in BANNED.iter().filter(|(w, _)| line.contains(w)) {
            if !ALLOWED.contains(&(source.path.as_str(), word)) {
                findings.push(Finding::new(place(), format!("{word} below the drivers: {why}")));
            }
        }
    }
    findings
}

/// Checks that pure crates forbid unsafe code at their root.
fn check_unsafe(source: &Source) -> Option<Finding> {
    let root = PURE.iter().any(|c| source.path == format!("crates/udccp-{c}/src/lib.rs"));
    (root && !source.text.contains("#![forbid(unsafe_code)]"))
        .then(|| Finding::new(&source.path, "a pure crate begins with #![forbid(unsafe_code)]"))
}

/// Checks that requirement marks stand above the docstring, which belongs next to its item.
fn check_marks(source: &Source) -> Vec<Finding> {
    let starts = |line: Option<&str>, with| line.is_some_and(|l| l.trim_start().starts_with(with));
    let mut before = None;
    let mut findings = Vec::new();
    for (i, line) in source.text.lines().enumerate() {
        if starts(Some(line), "//= ") && starts(before, "///") {
            let place = format!("{}:{}", source.path, i + 1);
            findings
                .push(Finding::new(place, "a requirement mark below a docstring; put it above"));
        }
        before = Some(line);
    }
    findings
}

/// Checks that the root of a module with submodules is `name/mod.rs`, not `name.rs`.
fn check_module(root: &Path, source: &Source) -> Option<Finding> {
    let folder = source.path.strip_suffix(".rs")?;
    let is_split = source.path.contains("/src/") && root.join(folder).is_dir();
    is_split.then(|| Finding::new(&source.path, format!("call it {folder}/mod.rs")))
}

fn check_functions(source: &Source) -> Vec<Finding> {
    let file = match syn::parse_file(&source.text) {
        Ok(file) => file,
        Err(error) => return vec![Finding::new(&source.path, format!("does not parse: {error}"))],
    };
    let mut finder = Functions { path: &source.path, findings: Vec::new() };
    finder.visit_file(&file);
    finder.findings
}

/// Visits every function and reports those that are too long.
struct Functions<'a> {
    path: &'a str,
    findings: Vec<Finding>,
}

impl Functions<'_> {
    fn measure(&mut self, name: &syn::Ident, block: &syn::Block) {
        let (start, end) = (name.span().start().line, block.span().end().line);
        let lines = end - start + 1;
        if lines > FUNCTION_LINES {
            let says = format!("fn {name} has {lines} lines (at most {FUNCTION_LINES})");
            self.findings.push(Finding::new(format!("{}:{start}", self.path), says));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, f: &'ast syn::ItemFn) {
        self.measure(&f.sig.ident, &f.block);
        visit::visit_item_fn(self, f);
    }

    fn visit_impl_item_fn(&mut self, f: &'ast syn::ImplItemFn) {
        self.measure(&f.sig.ident, &f.block);
        visit::visit_impl_item_fn(self, f);
    }

    fn visit_trait_item_fn(&mut self, f: &'ast syn::TraitItemFn) {
        if let Some(block) = &f.default {
            self.measure(&f.sig.ident, block);
        }
        visit::visit_trait_item_fn(self, f);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: String) -> Source {
        Source { path: path.into(), text }
    }

    fn says(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|f| f.says.as_str()).collect()
    }

    #[test]
    fn long_files_and_lines_are_reported() {
        let findings = check_lengths(&source("a.rs", "x\n".repeat(801) + &"y".repeat(101)));
        assert!(says(&findings)[0].starts_with("802 lines"), "{:?}", says(&findings));
        assert_eq!(findings[1].place, "a.rs:802");
    }

    #[test]
    fn a_long_function_is_reported_with_its_name() {
        let body = "    let _ = 1;\n".repeat(70);
        let text = format!("impl A {{\nfn long() {{\n{body}}}\n}}\nfn short() {{}}\n");
        let findings = check_functions(&source("a.rs", text));
        assert_eq!(says(&findings), ["fn long has 72 lines (at most 70)"]);
    }

    #[test]
    fn a_mark_below_a_docstring_is_reported() {
        let below = "/// What it does.\n//= 4340-1-1\nfn f() {}\n".to_owned();
        assert_eq!(check_marks(&source("a.rs", below))[0].place, "a.rs:2");
        let above = "//= 4340-1-1\n/// What it does.\nfn f() {}\n".to_owned();
        assert!(check_marks(&source("a.rs", above)).is_empty());
    }

    #[test]
    fn clocks_are_banned_below_the_drivers_only() {
        let text = || "use std::time::Instant;\n// std::time::Instant in words\n".to_owned();
        assert_eq!(check_words(&source("crates/udccp-proto/src/a.rs", text())).len(), 1);
        assert!(check_words(&source("crates/udccp/src/a.rs", text())).is_empty());
    }

    #[test]
    fn a_module_with_files_of_its_own_is_a_mod_rs() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let checked = |name: &str| {
            let path = format!("crates/udccp-link/src/{name}");
            check_module(&root, &source(&path, String::new()))
        };
        let finding = checked("delay.rs").expect("a finding");
        assert_eq!(finding.says, "call it crates/udccp-link/src/delay/mod.rs");
        assert!(checked("delay/mod.rs").is_none() && checked("lib.rs").is_none());
    }

    #[test]
    fn a_pure_crate_forbids_unsafe() {
        assert!(check_unsafe(&source("crates/udccp-sim/src/lib.rs", String::new())).is_some());
        assert!(check_unsafe(&source("crates/udccp/src/lib.rs", String::new())).is_none());
    }
}
