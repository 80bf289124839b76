//! Judges claims on our numbers and on the published ones.

use super::basis::Basis;
use super::cell::Cell;
use super::table::TableResult;
use crate::schema::{Bound, Claim, Filter, Origin, Predicate, Side};

/// A claim with its two verdicts.
#[derive(Debug)]
pub struct JudgedClaim<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// On our numbers.
    pub ours: Judgement,
    /// On the published numbers.
    pub published: Judgement,
}

/// A verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Whether it holds; `None` if there are no numbers, or too few runs.
    pub holds: Option<bool>,
    /// Whether an interval (of two runs, their range) includes the bound, so that chance could
    /// change the verdict.
    pub in_doubt: bool,
    /// The cells that decide, in words.
    pub evidence: String,
    /// The basis of the weakest cell, if there are too few runs.
    pub early: Option<Basis>,
    /// The comparisons that decide: those that fail, or the one with the smallest margin.
    pub checks: Vec<Check>,
    /// How many comparisons there are.
    pub asked: usize,
}

/// How many claims of one origin there are, and how they are judged on our numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClaimCount {
    /// All of them.
    pub claims: usize,
    /// Those for which there are numbers.
    pub judged: usize,
    /// Those that hold.
    pub hold: usize,
}

/// Claims counted by origin, in the order of [`Origin::WORDS`]. Those of a study and those of this
/// project are never counted together.
pub fn count_by_origin(claims: &[JudgedClaim<'_>]) -> Vec<(Origin, ClaimCount)> {
    let count = |origin: Origin| {
        let of = || claims.iter().filter(move |c| c.claim.origin == origin);
        ClaimCount {
            claims: of().count(),
            judged: of().filter(|c| c.ours.holds.is_some()).count(),
            hold: of().filter(|c| c.ours.holds == Some(true)).count(),
        }
    };
    Origin::WORDS.iter().map(|(_, origin)| (*origin, count(*origin))).collect()
}

/// A comparison that a claim requires, with its margin.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The cell, or both cells, in words.
    pub place: String,
    /// The value found.
    pub found: String,
    /// The value required.
    pub asked: String,
    margin: f64,
    half_width: f64,
}

impl Check {
    /// In one line: `TCP CUBIC, 25 ms: 0.93 (asked: above 0.9)`.
    pub(crate) fn text(&self) -> String {
        let Self { place, found, asked, .. } = self;
        format!("{place}: {found} (required: {asked})")
    }
}

/// Whose numbers are judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueSource {
    Ours,
    Published,
}

impl ValueSource {
    /// The value of a cell and its uncertainty.
    fn value(self, cell: &Cell) -> Option<(f64, f64)> {
        match self {
            Self::Ours => Some((cell.ours.mean.ok()?, cell.spread.doubt())),
            Self::Published => Some((cell.published?.value?, 0.0)),
        }
    }

    /// Why a cell has no value in any of its runs; `None` if it has one, or has no runs.
    fn without(self, cell: &Cell) -> Option<String> {
        match self {
            Self::Ours if cell.without > 0 => {
                let why = cell.undefined.as_deref().unwrap_or("it does not exist");
                Some(format!("{why} ({} of {})", cell.without, counted(cell.runs())))
            }
            Self::Published if cell.published.is_some_and(|p| p.value.is_none()) => {
                Some("none is published".to_owned())
            }
            _ => None,
        }
    }
}

/// Judges a claim; `None` if its table does not exist. With `needs_all`, a cell without runs leaves
/// it open. (A backend may lack some because it cannot run the scenario.)
pub fn judge<'a>(
    claim: &'a Claim,
    tables: &[TableResult<'_>],
    needs_all: bool,
) -> Option<JudgedClaim<'a>> {
    let table = tables.iter().find(|t| t.table.id == claim.table)?;
    // The reference of a table is not that of a paper.
    let is_papers = table.table.against.is_none();
    let published =
        if is_papers { checks(claim, tables, ValueSource::Published) } else { Vec::new() };
    let ours = match weakest(claim, tables, needs_all) {
        Some(basis) if !basis.is_enough() => Judgement::early(basis),
        _ => verdict(checks(claim, tables, ValueSource::Ours)),
    };
    Some(JudgedClaim { claim, ours, published: verdict(published) })
}

