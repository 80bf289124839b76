//! Cases: parts of a file with separate grids. Valid ones are planned as written, and runs are
//! shared; contradictions give an error with the line and the nearest valid alternative.

use std::path::Path;

use udccp_lab::document;
use udccp_lab::schema::Experiment;
use udccp_lab::{PlanOptions, Task, TaskFile, plan};

const GOOD: &str = r#"schema = 1
id = "many"
quick_set = { "time.duration" = "30 s", "time.measure" = { from = "10 s", to = "30 s" } }

[topology]
shape = "dumbbell"
access = { rate = "100 Mbit/s" }
bottleneck = { rate = "10 Mbit/s", rtt = "$rtt", limit = "1.0 bdp" }

[time]
duration = "60 s"
measure = { from = "20 s", to = "60 s", every = "1 s" }

[[flow]]
name = "first"
protocol = "dccp/ccid2"
traffic = "bulk"

[[flow]]
name = "second"
protocol = "$second"
traffic = "bulk"

[grid]
second = ["tcp/newreno", "tcp/cubic"]
rtt = ["25 ms", "50 ms"]
runs = 5
quick_runs = 2
seed = 2008

[[case]]
id = "self"
says = "two flows of one protocol"
set = { "flow.first.protocol" = "$protocol", "flow.second.protocol" = "$protocol" }
[case.grid]
protocol = ["dccp/ccid2", "tcp/cubic"]
rtt = ["25 ms"]

[[case]]
id = "alone"
says = "one flow"
runs = 1
without = ["second"]
[case.grid]
rtt = ["25 ms", "50 ms"]

[[case]]
id = "flood"
runs = 3
grid = {}
[case.topology]
shape = "dumbbell"
access = { rate = "1 Gbit/s" }
bottleneck = { rate = "1 Gbit/s", rtt = "1 ms", limit = "100 packets" }
[[case.flow]]
name = "noise"
protocol = "udp"
traffic = { kind = "constant-rate", rate = "1 Gbit/s", size = "1000 B" }

[[variant]]
id = "small-queue"
case = "alone"
says = "a smaller queue"
where = { rtt = ["50 ms"] }
set = { "topology.bottleneck.limit" = "10 packets" }

[[table]]
id = "own"
case = "self"
metric = "jain"
rows = "protocol"
columns = "rtt"

[[claim]]
says = "each is fair with itself"
table = "own"
where = { protocol = ["tcp/cubic"] }
every = { above = 0.9 }
"#;

fn read(text: &str) -> Result<Experiment, udccp_lab::Diagnostics> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/many.toml");
    Experiment::from_node(document::parse("many.toml", text.to_owned())?, &root)
}

fn good() -> Experiment {
    read(GOOD).unwrap_or_else(|errors| panic!("{errors}"))
}

fn tasks(quick: bool) -> Vec<Task> {
    plan(&good(), PlanOptions { quick, runs: None }).expect("a plan")
}

#[test]
fn every_case_is_planned_with_its_own_grid_and_runs() {
    let tasks = tasks(false);
    let count = |case: Option<&str>| tasks.iter().filter(|t| t.case.as_deref() == case).count();
    assert_eq!(count(None), 4 * 5);
    assert_eq!(count(Some("self")), 2 * 5);
    assert_eq!(count(Some("alone")), 2 + 1, "two points, and one of the variant");
    assert_eq!(count(Some("flood")), 3);
}

#[test]
fn a_case_changes_what_it_says_and_nothing_else() {
    let experiment = good();
    let flows = |case| experiment.part(case).expect("a part").flows.clone();
    assert_eq!(flows(None), ["first", "second"]);
    assert_eq!(flows(Some("alone")), ["first"]);
    assert_eq!(flows(Some("flood")), ["noise"]);
    let tasks = tasks(false);
    let own = tasks.iter().find(|t| t.case.as_deref() == Some("self")).expect("a task");
    let names: Vec<&str> = own.scenario.flows.iter().map(|f| f.protocol.name).collect();
    assert_eq!(names, ["dccp/ccid2", "dccp/ccid2"]);
}

