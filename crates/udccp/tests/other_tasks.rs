//! Calls that never have to wait still let other tasks of their thread run.

mod common;

use common::{SERVICE, localhost, run, runs_another_task_during, wide_pair, with_messages};
use udccp::{Connection, Listener, Options};

#[test]
fn other_tasks_run_beside_a_sender() {
    run(async {
        let (client, _server) = wide_pair().await;
        let sending = async {
            for _ in 0..200 {
                client.send(&b"message"[..]).await.unwrap();
            }
        };
        assert!(runs_another_task_during(sending).await);
    });
}

#[test]
fn other_tasks_run_beside_a_batch_sender() {
    run(async {
        let (client, _server) = wide_pair().await;
        let sending = async {
            for _ in 0..50 {
                client.send_batch([&b"message"[..]; 100]).await.unwrap();
            }
        };
        assert!(runs_another_task_during(sending).await);
    });
}

#[test]
fn other_tasks_run_beside_a_reader() {
    run(async {
        let (_client, server) = with_messages(200).await;
        let reading = async {
            for _ in 0..200 {
                server.recv().await.unwrap();
            }
        };
        assert!(runs_another_task_during(reading).await);
    });
}

#[test]
fn other_tasks_run_beside_a_batch_reader() {
    run(async {
        let (_client, server) = with_messages(5_000).await;
        let reading = async {
            let mut messages = Vec::new();
            while messages.len() < 5_000 {
                server.recv_batch(&mut messages, 100).await.unwrap();
            }
        };
        assert!(runs_another_task_during(reading).await);
    });
}

#[test]
fn other_tasks_run_beside_an_accepting_task() {
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
        assert!(runs_another_task_during(accepting).await);
    });
}
