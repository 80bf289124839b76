//! Calls that never have to wait still let other tasks of their thread run.

mod common;

use common::{SERVICE, another_runs_beside, localhost, run, wide_pair, with_messages};
use udccp::{Connection, Listener, Options};

#[test]
fn beside_one_that_sends() {
    run(async {
        let (client, _server) = wide_pair().await;
        let sending = async {
            for _ in 0..200 {
                client.send(&b"message"[..]).await.unwrap();
            }
        };
        assert!(another_runs_beside(sending).await);
    });
}

#[test]
fn beside_one_that_sends_batches() {
    run(async {
        let (client, _server) = wide_pair().await;
        let sending = async {
            for _ in 0..50 {
                client.send_batch([&b"message"[..]; 100]).await.unwrap();
            }
        };
        assert!(another_runs_beside(sending).await);
    });
}

#[test]
fn beside_one_that_reads() {
    run(async {
        let (_client, server) = with_messages(200).await;
        let reading = async {
            for _ in 0..200 {
                server.recv().await.unwrap();
            }
        };
        assert!(another_runs_beside(reading).await);
    });
}

#[test]
fn beside_one_that_reads_batches() {
    run(async {
        let (_client, server) = with_messages(5_000).await;
        let reading = async {
            let mut messages = Vec::new();
            while messages.len() < 5_000 {
                server.recv_batch(&mut messages, 100).await.unwrap();
            }
        };
        assert!(another_runs_beside(reading).await);
    });
}

#[test]
fn beside_one_that_accepts() {
    run(async {
        let options = Options::default().backlog(200);
        let listener = Listener::bind_with(localhost(false), [SERVICE], &options).unwrap();
        let mut clients = Vec::new();
        for _ in 0..150 {
            clients.push(Connection::connect(listener.local_addr(), SERVICE).await.unwrap());
        }
        // The last handshakes may not be complete.
        let accepting = async {
            for _ in 0..140 {
                listener.accept().await.unwrap();
            }
        };
        assert!(another_runs_beside(accepting).await);
    });
}
