//! Exports stored runs for other programs: two tables (one row per flow of each run, and one row
//! per sample of each flow) as CSV or Parquet, or whole records as JSON.
//!
//! Equal runs export to equal bytes: processor time is omitted.

mod frame;
#[cfg(feature = "parquet")]
mod parquet;
mod rows;

use serde_json::{Map, Value};
use udccp_scenario::Record;

use crate::analysis::Results;
use crate::plan::Task;
use crate::schema::number;

pub use frame::{Column, Frame, Values};
#[cfg(feature = "parquet")]
pub use parquet::ParquetError;
pub use rows::{runs, series};

/// The table [`runs`] as CSV.
pub fn csv(results: &Results) -> String {
    runs(results).csv()
}

/// All runs as a JSON list, one per line. Axes that are quantities appear as labels in `point`, and
/// as numbers with the unit in the name in `point_numbers`.
///
/// # Errors
/// A record cannot be converted to JSON.
pub fn json(results: &Results) -> serde_json::Result<String> {
    let exported = |(task, record): (&Task, &Record)| -> serde_json::Result<String> {
        let mut value = Map::new();
        value.insert("key".to_owned(), task.key.clone().into());
        value.insert("experiment".to_owned(), task.experiment.clone().into());
        value.insert("case".to_owned(), task.case.clone().into());
        value.insert("variant".to_owned(), task.variant.clone().into());
        let point = task.point.iter().map(|(axis, label)| (axis.clone(), label.clone().into()));
        value.insert("point".to_owned(), Value::Object(point.collect()));
        let numbered = |(axis, label): &(String, String)| {
            let (unit, number) = number(label)?;
            Some((format!("{axis}_{unit}"), number.into()))
        };
        let numbers = task.point.iter().filter_map(numbered);
        value.insert("point_numbers".to_owned(), Value::Object(numbers.collect()));
        value.insert("run".to_owned(), task.run.into());
        if let Value::Object(record) = plain(record)? {
            value.extend(record);
        }
        serde_json::to_string(&value)
    };
    let runs: serde_json::Result<Vec<String>> = results.all().map(exported).collect();
    Ok(format!("[{}]", runs?.join(",\n")))
}

/// A record without the values that differ between equal runs.
fn plain(record: &Record) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(record)?;
    if let Some(cost) = value.get_mut("cost").and_then(Value::as_object_mut) {
        cost.shift_remove("cpu_s");
    }
    Ok(value)
}
