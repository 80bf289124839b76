//! Reports of made-up runs: every kind of table, figure and claim once, and their text.
//! `UDCCP_REPORT_DIR=DIR cargo test -p udccp-lab --test report` writes the pages there.

mod common;

use std::path::Path;

use udccp_lab::analysis::{Agreement, Analysis, Results};
use udccp_lab::schema::Experiment;
use udccp_lab::{
    FlowRecord, PlanOptions, Record, Selection, SeriesRecord, SystemRecord, Task, document, plan,
    report,
};

const FILE: &str = include_str!("report.toml");

fn read(text: &str) -> Result<Experiment, udccp_lab::Diagnostics> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/report.toml");
    Experiment::from_node(document::parse("report.toml", text.to_owned())?, &root)
}

fn good() -> Experiment {
    read(FILE).unwrap_or_else(|errors| panic!("{errors}"))
}

/// A verifiable rate: it depends on protocol and RTT, follows a sawtooth over time, and differs
/// slightly by run.
fn rate(task: &Task, protocol: &str, t: usize) -> f64 {
    let label = |axis: &str| task.point.iter().find(|(a, _)| a == axis).map(|(_, l)| l.as_str());
    let rtt: f64 = label("rtt").and_then(|l| l.strip_suffix(" ms")?.parse().ok()).unwrap_or(50.0);
    let base = match (protocol, task.case.as_deref()) {
        ("udp", _) => 90.0,
        (_, Some("self")) => 46.0,
        ("dccp/ccid2", _) => 55.0 - rtt / 5.0,
        ("tcp/cubic", _) => 40.0 + rtt / 6.0,
        _ => 42.0,
    };
    let saw = (t as f64 * 7.0) % 13.0 - 6.0;
    let flood = task.case.as_deref() == Some("flood") && (20..40).contains(&t) && protocol != "udp";
    if flood { 0.5 } else { base + saw * 0.6 + task.run as f64 * 0.3 }
}

fn record(task: &Task) -> Record {
    let time = &task.scenario.time;
    let n = time.duration.as_secs_f64() as usize;
    let flow = |flow: &udccp_lab::schema::Flow| {
        let protocol = flow.protocol.name;
        let stop = flow.stop.map_or(f64::INFINITY, |s| s.as_secs_f64());
        let on = |t: usize| (flow.start.as_secs_f64()..stop).contains(&(t as f64));
        let rates: Vec<f64> =
            (0..n).map(|t| if on(t) { rate(task, protocol, t) } else { 0.0 }).collect();
        let mean = rates[n / 5..].iter().sum::<f64>() / (n - n / 5) as f64;
        FlowRecord {
            name: flow.name.clone(),
            protocol: protocol.to_owned(),
            packet_bytes: 1500,
            throughput_mbps: Some(mean * 1.03),
            goodput_mbps: Some(mean),
            loss_percent: Some(0.0024),
            delay_ms: Some(309.94),
            jitter_ms: Some(0.000_086),
            series: SeriesRecord {
                t_s: (1..=n).map(|t| t as f64).collect(),
                throughput_mbps: rates.iter().map(|r| r * 1.03).collect(),
                cwnd_packets: rates.iter().map(|r| Some(r * 3.0)).collect(),
                goodput_mbps: rates,
                ..SeriesRecord::default()
            },
            ..FlowRecord::default()
        }
    };
    let flows: Vec<FlowRecord> = task.scenario.flows.iter().map(flow).collect();
    let means: Vec<f64> = flows.iter().filter_map(|f| f.goodput_mbps).collect();
    let (sum, squares) = (means.iter().sum::<f64>(), means.iter().map(|m| m * m).sum::<f64>());
    let jain = sum * sum / (means.len() as f64 * squares) - task.run as f64 * 0.004;
    Record {
        seed: task.seed,
        measured_s: [time.measure.from.as_secs_f64(), time.measure.to.as_secs_f64()],
        flows,
        system: SystemRecord {
            jain: Some(jain),
            jain_goodput: Some(jain),
            ..SystemRecord::default()
        },
        ..Record::default()
    }
}

fn analysis(experiment: &Experiment) -> Analysis<'_> {
    let tasks = plan(experiment, PlanOptions::default()).expect("a plan");
    let planned = tasks.len();
    let runs = tasks.into_iter().map(|t| {
        let record = record(&t);
        (t, record)
    });
    Analysis::of(experiment, Results { runs: runs.collect(), planned, ..Results::default() })
}

#[test]
fn the_text_of_a_report_has_every_part() {
    insta::assert_snapshot!(report::text(&analysis(&good())));
}

