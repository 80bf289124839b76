//! The JSON Schema of a scenario has the same keys as the reader of files, and the committed copy
//! matches this code.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use udccp_lab::document;
use udccp_lab::json_schema;
use udccp_lab::schema::Experiment;

const COMMITTED: &str = "../../docs/reference/scenario.schema.json";

/// A scenario with these parts; the others are minimal.
#[derive(Clone, Copy)]
struct Parts {
    access: &'static str,
    link: &'static str,
    topology: &'static str,
    time: &'static str,
    flow: &'static str,
    file: &'static str,
}

const PLAIN: Parts = Parts {
    access: "rate = '1 Gbit/s'",
    link: "rate = '1 Mbit/s', delay = '1 ms', limit = '9 packets'",
    topology: "shape = 'dumbbell'",
    time: "duration = '9 s'",
    flow: "name = 'a', protocol = 'dccp/ccid2', traffic = 'bulk'",
    file: "",
};

impl Parts {
    fn text(self) -> String {
        let Self { access, link, topology, time, flow, file } = self;
        let link =
            if link.is_empty() { String::new() } else { format!("bottleneck = {{ {link} }}, ") };
        format!(
            "schema = 1\nid = 'x'\n{file}\ntopology = {{ {link}access = {{ {access} }}, {topology} \
             }}\ntime = {{ {time} }}\nflow = [{{ {flow} }}]\n"
        )
    }
}

/// A scenario whose table of this definition has the key `zzz`.
fn with_unknown_key(table: &str) -> Option<Parts> {
    let p = PLAIN;
    let link = |text| Some(Parts { link: text, ..p });
    let flow = |text| Some(Parts { flow: text, ..p });
    match table {
        "Scenario" => Some(Parts { file: "zzz = 1", ..p }),
        "Times" => Some(Parts { time: "duration = '9 s', zzz = 1", ..p }),
        "Measure" => Some(Parts {
            time: "duration = '9 s', measure = { from = '1 s', to = '2 s', zzz = 1 }",
            ..p
        }),
        "Flow" => flow("name = 'a', protocol = 'udp', traffic = 'bulk', zzz = 1"),
        "DccpOptions" => {
            flow("name = 'a', protocol = 'dccp/ccid2', traffic = 'bulk', dccp = { zzz = 1 }")
        }
        "TcpOptions" => {
            flow("name = 'a', protocol = 'tcp/cubic', traffic = 'bulk', tcp = { zzz = 1 }")
        }
        "Topology" => Some(Parts { topology: "shape = 'dumbbell', zzz = 1", ..p }),
        "AccessLink" => Some(Parts { access: "rate = '1 Gbit/s', zzz = 1", ..p }),
        "Link" => link("rate = '1 Mbit/s', delay = '1 ms', limit = '9 packets', zzz = 1"),
        "ReverseLink" => Some(Parts { topology: "shape = 'dumbbell', reverse = { zzz = 1 }", ..p }),
        "Hop" => Some(Parts {
            link: "",
            topology: "shape = 'chain', hop = [{ rate = '1 Mbit/s', delay = '1 ms', \
                       limit = '9 packets', zzz = 1 }]",
            ..p
        }),
        "Change" => Some(Parts {
            topology: "shape = 'dumbbell', change = [{ at = '1 s', link = 'bottleneck', \
                       down = true, zzz = 1 }]",
            ..p
        }),
        _ => of_link(table).or_else(|| of_traffic(table)),
    }
}

/// A link with an element that has the key `zzz`.
fn of_link(table: &str) -> Option<Parts> {
    let link = |text| Some(Parts { link: text, ..PLAIN });
    macro_rules! link_with {
        ($text:literal) => {
            link(concat!("rate = '1 Mbit/s', delay = '1 ms', limit = '9 packets', ", $text))
        };
    }
    match table {
        "Reorder" => link_with!("reorder = { share = '1 %', zzz = 1 }"),
        "UniformDelay" => {
            link_with!("delay_distribution = { kind = 'uniform', below = '1 ms', zzz = 1 }")
        }
        "NormalDelay" => {
            link_with!("delay_distribution = { kind = 'normal', deviation = '1 ms', zzz = 1 }")
        }
        "TraceDelay" => {
            link_with!("delay_distribution = { kind = 'trace', file = 'none', zzz = 1 }")
        }
        "RandomLoss" => link_with!("loss = { kind = 'random', share = '1 %', zzz = 1 }"),
        "GilbertElliott" => link_with!(
            "loss = { kind = 'gilbert-elliott', share = '1 %', burst = '3 packets', zzz = 1 }"
        ),
        "PeriodicLoss" => link_with!("loss = { kind = 'periodic', every = '9 s', zzz = 1 }"),
        "TraceLoss" => link_with!("loss = { kind = 'trace', file = 'none', zzz = 1 }"),
        "DropTail" => link_with!("queue = { kind = 'drop-tail', zzz = 1 }"),
        "DropHead" => link_with!("queue = { kind = 'drop-head', zzz = 1 }"),
        "Red" => {
            link_with!("queue = { kind = 'red', min = '1 packet', max = '3 packets', zzz = 1 }")
        }
        "CoDel" => link_with!("queue = { kind = 'codel', zzz = 1 }"),
        "FqCoDel" => link_with!("queue = { kind = 'fq-codel', zzz = 1 }"),
        "Pie" => link_with!("queue = { kind = 'pie', zzz = 1 }"),
        _ => None,
    }
}