/// Changes that add an axis of queues, two of which are tables, and a variant of one of them.
const QUEUES: [(&str, &str); 4] = [
    ("limit = \"1.0 bdp\" }", "limit = \"1.0 bdp\", queue = \"$queue\" }"),
    ("[case.grid]\n", "[case.grid]\nqueue = [\"drop-tail\"]\n"),
    (
        "[grid]\nsecond",
        r#"[grid]
queue = [
    "codel",
    { kind = "codel", target = "9 ms" },
    { kind = "red", min = "5 packets", max = "9 packets" },
]
second"#,
    ),
    (
        "[[variant]]\n",
        r#"[[variant]]
id = "wide"
says = "a longer queue"
where = { queue = "codel, target 9 ms" }
set = { "topology.bottleneck.limit" = "99 packets" }

[[variant]]
"#,
    ),
];

/// A queue with parameters is a table; on an axis, its words distinguish it from others.
#[test]
fn an_axis_may_have_tables() {
    let text = QUEUES.iter().fold(GOOD.to_owned(), |text, (from, to)| text.replace(from, to));
    let experiment = read(&text).unwrap_or_else(|errors| panic!("{errors}"));
    let tasks = plan(&experiment, PlanOptions { quick: false, runs: Some(1) }).expect("a plan");
    let of = |label: &str, variant: Option<&str>| {
        let is = |t: &&Task| {
            let is_at = t.point.iter().any(|(axis, value)| axis == "queue" && value == label);
            is_at && t.case.is_none() && t.variant.as_deref() == variant
        };
        let found: Vec<&Task> = tasks.iter().filter(is).collect();
        assert_eq!(found.len(), 4, "{label}");
        format!("{:?}", found[0].scenario.topology)
    };
    let late = "codel, target 9 ms";
    let all = [of("codel", None), of(late, None), of(late, Some("wide"))];
    assert!(all[0] != all[1] && all[1] != all[2], "{all:#?}");
    of("red, min 5 packets, max 9 packets", None);
}

#[test]
fn quick_runs_are_fewer_and_shorter() {
    let tasks = tasks(true);
    assert_eq!(tasks.iter().filter(|t| t.case.is_none()).count(), 4 * 2);
    let duration = |t: &Task| t.scenario.time.duration.as_secs_f64();
    assert!(tasks.iter().all(|t| t.shortened && duration(t) < 31.0));
}

#[test]
fn a_variant_may_have_its_own_number_of_runs() {
    let variant = "id = \"small-queue\"";
    let count = |own: &str, quick: bool| {
        let text = GOOD.replace(variant, &format!("{variant}\n{own}"));
        let experiment = read(&text).unwrap_or_else(|errors| panic!("{errors}"));
        let tasks = plan(&experiment, PlanOptions { quick, runs: None }).expect("a plan");
        tasks.iter().filter(|t| t.variant.is_some()).count()
    };
    assert_eq!(count("", false), 1);
    assert_eq!(count("runs = 4", false), 4);
    assert_eq!(count("runs = 4", true), 1, "no more than the case has for a first look");
    assert_eq!(count("runs = 4\nquick_runs = 3", true), 3);
    assert_eq!(count("quick_runs = 0", true), 0, "a first look leaves it out");
    assert_eq!(count("quick_runs = 0", false), 1);
}

#[test]
fn quick_plan_skips_cases_without_quick_runs() {
    let text = GOOD.replace("id = \"flood\"", "id = \"flood\"\nquick_runs = 0");
    let experiment = read(&text).unwrap_or_else(|errors| panic!("{errors}"));
    let count = |quick, runs| {
        let tasks = plan(&experiment, PlanOptions { quick, runs }).expect("a plan");
        tasks.iter().filter(|t| t.case.as_deref() == Some("flood")).count()
    };
    assert_eq!([count(false, None), count(true, None), count(true, Some(1))], [3, 0, 1]);
}

#[test]
fn variant_overrides_the_quick_runs_of_its_case() {
    let set = "set = { \"topology.bottleneck.limit\" = \"10 packets\" }";
    let late = "set = { \"flow.first.start\" = \"9 s\" }\n\
                quick_set = { \"flow.first.start\" = \"3 s\", \"time.duration\" = \"25 s\", \
                \"time.measure.to\" = \"25 s\" }";
    let experiment = read(&GOOD.replace(set, late)).unwrap_or_else(|errors| panic!("{errors}"));
    let times = |quick| {
        let tasks = plan(&experiment, PlanOptions { quick, runs: None }).expect("a plan");
        let task = tasks.into_iter().find(|t| t.variant.is_some()).expect("a task");
        let short = TaskFile::new(&experiment, &task, 0.0).expect("a file").task("a worker");
        assert_eq!(short.expect("the same task").key, task.key);
        (task.scenario.flows[0].start.as_secs_f64(), task.scenario.time.duration.as_secs_f64())
    };
    assert_eq!(times(false), (9.0, 60.0));
    assert_eq!(times(true), (3.0, 25.0));
}

