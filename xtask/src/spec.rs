//! From requirement to code to test: every row of `spec/*.toml` is claimed and tested.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::{Fault, sources};

/// What to do with `spec/coverage.txt`.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Snapshot {
    Write,
    Compare,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpecFile {
    #[serde(rename = "requirement")]
    requirements: Vec<Requirement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Requirement {
    id: String,
    level: Level,
    says: String,
    state: State,
    reason: Option<String>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Level {
    #[serde(rename = "MUST")]
    Must,
    #[serde(rename = "SHOULD")]
    Should,
    #[serde(rename = "MAY")]
    May,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
enum State {
    Done,
    Exception,
    Todo,
}

/// Where the sources name a requirement.
#[derive(Default)]
struct Claims {
    code: BTreeMap<String, BTreeSet<String>>,
    tests: BTreeMap<String, BTreeSet<String>>,
}

/// Checks all rows against all sources; writes or compares the snapshot.
pub(crate) fn check(root: &Path, snapshot: Snapshot) -> Result<Vec<Fault>> {
    let claims = read_claims(root)?;
    let mut faults = Vec::new();
    let mut report = String::new();
    let mut known = BTreeSet::new();
    for file in spec_files(root)? {
        let name = file.strip_suffix(".toml").unwrap_or(&file).to_owned();
        let text = std::fs::read_to_string(root.join("spec").join(&file))?;
        let spec: SpecFile = toml::from_str(&text).with_context(|| format!("spec/{file}"))?;
        for row in &spec.requirements {
            let place = format!("spec/{file} {}", row.id);
            if !known.insert(row.id.clone()) {
                faults.push(Fault::new(&place, "the id stands twice"));
            }
            faults.extend(faults_of(row, &claims).into_iter().map(|s| Fault::new(&place, s)));
        }
        summarise(&mut report, &name, &spec.requirements, &claims);
    }
    let named = claims.code.iter().chain(&claims.tests);
    for (id, files) in named.filter(|(id, _)| !known.contains(*id)) {
        let place = files.iter().next().cloned().unwrap_or_default();
        faults.push(Fault::new(place, format!("names {id}, which no file in spec/ lists")));
    }
    faults.extend(keep_snapshot(root, &report, snapshot)?);
    Ok(faults)
}

fn spec_files(root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root.join("spec")).context("reading spec/")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".toml") {
            files.push(name);
        }
    }
    files.sort();
    Ok(files)
}

fn read_claims(root: &Path) -> Result<Claims> {
    let mut claims = Claims::default();
    for source in sources::read(root, &[".rs"])? {
        for line in source.text.lines() {
            let Some(words) = line.trim().strip_prefix("//= ") else { continue };
            let mut words = words.split_whitespace();
            let (Some(id), kind) = (words.next(), words.next()) else { continue };
            let map = if kind == Some("test") { &mut claims.tests } else { &mut claims.code };
            map.entry(id.to_owned()).or_default().insert(source.path.clone());
        }
    }
    Ok(claims)
}

fn faults_of(row: &Requirement, claims: &Claims) -> Vec<String> {
    let mut faults = Vec::new();
    let claimed = claims.code.contains_key(&row.id);
    let tested = claims.tests.contains_key(&row.id);
    if row.says.trim().is_empty() {
        faults.push("says nothing".to_owned());
    }
    match row.state {
        State::Done if !claimed => faults.push(format!("done, but no code says //= {}", row.id)),
        State::Done if !tested => {
            faults.push(format!("done, but no test says //= {} test", row.id))
        }
        State::Exception | State::Todo if row.reason.as_ref().is_none_or(|r| r.is_empty()) => {
            faults.push("not done, and no reason is given".to_owned());
        }
        _ => {}
    }
    faults
}

/// One block a document: counts by level, then the rows that are not done.
fn summarise(report: &mut String, name: &str, rows: &[Requirement], claims: &Claims) {
    let _ = writeln!(report, "{name}");
    for level in [Level::Must, Level::Should, Level::May] {
        let of_level: Vec<_> = rows.iter().filter(|r| r.level == level).collect();
        let count = |state| of_level.iter().filter(|r| r.state == state).count();
        let (done, all) = (count(State::Done), of_level.len());
        let percent = if all == 0 { 100.0 } else { 100.0 * done as f64 / all as f64 };
        let level = format!("{level:?}").to_uppercase();
        let (exception, todo) = (count(State::Exception), count(State::Todo));
        let _ = writeln!(
            report,
            "  {level:<6} {done:>3} of {all:>3} done ({percent:.1} %), {exception} exceptions, \
             {todo} todo"
        );
    }
    let bound: Vec<_> = rows.iter().filter(|r| r.level != Level::May).collect();
    let done = bound.iter().filter(|r| r.state == State::Done).count();
    let percent = 100.0 * done as f64 / bound.len().max(1) as f64;
    let _ = writeln!(report, "  MUST and SHOULD together: {percent:.1} % done and tested");
    for row in rows {
        let mark = match row.state {
            State::Done => "done",
            State::Exception => "exception",
            State::Todo => "todo",
        };
        let tests = claims.tests.get(&row.id).map_or(0, BTreeSet::len);
        let _ = writeln!(
            report,
            "    {:<18} {:<6} {mark:<9} tests in {tests} files",
            row.id,
            format!("{:?}", row.level).to_uppercase()
        );
    }
}

fn keep_snapshot(root: &Path, report: &str, snapshot: Snapshot) -> Result<Option<Fault>> {
    let file = root.join("spec/coverage.txt");
    let old = std::fs::read_to_string(&file).unwrap_or_default();
    if old == report {
        return Ok(None);
    }
    if snapshot == Snapshot::Write {
        std::fs::write(&file, report).context("writing spec/coverage.txt")?;
        return Ok(None);
    }
    Ok(Some(Fault::new("spec/coverage.txt", "out of date; run cargo xtask spec and commit it")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(state: State, reason: Option<&str>) -> Requirement {
        let reason = reason.map(str::to_owned);
        Requirement { id: "1-1".into(), level: Level::Must, says: "x".into(), state, reason }
    }

    #[test]
    fn done_needs_code_and_test() {
        let mut claims = Claims::default();
        assert!(faults_of(&row(State::Done, None), &claims)[0].contains("no code"));
        claims.code.insert("1-1".into(), BTreeSet::new());
        assert!(faults_of(&row(State::Done, None), &claims)[0].contains("no test"));
        claims.tests.insert("1-1".into(), BTreeSet::new());
        assert!(faults_of(&row(State::Done, None), &claims).is_empty());
    }

    #[test]
    fn what_is_not_done_needs_a_reason() {
        let claims = Claims::default();
        assert_eq!(faults_of(&row(State::Todo, None), &claims).len(), 1);
        assert!(faults_of(&row(State::Exception, Some("because")), &claims).is_empty());
    }
}
