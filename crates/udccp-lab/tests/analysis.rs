//! Verdicts on made-up runs: agreement, reasons, claims, and their text on a page.

mod common;

use udccp_lab::analysis::{Agreement, Analysis, Results, Support};
use udccp_lab::schema::Experiment;
use udccp_lab::{FlowRecord, PlanOptions, Record, SeriesRecord, SystemRecord, Task, plan, report};

/// The made-up index of a run: by variant, second protocol and RTT, for two runs.
fn index(task: &Task) -> f64 {
    let label = |axis: &str| task.point.iter().find(|(a, _)| a == axis).map(|(_, l)| l.as_str());
    let mean = match (task.variant.as_deref(), label("second"), label("rtt")) {
        (Some("every-ack"), _, Some("25 ms")) => 0.95,
        (Some("every-ack"), _, _) => 0.70,
        (_, Some("tcp/newreno"), Some("25 ms")) => 0.80,
        (_, Some("tcp/newreno"), _) => 0.60,
        (_, _, Some("25 ms")) => 0.93,
        _ => 0.90,
    };
    mean + if task.run == 1 { 0.01 } else { -0.01 }
}

fn record(task: &Task) -> Record {
    let flow = |name: &str, protocol: &str, mbps: f64| FlowRecord {
        name: name.to_owned(),
        protocol: protocol.to_owned(),
        goodput_mbps: Some(mbps),
        series: SeriesRecord {
            t_s: vec![1.0, 2.0, 3.0],
            throughput_mbps: vec![mbps; 3],
            goodput_mbps: vec![mbps, mbps * 1.1, mbps * 0.9],
            ..SeriesRecord::default()
        },
        ..FlowRecord::default()
    };
    let second = task.scenario.flows[1].protocol.name;
    Record {
        seed: task.seed,
        measured_s: [1.0, 3.0],
        flows: vec![flow("first", "dccp/ccid2", 2.0), flow("second", second, 2.5)],
        system: SystemRecord { jain: Some(index(task)), ..SystemRecord::default() },
        ..Record::default()
    }
}

fn results(experiment: &Experiment, keep: impl Fn(&Task) -> bool) -> Results {
    let tasks = plan(experiment, PlanOptions::default()).expect("a plan");
    let planned = tasks.len();
    let runs = tasks.into_iter().filter(keep).map(|t| {
        let record = record(&t);
        (t, record)
    });
    Results { runs: runs.collect(), planned, ..Results::default() }
}

#[test]
fn cells_agree_differ_or_are_missing() {
    let experiment = common::small();
    let no_cubic_at_50 = |t: &Task| {
        t.point.iter().all(|(_, l)| l != "50 ms") || t.point.iter().all(|(_, l)| l != "tcp/cubic")
    };
    let analysis = Analysis::of(&experiment, results(&experiment, no_cubic_at_50));
    let cells: Vec<Agreement> = analysis.tables[0].cells().map(|c| c.agreement).collect();
    // Two runs have no interval that could contain the published value.
    let expected = [Agreement::Differs, Agreement::Differs, Agreement::Close, Agreement::Missing];
    assert_eq!(cells, expected);
    let rates = &analysis.tables[1];
    assert!(rates.cells().all(|c| c.agreement == Agreement::Alone || c.ours.n == 0));
    assert_eq!(rates.rows.len(), 4, "a row for each flow of each pair");
}

#[test]
fn explanations_count_only_as_far_as_their_runs_support_them() {
    let experiment = common::small();
    let analysis = Analysis::of(&experiment, results(&experiment, |_| true));
    let newreno: Vec<_> = analysis.tables[0].rows[0].filled().collect();
    let support = |i: usize| newreno[i].reasons.iter().map(|r| r.support).collect::<Vec<_>>();
    assert_eq!(support(0), [Some(Support::Full)], "0.95 against 0.94");
    assert_eq!(support(1), [Some(Support::No)], "0.70 is still far from 0.96");
    assert!(newreno[0].is_explained() && !newreno[1].is_explained());
    assert!(analysis.tables[0].rows[1].filled().all(|c| c.reasons.is_empty()));
}

#[test]
fn explanations_without_runs_explain_nothing() {
    let experiment = common::small();
    let analysis = Analysis::of(&experiment, results(&experiment, |t| t.variant.is_none()));
    assert!(analysis.cells().all(|c| !c.is_explained()));
}

