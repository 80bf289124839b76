//! Bad input of every kind: a clear error, a hint, and the documented exit code.

mod common;

use std::net::UdpSocket;
use std::process::Stdio;

use common::{Background, capture, fails, temporary, udccp, wait_until_bound};
use udccp_testkit::ports;

#[test]
fn an_unknown_command_or_flag_is_a_usage_error_with_the_nearest_right_one() {
    fails(&["pref"], 2, &["unrecognized subcommand 'pref'", "perf"]);
    fails(&["perf", "client", "host", "--bidirr"], 2, &["--bidirr", "--bidir"]);
    fails(&[], 2, &["Usage"]);
}

#[test]
fn wrong_values_of_flags_say_what_is_right() {
    let client = |flag, value| ["perf", "client", "127.0.0.1", flag, value];
    fails(&client("-t", "soon"), 2, &["soon", "seconds"]);
    fails(&client("-b", "fast"), 2, &["fast", "20M"]);
    fails(&client("-b", "0"), 2, &["zero"]);
    fails(&client("-P", "0"), 2, &["'0' for '--parallel <N>': a whole number from 1 to 1000"]);
    fails(&client("-p", "x"), 2, &["'x' for '--port <PORT>': a whole number from 0 to 65535"]);
    fails(&client("-l", "8"), 2, &["8 bytes", "hint: use -l 32"]);
    fails(&["perf", "client", "h", "-R", "--bidir"], 2, &["cannot be used with"]);
    fails(&["cat", "-l", "99999"], 2, &["99999", "hint: write: udccp cat -l PORT"]);
    fails(&["cat", "localhost"], 2, &["PORT"]);
    fails(&["cat", "--service", "tooLong", "h", "1"], 2, &["SC:abcd"]);
    fails(&["cat", "-l", "host", "5004"], 2, &["hint: write"]);
}

#[test]
fn invalid_seed_is_reported_with_its_range() {
    for value in ["abc", "-1", "1.5", "18446744073709551616"] {
        let message = format!("'{value}' for '--seed <N>': a whole number from 0 to {}", u64::MAX);
        fails(&["sim", "two-flows", "--seed", value], 2, &[&message]);
    }
}

#[test]
fn missing_scenario_is_reported_with_the_existing_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("mine.toml"), "").unwrap();
    let built_in = "the scenarios emulated, media, ";
    let message = ["hint: did you mean `mine.toml`? files there: mine.toml;", built_in];
    fails(&["sim", &path("mines.toml")], 4, &message);
    fails(&["sim", &path("nowhere/mine.toml")], 4, &["hint: files there: none;", built_in]);
    fails(&["sim", &path("")], 4, &["hint: files there: mine.toml;", built_in]);
}

#[test]
fn an_unknown_host_is_unreachable() {
    let text = fails(&["cat", "no-such-host.invalid", "5004"], 5, &["no-such-host.invalid"]);
    assert!(text.contains("hint: check the spelling"), "{text}");
}

#[test]
fn a_closed_udp_port_is_refused_at_once() {
    let port = ports::free().to_string();
    for args in
        [["cat", "127.0.0.1", &port].as_slice(), &["perf", "client", "127.0.0.1", "-p", &port]]
    {
        let message = format!("connection refused: nothing listens on UDP port {port}");
        fails(args, 6, &[&message, "hint: check host and port"]);
    }
}

#[test]
fn connect_to_a_silent_peer_times_out() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let args = ["cat", "--timeout", "0.3", "127.0.0.1", &port];
    fails(&args, 5, &["no answer from 127.0.0.1", "hint: check the address; a firewall"]);
}

#[test]
fn a_port_in_use_is_named() {
    let holder = UdpSocket::bind("[::]:0").unwrap();
    let port = holder.local_addr().unwrap().port().to_string();
    fails(&["cat", "-l", &port], 7, &[&port, "in use", "hint: choose another port"]);
    fails(&["perf", "server", "-p", &port], 7, &[&port, "in use", "hint: choose another port"]);
    fails(
        &["cat", "-l", "--bind", "192.0.2.1", "5004"],
        7,
        &["192.0.2.1", "hint: bind to 0.0.0.0"],
    );
}

