//! Tables and figures of an experiment.

use super::context::{Context, View};
use super::grid::Filter;
use super::metric::{Metric, Rates};
use super::reference::Reference;
use crate::diagnostic::{Diagnostic, suggestion};
use crate::document::{Node, Reader};

/// A table: one metric over two axes, beside the published values.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name in claims and figures.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// Its cases, with their axes and flows.
    pub view: View,
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
        /// The case; `None` is the file as it stands.
        case: Option<String>,
        /// What is drawn: throughput, goodput or jain.
        metric: Metric,
        /// The grid point.
        at: Filter,
        /// The run, from 1.
        run: u64,
    },
}

impl Table {
    pub(super) fn read(node: &Node, context: &Context<'_>) -> Option<Self> {
        let label = node.get("id").map(Node::label).unwrap_or_default();
        let faults = context.faults;
        let mut reader = Reader::new(node, format!("[[table]] \"{label}\""), faults)?;
        let id: Option<String> = reader.need("id");
        let title = reader.want("title");
        let view = context.view(&mut reader, false)?;
        let metric: Option<Metric> = reader.need("metric");
        let rates = reader.or("of", Rates::Throughput);
        let rows: Option<String> = reader.need("rows");
        let columns: Option<String> = reader.need("columns");
        for (key, axis) in [("rows", &rows), ("columns", &columns)] {
            if let (Some(axis), Some(at)) = (axis, node.get(key)) {
                context.check_axis(&view, axis, &at.span);
            }
        }
        let filter = context.filter(&mut reader, &view, "where");
        let close = reader.want("close");
        let variant: Option<String> = reader.want("variant");
        let says = reader.want("says");
        let reference = reader.raw("reference").map(|n| Reference::read(n, context, &view, metric));
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
            context.check_variant(name, &view, &at.span);
        }
        Some(Self {
            id,
            title,
            view,
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
                let table = context.table(&mut reader)?.id.clone();
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
                let view = context.view(&mut reader, false)?;
                let at = context.filter(&mut reader, &view, "at");
                let case = view.cases.into_iter().next().flatten();
                FigureKind::Time { case, metric, at, run: reader.or("run", 1) }
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
