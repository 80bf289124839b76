//! Exports: the same table in every format, and the same bytes for the same runs.

mod common;

use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use udccp_lab::analysis::Results;
use udccp_lab::export::{self, Frame};
use udccp_lab::schema::Experiment;
use udccp_lab::{
    PlanOptions, Progress, Record, Simulator, Start, Store, Task, WorkEstimate, campaign, plan,
};

struct Quiet;

impl Progress for Quiet {
    fn begin(&self, _: Start) {}
    fn done(&self, _: &Task, _: &Record, _: WorkEstimate) {}
    fn found(&self, _: WorkEstimate) {}
}

/// One run of each point of the small experiment.
fn results(store: &Path) -> Results {
    results_of(&common::small(), store)
}

fn results_of(experiment: &Experiment, store: &Path) -> Results {
    let options = PlanOptions { quick: false, runs: Some(1) };
    let tasks = plan(experiment, options).expect("a plan");
    campaign(&tasks, Store::open(store).expect("a store"), &Simulator, 2, &Quiet)
        .expect("runs that end well");
    let store = Store::open(store).expect("the store");
    Results::load(experiment, &store, options).expect("results")
}

/// Reads a Parquet table as texts, with its column names.
fn read_parquet(bytes: Vec<u8>) -> Vec<Vec<String>> {
    let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).expect("a Parquet file");
    let schema = file.metadata().file_metadata().schema().clone();
    let names = schema.get_fields().iter().map(|f| f.name().to_owned()).collect();
    let text = |field: &Field| match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Long(n) => n.to_string(),
        Field::Double(x) => x.to_string(),
        Field::Bool(flag) => flag.to_string(),
        other => panic!("a column of another type: {other:?}"),
    };
    let rows = file.get_row_iter(None).expect("rows");
    let rows =
        rows.map(|row| row.expect("a row").get_column_iter().map(|(_, f)| text(f)).collect());
    core::iter::once(names).chain(rows).collect()
}

/// Reads a CSV table likewise.
fn read_csv(text: &str) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let fields = |record: csv::StringRecord| record.iter().map(str::to_owned).collect();
    reader.records().map(|r| fields(r.expect("a line"))).collect()
}

fn column<'a>(table: &'a [Vec<String>], name: &str) -> Vec<&'a str> {
    let i = table[0].iter().position(|n| n == name).unwrap_or_else(|| panic!("no column {name}"));
    table[1..].iter().map(|row| row[i].as_str()).collect()
}

#[test]
fn parquet_and_csv_hold_the_same_tables() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let results = results(&folder.path().join("store"));
    let both = |frame: &Frame| (read_parquet(frame.parquet().expect("bytes")), frame.csv());

    let (runs, csv) = both(&export::runs(&results));
    assert_eq!(runs, read_csv(&csv));
    assert_eq!(runs.len(), 1 + 6 * 2, "a row for each flow of each run");
    assert_eq!(column(&runs, "rtt")[0], "25 ms");
    assert_eq!(column(&runs, "rtt_s")[0], "0.025");
    assert!(!runs[0].contains(&"second_number".to_owned()), "{:?}", runs[0]);
    assert_eq!(column(&runs, "flow")[..2], ["first", "second"]);
    let jain: f64 = column(&runs, "system_jain")[0].parse().expect("a number");
    assert_eq!(Some(jain), results.runs[0].1.system.jain);

    let (series, csv) = both(&export::series(&results));
    assert_eq!(series, read_csv(&csv));
    assert_eq!(series.len(), 1 + 6 * 2 * 8, "a row for each of eight seconds");
    let rates = column(&series, "throughput_mbps");
    let first = &results.runs[0].1.flows[0].series.throughput_mbps;
    assert_eq!(rates[3].parse::<f64>().ok(), Some(first[3]));
}

#[test]
fn an_axis_may_be_named_like_a_value_of_flows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let second = [
        ("second = ", "protocol = "),
        ("$second", "$protocol"),
        ("= \"second\"\nc", "= \"protocol\"\nc"),
    ];
    let text =
        second.iter().fold(common::SMALL.to_owned(), |text, (old, new)| text.replace(old, new));
    let experiment = common::read(&text);
    let runs = results_of(&experiment, &folder.path().join("store"));
    let runs = read_csv(&export::runs(&runs).csv());
    assert_eq!(column(&runs, "protocol")[..2], ["tcp/newreno", "tcp/newreno"]);
    assert_eq!(column(&runs, "flow_protocol")[..2], ["dccp/ccid2", "tcp/newreno"]);
}

