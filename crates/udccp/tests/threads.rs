//! In a process of its own, because it counts threads.

#![cfg(target_os = "linux")]

mod common;

use common::{SERVICE, localhost, number_of, numbered};
use udccp::Options;
use udccp::blocking::{Endpoint, Listener};

#[test]
fn two_hundred_connections_need_no_thread_each() {
    let options = Options::default().backlog(300);
    let listener = Listener::bind_with(localhost(false), [SERVICE], &options).unwrap();
    let endpoint = Endpoint::bind(localhost(false)).unwrap();
    let mut all = Vec::new();
    for n in 0..200 {
        let client = endpoint.connect(listener.local_addr(), SERVICE, &options, None).unwrap();
        let server = listener.accept().unwrap();
        client.send(numbered(n, 100)).unwrap();
        all.push((client, server));
    }
    for (n, (_, server)) in all.iter().enumerate() {
        assert_eq!(number_of(&server.recv().unwrap().unwrap()), n as u32);
    }
    assert_eq!(threads(), 2, "one for each UDP socket");
}

/// Threads of this process that drive a socket.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |t: std::fs::DirEntry| std::fs::read_to_string(t.path().join("comm"));
    tasks.filter_map(Result::ok).filter_map(|t| name(t).ok()).filter(|n| n == "udccp\n").count()
}
