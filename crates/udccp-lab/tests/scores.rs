//! What counts in a score: steady and near shares, whole points, shared links.

mod common;

use common::made_up::{fairness, flow, label, record, results};
use udccp_lab::analysis::{Agreement, Analysis, Score, Scored, Support, scores};
use udccp_lab::schema::Experiment;
use udccp_lab::{Task, report};

/// The small experiment with a table of shares, compared with Linux, and three runs.
fn sharing() -> Experiment {
    let (head, _) = common::SMALL.split_once("[[table]]").expect("tables");
    let head = head.replace("runs = 2", "runs = 3");
    common::read(&format!(
        "{head}[[table]]\nid = \"shares\"\nmetric = \"share\"\nclose = \"10 %\"\n\
         where = {{ flow = \"first\" }}\nrows = \"second\"\ncolumns = \"rtt\"\n\
         against = \"linux\"\n"
    ))
}

/// Scores of simulated shares against those of Linux: the first flow's share at each point, in
/// percent.
fn score_of(simulated: impl Fn(&Task) -> (f64, f64), linux: impl Fn(&Task) -> f64) -> Vec<Scored> {
    let experiment = sharing();
    let pair = |from: f64, to: f64| {
        record(vec![flow("first", from, to), flow("second", 100.0 - from, 100.0 - to)])
    };
    let mut all = results(&experiment, "", |task| {
        let (from, to) = simulated(task);
        pair(from, to)
    });
    all.others = vec![results(&experiment, "linux", |task| pair(linux(task), linux(task)))];
    let analysis = Analysis::of(&experiment, all);
    let found = scores(&analysis);
    let [score] = found.as_slice() else { panic!("one table beside one backend") };
    assert!(score.is_main && score.planned == 4);
    let page = report::page(&analysis);
    assert!(page.contains("<h2 id=\"score\">Score</h2>"), "{page}");
    let (agree, scored) = (Score::agree(score), Score::scored(score));
    assert!(page.contains(&format!("{agree} of {scored} (")), "{page}");
    assert!(report::text(&analysis).contains("score: "));
    assert!(report::markdown(&analysis).contains("### Score"));
    score.cells.clone()
}

/// 10 % of a share refers to the smaller flow: 80:20 is two points from 78:22 and five from 75:25.
#[test]
fn share_tolerance_is_that_of_the_smaller_flow() {
    let of = |task: &Task| match (label(task, "second"), label(task, "rtt")) {
        ("tcp/newreno", "25 ms") => 82.0,
        ("tcp/newreno", _) => 75.0,
        (_, "25 ms") => 78.5,
        _ => 80.0,
    };
    let found = score_of(|task| (of(task), of(task)), |_| 80.0);
    assert_eq!(found, [Scored::Near, Scored::Off, Scored::Near, Scored::Near]);
}

/// Runs of 70, 80 and 90 have an interval from 55 to 100; runs of 79, 80 and 81 from 77.5 to 82.5.
#[test]
fn a_share_inside_the_interval_of_linux_agrees() {
    let wide = |task: &Task| 60.0 + 10.0 * task.run as f64;
    let found = score_of(|_| (70.0, 70.0), wide);
    assert_eq!(found, [Scored::Inside; 4]);
    let narrow = |task: &Task| 78.0 + task.run as f64;
    assert_eq!(score_of(|_| (70.0, 70.0), narrow), [Scored::Off; 4]);
}

/// From 83:17 in the first half to 77:23 in the second are six points.
#[test]
fn a_share_that_still_changes_is_not_scored() {
    assert_eq!(score_of(|_| (83.0, 77.0), |_| 80.0), [Scored::Unsteady; 4]);
    assert_eq!(score_of(|_| (82.0, 78.0), |_| 80.0), [Scored::Near; 4]);
}

