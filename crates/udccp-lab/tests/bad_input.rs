//! Every wrong key, unit, name, axis and file gives an error with its line and the nearest valid
//! alternative. Each test changes one thing in a valid file.

use std::path::Path;

use udccp_lab::document;
use udccp_lab::schema::Experiment;

const GOOD: &str = r#"schema = 1
id = "pair"
asks = "Do the two share?"

[topology]
shape = "dumbbell"
access = { rate = "100 Mbit/s", delay = "1 ms" }
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
start = "5 s"
traffic = "bulk"
tcp = { delayed_ack = false }

[grid]
second = ["tcp/newreno", "tcp/cubic"]
rtt = ["25 ms", "50 ms"]
runs = 5
seed = 2008

[[table]]
id = "fairness"
metric = "jain"
rows = "second"
columns = "rtt"

[table.reference]
file = "reference/000_table3_pair_jfi_ccid2_first.csv"
match = { second = "flow2", rtt = "rtt_ms" }
names = { "tcp/newreno" = "newreno", "tcp/cubic" = "cubic" }
value = "jfi"

[[claim]]
says = "fair with NewReno"
table = "fairness"
where = { second = ["tcp/newreno"] }
every = { above = 0.9 }
"#;

/// Reads the file as if it were in `experiments/`, so that references are found.
fn read(text: &str) -> Result<Experiment, udccp_lab::Diagnostics> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/pair.toml");
    Experiment::from_node(document::parse("pair.toml", text.to_owned())?, &root)
}

/// The error if `from` is replaced by `to`, without this machine's folders.
fn error(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "the test no longer changes anything: {from}");
    let message = match read(&GOOD.replacen(from, to, 1)) {
        Ok(_) => "accepted".to_owned(),
        Err(errors) => errors.to_string(),
    };
    message.replace(concat!(env!("CARGO_MANIFEST_DIR"), "/../../"), "")
}

#[test]
fn the_good_file_is_good() {
    let experiment = read(GOOD).expect("the template of these tests");
    assert_eq!(experiment.grid.points().len(), 4);
}

/// A figure of one run over time.
fn of_run(run: u64) -> String {
    format!(
        "[[figure]]\nid = \"time\"\ntitle = \"One run\"\nkind = \"time\"\nmetric = \"goodput\"\n\
         at = {{ second = \"tcp/cubic\", rtt = \"25 ms\" }}\nrun = {run}\n\n[[claim]]"
    )
}