/// An axis of quantities is numeric in every format, and its text is kept. As text, "100 ms" sorts
/// before "50 ms".
#[test]
fn axes_of_quantities_are_numbers_with_their_unit_in_the_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = common::SMALL
        .replace("rate = \"5 Mbit/s\"", "rate = \"$rate\"")
        .replace("limit = \"1.0 bdp\"", "limit = \"$limit\", loss = \"$loss\"")
        .replace("[\"25 ms\", \"50 ms\"]", "[\"25 ms\", \"100 ms\"]")
        .replace("duration = \"8 s\"", "duration = \"$duration\"")
        .replace(
            "seed = 3",
            "seed = 3\nrate = [\"5 Mbit/s\"]\nloss = [\"0.5 %\"]\nduration = [\"8 s\"]\n\
             limit = [\"20 packets\", \"0.5 bdp\"]",
        );
    // Tables over two axes cover only the first point of the others.
    let (head, _) = text.split_once("[[table]]").expect("tables");
    let head =
        head.replace("second = [\"tcp/newreno\", \"tcp/cubic\"]", "second = [\"tcp/cubic\"]");
    let head = head.replace("[\"tcp/newreno\"]", "[\"tcp/cubic\"]");
    let experiment = common::read(&head);
    let results = results_of(&experiment, &folder.path().join("store"));

    let frame = export::runs(&results);
    let types: Vec<(&str, bool)> = frame
        .columns()
        .iter()
        .map(|c| (c.name.as_str(), matches!(c.values, export::Values::Real(_))))
        .collect();
    for name in
        ["rtt_s", "rate_bit_per_s", "axis_loss_percent", "duration_s", "limit_packets", "limit_bdp"]
    {
        assert!(types.contains(&(name, true)), "{name}: {types:?}");
    }
    let at = |name: &str| types.iter().position(|(n, _)| *n == name);
    assert_eq!(at("rtt_s"), at("rtt").map(|i| i + 1), "beside the text");
    for table in [read_parquet(frame.parquet().expect("bytes")), read_csv(&frame.csv())] {
        let numbers =
            column(&table, "rtt_s").into_iter().map(|t| t.parse::<f64>().expect("a number"));
        let labels = column(&table, "rtt").into_iter().map(|l| l == "100 ms");
        assert!(
            numbers.zip(labels).all(|(x, is_100)| (x > 0.05) == is_100),
            "they sort as they are"
        );
        assert!(column(&table, "rate_bit_per_s").iter().all(|x| *x == "5000000"));
        assert!(column(&table, "axis_loss_percent").iter().all(|x| *x == "0.5"));
        assert!(column(&table, "loss_percent").iter().any(|x| *x != "0.5"), "the flow's own");
        let limits = column(&table, "limit_packets").into_iter().zip(column(&table, "limit_bdp"));
        assert!(limits.into_iter().all(|pair| pair == ("20", "") || pair == ("", "0.5")));
    }
    let json: serde_json::Value =
        serde_json::from_str(&export::json(&results).expect("JSON")).expect("JSON");
    assert_eq!(json[0]["point"]["rtt"], "25 ms");
    assert_eq!(json[0]["point_numbers"]["rtt_s"], 0.025);
    assert_eq!(json[0]["point_numbers"]["rate_bit_per_s"], 5e6);
    assert!(json[0]["point_numbers"].get("second").is_none());
    let series = export::series(&results);
    assert!(series.columns().iter().any(|c| c.name == "rtt_s"));
}

#[test]
fn equal_runs_export_to_equal_bytes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [one, two] = ["1", "2"].map(|name| results(&folder.path().join(name)));
    assert_eq!(export::json(&one).expect("JSON"), export::json(&two).expect("JSON"));
    let parquet = |r| export::series(r).parquet().expect("bytes");
    assert_eq!(parquet(&one), parquet(&two));
    let value: serde_json::Value =
        serde_json::from_str(&export::json(&one).expect("JSON")).expect("JSON");
    assert!(value[0]["cost"]["events"].is_u64() && value[0]["cost"]["cpu_s"].is_null());
    assert_eq!(value[0]["point"]["rtt"], "25 ms");
}
