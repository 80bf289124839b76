//! Differences that another backend does not have: where all of a table agrees with the published
//! values in it, with the table's own set-up, what differs is the simulator's and not the study's.

use super::cell::{Agreement, Cell};
use super::table::TableResult;
use crate::schema::Reference;

/// Names the backend that agrees with a whole table in each cell of it that needs a reason.
///
/// `others` has a title and the tables of each backend, in the order of `tables`. A part of a table
/// is no witness: every cell with a published value has to be run, judged and near. Where the file
/// says how many runs the study made (`witness_runs`), these are enough to be judged.
pub(super) fn name_witnesses(
    tables: &mut [TableResult<'_>],
    others: &[(&str, &[TableResult<'_>])],
) {
    for (i, table) in tables.iter_mut().enumerate() {
        if table.table.variant.is_some() || table.table.reference.is_none() {
            continue;
        }
        let witness = others.iter().find(|(_, of)| of.get(i).is_some_and(agrees));
        let Some((title, _)) = witness else { continue };
        let cells = table.rows.iter_mut().flat_map(|r| &mut r.cells).flatten();
        for cell in cells.filter(|cell| cell.needs_reason()) {
            cell.witness = Some((*title).to_owned());
        }
    }
}

/// Whether every published value of a table is met, and one of them in a way that counts.
fn agrees(table: &TableResult<'_>) -> bool {
    let enough = table.table.reference.as_ref().and_then(Reference::witness_runs);
    let judged = |cell: &Cell| match (cell.agreement, enough) {
        (Agreement::Unjudged, Some(runs)) if cell.basis.runs >= runs && !cell.basis.shortened => {
            cell.if_judged()
        }
        (as_it_is, _) => as_it_is,
    };
    let published = || table.cells().filter(|cell| cell.published.is_some()).map(judged);
    published().all(Agreement::is_met) && published().any(|found| found == Agreement::Close)
}