/// The same runs from other backends, whose flows get slightly less.
fn by_others(experiment: &Experiment, backends: &[(&str, f64)]) -> Results {
    let tasks = plan(experiment, PlanOptions::default()).expect("a plan");
    let of = |backend: &str, factor: f64| {
        let runs = tasks.iter().map(|task| {
            let mut record = record(task);
            for flow in &mut record.flows {
                flow.goodput_mbps = flow.goodput_mbps.map(|rate| rate * factor);
            }
            record.system.jain_goodput = record.system.jain_goodput.map(|jain| jain * factor);
            (task.clone(), record)
        });
        let backend = backend.to_owned();
        Results { runs: runs.collect(), planned: tasks.len(), backend, ..Results::default() }
    };
    let others = backends.iter().map(|(backend, factor)| of(backend, *factor)).collect();
    Results { others, ..of("", 1.0) }
}

#[test]
fn markdown_has_a_line_for_each_value_and_a_column_for_each_source() {
    let mut experiment = good();
    let tables = ["fairness", "own"].map(str::to_owned).to_vec();
    let asked = Selection { tables, set: vec!["rtt=50 ms".to_owned()] };
    experiment.narrow(&asked).unwrap_or_else(|errors| panic!("{errors}"));
    let results = by_others(&experiment, &[("linux", 0.9), ("linux-udccp", 0.96)]);
    insta::assert_snapshot!(report::markdown(&Analysis::of(&experiment, results)));
}

#[test]
fn every_figure_is_drawn_and_nothing_is_loaded() {
    let experiment = good();
    let analysis = analysis(&experiment);
    let page = report::page(&analysis);
    assert!(!page.contains("nothing to draw"), "a figure is empty");
    assert!(!page.contains("NaN") && !page.contains(">inf") && !page.contains("-inf"));
    assert_eq!(page.matches("<figure").count(), experiment.figures.len());
    for outside in ["http:", "https:", "src=", "@import", "url(", "<link"] {
        assert!(!page.contains(outside), "the page refers to something outside: {outside}");
    }
    if let Some(folder) = std::env::var_os("UDCCP_REPORT_DIR") {
        report::write(Path::new(&folder), &[analysis], &report::About::default())
            .expect("a folder that can be written");
    }
}

/// The caption of a figure, and the ends of the y scale of each drawing.
fn panels(page: &str, id: &str) -> (String, Vec<String>) {
    let of = format!("data-csv=\"{id}\"");
    let figure = page.split("<figure ").find(|f| f.starts_with(&of)).expect("the figure");
    let caption = figure.split("<figcaption>").nth(1).expect("a caption");
    let caption = caption.split("</figcaption>").next().unwrap_or_default();
    let ends = |y: &str| y.split(' ').take(2).collect::<Vec<_>>().join(" to ");
    (caption.to_owned(), figure.split("data-y=\"").skip(1).map(ends).collect())
}

#[test]
fn a_figure_over_time_says_whether_its_values_are_means() {
    let metric = "case = \"flood\"\nmetric = [\"goodput\", \"cwnd\"]";
    assert!(FILE.contains(metric), "the test no longer changes anything");
    for (metrics, words) in [
        ("[\"goodput\", \"throughput\"]", "Values are means over intervals of 1 s."),
        ("[\"goodput\", \"cwnd\"]", "over intervals of 1 s, other values those at their ends."),
        ("\"cwnd\"", "Values are those at the ends of intervals of 1 s."),
    ] {
        let file = FILE.replacen(metric, &format!("case = \"flood\"\nmetric = {metrics}"), 1);
        let experiment = read(&file).unwrap_or_else(|errors| panic!("{errors}"));
        let (caption, _) = panels(&report::page(&analysis(&experiment)), "flood-over-time");
        assert!(caption.contains(words), "{metrics}: {caption}");
    }
}

/// Goodput next to another flow, with one panel for each; one of them is `factor` times faster.
#[test]
fn panels_share_a_scale_unless_one_would_be_flat() {
    let words = "Each panel has its own scale.";
    for (factor, shared) in [(1.0, true), (6.0, true), (15.0, false)] {
        let experiment = good();
        let faster = |task: Task| {
            let mut record = record(&task);
            if task.point.iter().any(|(axis, label)| axis == "second" && label == "tcp/cubic") {
                record.flows.iter_mut().for_each(|flow| {
                    flow.goodput_mbps = flow.goodput_mbps.map(|rate| rate * factor);
                });
            }
            (task, record)
        };
        let tasks = plan(&experiment, PlanOptions::default()).expect("a plan");
        let runs = tasks.into_iter().map(faster).collect();
        let page = report::page(&Analysis::of(&experiment, Results { runs, ..Results::default() }));
        let (caption, scales) = panels(&page, "rates-against-rtt");
        assert!(scales.len() > 1, "{scales:?}");
        assert_eq!(scales.iter().all(|s| *s == scales[0]), shared, "{factor}: {scales:?}");
        assert_eq!(caption.contains(words), !shared, "{factor}: {caption}");
    }
}

