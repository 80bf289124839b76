//! Tables: our mean and interval beside the published value.

use udccp_metrics::Summary;
use udccp_scenario::Record;
use udccp_scenario::protocol::{self, Protocol};

use super::basis::Basis;
use super::expected::Expected;
use super::explanation::Reason;
use super::results::Results;
use super::spread::Spread;
use super::value::value;
use crate::schema::{
    CASE_AXIS, Case, Experiment, FLOW_KEY, METRIC_KEY, MetricSpec, Names, Point, Published,
    Scenario, Table,
};

/// A link that transmits so much of the time is full, in percent.
const FULL_PERCENT: f64 = 98.0;

/// A table filled in.
#[derive(Debug)]
pub struct TableResult<'a> {
    /// Its definition.
    pub table: &'a Table,
    /// Its columns: a label for each key of [`Table::columns`].
    pub columns: Vec<Point>,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// A row.
#[derive(Debug)]
pub struct Row {
    /// A label for each key of [`Table::rows`].
    pub labels: Point,
    /// The protocol that the row is about: its flow's, or the one that a label names.
    pub protocol: Option<&'static Protocol>,
    /// One cell a column; none where the table's cases have no such point.
    pub cells: Vec<Option<Cell>>,
    /// What its labels are called.
    names: Names,
}

/// One cell.
#[derive(Debug)]
pub struct Cell {
    /// Its grid point, and `flow`, `metric` and `case` where the table tells them apart.
    pub labels: Point,
    /// The case (`None`: the file as it stands) and the grid point whose runs it shows.
    pub place: (Option<String>, Point),
    /// Its metric.
    pub shown: MetricSpec,
    /// The protocol that it is about: its flow's, or the one that a label names.
    pub protocol: Option<&'static Protocol>,
    /// Our runs.
    pub ours: Summary,
    /// How far they lie apart.
    pub spread: Spread,
    /// How many they are, of those that the file asks for.
    pub basis: Basis,
    /// Whether its flow does not run in the stretch that the value is of.
    pub idle: bool,
    /// How many runs have no value.
    pub without: usize,
    /// Why a run has no value, where one has none.
    pub undefined: Option<String>,
    /// The published value.
    pub published: Option<Published>,
    /// Whether the one flow of its runs fills the link, and the metric says no more than that.
    pub fills_link: bool,
    /// How the two compare.
    pub agreement: Agreement,
    /// Why they differ, as far as runs support it.
    pub reasons: Vec<Reason>,
    /// The backend with which every value of the table agrees, where ours differs.
    pub witness: Option<String>,
    /// What its labels are called.
    names: Names,
}

/// How our mean compares with the published value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// No run yet.
    Missing,
    /// Nothing was published.
    Alone,
    /// Too few runs to be judged, or shortened ones.
    Unjudged,
    /// Within the distance that counts as agreement.
    Close,
    /// The same, where the one flow of the run fills its link: any sender would agree, so the cell
    /// does not count.
    LinkLimited,
    /// Neither has a value, which does not count either.
    Neither,
    /// Further away, but the published value lies in our 95 % interval.
    InInterval,
    /// Further away; or one has a value and the other says that there is none.
    Differs,
}

impl Agreement {
    /// The same of a cell whose flow fills its link, or not.
    fn on_link(self, is_full: bool) -> Self {
        if self == Self::Close && is_full { Self::LinkLimited } else { self }
    }
}

impl Row {
    /// What the row is about, in words: `TCP CUBIC (2007), first: DCCP CCID 2`.
    pub fn title(&self) -> String {
        let word = |(key, label): &(String, String)| match (key.as_str(), self.protocol) {
            (FLOW_KEY, Some(p)) => match own_name(&self.names, label, p.title) {
                Some(name) => format!("{name}: {}", p.title),
                None => p.title.to_owned(),
            },
            _ => in_words(&self.names, key, label),
        };
        self.labels.iter().map(word).collect::<Vec<_>>().join(", ")
    }

    /// The cells that are there.
    pub fn filled(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().flatten()
    }
}

