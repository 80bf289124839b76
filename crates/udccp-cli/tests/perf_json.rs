//! All JSON output of `udccp perf` conforms to `docs/reference/perf.schema.json`: for tests that
//! finish, that are stopped, and whose server dies.

mod common;

use std::path::Path;
use std::process::Stdio;

use boon::{Compiler, SchemaIndex, Schemas};
use common::{Background, perf_server, udccp};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// The compiled schema.
struct Schema {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Schema {
    /// Loads the committed schema and makes it strict: readers must accept future fields, but
    /// today's output may only have documented ones.
    fn load() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
        let text = std::fs::read_to_string(path.join("perf.schema.json")).unwrap();
        let mut schema = serde_json::from_str(&text).unwrap();
        forbid_more(&mut schema);
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource("perf.schema.json", schema).unwrap();
        let index = compiler.compile("perf.schema.json", &mut schemas).unwrap();
        Self { schemas, index }
    }

    fn allows(&self, value: &Value) -> bool {
        self.schemas.validate(value, self.index).is_ok()
    }

    /// Checks a line of output.
    fn check(&self, line: &str) -> Value {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        if let Err(e) = self.schemas.validate(&value, self.index) {
            panic!("{e:#}\n{line}");
        }
        value
    }
}

/// Forbids fields that an object's schema does not list.
fn forbid_more(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("type") == Some(&"object".into()) {
                map.insert("additionalProperties".into(), false.into());
            }
            map.values_mut().for_each(forbid_more);
        }
        Value::Array(items) => items.iter_mut().for_each(forbid_more),
        _ => {}
    }
}

fn client(port: &str, flags: &[&str]) -> (Option<i32>, String) {
    let fixed = ["perf", "client", "127.0.0.1", "-p", port, "-b", "5M"];
    let output = udccp(&[&fixed, flags].concat()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_json_of_every_kind_of_test_is_as_the_schema_says() {
    let schema = Schema::load();
    let (mut server, port) = perf_server(&["--json"]);
    let kinds = [
        &["-P", "2", "-i", "0.1"][..],
        &["-R", "-i", "0.1"],
        &["--bidir", "--ccid", "3", "-i", "0.1"],
        &["-i", "0"],
    ];
    for flags in kinds {
        let (code, text) = client(&port, &[flags, &["-t", "0.3", "--json"]].concat());
        assert_eq!(code, Some(0), "{text}");
        let value = schema.check(&text);
        assert_eq!(value["end"]["complete"], true);
        let (code, text) = client(&port, &[flags, &["-t", "0.3", "--json-stream"]].concat());
        assert_eq!(code, Some(0), "{text}");
        text.lines().for_each(|line| drop(schema.check(line)));
        assert!(text.lines().count() >= 2, "{text}");
    }
    kill(Pid::from_raw(server.child.id().cast_signed()), Signal::SIGINT).unwrap();
    let mut out = String::new();
    let stdout = server.child.stdout.as_mut().unwrap();
    std::io::Read::read_to_string(stdout, &mut out).unwrap();
    out.lines().for_each(|line| drop(schema.check(line)));
    assert_eq!(out.lines().count(), 2 * kinds.len(), "{out}");
}

#[test]
fn the_json_of_tests_that_are_stopped_is_as_the_schema_says() {
    let schema = Schema::load();
    for (victim, signal) in
        [("client", Signal::SIGINT), ("server", Signal::SIGTERM), ("server", Signal::SIGKILL)]
    {
        let (mut server, port) = perf_server(&["--json"]);
        let args = ["perf", "client", "127.0.0.1", "-p", &port, "-t", "90", "--bidir", "--json"];
        let client = Background::start(&[&args[..], &["-b", "5M"]].concat(), Stdio::null());
        server.wait_for("Mbit/s each");
        let child = if victim == "client" { &client.child } else { &server.child };
        kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
        let (_, out, message) = client.output();
        let value = schema.check(&out);
        assert_eq!(value["end"]["complete"], false, "{victim} {signal}: {message}");
        if victim == "server" && signal == Signal::SIGTERM {
            let (_, out, _) = server.output();
            assert_eq!(schema.check(&out)["complete"], false);
        }
    }
}

#[test]
fn the_schema_refuses_what_is_wrong() {
    let schema = Schema::load();
    let (_server, port) = perf_server(&[]);
    let (_, text) = client(&port, &["-t", "0.1", "-i", "0.1", "--json"]);
    let good = schema.check(&text);
    let changes = [
        ("/end/complete", false.into()),
        ("/end/reason", "none".into()),
        ("/end/forward/lost_percent", 101.into()),
        ("/start/time_utc", "today".into()),
        ("/intervals/0/received_mbit_per_s", "0".into()),
        ("/end/streams/0/forward/sender/messages", Value::Null),
    ];
    for (place, wrong) in changes {
        let mut bad = good.clone();
        *bad.pointer_mut(place).unwrap_or_else(|| panic!("no {place} in {good}")) = wrong;
        assert!(!schema.allows(&bad), "{place}");
    }
    let mut bad = good.clone();
    bad["end"]["more"] = 1.into();
    assert!(!schema.allows(&bad), "a field that is not documented");
}