/// Two flows of one protocol with published rates: 45 and 49 at 25 ms, 42 and 51 at 50 ms. Both
/// variants have these keys in addition.
fn rates(keys: &str) -> Experiment {
    let (head, _) = common::SMALL.split_once("[[flow]]").expect("flows");
    common::read(&format!(
        r#"{head}[[flow]]
name = "first"
protocol = "$protocol"
traffic = "bulk"

[[flow]]
name = "second"
protocol = "$protocol"
traffic = "bulk"

[grid]
protocol = ["tcp/newreno"]
rtt = ["25 ms", "50 ms"]
runs = 1

[[variant]]
id = "cuts"
says = "one thing"
{keys}
set = {{ "topology.bottleneck.queue" = {{ kind = "codel", target = "5 ms" }} }}

[[variant]]
id = "grows"
says = "another thing"
{keys}
set = {{ "topology.bottleneck.queue" = {{ kind = "codel", target = "9 ms" }} }}

[[table]]
id = "rates"
metric = "goodput"
close = 1
rows = "protocol"
columns = "rtt"

[table.reference]
file = "reference/000_table2_self_throughput.csv"
match = {{ protocol = "protocol", rtt = "rtt_ms" }}
names = {{ "tcp/newreno" = "newreno" }}
value = {{ first = "flow1_mbps", second = "flow2_mbps" }}
{BOTH}"#
    ))
}

const BOTH: &str = r#"
[[explanation]]
tables = ["rates"]
variant = "cuts"
says = "It cuts."

[[explanation]]
tables = ["rates"]
variant = "grows"
says = "It grows."
"#;

/// The support of each cell's reasons, by variant; `plain` has the file's rates unchanged.
fn support(of: impl Fn(Option<&str>, &str) -> [f64; 2]) -> Vec<Vec<Option<Support>>> {
    support_with("", of)
}

/// The same if both variants have these keys.
fn support_with(
    keys: &str,
    of: impl Fn(Option<&str>, &str) -> [f64; 2],
) -> Vec<Vec<Option<Support>>> {
    let experiment = rates(keys);
    let all = results(&experiment, "", |task| {
        let [first, second] = of(task.variant.as_deref(), label(task, "rtt"));
        record(vec![flow("first", first, first), flow("second", second, second)])
    });
    let analysis = Analysis::of(&experiment, all);
    let cells = analysis.tables[0].cells();
    cells.map(|cell| cell.reasons.iter().map(|r| r.support).collect()).collect()
}

/// The variant makes the first flow at 25 ms agree and the second disagree, so it is no
/// explanation.
#[test]
fn variant_that_fixes_one_flow_of_a_point_explains_nothing() {
    let found = support(|variant, rtt| match (variant, rtt) {
        (None, "25 ms") => [60.0, 40.0],
        (Some("cuts"), "25 ms") => [45.0, 20.0],
        (_, "25 ms") => [60.0, 40.0],
        _ => [42.0, 51.0],
    });
    let [here, no] = [Some(Support::Here), Some(Support::No)];
    assert_eq!(found, [vec![here, no], vec![], vec![no, no], vec![]]);
}

/// Each variant fixes one point, but only one can be the table's set-up. They replace one table by
/// different ones.
#[test]
fn one_set_up_is_credited_for_a_table() {
    let found = support(|variant, rtt| match (variant, rtt) {
        (Some("cuts"), "25 ms") => [45.0, 49.0],
        (Some("grows"), "50 ms") => [42.0, 51.0],
        _ => [60.0, 30.0],
    });
    let [full, here, no] = [Support::Full, Support::Here, Support::No].map(Some);
    let (at_25, at_50) = (vec![full, no], vec![no, here]);
    assert_eq!(found, [at_25.clone(), at_50.clone(), at_25, at_50]);
}

/// The same variants as parts of one set-up are credited together, unless one of them breaks a
/// point.
#[test]
fn parts_of_a_set_up_are_credited_together() {
    let keys = "set_up = \"testbed\"";
    let found = support_with(keys, |variant, rtt| match (variant, rtt) {
        (Some("cuts"), "25 ms") => [45.0, 49.0],
        (Some("grows"), "50 ms") => [42.0, 51.0],
        _ => [60.0, 30.0],
    });
    let [full, here, no] = [Support::Full, Support::Here, Support::No].map(Some);
    let (at_25, at_50) = (vec![full, no], vec![no, full]);
    assert_eq!(found, [at_25.clone(), at_50.clone(), at_25, at_50]);

    let found = support_with(keys, |variant, rtt| match (variant, rtt) {
        (Some("cuts"), "25 ms") => [45.0, 49.0],
        (None | Some("cuts"), "50 ms") => [42.0, 51.0],
        _ => [60.0, 30.0],
    });
    assert_eq!(found, [vec![here, no], vec![], vec![here, no], vec![]]);
}

