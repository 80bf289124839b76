//! Helpers for the tests of the program.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

pub mod lab;

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use udccp_testkit::ports;

/// A scenario for any backend: a path of 10 Mbit/s and 20 ms, two flows, two seconds.
pub const TWO_FLOWS: &str = r#"schema = 1
id = "small"
asks = "Does it run?"
[topology]
shape = "dumbbell"
access = { rate = "100 Mbit/s", delay = "1 ms" }
bottleneck = { rate = "10 Mbit/s", rtt = "20 ms", limit = "50 packets" }
[time]
duration = "2 s"
phase = "100 ms"
measure = { from = "1 s", to = "2 s", every = "500 ms" }
[[flow]]
name = "first"
protocol = "dccp/ccid2"
traffic = "bulk"
[[flow]]
name = "second"
protocol = "tcp/newreno"
traffic = "bulk"
"#;

/// The command for one run of the program.
pub fn udccp(args: &[&str]) -> assert_cmd::Command {
    let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_udccp"));
    command.args(args).timeout(Duration::from_secs(300));
    command
}

/// Checks that a command fails with this exit code, and that its output contains these texts.
pub fn fails(args: &[&str], code: i32, message: &[&str]) -> String {
    let output = udccp(args).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
    for part in message {
        assert!(text.contains(part), "{args:?} does not say {part:?}: {text}");
    }
    text
}

/// The program running in the background, killed when the test is over.
pub struct Background {
    pub child: Child,
}

impl Background {
    pub fn start(args: &[&str], stdin: Stdio) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_udccp"))
            .args(args)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self { child }
    }

    /// Waits for a line on standard error that contains `part`, and returns it.
    pub fn wait_for(&mut self, part: &str) -> String {
        let stderr = self.child.stderr.as_mut().unwrap();
        let mut lines = BufReader::new(stderr).lines().map(Result::unwrap);
        lines.find(|line| line.contains(part)).unwrap_or_else(|| panic!("never printed {part:?}"))
    }

    /// Waits for the end. Returns the exit code, and the rest of standard output and standard
    /// error.
    pub fn output(mut self) -> (Option<i32>, String, String) {
        let (mut out, mut message) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
        (self.child.wait().unwrap().code(), out, message)
    }
}

/// Starts a perf server on a free port. Returns it with the port.
pub fn perf_server(extra: &[&str]) -> (Background, String) {
    let port = ports::free().to_string();
    let fixed = ["perf", "server", "--bind", "127.0.0.1", "-p", &port];
    let mut server = Background::start(&[fixed.as_slice(), extra].concat(), Stdio::null());
    server.wait_for("listening");
    (server, port)
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something listens on a UDP port of this machine.
pub fn wait_until_bound(port: u16) {
    for _ in 0..6_000 {
        if ports::is_bound_over_udp(port) {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    panic!("nothing listens on port {port}");
}

/// A temporary file, deleted when the test is over.
pub fn temporary(contents: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), contents).unwrap();
    file
}

pub fn capture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../captures").join(name)
}

/// Random bytes, which no bug could produce by chance.
pub fn noise(len: usize) -> Vec<u8> {
    let mut rng = udccp_base::Seed(1).stream("noise");
    (0..len.div_ceil(8)).flat_map(|_| rng.next_u64().to_le_bytes()).take(len).collect()
}

/// The standard output of a command that succeeds.
pub fn stdout(args: &[&str]) -> String {
    let output = udccp(args).output().expect("the program runs");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {message}");
    String::from_utf8(output.stdout).expect("text")
}