#[test]
fn a_published_dash_agrees_with_no_value_and_with_nothing_else() {
    let experiment = good();
    let analysis = analysis(&experiment);
    let table = analysis.tables.iter().find(|t| t.table.id == "tuples").expect("the table");
    let at_125 = |metric: &str| {
        let is = |l: &[(String, String)], v: &str| l.iter().any(|(_, x)| x == v);
        let mut cells = table.cells();
        cells
            .find(|c| {
                is(&c.labels, "tcp/newreno") && is(&c.labels, "125 ms") && is(&c.labels, metric)
            })
            .expect("a cell")
    };
    // No flow has its fair share at 125 ms, neither in the study nor in these made-up runs.
    let fair = at_125("nru-fair");
    assert_eq!(fair.published.map(|p| p.value), Some(None));
    assert_eq!(fair.agreement, Agreement::Neither);
    assert!(!fair.is_compared() && fair.is_unscored(), "two dashes do not count as agreement");
    assert!(at_125("nru-unfair").published.is_some_and(|p| p.value == Some(-0.27)));
}

#[test]
fn values_are_printed_in_the_unit_of_the_table_and_compared_in_it() {
    let experiment = good();
    let analysis = analysis(&experiment);
    let table = analysis.tables.iter().find(|t| t.table.id == "window-drop").expect("the table");
    let cell = table.rows[0].cells[0].as_ref().expect("a cell");
    assert_eq!(cell.published.and_then(|p| p.value), Some(1396.65));
    let point = vec![("cut".to_owned(), "50 %".to_owned())];
    let mbps = analysis.results.at(Some("cut"), None, &point);
    let mean = mbps.filter_map(|r| r.flow("ccid2")?.throughput_mbps).sum::<f64>() / 2.0;
    assert!((cell.ours.mean.expect("runs") - mean * 1000.0).abs() < 1e-9);
}

/// 1396.65 kbit/s are printed as 1.39665 Mbit/s, although the product of the binary numbers is
/// 1.3966500000000002.
#[test]
fn published_values_print_in_another_unit_as_they_would_be_written() {
    let in_mbps = FILE.replacen("unit = \"kbit/s\", digits = 2", "unit = \"Mbit/s\"", 1);
    let experiment = read(&in_mbps).unwrap_or_else(|errors| panic!("{errors}"));
    let analysis = analysis(&experiment);
    let table = analysis.tables.iter().find(|t| t.table.id == "window-drop").expect("the table");
    let cell = table.rows[0].cells[0].as_ref().expect("a cell");
    assert_eq!(cell.published.and_then(|p| p.value), Some(1.39665));
    for shown in [report::text(&analysis), report::page(&analysis), report::markdown(&analysis)] {
        assert!(shown.contains("1.39665") && shown.contains("0.28133"), "{shown}");
        assert!(!shown.contains("1.396650") && !shown.contains("0.281329"), "{shown}");
    }
    let text = report::text(&analysis);
    assert!(text.contains("309.94046") && text.contains("0.000146"), "{text}");
}

/// In a table of one flow there are no flows to distinguish.
#[test]
fn a_table_of_one_flow_needs_no_column_for_it() {
    let rows = "rows = [\"cut\", \"flow\"]";
    let one = FILE.replacen(rows, "rows = \"cut\"\nwhere = { flow = \"ccid2\" }", 1);
    let one = one.replacen(
        "match = { cut = \"window_drop_percent\", flow = \"flow\" }",
        "match = { cut = \"window_drop_percent\" }",
        1,
    );
    match read(&one) {
        Ok(_) => panic!("two lines for one cell"),
        Err(errors) => {
            let text = errors.to_string();
            assert!(!text.contains("a value for each flow"), "{text}");
            assert!(text.contains("is for the same cell as line"), "{text}");
        }
    }
}

#[test]
fn changes_of_links_are_marked_in_figures_over_time() {
    let change = "[[topology.change]]\nat = \"30 s\"\nlink = \"bottleneck\"\n\
                  rate = \"5 Mbit/s\"\n\n[time]";
    let experiment = read(&FILE.replacen("[time]", change, 1)).unwrap_or_else(|f| panic!("{f}"));
    let page = report::page(&analysis(&experiment));
    assert!(page.contains("<title>30 s: bottleneck 5 Mbit/s</title>"));
    assert!(!report::page(&analysis(&good())).contains("bottleneck 5 Mbit/s</title>"));
}

