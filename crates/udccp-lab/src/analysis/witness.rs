//! Differences that another backend does not have: where all of a table agrees with the published
//! values in it, with the table's own set-up, what differs is the simulator's and not the study's.

use super::table::{Agreement, Cell, TableResult};

/// Names the backend that agrees with a whole table in each cell of it that needs a reason.
///
/// `others` has a title and the tables of each backend, in the order of `tables`. A part of a table
/// is no witness: every cell with a published value has to be run, judged and near.
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
    let published = || table.cells().filter(|cell| cell.published.is_some());
    let is_met = |cell: &Cell| cell.agreement == Agreement::Close || cell.is_unscored();
    published().all(is_met) && published().any(|cell| cell.agreement == Agreement::Close)
}