/// The variant fixes 25 ms and breaks 50 ms.
#[test]
fn variant_that_breaks_a_point_explains_nothing() {
    let found = support(|variant, rtt| match (variant, rtt) {
        (Some("cuts"), "25 ms") | (None, "50 ms") => {
            if rtt == "25 ms" {
                [45.0, 49.0]
            } else {
                [42.0, 51.0]
            }
        }
        _ => [60.0, 30.0],
    });
    let [here, no] = [Some(Support::Here), Some(Support::No)];
    assert_eq!(found, [vec![here, no], vec![], vec![here, no], vec![]]);
}

/// A single flow has the link's rate in both the model and the study.
#[test]
fn one_flow_that_fills_its_link_does_not_count() {
    let text = common::SMALL.replace("every = { above = 0.9 }", "every = { above = 0.5 }");
    let (head, _) = text.split_once("[[flow]]\nname = \"second\"").expect("a second flow");
    let text = format!(
        "{}[grid]\nrtt = [\"25 ms\"]\nruns = 1\n\n[[table]]\nid = \"rates\"\n\
         metric = \"goodput\"\nclose = \"10 %\"\nrows = \"rtt\"\nagainst = \"linux\"\n",
        head.replace("dccp/ccid2", "tcp/newreno")
    );
    let experiment = common::read(&text);
    let agreement = |ours: f64, utilisation: f64| {
        let one = |mbps: f64| {
            let mut record = record(vec![flow("first", mbps, mbps)]);
            record.system.utilisation_percent = Some(utilisation);
            record
        };
        let mut all = results(&experiment, "", |_| one(ours));
        all.others = vec![results(&experiment, "linux", |_| one(5.0))];
        let analysis = Analysis::of(&experiment, all);
        let cell = analysis.cells().next().expect("a cell");
        (cell.agreement, report::text(&analysis))
    };
    assert_eq!(agreement(4.9, 99.0).0, Agreement::LinkLimited);
    assert_eq!(agreement(4.9, 90.0).0, Agreement::Close, "the link has room");
    assert_eq!(agreement(2.0, 99.0).0, Agreement::Differs, "a difference counts");
}

/// Agreements of the small experiment if every run has this fairness index.
fn agreements(runs_of_the_study: &str, index: f64) -> Vec<Agreement> {
    let text = common::SMALL.replace("stddev = \"stddev\"\n", runs_of_the_study);
    let experiment = common::read(&text);
    let all = results(&experiment, "", |_| fairness(index));
    let analysis = Analysis::of(&experiment, all);
    let found: Vec<Agreement> = analysis.tables[0].cells().map(|cell| cell.agreement).collect();
    if found.contains(&Agreement::Close) {
        let page = report::page(&analysis);
        let words = "within two standard errors of the published mean";
        assert_eq!(page.contains(words), runs_of_the_study.contains("runs"), "{page}");
    }
    found
}

/// Published: NewReno 0.94 (sd 0.05) and 0.96 (0.04), CUBIC 0.94 (0.05) and 0.80 (0.09).
#[test]
fn published_deviation_sets_the_tolerance() {
    let (near, off) = (Agreement::Close, Agreement::Differs);
    assert_eq!(agreements("stddev = \"stddev\"\n", 0.90), [near, off, near, off]);
    // 0.04 of 0.045, 0.06 of 0.036, 0.10 of 0.080.
    assert_eq!(agreements("stddev = \"stddev\"\nruns = 5\n", 0.90), [near, off, near, off]);
    // 0.05 of the default and of 0.045; 0.09 of 0.080.
    assert_eq!(agreements("stddev = \"stddev\"\n", 0.89), [near, off, near, off]);
    assert_eq!(agreements("stddev = \"stddev\"\nruns = 5\n", 0.89), [off; 4]);
    // 0.07 of 0.080.
    assert_eq!(agreements("stddev = \"stddev\"\nruns = 5\n", 0.87), [off, off, off, near]);
    // With a million runs, only the last digit remains as tolerance.
    assert_eq!(agreements("stddev = \"stddev\"\nruns = 1000000\n", 0.95), [near, near, near, off]);
}
