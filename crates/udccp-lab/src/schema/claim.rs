//! Claims about a table, and explanations of differences.

use udccp_scenario::diagnostic::{Diagnostic, suggestion};
use udccp_scenario::document::{DiagnosticSink, FromNode, Node, Reader, Value};

use super::choice::words;
use super::close::Close;
use super::context::Context;
use super::grid::Filter;
use super::table::Table;

/// A sentence about a table, judged on our numbers and on the published ones.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Its id, by which an answer refers to it.
    pub id: Option<String>,
    /// The sentence.
    pub says: String,
    /// Where it is from.
    pub source: String,
    /// Who makes it.
    pub origin: Origin,
    /// The table.
    pub table: String,
    /// The cells that it is about.
    pub filter: Filter,
    /// What has to hold.
    pub predicate: Predicate,
}

words! {
    /// Who makes a claim. Claims of this project, and those written after first runs, which are not
    /// predictions, are counted separately.
    Origin, "origin of a claim":
    /// A publication: the study itself, another paper, an RFC.
    Published = "published",
    /// This project, before any run.
    Project = "project",
    /// This project, after first runs.
    AfterRuns = "after-runs",
}

/// What a claim requires of the cells.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// Every cell is within a bound.
    Every(Bound),
    /// For every pair of cells that agree in all labels that do not define a side, one is above the
    /// other.
    Greater {
        /// The cells that have to be above.
        greater: Side,
        /// The cells that have to be below.
        than: Side,
        /// Smallest difference, in the unit of the table.
        by: f64,
        /// Smallest ratio.
        times: f64,
    },
    /// For every pair of cells that agree in all labels that do not define a side, the two are
    /// nearly equal.
    Near {
        /// One side.
        near: Side,
        /// The other.
        to: Side,
        /// The largest distance.
        within: Close,
    },
    /// Along a key, the value rises (or falls) from the first to the last of the selected cells.
    Trend {
        /// Whether it rises; otherwise it falls.
        rises: bool,
        /// Smallest change.
        by: f64,
        /// Whether this is required at every step, not only from the first to the last.
        every_step: bool,
        /// The key.
        along: String,
    },
    /// Along a key, the lowest (or highest) of the selected cells is one of these.
    Extreme {
        /// Whether it is the lowest; otherwise the highest.
        is_lowest: bool,
        /// Where it has to be.
        at: Filter,
        /// The key.
        along: String,
    },
}

/// The cells of one side of a comparison.
#[derive(Clone, Debug)]
pub struct Side {
    /// Their table, if it is not the claim's.
    pub table: String,
    /// The selected cells.
    pub filter: Filter,
}

/// A bound; `None` does not limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bound {
    /// Strictly above.
    pub above: Option<f64>,
    /// Strictly below.
    pub below: Option<f64>,
    /// Whether there has to be a value. A cell without one is outside every other bound.
    pub exists: Option<bool>,
}

/// Why our numbers and the published ones differ, which runs have to support.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The sentence.
    pub says: String,
    /// The tables.
    pub tables: Vec<String>,
    /// The cells that it is about.
    pub filter: Filter,
    /// The variant whose runs support it.
    pub variant: String,
}

impl Claim {
    /// Whether it is this project's own, and not that of a publication.
    pub fn is_own(&self) -> bool {
        self.origin != Origin::Published
    }
}

impl Bound {
    /// The bound in words, for values printed with this many digits: `above 0.855 (0.86 rounded)`.
    pub fn text(self, digits: usize) -> String {
        match (self.above, self.below, self.exists) {
            (Some(a), Some(b), _) => format!("between {a} and {b}"),
            (Some(a), None, _) => format!("above {a}{}", rounded(a, digits, f64::ceil)),
            (None, Some(b), _) => format!("below {b}{}", rounded(b, digits, f64::floor)),
            (None, None, Some(false)) => "no value".to_owned(),
            (None, None, _) => "a value".to_owned(),
        }
    }
}

/// A bound that is half a unit of the last printed digit away from a round value allows for the
/// rounding of published values. Returns that value.
fn rounded(bound: f64, digits: usize, side: fn(f64) -> f64) -> String {
    let unit = libm::exp10(digits as f64);
    let is_half = ((bound * unit).fract().abs() - 0.5).abs() < 1e-6;
    match is_half {
        true => format!(" ({:.digits$} rounded)", side(bound * unit) / unit),
        false => String::new(),
    }
}

