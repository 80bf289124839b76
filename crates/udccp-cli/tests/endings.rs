//! `udccp cat` ended early, by a signal or by the death of its peer.

mod common;

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use common::wait_until_bound;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use udccp_testkit::ports;

/// The end of the input, as a terminal sends it.
const CTRL_D: u8 = 4;

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
        Self::with(&[])
    }

    /// The same, with more flags of the listener.
    fn with(flags: &[&str]) -> Self {
        let port = ports::free();
        let number = port.to_string();
        let all = [&["cat", "-l", "--bind", "127.0.0.1", &number], flags].concat();
        let mut listener = start(&all);
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
            let (code, message) = end_of(killed);
            assert_eq!(code, Some(130), "{signal}: {message}");
            assert!(message.contains("interrupted"), "{message}");
            // If the peer fell silent, this would take over 20 seconds and have another message.
            let (code, message) = end_of(left);
            assert_eq!(code, Some(8), "{signal}: {message}");
            assert!(message.contains("reset by the peer: Aborted"), "{signal}: {message}");
            drop((client_input, listener_input));
        }
    }
}

/// A receiver has nothing to send, and says so at once. So all of its data have arrived, and only
/// our own are cut off.
#[test]
fn a_sender_that_waits_for_input_knows_that_its_receiver_was_stopped() {
    let Pair { listener, client, client_input } = Pair::with(&["--recv-only"]);
    send(Signal::SIGINT, &listener);
    end_of(listener);
    let (code, message) = end_of(client);
    assert_eq!(code, Some(8), "{message}");
    assert!(message.contains("reset by the peer: Aborted"), "{message}");
    drop(client_input);
}

/// Regression: a receiver has nothing to send, so the client took the transfer for finished.
#[test]
fn what_is_typed_at_a_terminal_reaches_a_receiver() {
    let port = ports::free();
    let number = port.to_string();
    let mut listener = start(&["cat", "-l", "-r", "--bind", "127.0.0.1", &number]);
    wait_until_bound(port);
    let terminal = nix::pty::openpty(None, None).expect("a terminal");
    let mut client = Command::new(env!("CARGO_BIN_EXE_udccp"));
    client.args(["cat", "127.0.0.1", &number]).stdin(terminal.slave).stderr(Stdio::piped());
    let client = client.spawn().expect("the program starts");
    let mut keyboard = File::from(terminal.master);
    for line in [b"one\n", b"two\n"] {
        keyboard.write_all(line).expect("it reads");
        let mut got = [0; 4];
        listener.stdout.as_mut().expect("a pipe").read_exact(&mut got).expect("it arrives");
        assert_eq!(&got, line);
    }
    keyboard.write_all(&[CTRL_D]).expect("it reads");
    let (code, message) = end_of(client);
    assert_eq!(code, Some(0), "{message}");
    assert!(message.contains("sent 2 messages"), "{message}");
    assert_eq!(end_of(listener).0, Some(0));
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
    let (code, message) = end_of(client);
    assert_eq!(code, Some(8), "{message}");
    assert!(message.contains("nothing listens on the peer's port any more"), "{message}");
}