/// A flow with traffic that has the key `zzz`.
fn of_traffic(table: &str) -> Option<Parts> {
    let flow = |text| Some(Parts { flow: text, ..PLAIN });
    macro_rules! traffic {
        ($text:literal) => {
            flow(concat!("name = 'a', protocol = 'dccp/ccid2', traffic = { zzz = 1, ", $text, " }"))
        };
    }
    match table {
        "Bulk" => traffic!("kind = 'bulk'"),
        "ConstantRate" => traffic!("kind = 'constant-rate', rate = '1 kbit/s', size = '9 B'"),
        "OnOff" => {
            traffic!("kind = 'on-off', rate = '1 kbit/s', size = '9 B', on = '1 s', off = '1 s'")
        }
        "ParetoOnOff" => traffic!(
            "kind = 'pareto', rate = '1 kbit/s', size = '9 B', on = '1 s', off = '1 s', shape = 2"
        ),
        "Transfer" => traffic!("kind = 'transfer', size = '9 kB'"),
        "Poisson" => traffic!("kind = 'poisson', every = '1 s', size = '9 kB'"),
        "Voip" => traffic!("kind = 'voip', codec = 'g711'"),
        "Video" => traffic!("kind = 'video', every = '40 ms', rate = '9 kbit/s'"),
        "VideoTrace" => traffic!("kind = 'video', every = '40 ms', trace = 'none'"),
        "RequestResponse" => {
            traffic!("kind = 'request-response', request = '9 B', response = '9 B'")
        }
        "Silence" => flow(
            "name = 'a', protocol = 'udp', traffic = { kind = 'voip', codec = 'g711', \
             silence = { talk = '1 s', pause = '1 s', zzz = 1 } }",
        ),
        _ => drawn(table).and_then(flow),
    }
}

/// A flow with a distribution that has the key `zzz`.
fn drawn(table: &str) -> Option<&'static str> {
    macro_rules! think {
        ($text:literal) => {
            concat!(
                "name = 'a', protocol = 'tcp/cubic', traffic = { kind = 'request-response', ",
                "request = '9 B', response = '9 B', think = { zzz = 1, ",
                $text,
                " } }"
            )
        };
    }
    macro_rules! size {
        ($text:literal) => {
            concat!(
                "name = 'a', protocol = 'tcp/cubic', traffic = { kind = 'poisson', ",
                "every = '1 s', size = { zzz = 1, ",
                $text,
                " } }"
            )
        };
    }
    Some(match table {
        "ConstantTime" => think!("kind = 'constant', value = '1 s'"),
        "ExponentialTime" => think!("kind = 'exponential', mean = '1 s'"),
        "ParetoTime" => think!("kind = 'pareto', mean = '1 s', shape = 2"),
        "LognormalTime" => think!("kind = 'lognormal', mean = '1 s', sigma = 1"),
        "ConstantSize" => size!("kind = 'constant', value = '9 B'"),
        "ExponentialSize" => size!("kind = 'exponential', mean = '9 B'"),
        "ParetoSize" => size!("kind = 'pareto', mean = '9 B', shape = 2"),
        "LognormalSize" => size!("kind = 'lognormal', mean = '9 B', sigma = 1"),
        _ => return None,
    })
}

/// The known keys that the reader lists when it meets an unknown one.
fn known_keys(parts: Parts) -> BTreeSet<String> {
    let text = parts.text();
    let root = document::parse("x.toml", text.clone()).expect("TOML");
    let errors = Experiment::from_node(root, Path::new("x.toml")).expect_err("an unknown key");
    let unknown = errors.0.iter().find(|error| error.message.starts_with("unknown key `zzz`"));
    let hint = unknown.and_then(|error| error.hint.as_deref());
    let hint = hint.unwrap_or_else(|| panic!("no unknown key in\n{text}\n{errors}"));
    let (_, list) = hint.split_once("known keys: ").expect("the list of keys");
    list.split(", ").map(str::to_owned).collect()
}

fn tables(schema: &Value) -> impl Iterator<Item = (&str, BTreeSet<String>)> {
    let all = schema["$defs"].as_object().expect("definitions").iter();
    all.filter_map(|(name, definition)| {
        let keys = definition.get("properties")?.as_object()?.keys().cloned().collect();
        Some((name.as_str(), keys))
    })
}

#[test]
fn every_table_has_the_keys_that_the_reader_knows() {
    let schema = json_schema::scenario();
    let mut looked_at = 0;
    for (name, written) in tables(&schema) {
        let parts = with_unknown_key(name).unwrap_or_else(|| panic!("no example of {name}"));
        let mut known = known_keys(parts);
        match name {
            // An experiment has additional keys around the scenario.
            "Scenario" => assert!(written.is_subset(&known), "{written:?}"),
            _ => {
                // Pattern and trace are separate tables here; `rtt` is a special error in a hop,
                // whose other direction is read separately.
                if name == "Video" {
                    known.remove("trace");
                }
                if name == "Hop" {
                    known.remove("rtt");
                    known.insert("reverse".to_owned());
                }
                assert_eq!(written, known, "{name}");
            }
        }
        looked_at += 1;
    }
    assert!(looked_at > 40, "{looked_at}");
}

/// To update it: `UPDATE=1 cargo test -p udccp-lab --test json_schema`.
#[test]
fn the_committed_schema_is_that_of_this_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(COMMITTED);
    let text = serde_json::to_string_pretty(&json_schema::scenario()).expect("JSON") + "\n";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).expect("the docs are there");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "out of date: UPDATE=1 cargo test -p udccp-lab --test json_schema");
}
