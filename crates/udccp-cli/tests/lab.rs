//! `udccp sim` and `udccp lab` from a user's view: results on standard output, errors with a line
//! number and a hint, campaigns that survive being killed.

mod common;

use std::path::Path;

use common::lab::{Lab, SMALL};
use common::{fails, stdout};

fn repository(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join(path).display().to_string()
}

#[test]
fn sim_prints_one_json_object_with_the_documented_names() {
    let scenario = repository("scenarios/two-flows-short.toml");
    let text = stdout(&["sim", &scenario, "--json", "--seed", "7", "--set", "time.phase=0 s"]);
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["schema"], 1);
    assert_eq!(value["scenario"], "two-flows-short");
    assert_eq!(value["seed"], 7);
    let flow = &value["flows"][0];
    for key in [
        "name",
        "protocol",
        "throughput_mbps",
        "goodput_mbps",
        "loss_percent",
        "delay_ms",
        "jitter_ms",
        "packets_sent",
        "packets_delivered",
    ] {
        assert!(!flow[key].is_null(), "flows[0].{key} is missing");
    }
    assert_eq!(flow["series"]["t_s"].as_array().map(Vec::len), Some(30));
    assert_eq!(flow["series"]["throughput_mbps"].as_array().map(Vec::len), Some(30));
    for key in ["jain", "utilisation_percent"] {
        assert!(value["system"][key].is_number(), "system.{key} is missing");
    }
    for key in ["p50", "p95", "p99"] {
        assert!(value["system"]["queue_delay_ms"][key].is_number(), "{key} is missing");
    }
    for key in ["cpu_s", "events", "packets"] {
        assert!(value["cost"][key].is_number(), "cost.{key} is missing");
    }
}

#[test]
fn sim_prints_a_table_and_writes_captures() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out").display().to_string();
    let scenario = repository("scenarios/two-flows-short.toml");
    let short = ["--set", "time.duration=5 s", "--set", "time.measure.from=4 s"];
    let mut args = vec!["sim", &scenario, "--check", "--pcap", &out];
    args.extend(short);
    args.extend(["--set", "time.measure.to=5 s"]);
    let text = stdout(&args);
    assert!(text.contains("dccp/ccid2") && text.contains("Jain index"), "{text}");
    for name in ["first-sender", "first-receiver", "second-sender", "second-receiver", "bottleneck"]
    {
        let file = folder.path().join("out").join(format!("{name}.pcap"));
        assert!(file.metadata().is_ok_and(|m| m.len() > 1000), "{}", file.display());
    }
}

/// The packets of a capture: their lengths, and how many bytes were captured.
fn packets(file: &Path) -> Vec<(usize, usize)> {
    let bytes = std::fs::read(file).expect("a capture");
    let (mut rest, mut packets) = (&bytes[24..], Vec::new());
    while let Some((head, tail)) = rest.split_first_chunk::<16>() {
        let word = |at: usize| {
            u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize
        };
        packets.push((word(12), word(8)));
        rest = &tail[word(8)..];
    }
    packets
}

#[test]
fn captures_have_the_headers_and_only_if_asked_for_the_data() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = repository("scenarios/two-flows-short.toml");
    let set = ["time.duration=5 s", "time.measure.from=4 s", "time.measure.to=5 s"];
    let capture = |name: &str, flags: &[&str]| {
        let out = folder.path().join(name);
        let mut args = vec!["sim", &scenario, "--pcap", out.to_str().expect("text")];
        set.iter().for_each(|set| args.extend(["--set", set]));
        stdout(&[&args, flags].concat());
        out.join("first-sender.pcap")
    };
    let cut = capture("cut", &[]);
    let whole = capture("whole", &["--snaplen", "full"]);
    let (of_cut, of_whole) = (packets(&cut), packets(&whole));
    assert!(of_cut.iter().any(|(len, _)| *len > 1000), "{of_cut:?}");
    assert!(of_cut.iter().all(|(len, kept)| *kept == *len.min(&128)), "{of_cut:?}");
    assert!(of_whole.iter().all(|(len, kept)| kept == len), "{of_whole:?}");
    assert!(of_cut.iter().map(|p| p.0).eq(of_whole.iter().map(|p| p.0)), "the same packets");
    assert_eq!(packets(&capture("zero", &["--snaplen", "0"])), of_whole);
    let text = stdout(&["decode", cut.to_str().expect("text")]);
    assert!(text.lines().filter(|line| line.contains("Data")).count() > 10, "{text}");
}

#[test]
fn errors_of_a_file_have_line_and_suggestion() {
    let lab = Lab::new();
    let faulty = |from: &str, to: &str| {
        assert!(SMALL.contains(from), "{from}");
        let path = lab.path("faulty.toml");
        std::fs::write(&path, SMALL.replacen(from, to, 1)).expect("a file");
        path
    };
    let path = faulty("traffic = ", "trafic = ");
    fails(
        &["sim", &path],
        4,
        &["unknown key `trafic`", "faulty.toml:15:1", "^^^^^^", "hint: did you mean `traffic`?"],
    );
    let path = faulty("\"3 Mbit/s\"", "\"3 Mbps\"");
    fails(&["sim", &path], 4, &["\"3 Mbps\" has an unknown unit", ":7:", "Mbit/s"]);
    let path = faulty("\"6 s\"", "6");
    fails(&["sim", &path], 4, &["found a whole number", "hint: a quantity needs its unit"]);
    let path = faulty("tcp/newreno", "tcp/newrino");
    fails(&["sim", &path], 4, &["unknown protocol", "did you mean `tcp/newreno`?"]);
    let path = faulty("\"$rtt\"", "\"$rt\"");
    fails(&["sim", &path], 4, &["there is no grid axis `rt`", "did you mean `rtt`?"]);
    let path = faulty("id = \"shares\"", "id = \"shares\"\nreference = { file = \"nowhere.csv\" }");
    fails(&["lab", "run", &path], 4, &["cannot read", "nowhere.csv"]);
}

