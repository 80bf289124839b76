//! The two tables: runs and series.

use serde_json::Value;
use udccp_scenario::{FlowRecord, Record};

use super::frame::{Cell, Frame};
use super::plain;
use crate::analysis::Results;
use crate::plan::Task;
use crate::schema::number;

/// Names of the identifying columns, except those of the axes.
const PLACES: [&str; 8] =
    ["experiment", "case", "variant", "run", "backend", "seed", "flow", "t_s"];

/// One row per flow of each run. Columns: experiment, case, variant, one per axis, run, backend,
/// seed, flow, every value of the flow, every value of the whole system (`system_…`), and what
/// identifies the run. An axis named like one of the first columns gets the prefix `axis_`; a value
/// named like an axis gets `flow_` or `run_`.
///
/// An axis of quantities also has a column of numbers after that of its labels, whose name ends
/// with the unit: `rtt` and `rtt_s`. If a flow's value has that name, the column gets the prefix
/// `axis_`.
pub fn runs(results: &Results) -> Frame {
    let mut frame = Frame::default();
    let columns = RunColumns::new(&mut frame, results);
    let (seed, flow) = (frame.column("seed"), frame.column("flow"));
    for (task, record) in results.all() {
        // A record consists of numbers and texts, so it always has a JSON form.
        let Ok(value) = plain(record) else { continue };
        let mut common = columns.cells(task, record);
        common.push((seed, Cell::Integer(record.seed as i64)));
        let mut of_run = Vec::new();
        flatten(&value["system"], "system_", &mut of_run);
        flatten(&value["cost"], "cost_", &mut of_run);
        flatten(&value["timing"], "timing_", &mut of_run);
        for (name, text) in [("event_hash", &record.event_hash), ("version", &record.version)] {
            of_run.push((name.to_owned(), Cell::Text(text.as_str().into())));
        }
        of_run.push(("key".to_owned(), Cell::Text(task.key.as_str().into())));
        for (i, found) in record.flows.iter().enumerate() {
            let mut cells = common.clone();
            cells.push((flow, Cell::Text(found.name.as_str().into())));
            let mut named = Vec::new();
            flatten(&value["flows"][i], "", &mut named);
            named.retain(|(name, _)| name != "name");
            let named = named.into_iter().map(|value| ("flow", value));
            for (what, (name, cell)) in named.chain(of_run.iter().cloned().map(|v| ("run", v))) {
                cells.push((frame.column(&columns.unique_column_name(what, name)), cell));
            }
            frame.push(cells);
        }
    }
    frame
}

/// One row per sample of each flow of each run: the identifying columns, the time, and one column
/// per sampled quantity. Samples of the whole system have no flow.
pub fn series(results: &Results) -> Frame {
    let mut frame = Frame::default();
    let columns = RunColumns::new(&mut frame, results);
    let (flow, time) = (frame.column("flow"), frame.column("t_s"));
    for (task, record) in results.all() {
        let Ok(value) = plain(record) else { continue };
        let common = columns.cells(task, record);
        for (i, found) in record.flows.iter().enumerate() {
            let mut cells = common.clone();
            cells.push((flow, Cell::Text(found.name.as_str().into())));
            samples(&mut frame, &value["flows"][i]["series"], &cells, time);
        }
        samples(&mut frame, &value["system"]["series"], &common, time);
    }
    frame
}

/// The identifying columns of a row.
struct RunColumns {
    fixed: [usize; 3],
    axes: Vec<AxisColumns>,
    run: usize,
    backend: usize,
}