#[test]
fn equal_scenarios_and_seeds_share_a_run() {
    let renamed = GOOD.replace("\"self\"", "\"same\"").replace("id = \"many\"", "id = \"other\"");
    let other = plan(&read(&renamed).expect("the same file"), PlanOptions::default());
    let keys = |tasks: &[Task]| tasks.iter().map(|t| t.key.clone()).collect::<Vec<_>>();
    assert_eq!(keys(&other.expect("a plan")), keys(&tasks(false)));
}

#[test]
fn a_file_may_have_cases_only() {
    let without_axes = GOOD.replace("second = [\"tcp/newreno\", \"tcp/cubic\"]\n", "").replacen(
        "rtt = [\"25 ms\", \"50 ms\"]\n",
        "",
        1,
    );
    let experiment = read(&without_axes).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(experiment.part(None).is_none());
    let tasks = plan(&experiment, PlanOptions::default()).expect("a plan");
    assert!(tasks.iter().all(|t| t.case.is_some()));
}

/// The error if `from` is replaced by `to`.
fn error(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "the test no longer changes anything: {from}");
    match read(&GOOD.replacen(from, to, 1)) {
        Ok(_) => "accepted".to_owned(),
        Err(errors) => errors.to_string(),
    }
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
    unknown_case_of_a_table: "case = \"self\"" => "case = \"sell\"";
    unknown_case_of_a_variant: "case = \"alone\"" => "case = \"alne\"";
    an_axis_of_another_case: "rows = \"protocol\"" => "rows = \"second\"";
    a_value_of_another_case: "[\"tcp/cubic\"] }\nevery" => "[\"tcp/newreno\"] }\nevery";
    two_cases_of_one_name: "id = \"alone\"" => "id = \"self\"";
    a_name_that_is_no_name: "id = \"alone\"" => "id = \"all alone\"";
    unknown_flow_taken_away: "without = [\"second\"]" => "without = [\"secnd\"]";
    taking_flows_away_from_own_flows: "grid = {}" => "grid = {}\nwithout = [\"second\"]";
    unknown_key_of_a_case: "without = " => "wihtout = ";
    runs_inside_the_grid_of_a_case: "protocol = [\"dccp" => "runs = 3\nprotocol = [\"dccp";
    no_runs: "runs = 1" => "runs = 0";
    no_runs_of_a_variant: "says = \"a smaller queue\"" => "says = \"a\"\nruns = 0";
    a_change_outside_the_run: "\"flow.first.protocol\" = \"$protocol\"" =>
        "\"grid.runs\" = \"$protocol\"";
    a_change_of_an_unknown_flow: "\"flow.first.protocol\"" => "\"flow.frist.protocol\"";
    an_unknown_axis_in_a_change: "\"$protocol\" }\n[case" => "\"$prtocol\" }\n[case";
    an_unused_axis_of_a_case: "grid = {}" => "grid = { loss = [\"1 %\"] }";
    a_wrong_key_in_a_case: "rate = \"1 Gbit/s\", size" => "rat = \"1 Gbit/s\", size";
    a_quick_run_without_its_measuring: "\"time.duration\" = \"30 s\", " =>
        "\"time.duration\" = \"15 s\", ";
    a_variant_of_another_case: "metric = \"jain\"" =>
        "metric = \"jain\"\nvariant = \"small-queue\"";
}

#[test]
fn without_a_grid_a_table_has_to_name_its_case() {
    let text = GOOD
        .replace("second = [\"tcp/newreno\", \"tcp/cubic\"]\n", "")
        .replacen("rtt = [\"25 ms\", \"50 ms\"]\n", "", 1)
        .replacen("id = \"own\"\ncase = \"self\"", "id = \"own\"", 1);
    let error = read(&text).err().map_or_else(|| "accepted".to_owned(), |f| f.to_string());
    insta::assert_snapshot!(error);
}
