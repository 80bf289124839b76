//! Claims judged on our numbers and on the published ones.

use super::table::{Cell, Row, TableResult};
use crate::protocol::title_of;
use crate::schema::{Claim, Predicate};

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
    /// Whether it holds; `None` where there are no numbers.
    pub holds: Option<bool>,
    /// Whether an interval reaches across the bound, so that chance could turn the verdict.
    pub in_doubt: bool,
    /// The cells that decide, in words.
    pub evidence: String,
}

/// One comparison that a claim asks for: holds with this much to spare.
struct Check {
    margin: f64,
    half_width: f64,
    words: String,
}

/// Judges a claim; `None` where its table does not exist.
pub fn judge<'a>(claim: &'a Claim, tables: &[TableResult<'_>]) -> Option<JudgedClaim<'a>> {
    let table = tables.iter().find(|t| t.table.id == claim.table)?;
    let ours = |cell: &Cell| Some((cell.ours.mean.ok()?, cell.ours.ci95.unwrap_or(0.0)));
    let published = |cell: &Cell| Some((cell.published?.value, 0.0));
    Some(JudgedClaim {
        claim,
        ours: verdict(&checks(claim, table, &ours)),
        published: verdict(&checks(claim, table, &published)),
    })
}

/// The verdict, with the check that has the least to spare (or, if it fails, all that fail).
fn verdict(checks: &[Check]) -> Judgement {
    let Some(tightest) = checks.iter().min_by(|a, b| a.margin.total_cmp(&b.margin)) else {
        return Judgement { holds: None, in_doubt: false, evidence: "no numbers".to_owned() };
    };
    let holds = tightest.margin > 0.0;
    let uncertain = |c: &Check| c.margin.abs() < c.half_width;
    // A verdict of "holds" falls with one check; one of "fails" needs all failures to turn.
    let in_doubt = if holds {
        checks.iter().any(uncertain)
    } else {
        checks.iter().filter(|c| c.margin <= 0.0).all(uncertain)
    };
    let failing: Vec<&str> =
        checks.iter().filter(|c| c.margin <= 0.0).map(|c| c.words.as_str()).collect();
    let evidence = if holds {
        format!("closest: {}", tightest.words)
    } else {
        format!("{} of {} fail: {}", failing.len(), checks.len(), failing.join("; "))
    };
    Judgement { holds: Some(holds), in_doubt, evidence }
}

type Value<'f> = &'f dyn Fn(&Cell) -> Option<(f64, f64)>;

fn checks(claim: &Claim, table: &TableResult<'_>, value: Value<'_>) -> Vec<Check> {
    match &claim.predicate {
        Predicate::Every(bound) => {
            let cells = table.cells().filter(|c| claim.filter.matches(&c.labels));
            let check = |cell: &Cell| {
                let (mean, half_width) = value(cell)?;
                let above = bound.above.map_or(f64::INFINITY, |a| mean - a);
                let below = bound.below.map_or(f64::INFINITY, |b| b - mean);
                let words = format!("{} is {mean:.2} (asked: {})", name(cell), bound.words());
                Some(Check { margin: above.min(below), half_width, words })
            };
            cells.filter_map(check).collect()
        }
        Predicate::Greater { greater, than, by } => {
            let cells = |f: &crate::schema::Filter| {
                let meant = |c: &&Cell| claim.filter.matches(&c.labels) && f.matches(&c.labels);
                table.cells().filter(meant).collect::<Vec<_>>()
            };
            let (high, low) = (cells(greater), cells(than));
            let pairs = high.iter().flat_map(|h| {
                low.iter().filter(|l| same_column(table, h, l)).map(move |l| (*h, *l))
            });
            pairs.filter_map(|(h, l)| compare(h, l, *by, value)).collect()
        }
        Predicate::Trend { rises, by } => {
            let rows = table.rows.iter();
            rows.filter_map(|row| trend(claim, row, *rises, *by, value)).collect()
        }
    }
}

fn compare(high: &Cell, low: &Cell, by: f64, value: Value<'_>) -> Option<Check> {
    let ((a, a_half), (b, b_half)) = (value(high)?, value(low)?);
    let words = format!("{} {a:.2} against {} {b:.2}", name(high), name(low));
    Some(Check { margin: a - b - by, half_width: a_half.hypot(b_half), words })
}

/// First against last of the columns that the claim chooses.
fn trend(claim: &Claim, row: &Row, rises: bool, by: f64, value: Value<'_>) -> Option<Check> {
    let chosen: Vec<&Cell> = row.cells.iter().filter(|c| claim.filter.matches(&c.labels)).collect();
    let (first, last) = (chosen.first()?, chosen.last()?);
    let (high, low) = if rises { (last, first) } else { (first, last) };
    compare(high, low, by, value)
}

/// Whether two cells agree in everything that tells columns (and, for a flow's metric, rows of the
/// same pair) apart.
fn same_column(table: &TableResult<'_>, a: &Cell, b: &Cell) -> bool {
    let column = |c: &Cell| find(c, &table.table.columns);
    let row = |c: &Cell| find(c, &table.table.rows);
    let flow = |c: &Cell| find(c, "flow");
    column(a) == column(b) && (flow(a) == flow(b) || row(a) == row(b))
}

fn find(cell: &Cell, key: &str) -> Option<String> {
    cell.labels.iter().find(|(name, _)| name == key).map(|(_, label)| label.clone())
}

/// A cell in words: `TCP CUBIC, 50 ms`.
fn name(cell: &Cell) -> String {
    let word = |(key, label): &(String, String)| match key.as_str() {
        "flow" => format!("{label} flow"),
        _ => title_of(label).to_owned(),
    };
    cell.labels.iter().map(word).collect::<Vec<_>>().join(", ")
}