impl Bound {
    fn read(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(node, "claim.every", errors)?;
        let bound = Self {
            above: reader.want("above"),
            below: reader.want("below"),
            exists: reader.want("exists"),
        };
        reader.finish();
        let error = match bound {
            Self { above: Some(a), below: Some(b), .. } if a >= b => {
                format!("no value is both above {a} and below {b}")
            }
            Self { exists: Some(false), above: a, below: b } if a.is_some() || b.is_some() => {
                "a value that must not exist cannot have bounds".to_owned()
            }
            Self { above: None, below: None, exists: None } => {
                "a bound is one of: above, below, exists".to_owned()
            }
            _ => return Some(bound),
        };
        errors.push(Diagnostic::at(&node.span, error));
        None
    }
}

/// The forms of a claim, for messages.
const FORMS: &str = "write every = { above = 0.9 }, or greater = {...} with than = {...}, or \
                     near = {...} with to = {...}, or trend = \"rises\", or lowest = {...}";

impl Claim {
    pub(super) fn read(node: &Node, context: &Context<'_>) -> Option<Self> {
        let mut reader = Reader::new(node, "[[claim]]", context.errors)?;
        let id = reader.want("id");
        let says: Option<String> = reader.need("says");
        let source = reader.or("source", String::new());
        let origin = reader.or("origin", Origin::Published);
        let table = context.table(&mut reader)?;
        let filter = reader.raw("where").map(|n| table.filter_of(n, context.errors));
        let predicate = Predicate::read(&mut reader, node, table, context);
        reader.finish();
        let filter = filter.unwrap_or_default();
        let (table, says, predicate) = (table.id.clone(), says?, predicate?);
        Some(Self { id, says, source, origin, table, filter, predicate })
    }
}

impl Predicate {
    fn read(
        reader: &mut Reader<'_>,
        node: &Node,
        table: &Table,
        context: &Context<'_>,
    ) -> Option<Self> {
        let every = reader.raw("every");
        let greater = [reader.raw("greater"), reader.raw("than")];
        let near = [reader.raw("near"), reader.raw("to")];
        let trend = reader.want::<String>("trend");
        let extremes = [reader.raw("lowest"), reader.raw("highest")];
        let by: Option<f64> = reader.want("by");
        let times: Option<f64> = reader.want("times");
        let within: Option<Close> = reader.want("within");
        let every_step: Option<bool> = reader.want("every_step");
        let along = reader.raw("along");
        let asks = [
            every.is_some(),
            greater.iter().any(Option::is_some),
            near.iter().any(Option::is_some),
            trend.is_some(),
            extremes.iter().any(Option::is_some),
        ];
        let wrong = |error: &str, hint: &str| {
            let at = super::context::first_line(&node.span);
            context.errors.push(Diagnostic::at(&at, error.to_owned()).hint(hint.to_owned()));
        };
        if asks.iter().filter(|a| **a).count() != 1 {
            wrong("a claim must make exactly one kind of statement", FORMS);
            return None;
        }
        // Keys of another form would be ignored silently.
        let [_, greater_asked, near_asked, trend_asked, extreme_asked] = asks;
        let strays = [
            ("by", by.is_some() && !(greater_asked || trend_asked)),
            ("times", times.is_some() && !greater_asked),
            ("within", within.is_some() && !near_asked),
            ("every_step", every_step.is_some() && !trend_asked),
            ("along", along.is_some() && !(trend_asked || extreme_asked)),
        ];
        if let Some((key, _)) = strays.iter().find(|(_, is_stray)| *is_stray) {
            wrong(&format!("`{key}` has no meaning in a claim of this form"), FORMS);
            return None;
        }
        check_trend(trend.as_deref(), node, context)?;
        let side = |n| Side::read(n, table, context);
        if let Some(node) = every {
            return Bound::read(node, context.errors).map(Self::Every);
        }
        if let [Some(greater), Some(than)] = greater {
            let (by, times) = (by.unwrap_or(0.0), times.unwrap_or(1.0));
            return Some(Self::Greater { greater: side(greater)?, than: side(than)?, by, times });
        }
        if let [Some(near), Some(to)] = near {
            let Some(within) = within else {
                wrong("`near` needs a distance", "write within = 5, or within = \"10 %\"");
                return None;
            };
            return Some(Self::Near { near: side(near)?, to: side(to)?, within });
        }
        let at = extremes.iter().flatten().next().map(|n| (*n, table.filter_of(n, context.errors)));
        let along = along_key(along, at.as_ref(), table, context)?;
        let steps = (by.unwrap_or(0.0), every_step.unwrap_or(false));
        let line = Self::of_line(trend.as_deref(), extremes, steps, along, table, context);
        if line.is_none() {
            wrong("a claim must make exactly one kind of statement", FORMS);
        }
        line
    }