#[test]
fn claims_are_judged_on_both_sets_of_numbers() {
    let experiment = common::small();
    let analysis = Analysis::of(&experiment, results(&experiment, |_| true));
    let verdicts: Vec<_> =
        analysis.claims.iter().map(|c| (c.ours.holds, c.published.holds)).collect();
    let expected = [
        (Some(false), Some(true)),  // above 0.9 with NewReno: ours 0.80 and 0.60
        (Some(false), Some(false)), // fairer with NewReno: the paper has 0.94 twice at 25 ms
        (Some(true), Some(false)),  // falls: the paper's NewReno rises from 0.94 to 0.96
    ];
    assert_eq!(verdicts, expected);
    assert!(analysis.claims[0].ours.evidence.contains("TCP NewReno, 50 ms: 0.60"));
}

#[test]
fn claims_without_runs_are_not_judged() {
    let experiment = common::small();
    let analysis = Analysis::of(&experiment, results(&experiment, |_| false));
    assert!(analysis.claims.iter().all(|c| c.ours.holds.is_none()));
    assert!(report::page(&analysis).contains("No runs yet"));
}

#[test]
fn the_text_for_a_terminal_has_every_part() {
    let experiment = common::small();
    let analysis = Analysis::of(&experiment, results(&experiment, |_| true));
    insta::assert_snapshot!(report::text(&analysis));
}

/// The embedded CSV: each line of a table has a field for each column.
#[test]
fn a_table_to_copy_has_a_value_for_each_of_its_columns() {
    let experiment = common::small();
    let analysis = Analysis::of(&experiment, results(&experiment, |_| true));
    let page = report::page(&analysis);
    let blocks = page.split("<pre class=\"csv\" hidden>").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split("</pre>").next());
    let tables: Vec<&str> = blocks.filter(|text| text.contains(",runs_asked,")).collect();
    assert_eq!(tables.len(), 2);
    for table in tables {
        let mut lines = csv::Reader::from_reader(table.as_bytes());
        let asked = lines.headers().expect("a head").iter().position(|h| h == "runs_asked");
        for line in lines.records() {
            let line = line.expect("as many fields as columns");
            assert_eq!(line.get(asked.expect("a column")), Some("2"));
        }
    }
}

#[test]
fn page_is_self_contained() {
    let experiment = common::small();
    let page = report::page(&Analysis::of(&experiment, results(&experiment, |_| true)));
    for outside in ["http:", "https:", "src=", "@import", "url(", "<link"] {
        assert!(!page.contains(outside), "the page refers to something outside: {outside}");
    }
    assert!(!page.contains("NaN") && !page.contains(">inf"), "an undefined value reached a reader");
    let (markup, script) = page.split_once("<script>").expect("the hover script");
    assert!(script.ends_with("</script>\n</body>\n</html>\n"));
    balanced(&format!("{markup}</body>\n</html>\n"));
    for said in ["every-ack", "Unexplained", "0.95 (2 runs, 0.94..0.96)", "✗ fails", "1500 bytes"]
    {
        assert!(page.contains(said), "the page does not say {said}");
    }
    let (figures, charts) =
        (page.matches("<figure").count(), page.matches("<svg class=\"chart").count());
    assert_eq!((figures, charts), (2, 4), "each figure is drawn wide and narrow");
}

/// Every element that is opened is closed, in order.
fn balanced(page: &str) {
    const VOID: [&str; 3] = ["meta", "!doctype", "br"];
    let mut open: Vec<&str> = Vec::new();
    for piece in page.split('<').skip(1) {
        let tag = piece.split('>').next().unwrap_or_default();
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap_or_default();
        let name = name.trim_end_matches('/');
        if VOID.contains(&name) || tag.ends_with('/') {
            continue;
        }
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "closed out of order near: <{piece:.60}");
        } else {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "never closed: {open:?}");
}

/// A variant that runs another protocol in the place of the one that an axis names.
#[test]
fn row_title_is_the_protocol_that_runs() {
    let path = std::path::Path::new("../../experiments/chowdhury-2011.toml");
    let experiment = Experiment::load(path).expect("the file is good");
    let analysis = Analysis::of(&experiment, Results::default());
    let titles = |id: &str| {
        let table = analysis.tables.iter().find(|t| t.table.id == id).expect("the table");
        table.rows.iter().map(udccp_lab::analysis::Row::title).collect::<Vec<_>>()
    };
    assert_eq!(titles("delay-rate-newreno"), ["TCP NewReno"]);
    assert!(titles("delay-rate").contains(&"TCP CUBIC (2007)".to_owned()));
    assert_eq!(titles("delay-rate-window-of-100"), ["DCCP CCID 2"]);
}