/// The cells of a claim in one of its tables.
fn cells_of<'c>(
    claim: &Claim,
    tables: &'c [TableResult<'_>],
    table: &str,
    filter: Option<&Filter>,
) -> Vec<&'c Cell> {
    let Some(table) = tables.iter().find(|t| t.table.id == table) else { return Vec::new() };
    let meant = |c: &&Cell| {
        claim.filter.allows_all(&c.labels) && filter.is_none_or(|f| f.matches(&c.labels))
    };
    table.cells().filter(meant).collect()
}

/// The weakest basis of the claim's cells; `None` if none of them has a run.
fn weakest(claim: &Claim, tables: &[TableResult<'_>], needs_all: bool) -> Option<Basis> {
    let side = |side: &Side| cells_of(claim, tables, &side.table, Some(&side.filter));
    let cells = match &claim.predicate {
        Predicate::Greater { greater: one, than: other, .. }
        | Predicate::Near { near: one, to: other, .. } => [side(one), side(other)].concat(),
        _ => cells_of(claim, tables, &claim.table, None),
    };
    let has_runs = |cell: &&&Cell| cell.runs() > 0;
    cells.iter().find(has_runs)?;
    let meant = cells.iter().filter(|c| needs_all || has_runs(c));
    meant.map(|c| c.basis).reduce(Basis::weaker)
}

impl Judgement {
    fn early(basis: Basis) -> Self {
        let evidence = format!("not judged yet: {}", basis.text());
        Self { early: Some(basis), evidence, ..verdict(Vec::new()) }
    }
}

/// The verdict, with the check of the smallest margin or, if it fails, all that fail.
fn verdict(checks: Vec<Check>) -> Judgement {
    let Some(tightest) = checks.iter().min_by(|a, b| a.margin.total_cmp(&b.margin)) else {
        return Judgement {
            holds: None,
            in_doubt: false,
            evidence: "no numbers".to_owned(),
            early: None,
            checks: Vec::new(),
            asked: 0,
        };
    };
    let holds = tightest.margin > 0.0;
    let uncertain = |c: &Check| c.margin.abs() < c.half_width;
    // "Holds" changes if one check fails; "fails" changes only if all failures change.
    let in_doubt = if holds {
        checks.iter().any(uncertain)
    } else {
        checks.iter().filter(|c| c.margin <= 0.0).all(uncertain)
    };
    let asked = checks.len();
    let closest = tightest.clone();
    let failing: Vec<Check> = checks.into_iter().filter(|c| c.margin <= 0.0).collect();
    let failures: Vec<String> = failing.iter().map(Check::text).collect();
    let evidence = if holds {
        format!("closest: {}", closest.text())
    } else {
        format!("{} of {asked} fail: {}", failures.len(), failures.join("; "))
    };
    let checks = if holds { vec![closest] } else { failing };
    Judgement { holds: Some(holds), in_doubt, evidence, early: None, checks, asked }
}

fn checks(claim: &Claim, tables: &[TableResult<'_>], whose: ValueSource) -> Vec<Check> {
    let of = |table: &str, filter| cells_of(claim, tables, table, filter);
    match &claim.predicate {
        Predicate::Every(bound) => {
            let cells = of(&claim.table, None).into_iter();
            cells.filter_map(|cell| within(cell, *bound, whose)).collect()
        }
        Predicate::Greater { greater, than, by, times } => {
            let (high, low) =
                (of(&greater.table, Some(&greater.filter)), of(&than.table, Some(&than.filter)));
            let pairs = pairs(&high, &low, greater, than);
            pairs.filter_map(|(h, l)| compare(h, l, *by, *times, whose)).collect()
        }
        Predicate::Near { near, to, within } => {
            let (a, b) = (of(&near.table, Some(&near.filter)), of(&to.table, Some(&to.filter)));
            let close = |(a, b): (&Cell, &Cell)| {
                let ((x, x_half), (y, y_half)) = (whose.value(a)?, whose.value(b)?);
                let distance = (x - y).abs();
                // A distance equal to the limit still counts as near.
                let margin = within.distance(y) - distance + f64::MIN_POSITIVE;
                let half_width = x_half.hypot(y_half);
                let asked =
                    format!("within {} of {}", within.text(&b.shown.unit), cell_and_value(b, y));
                Some(Check { place: a.title(), found: a.print(x), asked, margin, half_width })
            };
            pairs(&a, &b, near, to).filter_map(close).collect()
        }
        Predicate::Trend { rises, by, every_step, along } => {
            let lines = lines(&of(&claim.table, None), along);
            lines.iter().flat_map(|l| trend(l, *rises, *by, *every_step, whose)).collect()
        }
        Predicate::Extreme { is_lowest, at, along } => {
            let lines = lines(&of(&claim.table, None), along);
            lines.iter().filter_map(|l| extreme(l, *is_lowest, at, whose)).collect()
        }
    }
}

/// Compares a cell with a bound. A missing value is outside every bound except `exists`.
fn within(cell: &Cell, bound: Bound, whose: ValueSource) -> Option<Check> {
    let (place, asked) = (cell.title(), bound.text(cell.shown.digits));
    if let Some(why) = whose.without(cell) {
        let margin = if bound.exists == Some(false) { f64::INFINITY } else { f64::NEG_INFINITY };
        let found = format!("no value: {why}");
        return Some(Check { place, found, asked, margin, half_width: 0.0 });
    }
    let (mean, half_width) = whose.value(cell)?;
    let found = cell.print(mean);
    if let Some(exists) = bound.exists.filter(|e| !e || bound.above.or(bound.below).is_none()) {
        let margin = if exists { f64::INFINITY } else { f64::NEG_INFINITY };
        return Some(Check { place, found, asked, margin, half_width: 0.0 });
    }
    let above = bound.above.map_or(f64::INFINITY, |a| mean - a);
    let below = bound.below.map_or(f64::INFINITY, |b| b - mean);
    Some(Check { place, found, asked, margin: above.min(below), half_width })
}

/// Pairs of cells that agree in every label that both have and that does not define a side.
fn pairs<'c>(
    a: &[&'c Cell],
    b: &[&'c Cell],
    one: &Side,
    other: &Side,
) -> impl Iterator<Item = (&'c Cell, &'c Cell)> {
    let told: Vec<&str> =
        one.filter.0.iter().chain(&other.filter.0).map(|(key, _)| key.as_str()).collect();
    let agree = |a: &Cell, b: &Cell| {
        a.labels.iter().filter(|(key, _)| !told.contains(&key.as_str())).all(|(key, label)| {
            b.labels.iter().all(|(other, theirs)| other != key || theirs == label)
        })
    };
    let mut pairs = Vec::new();
    for a in a {
        pairs.extend(b.iter().filter(|b| agree(a, b)).map(|b| (*a, *b)));
    }
    pairs.into_iter()
}

fn compare(high: &Cell, low: &Cell, by: f64, times: f64, whose: ValueSource) -> Option<Check> {
    let ((a, a_half), (b, b_half)) = (whose.value(high)?, whose.value(low)?);
    let of = cell_and_value(low, b);
    let asked = match (by == 0.0, (times - 1.0).abs() < 1e-12) {
        (true, true) => format!("above {of}"),
        (false, true) => format!("above {of} by {by}"),
        (true, false) => format!("above {times} times {of}"),
        (false, false) => format!("above {times} times {of} by {by}"),
    };
    let half_width = a_half.hypot(b_half * times);
    let (place, found) = (high.title(), high.print(a));
    Some(Check { place, found, asked, margin: a - times * b - by, half_width })
}

/// A cell and its value in words.
fn cell_and_value(cell: &Cell, value: f64) -> String {
    format!("{} at {}", cell.print(value), cell.title())
}

/// Cells that agree in all keys but one, in the order of the table.
fn lines<'c>(cells: &[&'c Cell], along: &str) -> Vec<Vec<&'c Cell>> {
    let mut lines: Vec<Vec<&Cell>> = Vec::new();
    let rest = |cell: &'c Cell| cell.labels.iter().filter(move |(key, _)| key != along);
    for cell in cells {
        match lines.iter_mut().find(|l| rest(l[0]).eq(rest(cell))) {
            Some(line) => line.push(cell),
            None => lines.push(vec![cell]),
        }
    }
    lines
}

