//! `udccp lab calibrate` finds a setting that a made-up study used and does not state.

#![cfg(unix)]

mod common;

use std::collections::BTreeMap;

use common::lab::{Lab, SMALL};

/// Two settings: the study acknowledged each segment, and had half the queue.
const KNOBS: &str = r#"
[calibrate]
fit = ["shares"]
test = ["fairness"]
[[calibrate.knob]]
id = "queue"
about = "limit of the queue"
source = "made up"
value = [{ id = "one" }, { id = "half", set = { "topology.bottleneck.limit" = "0.5 bdp" } }]
[[calibrate.knob]]
id = "acks"
about = "when a receiver acknowledges"
source = "made up"
value = [{ id = "second" }, { id = "each", set = { "flow.second.tcp.delayed_ack" = false } }]
[[calibrate.knob]]
id = "name"
about = "what changes nothing"
source = "made up"
value = [{ id = "off" }, { id = "zero", set = { "topology.bottleneck.loss" = "0 %" } }]
"#;

const FAIRNESS: &str = r#"[[table]]
id = "fairness"
metric = "jain"
rows = "rtt"
"#;

/// What the made-up study published: the rates of its set-up, rounded.
fn study(lab: &Lab) -> String {
    let hidden = [
        "small",
        "--set",
        "topology.bottleneck.limit=0.5 bdp",
        "--set",
        "flow.second.tcp.delayed_ack=false",
    ];
    lab.run("run", "study.sqlite", &hidden);
    let records = lab.run("export", "study.sqlite", &hidden);
    let records: Vec<serde_json::Value> = serde_json::from_str(&records).expect("JSON");
    let mut sums: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for record in &records {
        let rtt = record["point"]["rtt"].as_str().expect("an axis").replace(" ms", "");
        for flow in record["flows"].as_array().expect("flows") {
            let place = (rtt.clone(), flow["name"].as_str().expect("a name").to_owned());
            sums.entry(place).or_default().push(flow["goodput_mbps"].as_f64().expect("a rate"));
        }
    }
    let line = |((rtt, flow), rates): ((String, String), Vec<f64>)| {
        format!("{rtt},{flow},{:.3}\n", rates.iter().sum::<f64>() / rates.len() as f64)
    };
    "rtt_ms,flow,mbps\n".to_owned() + &sums.into_iter().map(line).collect::<String>()
}

fn lab_with(calibrate: &str) -> Lab {
    let lab = Lab::new();
    std::fs::create_dir_all(lab.folder.path().join("reference")).expect("a folder");
    std::fs::write(lab.folder.path().join("reference/study.csv"), study(&lab)).expect("a file");
    let reference = "[table.reference]\nfile = \"reference/study.csv\"\n\
                     match = { rtt = \"rtt_ms\", flow = \"flow\" }\nvalue = \"mbps\"\n";
    let text = format!("{SMALL}close = \"2 %\"\n{reference}{FAIRNESS}{calibrate}");
    std::fs::write(lab.folder.path().join("experiments/small.toml"), text).expect("a file");
    lab
}

#[test]
fn calibration_finds_the_hidden_set_up_and_reports_equal_ones() {
    let lab = lab_with(KNOBS);
    let text = lab.run("calibrate", "lab.sqlite", &["small"]);
    assert!(text.starts_with("small: 8 set-ups fitted on shares (8 cells)"), "{text}");
    let line = |word: &str| {
        let found = text.lines().find(|line| line.starts_with(word));
        found
            .unwrap_or_else(|| panic!("no {word} in {text}"))
            .split_whitespace()
            .collect::<Vec<_>>()
    };
    assert_eq!(line("nearest")[1..4], ["8", "of", "8"], "{text}");
    assert!(line("the file as it stands")[5] != "8", "{text}");
    assert_eq!(line("queue")[1], "half", "{text}");
    assert_eq!(line("acks")[1], "each", "{text}");
    assert_eq!(line("name")[1], "off", "with fewer changes: {text}");
    assert!(text.contains("cannot be told apart from zero"), "{text}");
    let again = lab.run("calibrate", "lab.sqlite", &["small"]);
    assert_eq!(again, text, "from the store");
}

#[test]
fn a_set_up_that_brings_whole_points_near_and_loses_none_is_named() {
    let lab = lab_with(KNOBS);
    let text = lab.run("calibrate", "lab.sqlite", &["small", "--explain"]);
    assert!(text.starts_with("small: 8 set-ups, whole points"), "{text}");
    let part = text.split_once("shares: the file as it stands agrees with ").expect("a table").1;
    let mut lines = part.lines();
    let agree: usize =
        lines.next().and_then(|l| l.split(' ').next()?.parse().ok()).expect("a number");
    let more = 4 - agree;
    let first = lines.next().expect("a set-up");
    assert_eq!(first, format!("  {more} more and none lost: queue half, acks each"), "{text}");
}

#[test]
fn a_calibration_is_checked_like_the_rest_of_the_file() {
    let message = |calibrate: &str| {
        let lab = Lab::new();
        let text = format!("{SMALL}{calibrate}");
        std::fs::write(lab.folder.path().join("experiments/small.toml"), text).expect("a file");
        let path = lab.path("experiments/small.toml");
        let output = common::udccp(&["lab", "calibrate", &path]).output().expect("it runs");
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(message("").contains("small has no [calibrate]"));
    let same = KNOBS.replace("fairness", "shares");
    assert!(message(&same).contains("table \"shares\" is in `fit` already"));
    assert!(message(KNOBS).contains("there is no table \"fairness\""));
    let knob = "[calibrate]\nfit = [\"shares\"]\n[[calibrate.knob]]\nid = \"a\"\nabout = \"b\"\n\
                source = \"c\"\nvalue = [{ id = \"d\" }]\n";
    assert!(message(knob).contains("a knob needs at least two values"));
    let nothing = knob.replace("{ id = \"d\" }", "{ id = \"d\" }, { id = \"e\" }");
    assert!(message(&nothing).contains("only the first value of a knob changes nothing"));
    assert!(message("[calibrate]\nfit = [\"shares\"]\n").contains("[calibrate] has no knobs"));
}

#[test]
fn the_example_of_the_guide_is_read() {
    const GUIDE: &str = include_str!("../../../docs/guides/calibrate.md");
    let example = GUIDE.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.expect("an example").replace("table3", "shares");
    let table = |id: &str| FAIRNESS.replace("fairness", id);
    let text = format!("{SMALL}{}{}{example}", table("table1"), table("table4"));
    let lab = Lab::new();
    std::fs::write(lab.folder.path().join("experiments/small.toml"), text).expect("a file");
    let plan = lab.run("plan", "lab.sqlite", &["small"]);
    assert_eq!(plan.lines().count(), 8, "{plan}");
}
