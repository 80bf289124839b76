//! `udccp cat` ended early, by a signal or by the death of its peer.

mod common;

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use common::wait_until_bound;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use udccp_testkit::ports;

/// A connected listener and client of `udccp cat`, whose inputs stay open.
struct Pair {
    listener: Child,
    client: Child,
    client_input: ChildStdin,
}

fn start(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_udccp"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

impl Pair {
    fn connected() -> Self {
        let port = ports::free();
        let number = port.to_string();
        let mut listener = start(&["cat", "-l", "--bind", "127.0.0.1", &number]);
        wait_until_bound(port);
        let mut client = start(&["cat", "--lines", "127.0.0.1", &number]);
        let mut client_input = client.stdin.take().expect("a pipe");
        client_input.write_all(b"hello\n").expect("it reads");
        let mut got = [0; 6];
        listener.stdout.as_mut().expect("a pipe").read_exact(&mut got).expect("it arrives");
        assert_eq!(&got, b"hello\n");
        Self { listener, client, client_input }
    }
}

fn send(signal: Signal, to: &Child) {
    let pid = Pid::from_raw(i32::try_from(to.id()).expect("a process"));
    kill(pid, signal).expect("it lives");
}

/// Exit code and standard error. The process sees its peer end while its input stays open.
fn end_of(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("an end");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_signal_resets_the_connection_and_the_peer_knows_at_once() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        for kills_client in [false, true] {
            let Pair { mut listener, client, client_input } = Pair::connected();
            let listener_input = listener.stdin.take();
            let (killed, left) = if kills_client { (client, listener) } else { (listener, client) };
            send(signal, &killed);
            let (code, says) = end_of(killed);
            assert_eq!(code, Some(130), "{signal}: {says}");
            assert!(says.contains("interrupted"), "{says}");
            // If the peer fell silent, this would take over 20 seconds and have another message.
            let (code, says) = end_of(left);
            assert_eq!(code, Some(8), "{signal}: {says}");
            assert!(says.contains("reset by the peer: Aborted"), "{signal}: {says}");
            drop((client_input, listener_input));
        }
    }
}

#[test]
fn interrupted_client_resets_its_request() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let client = start(&["cat", "127.0.0.1", &port]);
    let mut packet = [0; 2048];
    let type_of = |packet: &[u8]| packet[8] >> 1 & 15;
    silent.recv(&mut packet).unwrap();
    assert_eq!(type_of(&packet), 0, "a Request");
    send(Signal::SIGTERM, &client);
    assert_eq!(end_of(client).0, Some(130));
    while type_of(&packet) == 0 {
        silent.recv(&mut packet).unwrap();
    }
    assert_eq!(type_of(&packet), 7, "a Reset");
}

#[test]
fn killed_peer_is_detected_by_its_hosts_report() {
    let Pair { listener, client, mut client_input } = Pair::connected();
    send(Signal::SIGKILL, &listener);
    end_of(listener);
    client_input.write_all(b"is anybody there?\n").expect("it reads");
    let (code, says) = end_of(client);
    assert_eq!(code, Some(8), "{says}");
    assert!(says.contains("nothing listens on the peer's port any more"), "{says}");
}
