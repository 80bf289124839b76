//! `udccp perf` that ends early, by a signal or the death of its server. It keeps what was
//! measured, its exit code tells what happened, and the other side is informed.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use common::{Background, perf_server, udccp};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// A client that prints one JSON object per line, with its output so far.
struct Client {
    child: Child,
    out: BufReader<ChildStdout>,
    events: Vec<Value>,
}

impl Client {
    fn start(port: &str, extra: &[&str]) -> Self {
        let fixed = ["perf", "client", "127.0.0.1", "-p", port, "-i", "0.1", "--json-stream"];
        let mut child = Command::new(env!("CARGO_BIN_EXE_udccp"))
            .args(fixed)
            .args(extra)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out, events: Vec::new() }
    }

    fn next(&mut self) -> Option<&Value> {
        let mut line = String::new();
        if self.out.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        self.events.push(serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}")));
        self.events.last()
    }

    /// Reads until `count` messages were transferred in this direction (for `sent`: and
    /// acknowledged), however long that takes.
    fn wait_for_messages(&mut self, way: &str, count: u64) {
        let what = if way == "sent" { "acked" } else { "messages" };
        while self.sum(way, what) < count {
            assert!(self.next().is_some(), "it ended early: {:?}", self.events);
        }
    }

    fn sum(&self, way: &str, what: &str) -> u64 {
        sum(&self.events, way, what)
    }

    fn intervals(&self) -> Vec<&Value> {
        let of = |e: &&Value| e["event"] == "interval";
        self.events.iter().filter(of).map(|e| &e["data"]).collect()
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// Reads to the end. Returns the exit status, the last event's data, all events, and standard
    /// error.
    fn end(mut self) -> (ExitStatus, Value, Vec<Value>, String) {
        while self.next().is_some() {}
        let mut message = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
        let status = self.child.wait().unwrap();
        let last = self.events.last().cloned().unwrap_or_default();
        assert_eq!(last["event"], "end", "{message}");
        (status, last["data"].clone(), self.events, message)
    }
}