#[test]
fn figure_of_a_missing_run_is_rejected() {
    assert_eq!(error("[[claim]]", &of_run(5)), "accepted");
    for run in [0, 6] {
        let error = error("[[claim]]", &of_run(run));
        assert!(error.contains(&format!("there is no run {run}")), "{error}");
        assert!(error.contains("`runs` is 5") && error.contains("pair.toml:50:7"), "{error}");
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
    no_toml: "[time]" => "[time";
    wrong_schema: "schema = 1" => "schema = 7";
    unknown_key_of_a_flow: "start = \"5 s\"" => "strat = \"5 s\"";
    unknown_key_of_the_file: "[[claim]]" => "[[clame]]";
    missing_key: "duration = \"60 s\"\n" => "";
    a_quantity_without_unit: "duration = \"60 s\"" => "duration = 60";
    a_wrong_unit: "rate = \"10 Mbit/s\"" => "rate = \"10 Mbps\"";
    a_rate_where_a_time_belongs: "start = \"5 s\"" => "start = \"5 Mbit/s\"";
    a_queue_limit_beyond_counting: "limit = \"1.0 bdp\"" => "limit = \"1e30 bdp\"";
    a_wrong_queue_limit: "limit = \"1.0 bdp\"" => "limit = \"100\"";
    unknown_protocol: "\"dccp/ccid2\"" => "\"dccp/cid2\"";
    bulk_over_udp: "\"dccp/ccid2\"" => "\"udp\"";
    unknown_traffic: "\"bulk\"" => "\"bulky\"";
    unknown_protocol_on_an_axis: "\"tcp/cubic\"]" => "\"tcp/kubic\"]";
    unknown_axis: "\"$rtt\"" => "\"$rrt\"";
    unknown_axis_of_a_table: "columns = \"rtt\"" => "columns = \"rt\"";
    unused_axis: "protocol = \"$second\"" => "protocol = \"tcp/cubic\"";
    empty_axis: "rtt = [\"25 ms\", \"50 ms\"]" => "rtt = []";
    unknown_metric: "metric = \"jain\"" => "metric = \"jane\"";
    unknown_value_in_a_claim: "[\"tcp/newreno\"] }" => "[\"tcp/newrino\"] }";
    unknown_table: "table = \"fairness\"" => "table = \"fairnes\"";
    a_metric_that_is_a_table: "metric = \"jain\"" => "metric = { metric = \"jain\", digits = 3 }";
    the_lowest_along_another_key: "every = { above = 0.9 }" =>
        "lowest = { second = [\"tcp/cubic\"] }\nalong = \"rtt\"";
    the_lowest_of_two_keys: "every = { above = 0.9 }" =>
        "lowest = { second = [\"tcp/cubic\"], rtt = [\"25 ms\"] }";
    two_predicates: "every = {" => "trend = \"rises\"\nevery = {";
    missing_reference: "_ccid2_first.csv" => "_ccid2_frist.csv";
    missing_reference_column: "value = \"jfi\"" => "value = \"jain\"";
    runs_of_a_study_without_deviations: "value = \"jfi\"" => "value = \"jfi\"\nruns = 5";
    no_runs_of_a_study: "value = \"jfi\"" => "value = \"jfi\"\nstddev = \"stddev\"\nruns = 0";
    an_answer_on_an_unknown_claim: "[[claim]]" => "[answer]\nstudy = \"paper\"\n\
        question = \"Is it?\"\n[[answer.sentence]]\nsays = \"It is.\"\nclaims = [\"fare\"]\n\n\
        [[claim]]\nid = \"fair\"";
    an_answer_without_sentences: "[[claim]]" => "[answer]\nstudy = \"paper\"\n\
        question = \"Is it?\"\n\n[[claim]]";
    an_answer_on_nothing: "[[claim]]" => "[answer]\nstudy = \"paper\"\n\
        question = \"Is it?\"\n[[answer.sentence]]\nsays = \"It is.\"\nclaims = []\n\n[[claim]]";
    unknown_name_in_a_reference: "\"tcp/cubic\" = \"cubic\"" => "\"tcp/cubic\" = \"qubic\"";
    a_name_that_maps_nothing: "\"tcp/cubic\" = \"cubic\"" =>
        "\"tcp/cubic\" = \"cubic\", \"tcp/kubic\" = \"cubic\"";
    published_numbers_of_another_axis: "rtt = [\"25 ms\", \"50 ms\"]" =>
        "rtt = [\"26 ms\", \"51 ms\"]";
    a_trend_that_is_none: "every = { above = 0.9 }" => "trend = \"raises\"";
    measuring_after_the_end: "to = \"60 s\"" => "to = \"90 s\"";
    a_flow_after_the_end: "start = \"5 s\"" => "start = \"2 min\"";
    a_flow_whose_phase_is_after_the_end: "duration = \"60 s\"" =>
        "duration = \"60 s\"\nphase = \"56 s\"";
    a_flow_that_may_stop_before_it_starts: "every = \"1 s\" }\n\n[[flow]]" =>
        "every = \"1 s\" }\nphase = \"1 s\"\n\n[[flow]]\nstop = \"900 ms\"";
    a_packet_that_no_flow_has: "start = \"5 s\"" => "start = \"5 s\"\npacket = \"100 kB\"";
    a_flow_that_stops_before_it_starts: "start = \"5 s\"" => "start = \"5 s\"\nstop = \"4 s\"";
    a_seed_below_zero: "seed = 2008" => "seed = -1";
    more_samples_than_fit: "every = \"1 s\"" => "every = \"1 us\"";
    two_flows_of_one_name: "name = \"second\"" => "name = \"first\"";
    access_longer_than_the_path: "delay = \"1 ms\"" => "delay = \"10 ms\"";
    unknown_tcp_option: "delayed_ack" => "delayed_acks";
    an_id_that_leads_elsewhere: "id = \"pair\"" => "id = \"../../pair\"";
    an_id_of_several_words: "id = \"pair\"" => "id = \"a pair\"";
    an_id_that_is_the_index: "id = \"pair\"" => "id = \"index\"";
    more_runs_than_can_be_planned: "runs = 5" => "runs = 100000000000";
    more_points_than_can_be_planned: "seed = 2008" => concat!("seed = 2008\n",
        "a = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]\n",
        "b = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]\n",
        "c = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]\n",
        "d = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]");
    a_difference_below_zero: "metric = \"jain\"" => "metric = \"jain\"\nclose = -0.1";
    several_faults_at_once: "rate = \"10 Mbit/s\", rtt = \"$rtt\", limit" =>
        "rate = 10, rtt = \"$rtt\", limits";
}

#[test]
fn non_numeric_published_value_is_reported_with_its_position() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("jfi.csv");
    let text = GOOD.replace("reference/000_table3_pair_jfi_ccid2_first.csv", "jfi.csv");
    let read = |cell: &str| {
        let rows = format!("flow2,rtt_ms,jfi\nnewreno,25,0.9\n\ncubic,50,{cell}\n");
        std::fs::write(&file, rows).expect("a file");
        let root = document::parse("pair.toml", text.clone())?;
        Experiment::from_node(root, &folder.path().join("pair.toml"))
    };
    for no_value in ["", "-", "\u{2013}", "0.75"] {
        assert!(read(no_value).is_ok(), "{no_value}");
    }
    insta::assert_snapshot!(read("0.75*").unwrap_err());
    insta::assert_snapshot!(read("n/a").unwrap_err());
    insta::assert_snapshot!(read("0.8\nnewreno,25,0.7").unwrap_err());
}