/// A number with this many digits after the point and a true minus.
pub(crate) fn fixed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}").replace('-', "\u{2212}");
    let is_zero = text.chars().all(|c| "\u{2212}0.".contains(c));
    if is_zero { text.trim_start_matches('\u{2212}').to_owned() } else { text }
}

/// What a flow is called beside its protocol; `None` where that says the same.
pub(crate) fn own_name<'n>(names: &'n Names, flow: &'n str, protocol: &str) -> Option<&'n str> {
    let letters = |text: &str| {
        let letters = text.chars().filter(|c| c.is_alphanumeric());
        letters.map(|c| c.to_ascii_lowercase()).collect::<String>()
    };
    let name = names.of(flow).unwrap_or(flow);
    (!letters(protocol).contains(&letters(name))).then_some(name)
}

/// A label in words: what the file calls it, or a protocol's title.
pub(crate) fn in_words(names: &Names, key: &str, label: &str) -> String {
    match (key, names.of(label)) {
        (_, Some(name)) => name.to_owned(),
        (FLOW_KEY, None) => format!("{label} flow"),
        (CASE_AXIS, None) => label.replace('-', " "),
        _ => protocol::title_of(label).to_owned(),
    }
}

impl Cell {
    /// Our mean less the published value.
    pub fn difference(&self) -> Option<f64> {
        Some(self.ours.mean.ok()? - self.published?.value?)
    }

    /// Whether it counts: there is something to compare its runs with, and the comparison says
    /// something.
    pub fn is_compared(&self) -> bool {
        matches!(self.agreement, Agreement::Close | Agreement::InInterval | Agreement::Differs)
    }

    /// Whether it agrees in a way that does not count.
    pub fn is_unscored(&self) -> bool {
        matches!(self.agreement, Agreement::LinkLimited | Agreement::Neither)
    }

    /// Whether it is judged, be it counted or not.
    pub fn has_verdict(&self) -> bool {
        self.is_compared() || self.is_unscored()
    }

    /// Whether it has a value of ours and a published one, be it judged or not.
    pub fn has_both(&self) -> bool {
        self.has_verdict() || self.agreement == Agreement::Unjudged
    }

    /// Whether it has runs, but not as many, or not as long, as the file asks for.
    pub fn is_early(&self) -> bool {
        self.runs() > 0 && !self.basis.is_enough()
    }

    /// Whether a reader has to be told why the two differ.
    pub fn needs_reason(&self) -> bool {
        matches!(self.agreement, Agreement::InInterval | Agreement::Differs)
    }

    /// Whether a run supports one of the reasons given, or another backend agrees with the table.
    pub fn is_explained(&self) -> bool {
        self.witness.is_some() || self.reasons.iter().any(|r| r.support.is_some_and(|s| s.counts()))
    }

    /// Our mean as printed with its [`Spread`]; a dash without any, and for a flow that does not
    /// run.
    pub(crate) fn ours_in_words(&self, plus_minus: &str) -> String {
        let Some(mean) = self.mean() else { return "–".to_owned() };
        self.spread.beside(mean, &self.printed(), plus_minus)
    }

    /// Our mean, where the flow runs.
    pub(crate) fn mean(&self) -> Option<f64> {
        self.ours.mean.ok().filter(|_| !self.idle)
    }

    /// A value with as many digits as chance allows.
    pub(crate) fn print(&self, value: f64) -> String {
        fixed(value, self.digits())
    }

    /// The metric, printed with as many digits as chance allows.
    pub(crate) fn printed(&self) -> MetricSpec {
        MetricSpec { digits: self.digits(), ..self.shown.clone() }
    }

    /// Digits after the point: two of what chance does to the mean, or three of a mean of which
    /// that is not known; never more than the file asks for.
    pub(crate) fn digits(&self) -> usize {
        let doubt = self.spread.doubt();
        let (value, wanted) = match self.ours.mean {
            Ok(_) if doubt > 0.0 => (doubt, 2),
            Ok(mean) if mean != 0.0 => (mean.abs(), 3),
            Ok(_) => return 0,
            Err(_) => return self.shown.digits,
        };
        // The noise of the last bits takes 0.1 below itself.
        let first = (value.log10() + 1e-9).floor() as i64;
        usize::try_from(wanted - 1 - first).unwrap_or(0).min(self.shown.digits)
    }