/// The server's output about the test after it has ended.
fn server_says(mut server: Background) -> Value {
    let mut line = String::new();
    BufReader::new(server.child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"))
}

fn bytes_of(events: &[Value], way: &str) -> u64 {
    sum(events, way, "bytes")
}

/// The sum of a count over all intervals and streams.
fn sum(events: &[Value], way: &str, what: &str) -> u64 {
    let intervals = events.iter().filter(|e| e["event"] == "interval");
    let streams = intervals.flat_map(|e| e["data"]["streams"].as_array().unwrap());
    streams.filter_map(|s| s[way][what].as_u64()).sum()
}

#[test]
fn a_signal_ends_a_test_and_keeps_its_totals_on_both_sides() {
    for (signal, name, code) in [(Signal::SIGINT, "SIGINT", 130), (Signal::SIGTERM, "SIGTERM", 143)]
    {
        let (server, port) = perf_server(&["--json"]);
        let mut client = Client::start(&port, &["-t", "60", "-b", "20M", "-P", "2"]);
        client.wait_for_messages("sent", 150);
        client.signal(signal);
        let (status, end, events, message) = client.end();
        assert_eq!(status.code(), Some(code), "{message}");
        assert_eq!(end["complete"], false);
        assert!(end["reason"].as_str().unwrap().contains(name), "{end}");
        assert_eq!(end["exit_code"], code);
        let sum = &end["forward"];
        assert!(sum["messages_sent"].as_u64().unwrap() > 100, "{end}");
        assert_eq!(sum["lost"], 0, "{end}");
        assert_eq!(sum["messages_sent"], sum["messages_received"]);
        let sent = end["streams"].as_array().unwrap().iter();
        let sent: u64 = sent.map(|s| s["forward"]["sender"]["bytes"].as_u64().unwrap()).sum();
        assert_eq!(bytes_of(&events, "sent"), sent, "each byte is in one interval");

        let server = server_says(server);
        assert_eq!(server["complete"], false);
        assert!(server["reason"].as_str().unwrap().contains(name), "{server}");
        let got = server["streams"].as_array().unwrap().iter();
        let got: u64 = got.map(|s| s["received"]["messages"].as_u64().unwrap()).sum();
        assert_eq!(sum["messages_received"], got);
    }
}

#[test]
fn a_signal_ends_a_test_in_which_the_server_sends_and_keeps_its_totals() {
    let (_server, port) = perf_server(&[]);
    let mut client = Client::start(&port, &["-t", "60", "-b", "20M", "-R"]);
    client.wait_for_messages("received", 150);
    client.signal(Signal::SIGINT);
    let (status, end, events, message) = client.end();
    assert_eq!(status.code(), Some(130), "{message}");
    let sum = &end["reverse"];
    let (sent, got) = (sum["messages_sent"].as_u64().unwrap(), sum["messages_received"].as_u64());
    assert!(sent >= got.unwrap() && got.unwrap() > 100, "{end}");
    let total = &end["streams"][0]["reverse"]["receiver"]["bytes"];
    assert_eq!(bytes_of(&events, "received"), total.as_u64().unwrap());
}

#[test]
fn text_and_single_json_have_the_totals_of_an_interrupted_test_too() {
    for (flag, wanted) in [("--json", "\"complete\":false"), ("-i0.1", "messages lost")] {
        let (mut server, port) = perf_server(&[]);
        let args = ["perf", "client", "127.0.0.1", "-p", &port, "-t", "60", "-b", "5M", flag];
        let client = Background::start(&args, Stdio::null());
        server.wait_for("Mbit/s each");
        kill(Pid::from_raw(client.child.id().cast_signed()), Signal::SIGINT).unwrap();
        let (code, out, message) = client.output();
        assert_eq!(code, Some(130), "{message}");
        assert!(out.contains(wanted), "{out}{message}");
        assert!(message.contains("SIGINT"), "{message}");
    }
}

#[test]
fn a_test_of_no_set_time_runs_until_it_is_stopped() {
    for direction in ["--bidir", "-R"] {
        let (_server, port) = perf_server(&[]);
        let mut client = Client::start(&port, &["-t", "0", "-b", "2M", direction]);
        while client.intervals().len() < 12 {
            assert!(client.next().is_some(), "it ended early: {:?}", client.events);
        }
        let before = client.sum("received", "messages");
        client.wait_for_messages("received", before + 10);
        client.signal(Signal::SIGINT);
        let (status, end, _, message) = client.end();
        assert_eq!(status.code(), Some(130), "{message}");
        assert!(end["reverse"]["messages_received"].as_u64().unwrap() > 10, "{end}");
    }
}

#[test]
fn a_killed_server_leaves_the_client_its_own_totals() {
    for direction in ["--bidir", "-R"] {
        let (mut server, port) = perf_server(&[]);
        let mut client = Client::start(&port, &["-t", "90", "-b", "5M", direction]);
        client.wait_for_messages("received", 50);
        if direction == "--bidir" {
            client.wait_for_messages("sent", 50);
        }
        // On Unix this is SIGKILL.
        server.child.kill().unwrap();
        let (status, end, _, message) = client.end();
        assert_eq!(status.code(), Some(8), "{message}");
        assert!(message.contains("error: ") && message.contains("hint: "), "{message}");
        assert_eq!((&end["complete"], &end["exit_code"]), (&false.into(), &8.into()));
        assert!(end["reason"].is_string(), "{end}");
        let way = &end["streams"][0]["reverse"];
        assert!(way["receiver"]["messages"].as_u64().unwrap() > 10, "{end}");
        // The sender is dead, so its values are unknown.
        assert_eq!(way["sender"], Value::Null);
        assert_eq!(end["reverse"]["messages_sent"], Value::Null);
        assert_eq!(end["server_cpu_percent"], Value::Null);
        if direction == "--bidir" {
            let way = &end["streams"][0]["forward"];
            assert!(way["sender"]["messages"].as_u64().unwrap() > 10, "{end}");
            assert_eq!(way["receiver"], Value::Null);
            assert_eq!(end["forward"]["lost_percent"], Value::Null);
        }
    }
}

#[test]
fn stopped_server_notifies_clients_and_keeps_totals() {
    for (signal, name, code) in [(Signal::SIGINT, "SIGINT", 130), (Signal::SIGTERM, "SIGTERM", 143)]
    {
        let (server, port) = perf_server(&["--json"]);
        let mut client = Client::start(&port, &["-t", "60", "-b", "5M"]);
        client.wait_for_messages("sent", 50);
        kill(Pid::from_raw(server.child.id().cast_signed()), signal).unwrap();
        let (server_code, out, message) = server.output();
        assert_eq!(server_code, Some(code), "{message}");
        let out: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(out["complete"], false, "{out}");
        assert!(out["reason"].as_str().unwrap().contains(name), "{out}");
        assert!(out["streams"][0]["received"]["messages"].as_u64().unwrap() > 0, "{out}");
        let (status, end, _, message) = client.end();
        assert_eq!(status.code(), Some(8), "{message}");
        // The end came as a packet, and not as a timeout.
        let reason = end["reason"].as_str().unwrap();
        assert!(reason.contains("reset by the peer") || reason.contains("server ended"), "{end}");
        assert!(end["forward"]["messages_sent"].as_u64().unwrap() > 10, "{end}");
    }
}

/// Clients that have gone leave nothing to wait for. A busy machine may need several tries.
#[test]
#[expect(clippy::disallowed_methods, reason = "another process ends in its own time")]
fn a_server_ends_at_once_after_many_clients() {
    let takes = |_| {
        let (server, port) = perf_server(&[]);
        for _ in 0..3 {
            udccp(&["perf", "client", "127.0.0.1", "-p", &port, "-t", "0.1"]).assert().success();
        }
        let start = Instant::now();
        kill(Pid::from_raw(server.child.id().cast_signed()), Signal::SIGINT).unwrap();
        assert_eq!(server.output().0, Some(130));
        start.elapsed()
    };
    assert!((0..10).map(takes).any(|time| time < Duration::from_millis(1500)));
}

#[test]
fn intervals_neither_overlap_nor_leave_gaps_and_hold_each_byte_once() {
    let (_server, port) = perf_server(&[]);
    for flags in [&["-t", "0.65"][..], &["-t", "0.5", "--bidir"], &["-t", "0.3", "-b", "5M"]] {
        let client = Client::start(&port, flags);
        let (status, end, events, message) = client.end();
        assert!(status.success(), "{message}");
        assert_eq!((&end["complete"], &end["reason"]), (&true.into(), &Value::Null));
        let mut last = 0.0;
        for interval in events.iter().filter(|e| e["event"] == "interval") {
            assert_eq!(interval["data"]["from_s"], last);
            last = interval["data"]["to_s"].as_f64().unwrap();
            assert!(last > interval["data"]["from_s"].as_f64().unwrap());
        }
        let stream = &end["streams"][0];
        let sent = stream["forward"]["sender"]["bytes"].as_u64().unwrap();
        assert_eq!(bytes_of(&events, "sent"), sent, "{flags:?}: {events:?}");
        let got = stream["reverse"]["receiver"]["bytes"].as_u64();
        assert_eq!(bytes_of(&events, "received"), got.unwrap_or(0), "{flags:?}");
    }
}

#[test]
fn unknown_remote_values_are_null() {
    let (_server, port) = perf_server(&[]);
    for (flags, seen, unseen) in
        [(&["-t", "0.3"][..], "sent", "received"), (&["-t", "0.3", "-R"], "received", "sent")]
    {
        let (_, _, events, _) = Client::start(&port, flags).end();
        for interval in events.iter().filter(|e| e["event"] == "interval").map(|e| &e["data"]) {
            assert!(interval[format!("{seen}_mbit_per_s")].is_number(), "{interval}");
            assert_eq!(interval[format!("{unseen}_mbit_per_s")], Value::Null);
            assert!(interval["streams"][0][seen].is_object(), "{interval}");
            assert_eq!(interval["streams"][0][unseen], Value::Null);
        }
    }
    let args = ["perf", "client", "127.0.0.1", "-p", &port, "-t", "0.3", "-i", "0.1", "-P", "2"];
    let text = String::from_utf8(udccp(&args).output().unwrap().stdout).unwrap();
    let rows: Vec<&str> = text.lines().filter(|l| l.starts_with("sum  ")).collect();
    assert!(!rows.is_empty() && rows.iter().all(|r| r.contains("sent")), "{text}");
    assert!(rows.iter().all(|r| !r.contains("received")), "{text}");
}

#[test]
fn start_record_has_time_place_and_settings() {
    let (_server, port) = perf_server(&[]);
    let (_, _, events, _) = Client::start(&port, &["-t", "0.1", "-b", "1M"]).end();
    let start = &events[0]["data"];
    let time = start["time_utc"].as_str().unwrap();
    assert!(time.starts_with("20") && time.ends_with('Z') && time.contains('T'), "{time}");
    assert!(start["argv"].as_array().unwrap().contains(&"--json-stream".into()), "{start}");
    assert!(start["max_message_bytes"].as_u64().unwrap() > 1000, "{start}");
    for key in ["host", "kernel", "version", "commit", "local", "peer"] {
        assert!(start[key].is_string(), "{key} of {start}");
    }
}
