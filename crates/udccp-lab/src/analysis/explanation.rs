//! Why our values and the published ones differ. An explanation counts if the runs of a variant
//! support it, for whole points, and with one set-up for a whole table.

use udccp_metrics::Summary;

use super::basis::Basis;
use super::cell::{Cell, is_close};
use super::reason::{Reason, Support};
use super::results::Results;
use super::spread::Spread;
use super::table::{TableResult, tabulate};
use crate::schema::{Experiment, Explanation, Variant};

/// The result of a variant's runs in a cell.
struct VariantCell {
    summary: Summary,
    spread: Spread,
    basis: Basis,
    is_near: bool,
}

/// One explanation, with the results of its variant's runs in the order of the table's cells.
struct Trial<'e> {
    given: &'e Explanation,
    /// The set-up that the variant names, or what it changes: it may have several explanations.
    set_up: String,
    found: Vec<Option<VariantCell>>,
    /// Points of which every value is near with the variant, and at least one is off without it.
    mended: Vec<usize>,
    /// Points of which every value agrees without the variant, and at least one does not with it.
    broken: usize,
}

/// Adds to every cell that needs them the reasons in the file, each judged by its runs.
///
/// One set-up is accepted for a table: the one that mends the most points, among those that break
/// none. It explains a point if all values of the point are then near.
pub fn explain(experiment: &Experiment, table: &mut TableResult<'_>, results: &Results) {
    let points = points(table);
    let given = experiment.explanations.iter().filter(|e| e.tables.contains(&table.table.id));
    let trials: Vec<Trial<'_>> =
        given.map(|given| trial(experiment, table, results, given, &points)).collect();
    let credited = best_set_up(&trials);
    for trial in &trials {
        let is_credited = credited == Some(trial.set_up.as_str());
        let broken = of_set_up(&trials, &trial.set_up).map(|t| t.broken).sum();
        let cells = table.rows.iter_mut().flat_map(|r| &mut r.cells).flatten();
        for ((cell, found), point) in cells.zip(&trial.found).zip(&points) {
            let Some(found) = found else { continue };
            if !cell.needs_reason() || !trial.given.filter.matches(&cell.labels) {
                continue;
            }
            let support = match found.is_near {
                true if is_credited && trial.mended.contains(point) => Support::Full,
                true => Support::Here,
                false => Support::No,
            };
            cell.reasons.push(Reason {
                says: trial.given.says.clone(),
                variant: trial.given.variant.clone(),
                found: found.summary.clone(),
                spread: found.spread,
                support: Some(support).filter(|_| found.basis.is_enough()),
                broken,
            });
        }
    }
}

/// The number of the point of each cell: all flows and metrics of one grid point in one case.
fn points(table: &TableResult<'_>) -> Vec<usize> {
    let mut known = Vec::new();
    let number = |cell: &Cell| {
        let found = known.iter().position(|place| *place == cell.place);
        found.unwrap_or_else(|| {
            known.push(cell.place.clone());
            known.len() - 1
        })
    };
    table.cells().map(number).collect()
}

fn trial<'e>(
    experiment: &'e Experiment,
    table: &TableResult<'_>,
    results: &Results,
    given: &'e Explanation,
    points: &[usize],
) -> Trial<'e> {
    let variant = tabulate(experiment, table.table, results, Some(&given.variant));
    let found = |cell: &Cell| {
        let there = variant.cells().find(|c| c.labels == cell.labels).filter(|c| c.runs() > 0)?;
        let is_near = cell.published.is_none_or(|published| match there.ours.mean {
            Ok(mean) => is_close(mean, &published, &cell.shown),
            Err(_) => published.value.is_none(),
        });
        let (summary, spread, basis) = (there.ours.clone(), there.spread, there.basis);
        Some(VariantCell { summary, spread, basis, is_near })
    };
    let found: Vec<Option<VariantCell>> = table.cells().map(found).collect();
    let number = points.iter().max().map_or(0, |last| last + 1);
    let (mut mended, mut broken) = (Vec::new(), 0);
    for point in 0..number {
        let of_point = table.cells().zip(&found).zip(points).filter(|(_, p)| **p == point);
        let compared: Vec<_> =
            of_point.map(|(pair, _)| pair).filter(|(cell, _)| cell.has_verdict()).collect();
        let is_judged = |f: &VariantCell| f.basis.is_enough();
        if compared.is_empty() || !compared.iter().all(|(_, f)| f.as_ref().is_some_and(is_judged)) {
            continue;
        }
        let is_near = compared.iter().all(|(_, f)| f.as_ref().is_some_and(|f| f.is_near));
        let is_off = compared.iter().any(|(cell, _)| cell.needs_reason());
        match (is_off, is_near) {
            (true, true) => mended.push(point),
            (false, false) => broken += 1,
            _ => {}
        }
    }
    let set_up = experiment.variants.iter().find(|v| v.id == given.variant).map(set_up);
    Trial { given, set_up: set_up.unwrap_or_default(), found, mended, broken }
}

/// The set-up of a variant: its name, or all changes as one text.
fn set_up(variant: &Variant) -> String {
    if let Some(name) = &variant.set_up {
        return name.clone();
    }
    let lines = variant.changes.iter().map(|c| format!("{}={}", c.path, c.node.label()));
    lines.collect::<Vec<_>>().join("\n")
}

fn of_set_up<'t, 'e>(
    trials: &'t [Trial<'e>],
    set_up: &'t str,
) -> impl Iterator<Item = &'t Trial<'e>> {
    trials.iter().filter(move |trial| trial.set_up == set_up)
}

/// The set-up that mends the most points, among those that break none; the first of equal ones.
fn best_set_up<'t>(trials: &'t [Trial<'_>]) -> Option<&'t str> {
    let mut best: Option<(&str, usize)> = None;
    for trial in trials {
        let set_up = trial.set_up.as_str();
        let broken: usize = of_set_up(trials, set_up).map(|t| t.broken).sum();
        let mut mended: Vec<usize> =
            of_set_up(trials, set_up).flat_map(|t| t.mended.iter().copied()).collect();
        mended.sort_unstable();
        mended.dedup();
        if broken == 0 && mended.len() > best.map_or(0, |(_, most)| most) {
            best = Some((set_up, mended.len()));
        }
    }
    best.map(|(set_up, _)| set_up)
}