#[test]
fn missing_names_are_reported_with_the_existing_ones() {
    let lab = Lab::new();
    fails(&["sim", "no/such/file.toml"], 4, &["cannot read no/such/file.toml", "hint:"]);
    let experiments = lab.path("experiments");
    let place = ["--experiments", &experiments];
    let hint = "hint: did you mean `small`? choose from: small";
    fails(&["lab", "run", "smal", place[0], place[1]], 4, &["\"smal\"", hint]);
    fails(&["lab", "list", "--experiments", "nowhere"], 4, &["nowhere", "hint:"]);
    fails(&["lab", "run"], 2, &["no experiment is named", "`--all`"]);
    fails(&["lab", "run", "small", "--runs", "0"], 2, &["--runs"]);
    let file = lab.path("experiments/small.toml");
    fails(&["sim", &file], 4, &["axis `rtt`: choose one value", "hint: --set rtt=\"20 ms\""]);
    let all = ["the axes `second`, `rtt`: choose one value of each", "--set second=", "--set rtt="];
    fails(&["sim", "bhatti-2008"], 4, &all);
    fails(&["sim", &file, "--set", "rtt=30 ms"], 4, &["no value \"30 ms\"", "hint: it has: 20 ms"]);
    let twice = ["sim", &file, "--set", "rtt=20 ms", "--set", "rtt=40 ms"];
    fails(&twice, 4, &["axis `rtt` is set twice", "\"20 ms\", \"40 ms\"", "one value"]);
    fails(&["sim", &file, "--set", "rtt"], 4, &["expected KEY=VALUE"]);
    let variant = ["sim", &file, "--set", "rtt=20 ms", "--variant", "fast"];
    fails(&variant, 4, &["no variant \"fast\"", "leave --variant out"]);
    fails(&["sim", &file, "--snaplen", "64"], 2, &["--pcap"]);
    let set = "flow.third.start=1 s";
    fails(&["sim", &file, "--set", set, "--set", "rtt=20 ms"], 4, &["`third`", "first, second"]);
}

/// `lab run` makes such runs once, and `list` says so.
#[test]
fn runs_that_two_variants_share_are_listed_once() {
    let lab = Lab::new();
    let variant = |id| {
        let set = r#"set = { "topology.bottleneck.limit" = "0.5 bdp" }"#;
        format!("[[variant]]\nid = \"{id}\"\nsays = \"A small queue.\"\n{set}\n")
    };
    let text = format!("{SMALL}{}{}", variant("one"), variant("other"));
    std::fs::write(lab.path("experiments/small.toml"), text).expect("a file");
    let status = lab.run("status", "s.sqlite", &["--json"]);
    assert!(status.contains("\"points\":8,\"runs\":16,\"stored\":0,"), "{status}");
}

#[test]
fn a_campaign_runs_resumes_reports_and_exports() {
    let lab = Lab::new();
    assert!(lab.run("list", "s.sqlite", &[]).contains("Who gets what of a slow path?"));
    let stored = |n| {
        let status = lab.run("status", "s.sqlite", &["--json"]);
        assert!(status.contains(&format!("\"runs\":8,\"stored\":{n},")), "{status}");
    };
    stored(0);
    let quick = lab.run("run", "s.sqlite", &["small", "--runs", "1"]);
    assert!(quick.contains("Goodput"), "{quick}");
    stored(4);
    lab.run("run", "s.sqlite", &["--all", "--jobs", "2"]);
    stored(8);
    assert!(lab.run("status", "s.sqlite", &[]).contains("small"));
    let csv = lab.run("export", "s.sqlite", &["small", "--csv"]);
    assert_eq!(csv.lines().count(), 17, "a header and a line for each flow of each run: {csv}");
    let json = lab.run("export", "s.sqlite", &["small"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(8));
    let tables = lab.path("tables");
    lab.run("export", "s.sqlite", &["small", "--csv", "--series", "-o", &tables]);
    for table in ["runs", "series"] {
        assert!(Path::new(&tables).join(format!("small.{table}.csv")).exists(), "{table}");
    }
    let set = ["small", "--set", "rtt=20 ms"];
    let words: Vec<&str> = set.into_iter().chain(["--markdown"]).collect();
    let markdown = lab.run("report", "s.sqlite", &words);
    assert!(markdown.contains("| 20 ms |") && !markdown.contains("40 ms"), "{markdown}");
    let plan = lab.run("plan", "s.sqlite", &set);
    assert!(plan.contains("rtt 20 ms") && !plan.contains("rtt 40 ms"), "{plan}");
    let index = lab.run("report", "s.sqlite", &["-o", &lab.path("report")]);
    assert!(Path::new(index.trim()).exists(), "{index}");
    let page =
        std::fs::read_to_string(lab.folder.path().join("report/small.html")).expect("a page");
    assert!(page.contains("Who gets what of a slow path?"));
}
