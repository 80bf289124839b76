//! Pages show names instead of ids, only significant digits, links to every table, and CSV to copy.

mod common;

use std::path::Path;

use udccp_lab::analysis::{Analysis, Results};
use udccp_lab::report::{About, write};
use udccp_lab::schema::Experiment;
use udccp_lab::{FlowRecord, PlanOptions, Record, SeriesRecord, SystemRecord, Task, plan, report};

/// A study with one flow that stops half-way, and one that does not.
const STUDY: &str = r#"
[study]
title = "A study of tests"
authors = "A. Author"
published = "TEST 2012"

[summary]
says = "Two flows share."
finds = "They do."
differs = "Nowhere."

[names]
first = "the early flow"

[[table]]
id = "halves"
title = "Before and after"
rows = "flow"
columns = "metric"
where = { second = "tcp/cubic", rtt = "25 ms" }
metrics = [
  { metric = "goodput", name = "before", from = "0 s", to = "4 s" },
  { metric = "goodput", name = "after", from = "5 s", to = "8 s" },
]

[[table]]
id = "small-numbers"
title = "Small numbers"
rows = "second"
columns = "rtt"
where = { flow = "first" }
metrics = [{ metric = "jitter-arrival-gap", digits = 6 }]

[[claim]]
says = "The gaps are short."
source = "this project"
origin = "project"
table = "small-numbers"
every = { below = 0.1 }
"#;

fn study() -> Experiment {
    let stops = "name = \"first\"\nprotocol = \"dccp/ccid2\"\nstop = \"4 s\"";
    let text = common::SMALL
        .replacen("name = \"first\"\nprotocol = \"dccp/ccid2\"", stops, 1)
        .replacen("above = 0.9", "above = 0.895", 1)
        .replacen(
            "table = \"fairness\"\nwhere",
            "source = \"page 1\"\ntable = \"fairness\"\nwhere",
            1,
        );
    common::read(&format!("{text}{STUDY}"))
}

fn record(task: &Task) -> Record {
    let by_run = task.run as f64;
    let flow = |name: &str, protocol: &str, rates: [f64; 8]| FlowRecord {
        name: name.to_owned(),
        protocol: protocol.to_owned(),
        goodput_mbps: Some(1.0),
        jitter_arrival_gap_ms: Some(52.887_490 + by_run * 0.2),
        series: SeriesRecord {
            t_s: (1..=8).map(f64::from).collect(),
            throughput_mbps: rates.to_vec(),
            goodput_mbps: rates.to_vec(),
            ..SeriesRecord::default()
        },
        ..FlowRecord::default()
    };
    let second = task.scenario.flows[1].protocol.name;
    let first = [2.0, 2.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0];
    Record {
        seed: task.seed,
        measured_s: [3.0, 8.0],
        flows: vec![flow("first", "dccp/ccid2", first), flow("second", second, [3.0; 8])],
        system: SystemRecord { jain: Some(0.8 + by_run * 0.001), ..SystemRecord::default() },
        ..Record::default()
    }
}

fn results(experiment: &Experiment) -> Results {
    let tasks = plan(experiment, PlanOptions::default()).expect("a plan");
    let planned = tasks.len();
    let runs = tasks.into_iter().map(|task| {
        let record = record(&task);
        (task, record)
    });
    Results { runs: runs.collect(), planned, ..Results::default() }
}

fn page(experiment: &Experiment) -> String {
    report::page(&Analysis::of(experiment, results(experiment)))
}

/// The part of a page from the heading of a table or figure to the next heading.
fn part<'p>(page: &'p str, id: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("<h3 id=\"{id}\"")).expect("the heading");
    rest.split("<h3 id=").next().unwrap_or_default()
}

#[test]
fn missing_flow_is_shown_as_a_dash() {
    let experiment = study();
    let page = page(&experiment);
    let halves = part(&page, "halves");
    assert!(halves.contains("<b>–</b><small>does not run</small>"), "{halves}");
    let text = report::text(&Analysis::of(&experiment, results(&experiment)));
    let row = text.lines().find(|l| l.starts_with("the early flow")).expect("the row");
    assert!(row.ends_with('–') && !row.contains("0.0 "), "{row}");
}

#[test]
fn digits_are_as_many_as_the_interval_allows() {
    let page = page(&study());
    let small = part(&page, "small-numbers");
    // Two runs differ by 0.2, so the interval is wider than one.
    assert!(small.contains("<b>53.19</b>") && !small.contains("52.887"), "{small}");
}

#[test]
fn metrics_flows_and_cases_have_names() {
    let page = page(&study());
    let (shown, _) = page.split_once("<details>").expect("the file at the end");
    let (_, shown) = shown.split_once("<main>").expect("the page");
    let read = |text: &str| {
        let pieces = text.split('<').filter_map(|p| p.split_once('>')).map(|(_, words)| words);
        pieces.collect::<Vec<_>>().join(" ")
    };
    let without_csv: String = shown
        .split("<pre class=\"csv\"")
        .map(|p| p.split_once("</pre>").map_or(p, |(_, rest)| rest))
        .collect();
    let words = read(&without_csv);
    assert!(words.contains("the early flow") && !words.contains("first flow"), "{words}");
    assert!(!words.contains("jitter-arrival-gap"), "{words}");
}