    /// How many runs there are, with a value or without.
    pub fn runs(&self) -> usize {
        self.ours.n + self.without
    }

    /// The cell in words: `TCP CUBIC (2007), 50 ms`.
    pub fn title(&self) -> String {
        let word = |(key, label): &(String, String)| match key.as_str() {
            METRIC_KEY => self.shown.title().to_owned(),
            FLOW_KEY => match self.protocol.map(|p| (own_name(&self.names, label, p.title), p)) {
                Some((None, protocol)) => protocol.title.to_owned(),
                _ => in_words(&self.names, key, label),
            },
            _ => in_words(&self.names, key, label),
        };
        self.labels.iter().map(word).collect::<Vec<_>>().join(", ")
    }
}

impl TableResult<'_> {
    /// All cells.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.rows.iter().flat_map(Row::filled)
    }

    /// The mean of each cell, as something to compare others with; `None` where it was not run.
    pub(super) fn means(&self) -> Vec<(Point, Basis, Option<Published>)> {
        let mean = |cell: &Cell| {
            let value = cell.ours.mean.ok();
            (cell.runs() > 0).then_some(Published::value(value))
        };
        self.cells().map(|cell| (cell.labels.clone(), cell.basis, mean(cell))).collect()
    }

    /// Compares every cell with what another backend found there.
    pub(super) fn hold_against(&mut self, measure: &[(Point, Basis, Option<Published>)]) {
        for cell in self.rows.iter_mut().flat_map(|r| &mut r.cells).flatten() {
            let found = measure.iter().find(|(labels, ..)| *labels == cell.labels);
            cell.published = found.and_then(|(.., published)| *published);
            let weaker = found.map_or(cell.basis, |(_, basis, _)| cell.basis.weaker(*basis));
            let held = (&cell.ours, &cell.spread);
            let found = agreement(held, cell.without, weaker, cell.published, &cell.shown);
            cell.agreement = found.on_link(cell.fills_link);
        }
    }
}

/// Fills a table with the runs of a variant (`None` is the experiment as it stands).
pub fn tabulate<'a>(
    experiment: &Experiment,
    table: &'a Table,
    results: &Results,
    variant: Option<&str>,
) -> TableResult<'a> {
    let filler = Filler { experiment, table, results, variant, places: places(experiment, table) };
    let columns = table.combinations(&table.columns);
    let mut rows: Vec<Row> = table
        .combinations(&table.rows)
        .into_iter()
        .map(|labels| {
            let cells = columns.iter().map(|column| filler.cell(&labels, column)).collect();
            let names = table.view.names.clone();
            let mut row = Row { labels, protocol: None, cells, names };
            row.protocol = row_protocol(&row);
            row
        })
        .filter(|row| row.filled().next().is_some())
        .collect();
    let is_used = |i: usize| rows.iter().any(|r| r.cells[i].is_some());
    let used: Vec<bool> = (0..columns.len()).map(is_used).collect();
    let keep = |i: &usize| used[*i];
    for row in &mut rows {
        let cells = core::mem::take(&mut row.cells).into_iter().enumerate();
        row.cells = cells.filter(|(i, _)| keep(i)).map(|(_, c)| c).collect();
    }
    let columns = columns.into_iter().enumerate().filter(|(i, _)| keep(i)).map(|(_, c)| c);
    TableResult { table, columns: columns.collect(), rows }
}

