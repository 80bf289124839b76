//! What commands say when standard output goes to a full disk.
#![cfg(target_os = "linux")]

mod common;

use std::fs::File;
use std::process::{Child, Command, Stdio};

use common::{TWO_FLOWS, fails, temporary, udccp, wait_until_bound};
use udccp_testkit::ports;

/// The program with a full disk as standard output.
fn start(args: &[&str]) -> Child {
    let full = File::options().write(true).open("/dev/full").expect("Linux has it");
    let mut command = Command::new(env!("CARGO_BIN_EXE_udccp"));
    command.args(args).stdin(Stdio::null()).stdout(full).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

fn says_where_and_what_to_do(args: &[&str], child: Child) {
    let output = child.wait_with_output().expect("an end");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {message}");
    let ends = "error: cannot write to standard output: No space left on device (os error 28)\n\
                hint: check where it goes: the disk may be full\n";
    assert!(message.ends_with(ends), "{args:?}: {message}");
}

#[test]
fn every_command_that_prints_says_that_it_cannot() {
    let scenario = temporary(TWO_FLOWS.as_bytes());
    let scenario = scenario.path().to_str().expect("UTF-8");
    let capture = common::capture("ccid2-basic.pcap");
    let capture = capture.to_str().expect("UTF-8");
    let all: [&[&str]; 12] = [
        &["--help"],
        &["--version"],
        &["help", "sim"],
        &["lab", "run", "-h"],
        &["sim", scenario],
        &["sim", scenario, "--json"],
        &["guide", "sockets"],
        &["completions", "bash"],
        &["man"],
        &["lab", "list"],
        &["decode", capture],
        &["doctor"],
    ];
    for args in all {
        says_where_and_what_to_do(args, start(args));
    }
}

#[test]
fn so_does_a_receiver_and_a_server_that_serves_one_client() {
    let port = ports::free();
    let number = port.to_string();
    let receiver = ["cat", "-l", "--bind", "127.0.0.1", &number, "-r"];
    let child = start(&receiver);
    wait_until_bound(port);
    udccp(&["cat", "127.0.0.1", &number]).write_stdin("hello").output().expect("an end");
    says_where_and_what_to_do(&receiver, child);

    let server = ["perf", "server", "--one-off", "--bind", "127.0.0.1", "-p", &number];
    let child = start(&server);
    wait_until_bound(port);
    let client = ["perf", "client", "127.0.0.1", "-p", &number, "-t", "0.1"];
    udccp(&client).assert().success();
    says_where_and_what_to_do(&server, child);
}

#[test]
fn a_server_of_many_clients_goes_on() {
    let port = ports::free();
    let number = port.to_string();
    let mut child = start(&["perf", "server", "--bind", "127.0.0.1", "-p", &number]);
    wait_until_bound(port);
    for _ in 0..2 {
        let client = ["perf", "client", "127.0.0.1", "-p", &number, "-t", "0.1"];
        udccp(&client).assert().success();
    }
    child.kill().expect("it runs");
    let output = child.wait_with_output().expect("an end");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("cannot write to standard output"), "{message}");
}

#[test]
fn captures_that_cannot_be_written_go_elsewhere() {
    let scenario = temporary(TWO_FLOWS.as_bytes());
    let scenario = scenario.path().to_str().expect("UTF-8");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "not a folder").expect("a file");
    let hint = "hint: --pcap names another folder; the disk may be full";
    let blocked = ["sim", scenario, "--pcap", file.to_str().expect("UTF-8")];
    fails(&blocked, 1, &["cannot write captures to", hint]);
    std::os::unix::fs::symlink("/dev/full", folder.path().join("bottleneck.pcap")).expect("a link");
    let full = ["sim", scenario, "--pcap", folder.path().to_str().expect("UTF-8")];
    fails(&full, 1, &["cannot write the capture \"bottleneck\"", hint]);
}