/// Compares the first with the last of a line, or every step of it.
fn trend(line: &[&Cell], rises: bool, by: f64, every_step: bool, whose: ValueSource) -> Vec<Check> {
    let ends = line.first().zip(line.last()).filter(|_| line.len() > 1);
    let steps: Vec<(&Cell, &Cell)> = if every_step {
        line.windows(2).map(|w| (w[0], w[1])).collect()
    } else {
        ends.map(|(first, last)| (*first, *last)).into_iter().collect()
    };
    let check = |(first, last): (&Cell, &Cell)| {
        let (high, low) = if rises { (last, first) } else { (first, last) };
        compare(high, low, by, 1.0, whose)
    };
    steps.into_iter().filter_map(check).collect()
}

/// Compares the lowest (or highest) value of a line at the required place with those elsewhere.
fn extreme(line: &[&Cell], is_lowest: bool, at: &Filter, whose: ValueSource) -> Option<Check> {
    let sign = if is_lowest { 1.0 } else { -1.0 };
    let best = |inside: bool| {
        let here = line.iter().filter(|c| at.matches(&c.labels) == inside);
        let valued = here.filter_map(|c| whose.value(c).map(|(v, half)| (*c, v, half)));
        valued.min_by(|a, b| (sign * a.1).total_cmp(&(sign * b.1)))
    };
    let ((inside, a, a_half), (outside, b, b_half)) = (best(true)?, best(false)?);
    let side = if is_lowest { "below" } else { "above" };
    let asked = format!("{side} {}", cell_and_value(outside, b));
    let (place, found) = (inside.title(), inside.print(a));
    Some(Check { place, found, asked, margin: sign * (b - a), half_width: a_half.hypot(b_half) })
}

fn counted(runs: usize) -> String {
    if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a claim holds and is in doubt, if its checks have these margins and widths of
    /// intervals.
    fn judged(checks: &[(f64, f64)]) -> (Option<bool>, bool) {
        let text = String::new;
        let check = |&(margin, half_width): &(f64, f64)| Check {
            place: text(),
            found: text(),
            asked: text(),
            margin,
            half_width,
        };
        let judgement = verdict(checks.iter().map(check).collect());
        (judgement.holds, judgement.in_doubt)
    }

    #[test]
    fn verdict_is_uncertain_within_the_spread() {
        assert_eq!(judged(&[(0.3, 0.2), (0.5, 0.2)]), (Some(true), false));
        assert_eq!(judged(&[(0.3, 0.2), (0.5, 0.6)]), (Some(true), true), "one may fall");
        assert_eq!(judged(&[(-0.1, 0.2), (0.5, 0.2)]), (Some(false), true), "the one may hold");
        assert_eq!(judged(&[(-0.1, 0.2), (-0.5, 0.2)]), (Some(false), false), "one is certain");
        assert_eq!(judged(&[]), (None, false));
    }
}