/// Every grid point of a table's cases, with the case's name among its labels where it tells.
fn places<'e>(experiment: &'e Experiment, table: &Table) -> Vec<(&'e Case, Point, Point)> {
    let mut places = Vec::new();
    for case in &table.view.cases {
        let Some(part) = experiment.part(case.as_deref()) else { continue };
        for point in part.grid.points() {
            let mut labels = point.clone();
            if table.view.cases.len() > 1 {
                labels.extend(case.iter().map(|id| (CASE_AXIS.to_owned(), id.clone())));
            }
            if table.filter.allows_all(&labels) {
                places.push((part, point, labels));
            }
        }
    }
    places
}

struct Filler<'a, 'e> {
    experiment: &'e Experiment,
    table: &'a Table,
    results: &'a Results,
    variant: Option<&'a str>,
    places: Vec<(&'e Case, Point, Point)>,
}

impl Filler<'_, '_> {
    fn cell(&self, row: &Point, column: &Point) -> Option<Cell> {
        let labels: Point = row.iter().chain(column).cloned().collect();
        let (part, point, at) = self.place(&labels)?;
        let shown = self.table.shown_at(&labels)?;
        let named = |key: &str| labels.iter().find(|(k, _)| k == key).map(|(_, l)| l.clone());
        let flow = match shown.metric.is_per_flow() {
            true => Some(named(FLOW_KEY).or_else(|| self.table.labels(FLOW_KEY).pop())?),
            false => None,
        };
        if flow.as_ref().is_some_and(|f| !part.flows.contains(f)) {
            return None;
        }
        let mut labels = at.clone();
        labels.extend(flow.iter().map(|f| (FLOW_KEY.to_owned(), f.clone())));
        labels.extend(named(METRIC_KEY).map(|m| (METRIC_KEY.to_owned(), m)));
        Some(self.fill(part, point, labels, shown, flow.as_deref()))
    }

    /// The point that these labels name.
    fn place(&self, labels: &Point) -> Option<&(&Case, Point, Point)> {
        let told = |(key, _): &&(String, String)| key != FLOW_KEY && key != METRIC_KEY;
        self.places.iter().find(|(_, _, at)| labels.iter().filter(told).all(|l| at.contains(l)))
    }

    fn fill(
        &self,
        part: &Case,
        point: &Point,
        labels: Point,
        shown: &MetricSpec,
        flow: Option<&str>,
    ) -> Cell {
        let mut values = Vec::new();
        let (mut without, mut undefined) = (0, None);
        let mut flows = 0;
        let (expected, basis) = self.expected(part, point, shown);
        for record in self.results.at(part.id.as_deref(), self.variant, point) {
            flows = flows.max(record.flows.len());
            match value(record, shown, flow, expected.as_ref()) {
                Ok(value) => values.push(value * shown.factor),
                Err(why) => {
                    without += 1;
                    undefined = Some(why);
                }
            }
        }
        let ours = Summary::of(&values);
        let published = self.table.reference.as_ref().and_then(|r| r.lookup(&labels));
        let spread = Spread::of(&ours, shown.bounds(flows));
        let runs = || self.results.at(part.id.as_deref(), self.variant, point);
        let fills_link = shown.metric.is_of_one_link() && runs().all(fills_link);
        let agreement = agreement((&ours, &spread), without, basis, published, shown);
        let agreement = agreement.on_link(fills_link);
        let scenario = part.scenario(point, &[]).ok();
        let is_zero = ours.mean.is_ok_and(|mean| mean.abs() < f64::MIN_POSITIVE);
        Cell {
            labels,
            place: (part.id.clone(), point.clone()),
            protocol: protocol(scenario.as_ref(), point, flow),
            idle: is_zero && scenario.is_some_and(|s| !runs_in(&s, shown, flow)),
            shown: shown.clone(),
            ours,
            spread,
            basis,
            without,
            undefined,
            published,
            fills_link,
            agreement,
            reasons: Vec::new(),
            witness: None,
            names: self.table.view.names.clone(),
        }
    }

