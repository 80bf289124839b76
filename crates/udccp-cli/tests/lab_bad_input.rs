//! `udccp lab` refuses bad input: each message in full, with its exit code.

#![cfg(unix)]

mod common;

use common::lab::Lab;
use common::udccp;

/// The messages of a command, without this machine's folders and this build's version.
fn messages(lab: &Lab, args: &[&str], stdin: &str) -> String {
    let experiments = lab.path("experiments");
    let mut all = vec!["lab"];
    all.extend(args);
    if !args.contains(&"--experiments") && args[0] != "import" {
        all.extend(["--experiments", &experiments]);
    }
    let output = udccp(&all)
        .current_dir(lab.folder.path())
        .write_stdin(stdin)
        .output()
        .expect("the program runs");
    let code = output.status.code().unwrap_or(-1);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = text.replace(&lab.folder.path().display().to_string(), "DIR");
    format!("exit {code}\n{}", text.replace(&version(lab), "VERSION").trim_end())
}

fn plan(lab: &Lab) -> Vec<serde_json::Value> {
    let text = lab.run("plan", "none.sqlite", &["small", "--json"]);
    serde_json::from_str(&text).expect("JSON")
}

fn version(lab: &Lab) -> String {
    plan(lab)[0]["version"].as_str().expect("a version").to_owned()
}

/// A task with one change.
fn task(lab: &Lab, change: impl Fn(&mut serde_json::Value)) -> String {
    let mut task = plan(lab).remove(0);
    // The key depends on this build; the message about it does not.
    let key = task["key"].as_str().expect("a key").to_owned();
    change(&mut task);
    task.to_string().replace(&key, "0123456789abcdef0123456789abcdef")
}

macro_rules! snapshot {
    ($($name:ident: $args:expr;)*) => {$(
        #[test]
        fn $name() {
            insta::assert_snapshot!(messages(&Lab::new(), &$args, ""));
        }
    )*};
}

snapshot! {
    an_experiment_that_is_nearly_called_so: ["run", "smal"];
    an_experiment_that_nothing_is_called_like: ["report", "bhatti"];
    a_file_that_is_not_there: ["run", "experiments/big.toml"];
    a_folder_that_is_not_there: ["list", "--experiments", "nowhere"];
    no_experiment: ["run"];
    no_jobs: ["run", "small", "--jobs", "0"];
    no_runs: ["run", "small", "--runs", "0"];
    names_and_all: ["run", "small", "--all"];
    two_formats: ["export", "small", "--csv", "--parquet"];
    a_store_where_no_folder_can_be: ["run", "small", "--store", "experiments/small.toml/lab"];
    a_store_that_is_no_store: ["run", "small", "--store", "experiments/small.toml"];
    a_store_that_is_a_folder: ["status", "--store", "experiments"];
    a_report_of_a_store_that_is_not_there: ["report", "--store", "typo.sqlite"];
    an_export_of_a_store_that_is_not_there: ["export", "small", "--store", "typo.sqlite"];
    runs_to_keep_of_a_store_that_is_not_there: ["keep", "small", "--store", "typo.sqlite"];
    neither_key_nor_file: ["task", "smal"];
    a_task_file_that_is_not_there: ["task", "tasks/1.json"];
    a_key_that_no_task_has: ["task", "0123456789abcdef"];
    results_that_are_not_there: ["import", "results.jsonl", "--store", "s.sqlite"];
}

#[test]
fn keeping_without_kernel_runs_is_an_error() {
    let lab = Lab::new();
    lab.run("run", "s.sqlite", &["small", "--runs", "1"]);
    insta::assert_snapshot!(messages(&lab, &["keep", "small", "--store", "s.sqlite"], ""));
    assert!(!lab.folder.path().join("experiments/kept").exists());
}