#[test]
fn spreadsheet_csv_is_read_and_other_encodings_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("jfi.csv");
    let text = GOOD.replace("reference/000_table3_pair_jfi_ccid2_first.csv", "jfi.csv");
    let read = |bytes: &[u8]| {
        std::fs::write(&file, bytes).expect("a file");
        let root = document::parse("pair.toml", text.clone())?;
        Experiment::from_node(root, &folder.path().join("pair.toml"))
    };
    let of_a_spreadsheet = "\u{feff}flow2,rtt_ms,jfi\r\nnewreno,25,0.9\r\ncubic,50,0.8\r\n";
    assert!(read(of_a_spreadsheet.as_bytes()).is_ok());
    let of_r = "\"flow2\",\"rtt_ms\",\"jfi\"\n\"newreno\",25,0.9\n\"cubic\",50,0.8\n";
    assert!(read(of_r.as_bytes()).is_ok());
    let errors_of = |bytes| {
        let place = folder.path().display().to_string();
        read(bytes).unwrap_err().to_string().replace(&place, "DIR")
    };
    insta::assert_snapshot!(errors_of(b"flow2,rtt_ms,jfi\nr\xe9no,25,0.9\n"));
    insta::assert_snapshot!(errors_of(b"flow2,rtt_ms,jfi\nnewreno,25,\"0,9\"\n"));
    insta::assert_snapshot!(errors_of(b"flow2;rtt_ms;jfi\nnewreno;25;0,9\n"));
}

#[test]
fn a_missing_file_is_named() {
    let error = document::load(Path::new("experiments/nowhere.toml")).unwrap_err();
    insta::assert_snapshot!(error);
}

#[test]
fn a_wrong_override_points_into_the_argument() {
    let experiment = read(GOOD).unwrap();
    let point = experiment.grid.points().remove(0);
    let change = |text| document::Override::parse(text).unwrap();
    let say = |text| experiment.scenario_with(&point, &[change(text)]).unwrap_err().to_string();
    insta::assert_snapshot!(say("topology.bottleneck.rtt=50"));
    insta::assert_snapshot!(say("flow.third.start=1 s"));
    insta::assert_snapshot!(say("time.durration=1 s"));
}

/// What an error suggests, such as `traffic = { kind = ... }`, also works after `--set`.
#[test]
fn an_override_may_be_a_table_or_a_list() {
    let experiment = read(GOOD).unwrap();
    let point = experiment.grid.points().remove(0);
    let with = |text: &str| {
        let change = document::Override::parse(text).unwrap_or_else(|error| panic!("{error}"));
        experiment.scenario_with(&point, &[change])
    };
    let queue = |text| format!("{:?}", with(text).unwrap_or_else(|e| panic!("{e}")).topology);
    let plain = queue("topology.bottleneck.queue=codel");
    let same = queue("topology.bottleneck.queue = { kind = \"codel\", target = \"5 ms\" }");
    let other = queue("topology.bottleneck.queue={kind=\"codel\",target=\"9 ms\"}");
    assert!(plain == same && plain != other, "{plain}\n{same}\n{other}");
    let periods = "topology.bottleneck.loss={ kind = \"periodic\", at = [\"1 s\", \"2 s\"] }";
    assert!(with(periods).is_ok());
    let slip = with("topology.bottleneck.queue={ kind = \"codel\", tarjet = \"9 ms\" }");
    let slip = slip.unwrap_err().to_string();
    assert!(slip.contains("did you mean `target`?") && slip.contains("--set:1:45"), "{slip}");
    for wrong in ["flow.first.traffic={ kind = ", "a=[1, 2", "a={ b = 1 }\nc = 2"] {
        let error = document::Override::parse(wrong).unwrap_err().to_string();
        assert!(error.contains("not valid TOML") && error.contains("--set:1:"), "{error}");
    }
}
