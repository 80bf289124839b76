//! The commands with sockets, over the loopback interface.

mod common;

use std::fs::File;
#[cfg(target_os = "linux")]
use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{Background, noise, perf_server, temporary, udccp, wait_until_bound};
use serde_json::Value;
#[cfg(target_os = "linux")]
use udccp_netns::{Namespace, RoutedPair, Tables, interface};
use udccp_testkit::ports;

/// Starts a listening `udccp cat` that reads `from` and writes to `to`. Returns it with its port.
fn listening(from: Stdio, to: &tempfile::NamedTempFile, extra: &[&str]) -> (Child, u16) {
    let port = ports::free();
    let child = Command::new(env!("CARGO_BIN_EXE_udccp"))
        .args(["cat", "-l", "--bind", "127.0.0.1", &port.to_string()])
        .args(extra)
        .stdin(from)
        .stdout(File::create(to.path()).unwrap())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until_bound(port);
    (child, port)
}

/// The report of a `udccp cat --json`.
fn report(stderr: &[u8]) -> Value {
    let text = std::str::from_utf8(stderr).unwrap();
    let last = text.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn a_file_arrives_whole_and_the_report_says_so() {
    let (data, got) = (noise(10_000_000), temporary(b""));
    let (server, port) = listening(Stdio::null(), &got, &["--json"]);
    let client = udccp(&["cat", "--json", "127.0.0.1", &port.to_string()])
        .write_stdin(data.clone())
        .output()
        .unwrap();
    assert!(client.status.success(), "{client:?}");
    let server = server.wait_with_output().unwrap();
    assert!(server.status.success(), "{server:?}");
    assert!(std::fs::read(got.path()).unwrap() == data, "the file differs");
    let (client, server) = (report(&client.stderr), report(&server.stderr));
    let messages = 10_000_000_u64.div_ceil(1400);
    assert_eq!(client["sent"]["messages"], messages);
    assert_eq!(client["sent"]["delivered"], messages);
    assert_eq!(client["sent"]["lost"], 0);
    assert_eq!(server["received"]["messages"], messages);
    assert_eq!(server["received"]["bytes"], 10_000_000);
}

/// Regression: they served DCCP port 0, over a UDP port that `cat` did not print.
#[test]
fn a_server_on_any_port_tells_one_that_leads_there() {
    let here = ["--bind", "127.0.0.1"];
    let servers: [(&[&str], &[&str]); 2] = [
        (&["cat", "-l", "0"], &["cat"]),
        (&["perf", "server", "-p", "0"], &["perf", "client", "-t", "0.1"]),
    ];
    for (server, client) in servers {
        let mut server = Background::start(&[server, &here].concat(), Stdio::null());
        let line = server.wait_for("listening on DCCP port");
        let (_, port) = line.rsplit_once(':').expect("a UDP port");
        assert!(line.contains(&format!("DCCP port {port} over")), "{line}");
        let port: &[&str] = if client[0] == "cat" { &[port] } else { &["-p", port] };
        let mut command = udccp(client);
        let done = command.arg("127.0.0.1").args(port).write_stdin("hello").output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
}

/// Regression: each side waited for the other's end marker.
#[test]
fn an_input_that_cannot_be_read_ends_both_sides() {
    let got = temporary(b"");
    let (server, port) = listening(Stdio::null(), &got, &[]);
    let folder = File::open(env!("CARGO_MANIFEST_DIR")).unwrap();
    let client = Background::start(&["cat", "127.0.0.1", &port.to_string()], Stdio::from(folder));
    let server = server.wait_with_output().unwrap();
    assert_eq!(server.status.code(), Some(8), "{server:?}");
    let (code, _, message) = client.output();
    assert_eq!(code, Some(4), "{message}");
    assert!(message.contains("cannot read standard input: Is a directory"), "{message}");
}

#[test]
fn files_go_both_ways_at_once() {
    let (a, b) = (noise(3_000_000), noise(2_000_001));
    let (source, got) = (temporary(&a), temporary(b""));
    let (server, port) = listening(File::open(source.path()).unwrap().into(), &got, &[]);
    let client = udccp(&["cat", "127.0.0.1", &port.to_string()]).write_stdin(b.clone()).output();
    let client = client.unwrap();
    assert!(client.status.success(), "{}", String::from_utf8_lossy(&client.stderr));
    assert!(server.wait_with_output().unwrap().status.success());
    assert!(client.stdout == a, "what the server sent differs");
    assert!(std::fs::read(got.path()).unwrap() == b, "what the client sent differs");
}

/// Starts a `udccp cat --json` on a host.
#[cfg(target_os = "linux")]
fn cat_on(host: &Namespace, args: &[&str], to: Stdio) -> Background {
    let mut command = Command::new(env!("CARGO_BIN_EXE_udccp"));
    command.args(["cat", "--json"]).args(args).stdout(to);
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    Background { child: host.run(move || command.spawn()).unwrap() }
}

/// Regression: the sender gave up without a word, and both sides waited for ever.
#[cfg(target_os = "linux")]
#[test]
#[expect(clippy::print_stderr, reason = "a test that skips says so")]
fn where_the_path_becomes_narrower_messages_become_shorter() {
    let Ok(hosts) = RoutedPair::new() else {
        eprintln!("skipped: this system lets us make no network namespace");
        return;
    };
    let (first, then, got) = (noise(140_000), noise(8_000_000), temporary(b""));
    let to = File::create(got.path()).unwrap().into();
    let mut server = cat_on(&hosts.server, &["-l", "0", "-r"], to);
    let line = server.wait_for("listening on DCCP port");
    let (_, port) = line.rsplit_once(':').expect("a UDP port");
    let mut client = cat_on(&hosts.client, &["10.2.0.1", port], Stdio::piped());
    let mut input = client.child.stdin.take().unwrap();
    input.write_all(&first).unwrap();
    while std::fs::read(got.path()).unwrap().len() < first.len() {
        std::thread::yield_now();
    }
    hosts.client.run(|| Tables::open()?.set_mtu(interface("eth0")?, 1000)).unwrap();
    input.write_all(&then).unwrap();
    drop(input);
    let (code, _, sent) = client.output();
    // What was queued when the MTU fell is lost.
    assert!(matches!(code, Some(0 | 3)), "{sent}");
    let sent = &report(sent.as_bytes())["sent"];
    assert_eq!(sent["bytes"], (first.len() + then.len()) as u64);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    let received = std::fs::read(got.path()).unwrap();
    assert!(received.ends_with(&then[then.len() / 2..]), "{sent}");
}

#[cfg(target_os = "linux")]
#[test]
#[expect(clippy::print_stderr, reason = "a test that skips says so")]
fn perf_sends_what_fits_through_a_narrow_interface() {
    let Ok(hosts) = RoutedPair::new() else {
        eprintln!("skipped: this system lets us make no network namespace");
        return;
    };
    hosts.client.run(|| Tables::open()?.set_mtu(interface("eth0")?, 1300)).unwrap();
    let perf = |host: &Namespace, args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_udccp"));
        command.arg("perf").args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        Background { child: host.run(move || command.spawn()).unwrap() }
    };
    // A server remembers the MTU of its interface for a second, so each test has its own.
    let test = |flags: &[&str]| {
        let mut server = perf(&hosts.server, &["server", "-p", "0"]);
        let line = server.wait_for("listening on DCCP port");
        let (_, port) = line.rsplit_once(':').expect("a UDP port");
        let fixed = ["client", "10.2.0.1", "-p", port, "-t", "0.2", "--json"];
        perf(&hosts.client, &[&fixed, flags].concat()).output()
    };
    let (code, out, message) = test(&[]);
    assert_eq!(code, Some(0), "{message}");
    let result: Value = serde_json::from_slice(out.as_ref()).expect("JSON");
    // 1300 bytes without IPv4, UDP and the longest header of DCCP with options.
    let most = result["start"]["max_message_bytes"].as_u64().unwrap();
    assert!(most < 1300);
    assert_eq!(result["start"]["test"]["length"], most);
    assert!(result["end"]["forward"]["messages_received"].as_u64() > Some(0), "{result}");
    // A server that is narrower still cannot send such messages, and did not say so.
    hosts.server.run(|| Tables::open()?.set_mtu(interface("eth0")?, 1200)).unwrap();
    let (code, _, message) = test(&["-R"]);
    assert_eq!(code, Some(6), "{message}");
    assert!(message.contains("its packets hold 1132 bytes, not 1232: use -l 1132"), "{message}");
}

#[test]
fn lines_and_an_empty_input_go_through() {
    for (input, messages) in [("one\n\nthree\nend", 4), ("", 0)] {
        let got = temporary(b"");
        let (server, port) = listening(Stdio::null(), &got, &["--json"]);
        let client = udccp(&["cat", "--lines", "127.0.0.1", &port.to_string()])
            .write_stdin(input)
            .output()
            .unwrap();
        assert!(client.status.success(), "{client:?}");
        let server = server.wait_with_output().unwrap();
        assert_eq!(report(&server.stderr)["received"]["messages"], messages);
        assert_eq!(std::fs::read_to_string(got.path()).unwrap(), input);
    }
}

#[test]
fn receive_only_end_ignores_its_open_input() {
    let got = temporary(b"");
    let (mut server, port) = listening(Stdio::piped(), &got, &["--recv-only"]);
    let never_ends = server.stdin.take();
    let client = udccp(&["cat", "127.0.0.1", &port.to_string()]).write_stdin("hi").output();
    assert!(client.unwrap().status.success());
    assert!(server.wait_with_output().unwrap().status.success());
    assert_eq!(std::fs::read(got.path()).unwrap(), b"hi");
    drop(never_ends);
}

/// Forwards datagrams between any number of clients and `server`, and drops every `n`-th large one
/// toward the server. Changing addresses is allowed, as RFC 6773 does not cover them with a
/// checksum: this is a NAT.
fn lossy_path(server: u16, n: u32) -> u16 {
    let front = udp();
    let port = front.local_addr().unwrap().port();
    std::thread::Builder::new()
        .spawn(move || {
            let (mut buffer, mut large) = ([0; 2048], 0);
            let mut clients: Vec<(SocketAddr, UdpSocket)> = Vec::new();
            loop {
                let mut idle = true;
                while let Ok((len, from)) = front.recv_from(&mut buffer) {
                    idle = false;
                    if !clients.iter().any(|(c, _)| *c == from) {
                        let back = udp();
                        back.connect(("127.0.0.1", server)).unwrap();
                        clients.push((from, back));
                    }
                    large += u32::from(len > 1000);
                    if let Some((_, back)) = clients.iter().find(|(c, _)| *c == from)
                        && (len <= 1000 || large % n != 0)
                    {
                        let _ = back.send(&buffer[..len]);
                    }
                }
                for (client, back) in &clients {
                    while let Ok(len) = back.recv(&mut buffer) {
                        idle = false;
                        let _ = front.send_to(&buffer[..len], client);
                    }
                }
                if idle {
                    std::thread::park_timeout(Duration::from_micros(200));
                }
            }
        })
        .unwrap();
    port
}

fn udp() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

#[test]
fn losses_are_counted_and_have_an_exit_code() {
    let (data, got) = (noise(1_400_000), temporary(b""));
    let (server, port) = listening(Stdio::null(), &got, &["--json"]);
    let path = lossy_path(port, 50).to_string();
    let client = udccp(&["cat", "--json", "--udp-port", &path, "127.0.0.1", &port.to_string()])
        .write_stdin(data)
        .output()
        .unwrap();
    assert_eq!(client.status.code(), Some(3), "{}", String::from_utf8_lossy(&client.stderr));
    let server = server.wait_with_output().unwrap();
    let (client, server) = (report(&client.stderr), report(&server.stderr));
    assert_eq!(client["sent"]["messages"], 1000);
    let lost = client["sent"]["lost"].as_u64().unwrap();
    assert_eq!(lost + server["received"]["messages"].as_u64().unwrap(), 1000);
    assert!((15..=20).contains(&lost), "{lost} lost");
    assert!(client["congestion_events"].as_u64().unwrap() > 0);
}

fn perf(port: &str, extra: &[&str]) -> Value {
    let args = [["perf", "client", "127.0.0.1", "-p", port, "--json"].as_slice(), extra].concat();
    let output = udccp(&args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The first result that is `right`, of longer and longer tests: a busy machine keeps no rate for
/// half a second.
fn of_longer_tests(right: impl Fn(&Value) -> bool, test: impl Fn(&str) -> Value) -> Value {
    let mut last = Value::Null;
    for seconds in ["0.5", "2", "8", "32"] {
        last = test(seconds);
        if right(&last) {
            return last;
        }
    }
    panic!("{last}");
}

/// Whether the rate in this direction is about 5 Mbit/s.
fn is_at_5_mbit(result: &Value, way: &str) -> bool {
    (2.5..7.5).contains(&result["end"][way]["mbit_per_s"].as_f64().unwrap())
}

#[test]
fn perf_measures_every_direction_on_one_server() {
    let (_server, port) = perf_server(&[]);
    let forward = perf(&port, &["-t", "0.6", "-i", "0.2"]);
    assert_eq!(forward["start"]["test"]["direction"], "forward");
    // There are three, unless the machine is so busy that some are late.
    assert!(!forward["intervals"].as_array().unwrap().is_empty());
    let sum = &forward["end"]["forward"];
    assert!(sum["mbit_per_s"].as_f64().unwrap() > 1.0, "{sum}");
    assert_eq!(sum["lost"], 0, "{forward}");
    assert_eq!(sum["messages_sent"], sum["messages_received"]);
    assert!(forward["end"]["streams"][0]["forward"]["sender"]["srtt_ms"].as_f64().unwrap() > 0.0);

    let reverse = perf(&port, &["-t", "0.4", "-R", "-P", "3"]);
    assert_eq!(reverse["end"]["streams"].as_array().unwrap().len(), 3);
    assert!(reverse["end"]["reverse"]["messages_received"].as_u64().unwrap() > 0);
    assert!(reverse["end"].get("forward").is_none());

    let both_ways = |result: &Value| ["forward", "reverse"].iter().all(|w| is_at_5_mbit(result, w));
    of_longer_tests(both_ways, |seconds| {
        perf(&port, &["-t", seconds, "--bidir", "-b", "5M", "-l", "500"])
    });
}

/// Both ends name the experimental CCID; the client reports which CCID carried the data.
#[test]
fn perf_runs_over_an_experimental_ccid() {
    for (name, number) in [("cubic", 249), ("bbr", 250)] {
        let (_server, port) = perf_server(&["--ccid", name]);
        let result = of_longer_tests(
            |result| is_at_5_mbit(result, "forward"),
            |seconds| perf(&port, &["-t", seconds, "--ccid", name, "-b", "5M"]),
        );
        assert_eq!(result["start"]["test"]["ccid"], number, "{result}");
    }
}

#[test]
fn perf_streams_json_lines_and_serves_clients_at_once() {
    let (_server, port) = perf_server(&["--json"]);
    let clients: Vec<_> = (0..3)
        .map(|_| {
            let port = port.clone();
            std::thread::Builder::new()
                .spawn(move || {
                    let args = ["perf", "client", "127.0.0.1", "-p", &port, "-t", "0.5", "-i"];
                    let args = [args.as_slice(), &["0.25", "--json-stream", "-b", "2M"]].concat();
                    udccp(&args).output().unwrap()
                })
                .unwrap()
        })
        .collect();
    for client in clients {
        let output = client.join().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let events: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let names: Vec<_> = events.iter().map(|e| e["event"].as_str().unwrap()).collect();
        let [first, intervals @ .., last] = names.as_slice() else { panic!("{text}") };
        assert_eq!((*first, *last), ("start", "end"));
        assert!(!intervals.is_empty() && intervals.iter().all(|name| *name == "interval"));
    }
}

#[test]
fn perf_counts_what_a_path_loses() {
    let (_server, port) = perf_server(&[]);
    let path = lossy_path(port.parse().unwrap(), 100).to_string();
    // A busy machine sends fewer messages, or takes late acknowledgements for losses.
    let is_undisturbed = |way: &Value| {
        way["sender"]["messages"].as_u64() >= Some(300)
            && way["sender"]["lost"] == way["receiver"]["lost"]
    };
    let way = of_longer_tests(is_undisturbed, |seconds| {
        let args = ["--udp-port", &path, "-t", seconds, "-b", "10M"];
        perf(&port, &args)["end"]["streams"][0]["forward"].clone()
    });
    let percent = way["lost_percent"].as_f64().unwrap();
    assert!((0.5..1.5).contains(&percent), "{percent} % lost");
}

#[test]
fn doctor_finds_that_sockets_work_here() {
    let output = udccp(&["doctor", "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let first = &checks[0];
    assert_eq!((&first["name"], &first["state"]), (&"DCCP over UDP, IPv4".into(), &"ok".into()));
    assert!(checks.iter().all(|c| c["state"] == "ok" || c["advice"].is_string()));
    let text = udccp(&["doctor"]).output().unwrap();
    assert!(String::from_utf8(text.stdout).unwrap().contains("UDP GSO"));
}

#[test]
fn decoding_is_also_json() {
    let path = common::capture("ccid2-ipv6.pcap");
    let output = udccp(&["decode", "--json", path.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 32);
    for line in text.lines() {
        let packet: Value = serde_json::from_str(line).unwrap();
        assert_eq!(packet["checksum"], "valid");
    }
}
