//! Tables and figures of an experiment.

use super::grid::{Filter, Grid};
use super::metric::{Metric, Rates};
use super::reference::Reference;
use crate::diagnostic::{Diagnostic, Span, suggestion};
use crate::document::{Faults, Node, Reader};

/// A table: one metric over two axes, beside the published values.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name in claims and figures.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// What it shows.
    pub metric: Metric,
    /// Which rates a fairness index is of.
    pub rates: Rates,
    /// The axis that runs down.
    pub rows: String,
    /// The axis that runs across.
    pub columns: String,
    /// Which points are in it (an axis that is neither rows nor columns is fixed here).
    pub filter: Filter,
    /// How far from the published value still counts as agreement.
    pub close: f64,
    /// The published values.
    pub reference: Option<Reference>,
    /// The variant whose runs it shows: a table that asks "what if", whose differences need no
    /// reason. `None` is the experiment as it stands.
    pub variant: Option<String>,
    /// What a reader should see in it.
    pub says: Option<String>,
}

/// A figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its name.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// What it draws.
    pub kind: FigureKind,
}

/// Kinds of figures.
#[derive(Clone, Debug)]
pub enum FigureKind {
    /// A table drawn against its columns, ours with intervals, and the published.
    Table {
        /// The table.
        table: String,
    },
    /// The flows over time in one run.
    Time {
        /// What is drawn: throughput, goodput or jain.
        metric: Metric,
        /// The grid point.
        at: Filter,
        /// The run, from 1.
        run: u64,
    },
}

/// What the readers of tables, figures and claims need to know of the rest of the file.
pub(super) struct Context<'a> {
    pub(super) grid: &'a Grid,
    pub(super) flows: &'a [String],
    pub(super) tables: &'a [String],
    pub(super) variants: &'a [String],
    pub(super) base: &'a std::path::Path,
    pub(super) faults: &'a Faults,
}

impl Context<'_> {
    /// Notes an axis that does not exist.
    pub(super) fn check_axis(&self, name: &str, span: &Span) {
        if self.grid.axis(name).is_none() {
            let hint = suggestion(name, "axes of [grid]", &self.grid.names());
            let fault = Diagnostic::at(span, format!("there is no grid axis `{name}`"));
            self.faults.push(fault.hint(hint));
        }
    }

    /// Reads `table = "name"` and checks that it exists.
    pub(super) fn table_name(&self, reader: &mut Reader<'_>) -> Option<String> {
        let name: String = reader.need("table")?;
        let span = reader.raw("table").map_or(reader.span(), |n| &n.span);
        self.check_name(&name, "table", self.tables, span);
        Some(name)
    }

    /// Notes a name that is not in the list.
    pub(super) fn check_name(&self, name: &str, what: &str, known: &[String], span: &Span) {
        if !known.iter().any(|k| k == name) {
            let names: Vec<&str> = known.iter().map(String::as_str).collect();
            let fault = Diagnostic::at(span, format!("there is no {what} \"{name}\""));
            self.faults.push(fault.hint(suggestion(name, &format!("{what}s"), &names)));
        }
    }

    /// Reads a filter under `key`, empty where it is absent.
    pub(super) fn filter(&self, reader: &mut Reader<'_>, key: &'static str) -> Filter {
        let read = |n| Filter::read(n, self.grid, self.flows, self.faults);
        reader.raw(key).map(read).unwrap_or_default()
    }
}

impl Table {
    pub(super) fn read(node: &Node, context: &Context<'_>) -> Option<Self> {
        let label = node.get("id").map(Node::label).unwrap_or_default();
        let faults = context.faults;
        let mut reader = Reader::new(node, format!("[[table]] \"{label}\""), faults)?;
        let id: Option<String> = reader.need("id");
        let title = reader.want("title");
        let metric: Option<Metric> = reader.need("metric");
        let rates = reader.or("of", Rates::Throughput);
        let rows: Option<String> = reader.need("rows");
        let columns: Option<String> = reader.need("columns");
        for (key, axis) in [("rows", &rows), ("columns", &columns)] {
            if let (Some(axis), Some(at)) = (axis, node.get(key)) {
                context.check_axis(axis, &at.span);
            }
        }
        let filter = context.filter(&mut reader, "where");
        let close = reader.want("close");
        let variant: Option<String> = reader.want("variant");
        let says = reader.want("says");
        let reference = reader.raw("reference").map(|n| Reference::read(n, context, metric));
        reader.finish();
        let (id, metric) = (id?, metric?);
        let reference = match reference {
            Some(read) => Some(read?),
            None => None,
        };
        let title = title.unwrap_or_else(|| metric.title().to_owned());
        let close = close.unwrap_or(metric.default_close());
        let (rows, columns) = (rows?, columns?);
        if let (Some(name), Some(at)) = (&variant, node.get("variant")) {
            context.check_name(name, "variant", context.variants, &at.span);
        }
        Some(Self {
            id,
            title,
            metric,
            rates,
            rows,
            columns,
            filter,
            close,
            reference,
            variant,
            says,
        })
    }
}

impl Figure {
    pub(super) fn read(node: &Node, context: &Context<'_>) -> Option<Self> {
        const KINDS: [&str; 2] = ["table", "time"];
        let label = node.get("id").map(Node::label).unwrap_or_default();
        let faults = context.faults;
        let mut reader = Reader::new(node, format!("[[figure]] \"{label}\""), faults)?;
        let id: Option<String> = reader.need("id");
        let title: Option<String> = reader.need("title");
        let kind: String = reader.need("kind")?;
        let kind = match kind.as_str() {
            "table" => {
                let table = context.table_name(&mut reader)?;
                FigureKind::Table { table }
            }
            "time" => {
                let metric = reader.or("metric", Metric::Throughput);
                let drawn = [Metric::Throughput, Metric::Goodput, Metric::Jain];
                if !drawn.contains(&metric) {
                    let span = node.get("metric").map_or(&node.span, |n| &n.span);
                    let fault = Diagnostic::at(span, "this metric has no value over time");
                    faults.push(fault.hint("there are: throughput, goodput, jain"));
                }
                let at = context.filter(&mut reader, "at");
                FigureKind::Time { metric, at, run: reader.or("run", 1) }
            }
            _ => {
                let span = node.get("kind").map_or(&node.span, |n| &n.span);
                let fault = Diagnostic::at(span, format!("\"{kind}\" is no kind of figure"));
                faults.push(fault.hint(suggestion(&kind, "there are", &KINDS)));
                return None;
            }
        };
        reader.finish();
        Some(Self { id: id?, title: title?, kind })
    }
}