#[test]
fn every_table_and_figure_has_a_link_to_itself_and_its_numbers() {
    let experiment = study();
    let page = page(&experiment);
    let tables = experiment.tables.iter().map(|t| &t.id);
    for id in tables.chain(experiment.figures.iter().map(|f| &f.id)) {
        assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
        let here = part(&page, id);
        assert!(here.contains(&format!("class=\"anchor\" href=\"#{id}\"")), "{id}");
        assert!(here.contains("<pre class=\"csv\" hidden>"), "{id}");
        assert!(page.contains(&format!("<li><a href=\"#{id}\">")), "{id} is in the contents");
    }
    let fairness = part(&page, "fairness");
    assert!(
        fairness.contains("second,rtt,metric,unit,source,mean,ci95_low,ci95_high,runs,runs_asked")
    );
    assert!(fairness.contains("tcp/cubic,25 ms,Jain fairness index,,simulated,0.8015,"));
}

#[test]
fn a_failing_claim_is_a_table_and_rounding_is_said() {
    let page = page(&study());
    let (_, claims) = page.split_once("<h2 id=\"claims\"").expect("claims");
    let (study, own) = claims.split_once("<h2 id=\"own-claims\"").expect("own claims");
    assert!(study.contains("2 of 2 comparisons fail"), "{study}");
    assert!(study.contains("<td>above 0.895 (0.90 rounded)</td>"), "{study}");
    assert!(own.contains("The gaps are short.") && !study.contains("The gaps are short."));
}

#[test]
fn page_begins_with_its_results() {
    let page = page(&study());
    let at = |words: &str| page.find(words).unwrap_or_else(|| panic!("no {words}"));
    let order = [
        "What the study says</dt><dd>Two flows share.",
        "What we find</dt><dd>They do.",
        "Where we differ, and why</dt><dd>Nowhere.",
        "<main>",
    ];
    assert!(order.map(at).is_sorted(), "the sentences come first");
}

#[test]
fn the_index_has_studies_then_questions_then_fidelity() {
    let (study, plain) = (study(), common::small());
    let held = "[[table]]\nid = \"rates\"\nagainst = \"linux\"";
    let held = common::SMALL
        .replacen("id = \"small\"", "id = \"held\"\ntitle = \"As a kernel does?\"", 1)
        .replacen("[[table]]\nid = \"rates\"", held, 1);
    let held = common::read(&held);
    let all = [&held, &plain, &study].map(|e| Analysis::of(e, results(e)));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let about = About { date: "22 November 2026".to_owned(), machine: "2 cores".to_owned() };
    let index = write(folder.path(), &all, &about).expect("a report");
    let index = std::fs::read_to_string(index).expect("its index");
    let at = |words: &str| index.find(words).unwrap_or_else(|| panic!("no {words} in {index}"));
    let order = [
        "1 study, 2 further experiments, ",
        "22 November 2026 · 2 cores",
        "Published studies",
        "A study of tests",
        "A. Author · TEST 2012",
        "They do.",
        "class=\"bar\"",
        "Questions of our own",
        "Do tests see what campaigns do?",
        "Fidelity of the simulation",
        "As a kernel does?",
    ];
    assert!(order.map(at).is_sorted(), "{index}");
    assert_eq!(index.matches("class=\"thumb\"").count(), 3, "each has a picture");
    assert!(index.contains("not run: Linux"));
}

#[test]
fn a_backend_that_was_not_run_is_named_with_its_command() {
    let text =
        common::SMALL.replacen("id = \"small\"", "id = \"small\"\nbackends = [\"linux\"]", 1);
    let page = page(&common::read(&text));
    assert!(page.contains("Not run: Linux. <code>udccp lab run small --backend linux</code>"));
}

/// The error for the small experiment with this addition.
fn error(added: &str) -> String {
    let text = format!("{}{added}", common::SMALL);
    let root = udccp_lab::document::parse("small.toml", text).expect("TOML");
    match Experiment::from_node(root, Path::new(&common::path())) {
        Ok(_) => "accepted".to_owned(),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn summary_and_names_are_checked() {
    let says = error("[summary]\nsays = \"a\"\nfinds = \"b\"\n");
    assert!(says.contains("this file has no [study]"), "{says}");
    let figure = error("[summary]\nfinds = \"b\"\nfigure = \"agianst\"\n");
    assert!(figure.contains("there is no figure \"agianst\"") && figure.contains("against"));
    let name = error("[names]\nfrist = \"the first\"\n");
    assert!(name.contains("there is no flow, case or value \"frist\""), "{name}");
    let study = error(
        "[study]\ntitle = \"t\"\nauthors = \"a\"\npublished = \"p\"\n[summary]\nfinds = \"b\"\n",
    );
    assert!(study.contains("says") && study.contains("differs"), "{study}");
}