/// The columns of an axis.
struct AxisColumns {
    axis: String,
    labels: usize,
    /// One column per unit of its labels, usually one.
    numbers: Vec<(&'static str, usize)>,
}

impl RunColumns {
    fn new(frame: &mut Frame, results: &Results) -> Self {
        let fixed = ["experiment", "case", "variant"].map(|name| frame.column(name));
        let mut labels: Vec<(&str, Vec<&str>)> = Vec::new();
        for (axis, label) in results.all().flat_map(|(task, _)| &task.point) {
            // Each case has its own axes; rows of other cases leave their columns empty.
            match labels.iter_mut().find(|(name, _)| name == axis) {
                Some((_, known)) if known.contains(&label.as_str()) => {}
                Some((_, known)) => known.push(label),
                None => labels.push((axis, vec![label])),
            }
        }
        let taken: Vec<String> = labels.iter().map(|(axis, _)| (*axis).to_owned()).collect();
        let taken = [taken, values()].concat();
        let mut axes = Vec::new();
        for (axis, labels) in labels {
            let is_place = PLACES.contains(&axis);
            let name = if is_place { format!("axis_{axis}") } else { axis.to_owned() };
            let column = frame.column(&name);
            let mut numbers: Vec<(&'static str, usize)> = Vec::new();
            for (unit, _) in labels.into_iter().filter_map(number) {
                if !numbers.iter().any(|(known, _)| *known == unit) {
                    numbers.push((unit, frame.column(&number_name(axis, unit, &taken))));
                }
            }
            axes.push(AxisColumns { axis: axis.to_owned(), labels: column, numbers });
        }
        let (run, backend) = (frame.column("run"), frame.column("backend"));
        Self { fixed, axes, run, backend }
    }

    /// The column name of a flow's or run's value, made different from all axes.
    fn unique_column_name(&self, what: &str, name: String) -> String {
        let is_axis = self.axes.iter().any(|of| of.axis == name);
        if is_axis { format!("{what}_{name}") } else { name }
    }

    fn cells(&self, task: &Task, record: &Record) -> Vec<(usize, Cell)> {
        let text = |text: &str| Cell::Text(text.into());
        let names = [Some(&task.experiment), task.case.as_ref(), task.variant.as_ref()];
        let names = names.map(|name| name.map_or(Cell::None, |n| text(n)));
        let mut cells: Vec<(usize, Cell)> = self.fixed.into_iter().zip(names).collect();
        for (axis, label) in &task.point {
            let Some(of) = self.axes.iter().find(|of| of.axis == *axis) else { continue };
            cells.push((of.labels, text(label)));
            let Some((unit, value)) = number(label) else { continue };
            let column = of.numbers.iter().find(|(known, _)| *known == unit);
            cells.extend(column.map(|(_, column)| (*column, Cell::Real(value))));
        }
        cells.push((self.run, Cell::Integer(task.run as i64)));
        cells.push((self.backend, text(&record.backend)));
        cells
    }
}

/// The name for an axis's column of numbers, made unique.
fn number_name(axis: &str, unit: &str, taken: &[String]) -> String {
    let name = format!("{axis}_{unit}");
    let is_taken = taken.contains(&name) || PLACES.contains(&name.as_str());
    if is_taken { format!("axis_{name}") } else { name }
}

/// The names of all values of a flow or a run.
fn values() -> Vec<String> {
    let example = Record { flows: vec![FlowRecord::default()], ..Record::default() };
    // A record consists of numbers and texts, so it always has a JSON form.
    let value = plain(&example).unwrap_or_default();
    let mut named = Vec::new();
    flatten(&value["flows"][0], "", &mut named);
    flatten(&value["system"], "system_", &mut named);
    flatten(&value["cost"], "cost_", &mut named);
    named.into_iter().map(|(name, _)| name).collect()
}

/// Collects every value of an object, nested ones as `outer_inner`. Lists and series are omitted.
fn flatten(value: &Value, prefix: &str, into: &mut Vec<(String, Cell)>) {
    let Value::Object(entries) = value else { return };
    for (key, value) in entries {
        match value {
            Value::Array(_) => {}
            Value::Object(_) if key == "series" => {}
            Value::Object(_) => flatten(value, &format!("{prefix}{key}_"), into),
            _ => into.push((format!("{prefix}{key}"), Cell::from(value))),
        }
    }
}

/// One row per time of a series object. Lists of other lengths are not samples of these times.
fn samples(frame: &mut Frame, series: &Value, columns: &[(usize, Cell)], time: usize) {
    let Some(times) = series["t_s"].as_array() else { return };
    let Value::Object(entries) = series else { return };
    let quantities: Vec<(usize, &Vec<Value>)> = entries
        .iter()
        .filter(|(key, _)| *key != "t_s")
        .filter_map(|(key, values)| Some((key, values.as_array()?)))
        .filter(|(_, values)| values.len() == times.len())
        .map(|(key, values)| (frame.column(key), values))
        .collect();
    for (i, t) in times.iter().enumerate() {
        let sampled = quantities.iter().map(|(column, values)| (*column, Cell::from(&values[i])));
        let here = core::iter::once((time, Cell::from(t)));
        frame.push(columns.iter().cloned().chain(here).chain(sampled));
    }
}