/// Regression: a mistyped name created an empty store.
#[test]
fn commands_that_read_never_make_a_store() {
    let lab = Lab::new();
    let empty = lab.path("empty.sqlite");
    std::fs::write(&empty, "").expect("a file");
    let commands: [&[&str]; 7] = [
        &["report"],
        &["report", "--markdown"],
        &["export", "small"],
        &["list"],
        &["status"],
        &["plan", "small", "--missing"],
        &["prune"],
    ];
    for command in commands {
        for store in ["typo.sqlite", "deep/typo.sqlite", "empty.sqlite"] {
            let said = messages(&lab, &[command, &["--store", store]].concat(), "");
            let needs_none = !["report", "export"].contains(&command[0]);
            assert_eq!(said.starts_with("exit 0"), needs_none, "{command:?}: {said}");
        }
        assert!(!std::path::Path::new(&lab.path("typo.sqlite")).exists(), "{command:?}");
        assert!(!std::path::Path::new(&lab.path("deep")).exists(), "{command:?}");
        assert_eq!(std::fs::metadata(&empty).expect("the file").len(), 0, "{command:?}");
    }
}

#[test]
fn two_experiments_of_one_name_are_rejected() {
    let lab = Lab::new();
    let text = common::lab::SMALL;
    std::fs::write(lab.path("experiments/other.toml"), text).expect("a file");
    insta::assert_snapshot!(messages(&lab, &["run", "--all"], ""));
}

#[test]
fn a_list_reports_two_experiments_of_one_name() {
    let lab = Lab::new();
    for file in ["other", "third"] {
        let path = lab.path(&format!("experiments/{file}.toml"));
        std::fs::write(path, common::lab::SMALL).expect("a file");
    }
    let message = messages(&lab, &["list"], "");
    insta::assert_snapshot!(message);
    for command in ["status", "report"] {
        let first = message.lines().take(2).collect::<Vec<_>>().join("\n");
        assert!(self::messages(&lab, &[command], "").starts_with(&first), "{command}");
    }
}

#[test]
fn several_experiments_do_not_fit_into_one_table() {
    let lab = Lab::new();
    let text = common::lab::SMALL.replace("id = \"small\"", "id = \"other\"");
    std::fs::write(lab.path("experiments/other.toml"), text).expect("a file");
    insta::assert_snapshot!(messages(&lab, &["export", "--csv"], ""));
}

#[test]
fn a_faulty_file_hides_no_other_in_a_list() {
    let lab = Lab::new();
    let text = common::lab::SMALL.replace("rows = \"rtt\"", "rows = \"rt\"");
    std::fs::write(lab.path("experiments/faulty.toml"), text).expect("a file");
    insta::assert_snapshot!(messages(&lab, &["list"], ""));
    lab.run("run", "s.sqlite", &["small", "--runs", "1"]);
}

#[test]
fn a_store_of_a_newer_program_is_rejected() {
    let lab = Lab::new();
    // The version of the tables is in bytes 60 to 63 of the file's header.
    let mut bytes = b"SQLite format 3\0".to_vec();
    bytes.extend([0x10, 0, 1, 1, 0, 64, 32, 32, 0, 0, 0, 1, 0, 0, 0, 1]);
    bytes.resize(4096, 0);
    (bytes[47], bytes[59], bytes[63], bytes[100]) = (4, 1, 9, 0x0d);
    bytes[105] = 0x10;
    std::fs::write(lab.path("newer.sqlite"), bytes).expect("a file");
    insta::assert_snapshot!(messages(&lab, &["run", "small", "--store", "newer.sqlite"], ""));
}

#[test]
fn broken_tasks_are_rejected() {
    let lab = Lab::new();
    let run = |text: &str| messages(&lab, &["task", "-"], text);
    insta::assert_snapshot!(run("{\"schema\": 1,\n \"version\": }"));
    insta::assert_snapshot!(run("{\"schema\": 1}"));
    insta::assert_snapshot!(run(&task(&lab, |t| t["version"] = "0.0.9+abc".into())));
    insta::assert_snapshot!(run(&task(&lab, |t| t["seed"] = 1.into())));
    let rate = "/scenario/topology/bottleneck/rate";
    let set =
        |t: &mut serde_json::Value, to: &str| *t.pointer_mut(rate).expect("a rate") = to.into();
    insta::assert_snapshot!(run(&task(&lab, |t| set(t, "4 Mbit/s"))));
    insta::assert_snapshot!(run(&task(&lab, |t| set(t, "3 Mbps"))));
}