#[test]
fn another_service_code_is_refused() {
    let port = ports::free().to_string();
    let _server = Background::start(&["cat", "-l", "--bind", "127.0.0.1", &port], Stdio::null());
    wait_until_bound(port.parse().unwrap());
    let args = ["cat", "--service", "SC:othr", "127.0.0.1", &port];
    fails(&args, 6, &["SC:othr", "hint: give both sides the same service code"]);
    let wrong_port = ["cat", "--udp-port", &port, "127.0.0.1", "7"];
    fails(&wrong_port, 6, &["DCCP port 7", "hint: check the port"]);
}

#[test]
fn an_unknown_ccid_is_refused_before_anything_is_sent() {
    let args = ["cat", "--ccid", "77", "127.0.0.1", "5004"];
    fails(&args, 2, &["CCID 77 is not registered", "hint:"]);
    let args = ["cat", "--ccid", "vegas", "127.0.0.1", "5004"];
    fails(&args, 2, &["expected a number from 0 to 255, `cubic` or `bbr`"]);
}

#[test]
fn a_ccid_that_the_server_does_not_offer_is_named_with_the_fix() {
    let port = ports::free().to_string();
    let _server = Background::start(&["cat", "-l", "--bind", "127.0.0.1", &port], Stdio::null());
    wait_until_bound(port.parse().unwrap());
    for (name, number) in [("bbr", 250), ("cubic", 249)] {
        let message = format!("does not offer CCID {number} ({name})");
        let hint = format!("hint: start the server with --ccid {name}");
        fails(&["cat", "--ccid", name, "127.0.0.1", &port], 6, &[&message, &hint]);
    }
}

#[test]
fn messages_larger_than_a_packet_are_refused() {
    let port = ports::free().to_string();
    let _server = Background::start(&["cat", "-l", "--bind", "127.0.0.1", &port], Stdio::null());
    wait_until_bound(port.parse().unwrap());
    fails(&["cat", "--size", "9000", "127.0.0.1", &port], 2, &["9000", "hint: use --size"]);
}

#[test]
fn a_truncated_capture_gives_its_packets_and_then_an_error() {
    let whole = std::fs::read(capture("ccid2-basic.pcap")).unwrap();
    let cut = temporary(&whole[..whole.len() - 7]);
    let path = cut.path().to_str().unwrap();
    let output = udccp(&["decode", path]).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(output.stdout.iter().filter(|&&b| b == b'\n').count(), 81);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("cut short") && text.contains("hint: the readable part"), "{text}");
}

#[test]
fn invalid_capture_is_reported() {
    let text = temporary(b"12:00:00.000 IP 10.0.0.1 > 10.0.0.2: DCCP");
    let path = text.path().to_str().unwrap();
    fails(&["decode", path], 4, &["neither a pcap nor a pcapng", "hint: capture with tcpdump -w"]);
    fails(&["decode", "/no/such/file"], 4, &["/no/such/file", "hint: give the path"]);
}

#[test]
fn malformed_packets_are_shown_with_their_error() {
    let mut bytes = std::fs::read(capture("ccid2-basic.pcap")).unwrap();
    // The first frame's DCCP Data Offset: file header, record header, Ethernet, IPv4.
    bytes[24 + 16 + 14 + 20 + 4] = 2;
    let file = temporary(&bytes);
    let path = file.path().to_str().unwrap();
    let output = udccp(&["decode", "--strict", path]).output().unwrap();
    assert_eq!(output.status.code(), Some(9));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().next().unwrap().contains("bad: "), "{text}");
    assert_eq!(text.lines().count(), 82);
}

#[test]
fn closed_output_pipe_is_not_an_error() {
    let script = format!(
        "{} decode {} | head -n 1",
        env!("CARGO_BIN_EXE_udccp"),
        capture("ccid2-basic.pcap").display()
    );
    let output = std::process::Command::new("bash")
        .args(["-o", "pipefail", "-c", &script])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("error"));
}

#[test]
fn every_command_shows_examples() {
    for command in ["cat", "perf", "decode", "doctor", "sim"] {
        let output = udccp(&[command, "--help"]).output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("Examples:"), "{command}: {text}");
    }
    let output = udccp(&["--help"]).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("Exit codes:"));
}