    /// The forms that follow a key.
    fn of_line(
        trend: Option<&str>,
        extremes: [Option<&Node>; 2],
        (by, every_step): (f64, bool),
        along: String,
        table: &Table,
        context: &Context<'_>,
    ) -> Option<Self> {
        match (trend, extremes) {
            (Some(word @ ("rises" | "falls")), [None, None]) => {
                Some(Self::Trend { rises: word == "rises", by, every_step, along })
            }
            (None, [Some(at), None] | [None, Some(at)]) => {
                let at = table.filter_of(at, context.errors);
                Some(Self::Extreme { is_lowest: extremes[0].is_some(), at, along })
            }
            _ => None,
        }
    }
}

/// A value rises or falls along a key.
fn check_trend(word: Option<&str>, node: &Node, context: &Context<'_>) -> Option<()> {
    let Some(word) = word.filter(|word| !["rises", "falls"].contains(word)) else {
        return Some(());
    };
    let at = node.get("trend").map_or(&node.span, |n| &n.span);
    let error = Diagnostic::at(at, format!("there is no trend \"{word}\""));
    context.errors.push(error.hint(suggestion(word, "trends", &["rises", "falls"])));
    None
}

/// The key that a claim follows: the given one, or the one in which it names a place, or the first
/// axis of the columns, otherwise of the rows.
fn along_key(
    node: Option<&Node>,
    place: Option<&(&Node, Filter)>,
    table: &Table,
    context: &Context<'_>,
) -> Option<String> {
    let known: Vec<String> = table.columns.iter().chain(&table.rows).cloned().collect();
    let asked: Vec<&str> =
        place.iter().flat_map(|(_, f)| &f.0).map(|(key, _)| key.as_str()).collect();
    if let Some(node) = node {
        let key = String::from_node(node, context.errors)?;
        context.check_name(&key, "key", &known, &node.span);
        if let ([first, ..], false) = (asked.as_slice(), asked.contains(&key.as_str())) {
            let error = format!(
                "the claim goes along `{key}`, but `lowest` or `highest` names \
                 values of `{first}`"
            );
            let hint = format!("write along = \"{first}\", or name values of `{key}`");
            context.errors.push(Diagnostic::at(&node.span, error).hint(hint));
            return None;
        }
        return known.contains(&key).then_some(key);
    }
    // The place of the lowest value determines the key.
    match asked.as_slice() {
        [only] if known.iter().any(|k| k == only) => return Some((*only).to_owned()),
        [first, _, ..] => {
            let error = format!("the claim names values of several axes: {}", asked.join(", "));
            let hint = format!("write along = \"{first}\"");
            let (at, _) = place?;
            context.errors.push(Diagnostic::at(&at.span, error).hint(hint));
            return None;
        }
        _ => {}
    }
    let is_axis = |key: &&String| table.view.grid.axis(key).is_some();
    table.columns.iter().chain(&table.rows).find(is_axis).cloned().or_else(|| {
        let error = format!("table \"{}\" has no axis for a trend to follow", table.id);
        context.errors.push(Diagnostic::whole(error));
        None
    })
}

impl Side {
    /// Reads `{ axis = "value", table = "other" }`.
    fn read(node: &Node, table: &Table, context: &Context<'_>) -> Option<Self> {
        let Some(at) = node.get("table") else {
            let filter = table.filter_of(node, context.errors);
            return Some(Self { table: table.id.clone(), filter });
        };
        let name = String::from_node(at, context.errors)?;
        let table = context.table_named(&name, &at.span)?;
        let mut rest = node.clone();
        if let Value::Table(entries) = &mut rest.value {
            entries.retain(|e| e.key != "table");
        }
        Some(Self { table: name, filter: table.filter_of(&rest, context.errors) })
    }
}

impl Explanation {
    pub(super) fn read(node: &Node, context: &Context<'_>) -> Option<Self> {
        let mut reader = Reader::new(node, "[[explanation]]", context.errors)?;
        let says: Option<String> = reader.need("says");
        let tables: Option<Vec<String>> = reader.need("tables");
        let at = node.get("tables").map_or(&node.span, |n| &n.span);
        let found: Vec<_> =
            tables.iter().flatten().map(|name| context.table_named(name, at)).collect();
        let found: Vec<_> = found.into_iter().collect::<Option<_>>()?;
        let Some(first) = found.first() else {
            context.errors.push(Diagnostic::at(at, "an explanation names at least one table"));
            return None;
        };
        let filter = first.filter_of_key(&mut reader, "where");
        let variant: Option<String> = reader.need("variant");
        reader.finish();
        let variant = variant?;
        let span = node.get("variant").map_or(&node.span, |n| &n.span);
        for table in &found {
            context.check_variant(&variant, &table.view, span);
        }
        Some(Self { says: says?, tables: tables?, filter, variant })
    }
}
