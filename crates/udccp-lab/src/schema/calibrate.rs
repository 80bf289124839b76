//! `[calibrate]`: what a study leaves open, the possible values of each, and the tables that
//! decide.

use udccp_scenario::diagnostic::{Diagnostic, suggestion};
use udccp_scenario::document::{DiagnosticSink, Node, Override, Reader};

use super::case::read_changes;

/// How an experiment is calibrated: fitted on some of its tables and tested on others.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// Tables that determine the set-up.
    pub fit: Vec<String>,
    /// Tables with which the chosen set-up is tested. None of them is in `fit`.
    pub test: Vec<String>,
    /// The parameters, each with several possible values.
    pub knobs: Vec<Knob>,
}

/// A parameter that the study does not give.
#[derive(Clone, Debug)]
pub struct Knob {
    /// Its name.
    pub id: String,
    /// What it is, in words.
    pub about: String,
    /// Where its values come from.
    pub source: String,
    /// Its values. The first is that of the file.
    pub values: Vec<Setting>,
}

/// One value of a knob.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its name.
    pub id: String,
    /// What it changes; nothing for the first value.
    pub changes: Vec<Override>,
}

impl Calibration {
    /// Reads `[calibrate]`; `tables` are the names of the file's tables.
    pub(super) fn read(node: &Node, tables: &[String], errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(node, "[calibrate]", errors)?;
        let fit: Option<Vec<String>> = reader.need("fit");
        let test: Vec<String> = reader.or("test", Vec::new());
        let knobs: Vec<Knob> =
            reader.tables("knob").into_iter().filter_map(|n| Knob::read(n, errors)).collect();
        reader.finish();
        let fit = fit?;
        let note = |key: &str, error: String, hint: String| {
            let span = node.get(key).map_or(&node.span, |n| &n.span);
            errors.push(Diagnostic::at(span, error).hint(hint));
        };
        let known: Vec<&str> = tables.iter().map(String::as_str).collect();
        for (key, ids) in [("fit", &fit), ("test", &test)] {
            for id in ids.iter().filter(|id| !tables.contains(id)) {
                note(key, format!("there is no table \"{id}\""), suggestion(id, "tables", &known));
            }
        }
        if let Some(id) = test.iter().find(|id| fit.contains(id)) {
            let hint = "a table that is used to choose the set-up cannot also test it".to_owned();
            note("test", format!("table \"{id}\" is in `fit` already"), hint);
        }
        if fit.is_empty() {
            let hint = "name the tables that choose the set-up".to_owned();
            note("fit", "`fit` names no table".to_owned(), hint);
        }
        if knobs.is_empty() {
            let hint = "write a [[calibrate.knob]] for each thing that the study does not specify";
            note("knob", "[calibrate] has no knobs".to_owned(), hint.to_owned());
        }
        Some(Self { fit, test, knobs })
    }

    /// Every set-up, as the index of each parameter's value. The first is that of the file.
    pub fn set_ups(&self) -> Vec<Vec<usize>> {
        self.knobs.iter().fold(vec![Vec::new()], |all, knob| {
            let more = |set_up: Vec<usize>| {
                (0..knob.values.len()).map(move |value| {
                    let mut longer = set_up.clone();
                    longer.push(value);
                    longer
                })
            };
            all.into_iter().flat_map(more).collect()
        })
    }

    /// What a set-up changes.
    pub fn changes(&self, set_up: &[usize]) -> Vec<Override> {
        let values = self.knobs.iter().zip(set_up).map(|(knob, value)| &knob.values[*value]);
        values.flat_map(|value| value.changes.iter().cloned()).collect()
    }
}

impl Knob {
    fn read(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(node, "[[calibrate.knob]]", errors)?;
        let (id, about, source) = (reader.need("id"), reader.need("about"), reader.need("source"));
        let values = reader.tables("value");
        reader.finish();
        let values: Vec<Setting> = values
            .iter()
            .enumerate()
            .filter_map(|(i, value)| Setting::read(value, i == 0, errors))
            .collect();
        if values.len() < 2 {
            let error = "a knob needs at least two values";
            let hint =
                "the first is the file as it stands: { id = \"...\" }; each other has a `set`";
            errors.push(Diagnostic::at(&node.span, error).hint(hint));
        }
        Some(Self { id: id?, about: about?, source: source?, values })
    }
}

impl Setting {
    fn read(node: &Node, is_first: bool, errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(node, "a value of a knob", errors)?;
        let id = reader.need("id");
        let changes = read_changes(&mut reader, "set", errors);
        reader.finish();
        if is_first != changes.is_empty() && (is_first || node.get("set").is_none()) {
            let error = match is_first {
                true => "the first value of a knob is the file as it stands, without a `set`",
                false => "only the first value of a knob changes nothing",
            };
            errors.push(Diagnostic::at(&node.span, error));
        }
        Some(Self { id: id?, changes })
    }
}
