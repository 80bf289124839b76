//! Checks the requirement trace: every row of `spec/*.toml` is claimed by code and tested.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::{Finding, sources};

/// Whether to write `spec/coverage.txt` or to compare it.
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
#[serde(rename_all = "kebab-case")]
enum State {
    Done,
    Exception,
    Todo,
    /// Is about others: registries, authors of profiles, link layers. Not counted.
    NotOurs,
    /// Its condition cannot occur, because of another choice or because an option is not offered.
    /// Counted apart.
    NotArising,
}

/// Places in the sources that name a requirement.
#[derive(Default)]
struct Claims {
    code: BTreeMap<String, BTreeSet<String>>,
    tests: BTreeMap<String, BTreeSet<String>>,
}

/// Checks all rows against all sources, and writes or compares the snapshot.
pub(crate) fn check(root: &Path, snapshot: Snapshot) -> Result<Vec<Finding>> {
    let claims = read_claims(root)?;
    let mut findings = Vec::new();
    let mut report = String::new();
    let mut counts = Vec::new();
    let mut known = BTreeSet::new();
    for file in spec_files(root)? {
        let name = file.strip_suffix(".toml").unwrap_or(&file).to_owned();
        let text = std::fs::read_to_string(root.join("spec").join(&file))?;
        let spec: SpecFile = toml::from_str(&text).with_context(|| format!("spec/{file}"))?;
        for row in &spec.requirements {
            let place = format!("spec/{file} {}", row.id);
            if !known.insert(row.id.clone()) {
                findings.push(Finding::new(&place, "the id appears twice"));
            }
            findings.extend(findings_of(row, &claims).into_iter().map(|s| Finding::new(&place, s)));
        }
        counts.push(Counts::of(&name, &spec.requirements));
        list(&mut report, &name, &spec.requirements, &claims);
    }
    let named = claims.code.iter().chain(&claims.tests);
    for (id, files) in named.filter(|(id, _)| !known.contains(*id)) {
        let place = files.iter().next().cloned().unwrap_or_default();
        findings.push(Finding::new(place, format!("names {id}, which no file in spec/ lists")));
    }
    let table = table(&counts);
    let report = format!("{table}\n{report}");
    findings.extend(keep(root, "spec/coverage.txt", &report, snapshot)?);
    for (name, text) in [(PAGE, table), (README, sentence(&counts))] {
        let page = std::fs::read_to_string(root.join(name)).with_context(|| name.to_owned())?;
        match between_marks(&page, &text) {
            Some(page) => findings.extend(keep(root, name, &page, snapshot)?),
            None => findings.push(Finding::new(name, format!("has no {BEGIN} and {END}"))),
        }
    }
    Ok(findings)
}

/// Number of rows of one level that are done, exceptions and todo.
#[derive(Clone, Copy, Default)]
struct Tally([usize; 3]);

impl Tally {
    /// `done of all`, and what is missing.
    fn text(self) -> String {
        let [done, exceptions, todo] = self.0;
        let todo = if todo == 0 { String::new() } else { format!(", {todo} todo") };
        format!("{done} of {}{todo} | {exceptions}", self.0.iter().sum::<usize>())
    }
}

/// Row counts of one document by level.
struct Counts {
    name: String,
    levels: [Tally; 3],
    /// MUST and SHOULD rows that do not arise.
    not_arising: usize,
}

impl Counts {
    fn of(name: &str, rows: &[Requirement]) -> Self {
        let (mut levels, mut not_arising) = ([Tally::default(); 3], 0);
        for row in rows {
            let place = match row.state {
                State::Done => 0,
                State::Exception => 1,
                State::Todo => 2,
                State::NotOurs => continue,
                State::NotArising => {
                    not_arising += usize::from(row.level != Level::May);
                    continue;
                }
            };
            levels[row.level as usize].0[place] += 1;
        }
        Self { name: name.replace("rfc", "RFC "), levels, not_arising }
    }
}

/// A table of all documents with their sum.
fn table(counts: &[Counts]) -> String {
    let mut text = String::from(
        "| document | MUST done | exceptions | SHOULD done | exceptions | MAY done | exceptions | \
         cannot arise |\n|---|---|---|---|---|---|---|---|\n",
    );
    let mut sum = [Tally::default(); 3];
    for of in counts {
        let levels = of.levels.map(Tally::text).join(" | ");
        let _ = writeln!(text, "| {} | {levels} | {} |", of.name, of.not_arising);
        for (all, one) in sum.iter_mut().zip(of.levels) {
            (0..3).for_each(|i| all.0[i] += one.0[i]);
        }
    }
    let not_arising: usize = counts.iter().map(|of| of.not_arising).sum();
    let _ = writeln!(text, "| all | {} | {not_arising} |", sum.map(Tally::text).join(" | "));
    text
}

