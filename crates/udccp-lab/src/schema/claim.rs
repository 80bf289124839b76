//! Claims about a table, and explanations of its differences.

use super::context::Context;
use super::grid::Filter;

use crate::diagnostic::Diagnostic;
use crate::document::{Faults, FromNode, Node, Reader};

/// A sentence about a table that is judged on our numbers and on the published ones.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The sentence.
    pub says: String,
    /// Where it comes from.
    pub source: String,
    /// The table.
    pub table: String,
    /// The cells that it is about.
    pub filter: Filter,
    /// What has to hold.
    pub predicate: Predicate,
}

/// What a claim asks of the cells.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// Every cell lies within a bound.
    Every(Bound),
    /// At every column, one row lies above another.
    Greater {
        /// The row that is above.
        greater: Filter,
        /// The row that is below.
        than: Filter,
        /// By at least this much.
        by: f64,
    },
    /// From the first to the last of the chosen columns, every row rises (or falls).
    Trend {
        /// Rises; falls otherwise.
        rises: bool,
        /// By at least this much.
        by: f64,
    },
}

/// A bound; what is absent does not bind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bound {
    /// Strictly above.
    pub above: Option<f64>,
    /// Strictly below.
    pub below: Option<f64>,
}

/// Why ours and the published numbers differ, in a sentence that runs have to support.
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

impl Bound {
    /// Whether a value lies within.
    pub fn holds(self, value: f64) -> bool {
        self.above.is_none_or(|a| value > a) && self.below.is_none_or(|b| value < b)
    }

    /// The bound in words.
    pub fn words(self) -> String {
        match (self.above, self.below) {
            (Some(a), Some(b)) => format!("between {a} and {b}"),
            (Some(a), None) => format!("above {a}"),
            (None, Some(b)) => format!("below {b}"),
            (None, None) => "any value".to_owned(),
        }
    }
}

impl FromNode for Bound {
    fn from_node(node: &Node, faults: &Faults) -> Option<Self> {
        let mut reader = Reader::new(node, "claim.every", faults)?;
        let bound = Self { above: reader.want("above"), below: reader.want("below") };
        reader.finish();
        Some(bound)
    }
}

impl Claim {
    pub(super) fn read(node: &Node, context: &Context<'_>) -> Option<Self> {
        let mut reader = Reader::new(node, "[[claim]]", context.faults)?;
        let says: Option<String> = reader.need("says");
        let source = reader.or("source", String::new());
        let table = context.table(&mut reader)?;
        let view = &table.view;
        let filter = context.filter(&mut reader, view, "where");
        let every = reader.want::<Bound>("every");
        let greater = reader.raw("greater");
        let than = reader.raw("than");
        let trend = reader.want::<String>("trend");
        let by = reader.or("by", 0.0);
        reader.finish();
        let read = |n| Filter::read(n, &view.grid, &view.flows, context.faults);
        let predicate = match (every, greater.zip(than), trend.as_deref()) {
            (Some(bound), None, None) => Predicate::Every(bound),
            (None, Some((greater, than)), None) => {
                Predicate::Greater { greater: read(greater), than: read(than), by }
            }
            (None, None, Some(word @ ("rises" | "falls"))) => {
                Predicate::Trend { rises: word == "rises", by }
            }
            _ => {
                let mut span = node.span.clone();
                span.range.end = span.range.start;
                let fault = "a claim asks one thing of its cells";
                context.faults.push(Diagnostic::at(&span, fault).hint(
                    "write every = { above = 0.9 }, or greater = {...} with than = {...}, \
                     or trend = \"rises\"",
                ));
                return None;
            }
        };
        Some(Self { says: says?, source, table: table.id.clone(), filter, predicate })
    }
}

impl Explanation {
    pub(super) fn read(node: &Node, context: &Context<'_>) -> Option<Self> {
        let mut reader = Reader::new(node, "[[explanation]]", context.faults)?;
        let says: Option<String> = reader.need("says");
        let tables: Option<Vec<String>> = reader.need("tables");
        let at = node.get("tables").map_or(&node.span, |n| &n.span);
        let found: Vec<_> =
            tables.iter().flatten().map(|name| context.table_named(name, at)).collect();
        let found: Vec<_> = found.into_iter().collect::<Option<_>>()?;
        let Some(first) = found.first() else {
            context.faults.push(Diagnostic::at(at, "an explanation names at least one table"));
            return None;
        };
        let filter = context.filter(&mut reader, &first.view, "where");
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