#[test]
fn broken_results_are_rejected() {
    let lab = Lab::new();
    let task = plan(&lab).remove(0);
    let result = udccp(&["lab", "task", "-"])
        .write_stdin(task.to_string())
        .output()
        .expect("the program runs");
    let result = String::from_utf8(result.stdout).expect("text");
    let import = |text: &str| {
        let key = task["key"].as_str().expect("a key");
        messages(&lab, &["import", "--store", "s.sqlite"], text).replace(key, "KEY")
    };
    insta::assert_snapshot!(import(&format!("{result}{}\n", &result[..200])));
    let seed = task["seed"].to_string();
    let swapped = result.replace(&format!("\"seed\":{seed},\"version\""), "\"seed\":9,\"version\"");
    assert_ne!(swapped, result);
    insta::assert_snapshot!(import(&swapped));
}

#[test]
fn a_quick_run_of_what_it_leaves_out_is_rejected() {
    let lab = Lab::new();
    let text = common::lab::SMALL.replace("[grid]\n", "[grid]\nquick_runs = 0\n");
    std::fs::write(lab.path("experiments/small.toml"), text).expect("a file");
    insta::assert_snapshot!(messages(&lab, &["run", "small", "--quick"], ""));
}

#[test]
fn a_missing_case_is_reported_with_the_existing_ones() {
    let text = common::lab::SMALL.to_owned()
        + "[[case]]\nid = \"alone\"\nsays = \"one flow\"\nwithout = [\"second\"]\nquick_runs = 1\n\
           grid = {}\nset = { \"topology.bottleneck.rtt\" = \"10 ms\" }\n\
           [[variant]]\nid = \"slow\"\ncase = \"alone\"\nsays = \"a slow link\"\n\
           set = { \"topology.bottleneck.rate\" = \"1 Mbit/s\" }\n";
    let file = common::temporary(text.as_bytes());
    let path = file.path().display().to_string();
    let flows = |args: &[&str]| {
        let args = [&["sim", &path, "--json"], args].concat();
        let record: serde_json::Value = serde_json::from_str(&common::stdout(&args)).expect("JSON");
        record["flows"].as_array().expect("flows").clone()
    };
    let alone = flows(&["--case", "alone"]);
    assert_eq!(alone.len(), 1);
    assert_eq!(flows(&["--set", "rtt=20 ms"]).len(), 2);
    let goodput = |flow: &serde_json::Value| flow["goodput_mbps"].as_f64().expect("a rate");
    let slow = flows(&["--variant", "slow"]);
    assert!(slow.len() == 1 && goodput(&slow[0]) < goodput(&alone[0]));
    common::fails(
        &["sim", &path, "--case", "aloen"],
        4,
        &["did you mean `alone`?", "choose from: alone"],
    );
    let of = ["--case", "alone", "--variant", "slow"];
    assert_eq!(flows(&of).len(), 1);
    let plain = common::temporary(common::lab::SMALL.as_bytes());
    let plain = plain.path().display().to_string();
    common::fails(&["sim", &plain, "--case", "alone"], 4, &["no cases: leave --case out"]);
    common::fails(&["sim", &plain, "--variant", "slow"], 4, &["no variants: leave --variant out"]);
    for unknown in ["tine.duration=5 s", "flows.first.protocol=udp", "seed=7"] {
        let message = ["is neither an axis nor a key of a run", "topology"];
        common::fails(&["sim", &path, "--case", "alone", "--set", unknown], 4, &message);
    }
    let message = ["`udccp sim --seed` sets the seed"];
    common::fails(&["sim", &path, "--case", "alone", "--set", "seed=7"], 4, &message);
}