/// A sentence with the sum of all documents.
fn sentence(counts: &[Counts]) -> String {
    let met = |level: usize| {
        let of = counts.iter().map(|of| of.levels[level].0);
        let (done, all) = of.fold((0, 0), |(done, all), tally| {
            (done + tally[0], all + tally.iter().sum::<usize>())
        });
        format!("{done} of {all}")
    };
    format!(
        "Of the requirements of {} RFCs, {} MUST, {} SHOULD and {} MAY are met,\neach with its \
         code and its test. All others have a stated reason.\n",
        counts.len(),
        met(Level::Must as usize),
        met(Level::Should as usize),
        met(Level::May as usize)
    )
}

const README: &str = "README.md";
/// The page with the table of all documents.
const PAGE: &str = "docs/reference/requirements.md";
const BEGIN: &str = "<!-- requirements: by cargo xtask spec -->";
const END: &str = "<!-- end of requirements -->";

/// Replaces the text between the marks of the page with `table`.
fn between_marks(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{table}{END}{after}"))
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

fn findings_of(row: &Requirement, claims: &Claims) -> Vec<String> {
    let mut findings = Vec::new();
    let claimed = claims.code.contains_key(&row.id);
    let tested = claims.tests.contains_key(&row.id);
    if row.says.trim().is_empty() {
        findings.push("says nothing".to_owned());
    }
    match row.state {
        State::Done if !claimed => findings.push(format!("done, but no code says //= {}", row.id)),
        State::Done if !tested => {
            findings.push(format!("done, but no test says //= {} test", row.id))
        }
        State::NotOurs if claimed => findings.push("not ours, but code claims it".to_owned()),
        State::NotArising if claimed => {
            findings.push("cannot arise, but code claims it".to_owned());
        }
        State::Exception | State::Todo | State::NotOurs | State::NotArising
            if row.reason.as_ref().is_none_or(|r| r.is_empty()) =>
        {
            findings.push("not done, and no reason is given".to_owned());
        }
        _ => {}
    }
    findings
}

/// Lists the rows of one document.
fn list(report: &mut String, name: &str, rows: &[Requirement], claims: &Claims) {
    let _ = writeln!(report, "{name}");
    for row in rows {
        let mark = match row.state {
            State::Done => "done",
            State::Exception => "exception",
            State::Todo => "todo",
            State::NotOurs => "not ours",
            State::NotArising => "cannot arise",
        };
        let tests = claims.tests.get(&row.id).map_or(0, BTreeSet::len);
        let level = format!("{:?}", row.level).to_uppercase();
        let _ = writeln!(report, "    {:<18} {level:<6} {mark:<12} tests in {tests} files", row.id);
    }
}

/// Writes a file, or reports that it is out of date.
fn keep(root: &Path, name: &str, text: &str, snapshot: Snapshot) -> Result<Option<Finding>> {
    let file = root.join(name);
    if std::fs::read_to_string(&file).unwrap_or_default() == text {
        return Ok(None);
    }
    if snapshot == Snapshot::Write {
        std::fs::write(&file, text).with_context(|| format!("writing {name}"))?;
        return Ok(None);
    }
    Ok(Some(Finding::new(name, "out of date; run cargo xtask spec and commit it")))
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
        assert!(findings_of(&row(State::Done, None), &claims)[0].contains("no code"));
        claims.code.insert("1-1".into(), BTreeSet::new());
        assert!(findings_of(&row(State::Done, None), &claims)[0].contains("no test"));
        claims.tests.insert("1-1".into(), BTreeSet::new());
        assert!(findings_of(&row(State::Done, None), &claims).is_empty());
    }

    #[test]
    fn rows_not_done_need_a_reason() {
        let claims = Claims::default();
        assert_eq!(findings_of(&row(State::Todo, None), &claims).len(), 1);
        assert!(findings_of(&row(State::Exception, Some("because")), &claims).is_empty());
    }

    #[test]
    fn rows_not_ours_are_neither_claimed_nor_counted() {
        let mut claims = Claims::default();
        let theirs = row(State::NotOurs, Some("asks the registry"));
        assert!(findings_of(&theirs, &claims).is_empty());
        claims.code.insert("1-1".into(), BTreeSet::new());
        assert!(findings_of(&theirs, &claims)[0].contains("not ours"));
        let elsewhere = row(State::NotArising, Some("the other method is used"));
        assert!(findings_of(&elsewhere, &claims)[0].contains("cannot arise"));
        let rest = [row(State::Done, None), row(State::Exception, Some("because"))];
        let rows: Vec<_> = [theirs, elsewhere].into_iter().chain(rest).collect();
        let table = table(&[Counts::of("rfc1", &rows)]);
        assert!(table.contains("| RFC 1 | 1 of 2 | 1 | 0 of 0 | 0 | 0 of 0 | 0 | 1 |"), "{table}");
        let sentence = sentence(&[Counts::of("rfc1", &rows), Counts::of("rfc2", &rows)]);
        assert!(sentence.contains("2 RFCs, 2 of 4 MUST, 0 of 0 SHOULD"), "{sentence}");
    }

    #[test]
    fn the_table_goes_between_its_marks() {
        let page = format!("a\n{BEGIN}\nold\n{END}\nb");
        let new = between_marks(&page, "new\n").unwrap();
        assert_eq!(new, format!("a\n{BEGIN}\nnew\n{END}\nb"));
        assert_eq!(between_marks("no marks", "new"), None);
    }
}
