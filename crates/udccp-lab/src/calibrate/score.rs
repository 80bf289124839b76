//! Measures how far a set-up is from the published values, and which set-ups are equally good.

use crate::analysis::{Cell, TableResult};
use crate::schema::Point;

/// Cap of a cell's distance in tolerances: a cell that no set-up reaches should decide nothing.
const MOST: f64 = 4.0;

/// The distance of a set-up's cells from the published values.
#[derive(Clone, Debug)]
pub struct SetUp {
    /// The index of each parameter's value.
    pub values: Vec<usize>,
    /// The cells that have a published value.
    pub cells: Vec<ComparedCell>,
}

/// A cell compared with its published value.
#[derive(Clone, Debug)]
pub struct ComparedCell {
    /// The table.
    pub table: String,
    /// The case and the grid point. All flows and metrics there form one point.
    pub place: (Option<String>, Point),
    /// The distance in tolerances; `None` without runs.
    pub distance: Option<f64>,
}

/// Whole points of a table: points whose cells all agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Points {
    /// Points that have a published value.
    pub of: usize,
    /// Points that agree.
    pub agree: usize,
    /// Of these, points that disagree with the other set-up.
    pub gained: usize,
    /// Points that agree only with the other set-up.
    pub lost: usize,
}

/// Number of cells that agree, out of those with runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Within their tolerance.
    pub agree: usize,
    /// Cells with both a published value and one of ours.
    pub of: usize,
}

/// The set-ups in order.
#[derive(Clone, Debug)]
pub struct Fit {
    /// All set-ups, nearest first.
    pub order: Vec<SetUp>,
    /// For each, whether it is as good as the first.
    pub alike: Vec<bool>,
}

impl SetUp {
    pub(super) fn of(values: Vec<usize>, tables: &[TableResult<'_>]) -> Self {
        let of_table = |table: &TableResult<'_>| {
            let id = table.table.id.clone();
            let held = |cell: &Cell| {
                let (table, place) = (id.clone(), cell.place.clone());
                Some(ComparedCell { table, place, distance: distance(cell)? })
            };
            table.cells().filter_map(held).collect::<Vec<_>>()
        };
        Self { values, cells: tables.iter().flat_map(of_table).collect() }
    }

    /// Mean distance of the cells in tolerances.
    pub fn mean(&self) -> f64 {
        let all: Vec<f64> = self.losses().collect();
        all.iter().sum::<f64>() / all.len().max(1) as f64
    }

    /// Counts cells that agree, in one table or in all.
    pub fn judged(&self, table: Option<&str>) -> Judged {
        let meant = self.cells.iter().filter(|held| table.is_none_or(|t| t == held.table));
        let found: Vec<f64> = meant.filter_map(|held| held.distance).collect();
        Judged { agree: found.iter().filter(|d| **d <= 1.0).count(), of: found.len() }
    }

    fn losses(&self) -> impl Iterator<Item = f64> {
        self.cells.iter().map(|held| held.distance.unwrap_or(MOST).min(MOST))
    }

    /// Compares the whole points of a table with another set-up.
    pub fn points(&self, table: &str, other: &Self) -> Points {
        let mut places: Vec<_> = self.of_table(table).map(|held| &held.place).collect();
        places.sort();
        places.dedup();
        let mut points = Points { of: places.len(), ..Points::default() };
        for place in places {
            let agrees = |s: &Self| {
                s.of_table(table)
                    .filter(|held| held.place == *place)
                    .all(|held| held.distance.is_some_and(|d| d <= 1.0))
            };
            let (own, theirs) = (agrees(self), agrees(other));
            points.agree += usize::from(own);
            points.gained += usize::from(own && !theirs);
            points.lost += usize::from(theirs && !own);
        }
        points
    }

    fn of_table<'s>(&'s self, table: &'s str) -> impl Iterator<Item = &'s ComparedCell> {
        self.cells.iter().filter(move |held| held.table == table)
    }

    /// Whether this is significantly worse than `best`: the mean difference per cell exceeds two
    /// standard errors.
    fn is_worse_than(&self, best: &Self) -> bool {
        let differences: Vec<f64> =
            self.losses().zip(best.losses()).map(|(own, theirs)| own - theirs).collect();
        let n = differences.len() as f64;
        let mean = differences.iter().sum::<f64>() / n.max(1.0);
        let square = |d: &f64| (d - mean) * (d - mean);
        let variance = differences.iter().map(square).sum::<f64>() / (n - 1.0).max(1.0);
        mean > 2.0 * (variance / n.max(1.0)).sqrt()
    }
}

impl Fit {
    /// Sorts set-ups by distance; with equal distances, the one with fewer changes comes first.
    pub fn of(mut set_ups: Vec<SetUp>) -> Self {
        let changed = |s: &SetUp| s.values.iter().filter(|v| **v > 0).count();
        set_ups.sort_by(|a, b| {
            a.mean().total_cmp(&b.mean()).then_with(|| changed(a).cmp(&changed(b)))
        });
        let alike = set_ups.iter().map(|s| !s.is_worse_than(&set_ups[0])).collect();
        Self { order: set_ups, alike }
    }

    /// The nearest set-up.
    pub fn best(&self) -> Option<&SetUp> {
        self.order.first()
    }

    /// The set-ups that are as good as the nearest, including it.
    pub fn alike(&self) -> impl Iterator<Item = &SetUp> {
        self.order.iter().zip(&self.alike).filter(|(_, alike)| **alike).map(|(s, _)| s)
    }
}

/// The distance of a cell in tolerances, if a value was published; `Some(None)` if we have no
/// value.
fn distance(cell: &Cell) -> Option<Option<f64>> {
    let published = cell.published?;
    let value = published.value?;
    let tolerance = published.tolerance(&cell.shown)?.max(f64::MIN_POSITIVE);
    Some(cell.ours.mean.ok().map(|ours| (ours - value).abs() / tolerance))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A set-up with cells at these distances in one table, one per point.
    fn set_up(distances: impl IntoIterator<Item = f64>) -> SetUp {
        let held = |(i, d): (usize, f64)| ComparedCell {
            table: "t".to_owned(),
            place: (Some(format!("{i:04}")), Point::default()),
            distance: Some(d),
        };
        SetUp { values: Vec::new(), cells: distances.into_iter().enumerate().map(held).collect() }
    }

    /// The mean is a tenth of a tolerance worse, while cells differ by 1.6 and -1.4: the standard
    /// error is 1.5 divided by the root of their number.
    #[test]
    fn a_set_up_is_worse_where_chance_does_not_explain_it() {
        let best = |cells| set_up((0..cells).map(|_| 1.5));
        let other = |cells| set_up((0..cells).map(|i| if i % 2 == 0 { 3.1 } else { 0.1 }));
        assert!(!other(100).is_worse_than(&best(100)));
        assert!(other(1000).is_worse_than(&best(1000)));
        assert!(!best(1000).is_worse_than(&other(1000)));
        assert!(set_up([1.5; 3]).is_worse_than(&set_up([1.0; 3])), "each by the same");
    }

    #[test]
    fn points_are_gained_and_lost_against_the_other() {
        let points = set_up([0.5, 0.5, 2.0, 3.0]).points("t", &set_up([0.5, 2.0, 0.5, 0.5]));
        assert_eq!(points, Points { of: 4, agree: 2, gained: 1, lost: 2 });
    }
}