    /// What flows get among their own kind at a point, where the metric asks; and the runs that
    /// its value then rests on.
    fn expected(
        &self,
        part: &Case,
        point: &Point,
        shown: &MetricSpec,
    ) -> (Option<Expected>, Basis) {
        let of = |part: &Case, variant, point: &Point| {
            Basis::at(self.experiment, self.results, part, variant, point)
        };
        let basis = of(part, self.variant, point);
        let weights = shown.weights.as_ref().filter(|_| shown.metric.needs_weights());
        let found = weights.and_then(|w| Some((w, self.experiment.part(Some(&w.case))?)));
        let Some((weights, part)) = found else { return (None, basis) };
        // The self-runs are of the same point in all but the axis that names the protocol.
        let here = |own: &Point| {
            own.iter().filter(|(key, _)| *key != weights.axis).all(|(key, label)| {
                point.iter().all(|(other, theirs)| other != key || theirs == label)
            })
        };
        let points: Vec<Point> = part.grid.points().into_iter().filter(here).collect();
        let basis = points.iter().fold(basis, |weakest, p| weakest.weaker(of(part, None, p)));
        let runs = points.iter().flat_map(|p| self.results.at(part.id.as_deref(), None, p));
        (Some(Expected::of(runs, shown.rates, weights.times)), basis)
    }
}

/// The protocol of a flow at a point, or the one that a label names.
fn protocol(
    scenario: Option<&Scenario>,
    point: &Point,
    flow: Option<&str>,
) -> Option<&'static Protocol> {
    match flow {
        None => point.iter().find_map(|(_, label)| protocol::find(label)),
        Some(flow) => scenario?.flows.iter().find(|f| f.name == *flow).map(|f| f.protocol),
    }
}

/// Whether a flow runs in the stretch of time that a value is of.
fn runs_in(scenario: &Scenario, shown: &MetricSpec, flow: Option<&str>) -> bool {
    let found = flow.and_then(|name| scenario.flows.iter().find(|f| f.name == name));
    let (Some(flow), Some(window)) = (found, shown.window) else { return true };
    flow.start < window.to && flow.stop.is_none_or(|stop| stop > window.from)
}

/// The protocol of a row: that of all its cells, where it tells flows apart, or the one that a
/// label names.
fn row_protocol(row: &Row) -> Option<&'static Protocol> {
    if row.labels.iter().any(|(key, _)| key == FLOW_KEY) {
        let mut found = row.filled().map(|cell| cell.protocol);
        let first = found.next()??;
        return found.all(|p| p == Some(first)).then_some(first);
    }
    row.labels.iter().find_map(|(_, label)| protocol::find(label))
}

/// Whether the only flow of a run has all of the link.
fn fills_link(record: &Record) -> bool {
    let utilisation = record.system.utilisation_percent;
    record.flows.len() == 1 && utilisation.is_some_and(|percent| percent >= FULL_PERCENT)
}

fn agreement(
    (ours, spread): (&Summary, &Spread),
    without: usize,
    basis: Basis,
    published: Option<Published>,
    shown: &MetricSpec,
) -> Agreement {
    if ours.n + without == 0 {
        return Agreement::Missing;
    }
    if published.is_some() && !basis.is_enough() {
        return Agreement::Unjudged;
    }
    let Some(published) = published else { return Agreement::Alone };
    match (ours.mean.ok(), published.value) {
        (None, None) => Agreement::Neither,
        (None, Some(_)) | (Some(_), None) => Agreement::Differs,
        (Some(mean), Some(_)) if is_close(mean, &published, shown) => Agreement::Close,
        (Some(_), Some(value)) => {
            let inside = |(low, high)| (low..=high).contains(&value);
            if spread.interval().is_some_and(inside) {
                Agreement::InInterval
            } else {
                Agreement::Differs
            }
        }
    }
}

/// Whether a mean agrees with what was published, compared with the digits that are printed.
pub(super) fn is_close(mean: f64, published: &Published, shown: &MetricSpec) -> bool {
    let (Some(value), Some(tolerance)) = (published.value, published.tolerance(shown)) else {
        return false;
    };
    let unit = shown.last_digit();
    let round = |x: f64| (x / unit).round() * unit;
    (round(mean) - round(value)).abs() <= tolerance + unit * 1e-6
}