#[test]
fn report_without_published_numbers_mentions_none() {
    let (head, rest) = common::SMALL.split_once("[table.reference]").expect("a reference");
    let (_, rest) = rest.split_once("\n\n").expect("its end");
    let experiment = read(&format!("{head}{rest}")).unwrap_or_else(|errors| panic!("{errors}"));
    let analysis = analysis(&experiment);
    let pages = [report::page(&analysis), report::text(&analysis)];
    for page in pages {
        assert!(!page.contains("own numbers") && !page.contains("published value<"), "{page}");
        assert!(!page.contains("0 of 0"), "{page}");
    }
}

/// The error if `from` is replaced by `to`.
fn error(from: &str, to: &str) -> String {
    assert!(FILE.contains(from), "the test no longer changes anything: {from}");
    match read(&FILE.replacen(from, to, 1)) {
        Ok(_) => "accepted".to_owned(),
        Err(errors) => errors.to_string(),
    }
    .replace(concat!(env!("CARGO_MANIFEST_DIR"), "/../../"), "")
}

macro_rules! says {
    ($($name:ident: $from:expr => $to:expr;)*) => {$(
        #[test]
        fn $name() {
            insta::assert_snapshot!(error($from, $to));
        }
    )*};
}

says! {
    an_axis_that_no_key_holds: "rows = \"second\"\ncolumns = [\"rtt\", \"flow\"]" =>
        "columns = [\"rtt\", \"flow\"]";
    a_key_that_stands_twice: "columns = [\"rtt\", \"flow\"]" => "columns = [\"rtt\", \"second\"]";
    a_unit_of_another_kind: "unit = \"kbit/s\"" => "unit = \"ms\"";
    a_column_in_another_unit: "throughput = \"throughput_kbps\"" => "throughput = \"delay_ms\"";
    an_unknown_metric_of_a_reference: "throughput = \"throughput_kbps\"" =>
        "thruput = \"throughput_kbps\"";
    a_metric_without_its_column: "value = { throughput = \"throughput_kbps\", " =>
        "value = \"throughput_kbps\" # { ";
    weights_are_missing: "weights = { case = \"self\", axis = \"protocol\" }" => "";
    weights_of_an_unknown_axis: "axis = \"protocol\" }" => "axis = \"protcol\" }";
    weights_at_an_unknown_axis: "axis = \"protocol\" }" =>
        "axis = \"protocol\", at = { rt = \"25 ms\" } }";
    weights_at_an_unknown_value: "axis = \"protocol\" }" =>
        "axis = \"protocol\", at = { rtt = \"30 ms\" } }";
    an_average_of_runs_for_a_mean_over_time: "axis = \"protocol\" }" =>
        "axis = \"protocol\", averaged = true }";
    a_tuple_of_one: "metrics = [\"nru-fair\", \"nru-unfair\", \"nru-stability\"]" =>
        "metric = \"nru-fair\"";
    recovery_from_nothing: "epoch = \"40 s\", " => "";
    a_stretch_that_ends_first: "from = \"5 s\", to = \"20 s\"" => "from = \"20 s\", to = \"5 s\"";
    two_metrics_of_one_name: "name = \"before\"" => "name = \"during\"";
    an_unknown_metric_in_a_claim: "metric = \"recovery-time\" }\nevery" =>
        "metric = \"recovery\" }\nevery";
    a_claim_with_a_stray_key: "every = { below = 30 }" => "every = { below = 30 }\nby = 3";
    an_impossible_bound: "every = { below = 30 }" => "every = { below = 30, above = 40 }";
    near_without_a_distance: "within = 12" => "";
    an_unknown_table_of_a_side: "than = { table = \"own\"" => "than = { table = \"onw\"";
    a_figure_with_too_many_values: "at = { second = \"tcp/cubic\" }" => "";
    a_figure_of_no_time_metric: "metric = [\"goodput\", \"cwnd\"]" =>
        "metric = [\"goodput\", \"loss\"]";
    one_run_and_the_mean: "mean = true" => "mean = true\nrun = 2";
    a_figure_called_as_a_table: "[[figure]]\nid = \"against-rtt\"" =>
        "[[figure]]\nid = \"fairness\"";
    a_range_without_its_low_end: "low = \"nru-unfair\"" => "";
    a_curve_from_zero: "from = 1\nto = 10000" => "from = 0\nto = 10000";
    an_unknown_kind_of_figure: "kind = \"range\"" => "kind = \"rnage\"";
}
