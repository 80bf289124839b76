//! Selects a part of an experiment, or changes settings of it, from command line flags.

use udccp_scenario::diagnostic::{Diagnostic, Diagnostics, suggestion};
use udccp_scenario::document::Override;

use crate::schema::{Axis, Experiment, Figure, FigureKind, check_change};

/// The selected part and the changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only these tables, with the runs that they need; empty selects everything.
    pub tables: Vec<String>,
    /// `KEY=VALUE`: a key of every run to change, or the values of an axis to select.
    pub set: Vec<String>,
}

impl Selection {
    /// Whether the file is used unchanged.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.set.is_empty()
    }

    /// Combines this selection with a later one.
    fn then(&self, later: &Self) -> Self {
        let key = |change: &str| change.split_once('=').map_or("", |(key, _)| key).to_owned();
        let again: Vec<String> = later.set.iter().map(|change| key(change)).collect();
        let still = self.set.iter().filter(|change| !again.contains(&key(change)));
        Self {
            tables: if later.tables.is_empty() { &self.tables } else { &later.tables }.clone(),
            set: still.chain(&later.set).cloned().collect(),
        }
    }

    /// The command line flags for it, each preceded by a space.
    pub fn arguments(&self) -> String {
        let tables = self.tables.iter().map(|id| format!(" --table {id}"));
        let set = self.set.iter().map(|change| match change.split_once('=') {
            Some((key, value)) if !value.contains(' ') => format!(" --set {key}={value}"),
            Some((key, value)) => format!(" --set {key}=\"{}\"", value.trim_matches('"')),
            None => format!(" --set {change}"),
        });
        tables.chain(set).collect()
    }
}

impl Experiment {
    /// Applies the selection, after those of earlier calls. Results are identified by what was run,
    /// so a run that the whole file has too is the same run.
    ///
    /// # Errors
    /// The file does not have a table or key, or a value does not fit.
    pub fn narrow(&mut self, asked: &Selection) -> Result<(), Diagnostics> {
        if !asked.tables.is_empty() {
            self.only_tables(&asked.tables)?;
        }
        let mut kept: Vec<Axis> = Vec::new();
        for text in &asked.set {
            let change = Override::parse(text)?;
            let axes = self.parts.iter().filter_map(|p| p.grid.axis(&change.path));
            let axes: Vec<&Axis> = axes.collect();
            if axes.is_empty() {
                self.change(&change)?;
                continue;
            }
            check_value(&axes, &change)?;
            match kept.iter_mut().find(|axis| axis.name == change.path) {
                Some(axis) => axis.values.push(change.node),
                None => kept.push(Axis { name: change.path, values: vec![change.node] }),
            }
        }
        for axis in self.parts.iter_mut().flat_map(|part| &mut part.grid.axes) {
            let Some(meant) = kept.iter().find(|kept| kept.name == axis.name) else { continue };
            axis.values.retain(|value| meant.labels().contains(&value.label()));
        }
        if let Some(error) = self.recheck().into_iter().next() {
            return Err(error.into());
        }
        self.narrowed = self.narrowed.then(asked);
        Ok(())
    }

    fn only_tables(&mut self, ids: &[String]) -> Result<(), Diagnostics> {
        if let Some(id) = ids.iter().find(|id| self.table(id).is_none()) {
            let known: Vec<&str> = self.tables.iter().map(|t| t.id.as_str()).collect();
            let error = Diagnostic::whole(format!("{} has no table \"{id}\"", self.id));
            return Err(error.hint(suggestion(id, "tables", &known)).into());
        }
        self.tables.retain(|table| ids.contains(&table.id));
        let shown = self.tables.iter().flat_map(|t| &t.shown);
        let weighing = shown.filter_map(|s| s.weights.as_ref().map(|w| Some(w.case.clone())));
        let cases = self.tables.iter().flat_map(|t| t.view.cases.iter().cloned());
        let cases: Vec<Option<String>> = cases.chain(weighing).collect();
        self.parts.retain(|part| cases.contains(&part.id));
        let variants: Vec<&String> =
            self.tables.iter().filter_map(|t| t.variant.as_ref()).collect();
        self.variants.retain(|variant| variants.contains(&&variant.id));
        self.claims.retain(|claim| ids.contains(&claim.table));
        let draws_kept = |figure: &Figure| match &figure.kind {
            FigureKind::Table(drawn) => ids.contains(&drawn.table),
            FigureKind::Time(_) | FigureKind::Curve(_) => false,
        };
        // Drop what needs runs of tables that are not selected.
        self.figures.retain(draws_kept);
        self.explanations.clear();
        Ok(())
    }

    /// Changes a key of every run.
    fn change(&mut self, change: &Override) -> Result<(), Diagnostics> {
        check_change(change, self.parts.iter().flat_map(|part| part.grid.names()))?;
        self.parts.iter_mut().try_for_each(|part| part.change(change))?;
        let figures = self.figures.iter_mut().filter_map(|figure| match &mut figure.kind {
            FigureKind::Time(time) => Some(&mut time.view),
            FigureKind::Table(_) | FigureKind::Curve(_) => None,
        });
        let views = self.tables.iter_mut().map(|table| &mut table.view);
        views.chain(figures).for_each(|view| view.renew_flows(&self.parts));
        Ok(())
    }
}

fn check_value(axes: &[&Axis], change: &Override) -> Result<(), Diagnostic> {
    let label = change.node.label();
    let known: Vec<String> = axes.iter().flat_map(|axis| axis.labels()).collect();
    if known.contains(&label) {
        return Ok(());
    }
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let error = format!("axis `{}` has no value \"{label}\"", change.path);
    Err(Diagnostic::at(&change.node.span, error).hint(suggestion(&label, "values", &known)))
}
