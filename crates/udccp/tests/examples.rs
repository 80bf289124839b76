//! The examples work as described.

#![allow(dead_code, unreachable_pub, reason = "the examples are programs of their own")]

mod common;

use common::{SERVICE, localhost, run};
use udccp::blocking::{Connection, Listener};

#[path = "../examples/chat.rs"]
mod chat;
#[path = "../examples/echo.rs"]
mod echo;
#[path = "../examples/file.rs"]
mod file;
#[path = "../examples/many_clients.rs"]
mod many_clients;
#[path = "../examples/poll.rs"]
mod poll;
#[path = "../examples/voice.rs"]
mod voice;

#[test]
fn a_chat_passes_lines_both_ways() {
    let listener = Listener::bind(localhost(false), SERVICE).unwrap();
    let client = Connection::connect(listener.local_addr(), SERVICE).unwrap();
    let server = listener.accept().unwrap();
    server.send("welcome").unwrap();
    server.acknowledged(None).unwrap();
    let (mut theirs, written) = std::io::pipe().unwrap();
    chat::chat(client, &b"hello\nthere\n"[..], written).unwrap();
    let mut heard = String::new();
    std::io::Read::read_to_string(&mut theirs, &mut heard).unwrap();
    assert_eq!(heard, "welcome\n");
    assert_eq!(server.recv().unwrap().unwrap(), "hello");
    assert_eq!(server.recv().unwrap().unwrap(), "there");
    assert_eq!(server.recv().unwrap(), None);
}

#[test]
fn echo_returns_every_message() {
    assert_eq!(run(echo::echo(&["one", "", "three"])).unwrap(), ["one", "", "three"]);
}

#[test]
fn a_file_arrives_whole() {
    let data: Vec<u8> = (0..1_234_567_u32).map(|n| (n % 251) as u8).collect();
    assert_eq!(file::copy(data.clone()).unwrap(), data);
}

#[test]
fn many_clients_are_answered() {
    assert_eq!(run(many_clients::meet(200)).unwrap(), 200);
}

#[test]
#[cfg(unix)]
fn a_loop_with_poll_gets_every_echo() {
    assert_eq!(poll::client::run(500).unwrap(), 500);
}

#[test]
fn voice_is_heard_or_dropped_before_it_is_late() {
    let (heard, dropped) = run(voice::call(25)).unwrap();
    assert_eq!(heard + dropped, 25, "{heard} and {dropped}");
}
