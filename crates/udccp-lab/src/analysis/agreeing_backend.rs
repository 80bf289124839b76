//! Compares with other backends: if another backend agrees with all published values of a table,
//! with the table's own set-up, then a difference comes from the simulator and not from the study.

use super::cell::{Agreement, Cell};
use super::table::TableResult;
use crate::schema::Reference;

/// Records, in each cell that needs a reason, the backend that agrees with the whole table.
///
/// `others` has the title and tables of each backend, in the order of `tables`. Part of a table is
/// not enough: every cell with a published value must be run, judged and near. If the file says how
/// many runs the study made (`witness_runs`), that many are enough to be judged.
pub(super) fn set_agreeing_backends(
    tables: &mut [TableResult<'_>],
    others: &[(&str, &[TableResult<'_>])],
) {
    for (i, table) in tables.iter_mut().enumerate() {
        if table.table.variant.is_some() || table.table.reference.is_none() {
            continue;
        }
        let agreeing_backend = others.iter().find(|(_, of)| of.get(i).is_some_and(agrees));
        let Some((title, _)) = agreeing_backend else { continue };
        let cells = table.rows.iter_mut().flat_map(|r| &mut r.cells).flatten();
        for cell in cells.filter(|cell| cell.needs_reason()) {
            cell.agreeing_backend = Some((*title).to_owned());
        }
    }
}

/// Whether all published values of a table agree, and at least one of them in a meaningful way.
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
