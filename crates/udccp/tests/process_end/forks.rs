//! The effect of a fork on the connections of the parent.

#![expect(unsafe_code, reason = "a fork is unsafe where there are threads")]

use std::process::ExitCode;
use std::time::Duration;

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use udccp::blocking::{Connection, Endpoint, Listener};
use udccp::{Address, Error, Options, TryRecvError, TrySendError};

use crate::common::{SERVICE, localhost};
use crate::{PATIENCE, accept, assert_success, start};

/// The peer receives the parent's messages, and nothing from the child over that connection.
pub(crate) fn are_safe(case: &str) {
    let listener = Listener::bind(localhost(false), SERVICE).expect("a listener");
    let child = start(case, listener.local_addr());
    let connection = accept(&listener);
    assert_eq!(connection.recv().expect("it sends").as_deref(), Some(&b"before"[..]));
    connection.send("go on").expect("it is there");
    let own = accept(&listener);
    assert_eq!(own.recv().expect("the child sends").as_deref(), Some(&b"child"[..]));
    assert_eq!(own.recv().expect("the child closes"), None);
    assert_eq!(connection.recv().expect("it sends").as_deref(), Some(&b"after"[..]));
    assert_eq!(connection.recv().expect("it closes"), None);
    assert_success(child);
}

/// Uses the parent's connection in a child. Returns whether every call fails with its own error.
fn refused(connection: &Connection, endpoint: &Endpoint, peer: Address) -> bool {
    let soon = Some(Duration::from_secs(5));
    matches!(connection.send("child"), Err(Error::Forked))
        && matches!(connection.send_batch(["child"]), Err(Error::Forked))
        && matches!(connection.try_send("child"), Err(TrySendError::Failed(Error::Forked)))
        && matches!(connection.recv(), Err(Error::Forked))
        && matches!(connection.try_recv(), Err(TryRecvError::Ended(Error::Forked)))
        && matches!(connection.closed(soon), Err(Error::Forked))
        && matches!(connection.event(soon), Err(Error::Forked))
        && matches!(connection.close(), Err(Error::Forked))
        && connection.stats().is_none()
        && matches!(endpoint.connect(peer, SERVICE, &Options::default(), soon), Err(Error::Forked))
        && matches!(endpoint.listen(1, [SERVICE], &Options::default()), Err(Error::Forked))
        && endpoint.wait_idle(soon).is_ok()
}

pub(crate) fn parent_and_child(peer: Address) -> ExitCode {
    let connection = Connection::connect(peer, SERVICE).expect("a connection");
    connection.set_read_timeout(PATIENCE);
    connection.send("before").expect("room");
    assert!(connection.recv().expect("the peer answers").is_some());
    // SAFETY: the child allocates and starts a thread, which the C library allows on Linux.
    match unsafe { fork() }.expect("a process") {
        ForkResult::Child => {
            let endpoint = connection.endpoint();
            assert!(refused(&connection, &endpoint, peer));
            connection.abort();
            drop((connection, endpoint));
            send_on_own_connection(peer);
            std::process::exit(0)
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
        }
    }
    connection.send("after").expect("the parent goes on");
    ExitCode::SUCCESS
}

/// A child may open its own sockets.
fn send_on_own_connection(peer: Address) {
    let own = Connection::connect(peer, SERVICE).expect("a connection of its own");
    own.send("child").expect("room");
}

pub(crate) fn parent_and_child_async(runtime: &tokio::runtime::Runtime, peer: Address) -> ExitCode {
    let connection = runtime.block_on(async {
        let connection = udccp::Connection::connect(peer, SERVICE).await.expect("a connection");
        connection.send("before").await.expect("room");
        assert!(connection.recv().await.expect("the peer answers").is_some());
        connection
    });
    // SAFETY: one thread only.
    match unsafe { fork() }.expect("a process") {
        ForkResult::Child => {
            runtime.block_on(async {
                assert!(matches!(connection.send("child").await, Err(Error::Forked)));
                assert!(matches!(connection.recv().await, Err(Error::Forked)));
                assert!(matches!(connection.flushed().await, Err(Error::Forked)));
                assert!(matches!(connection.acknowledged().await, Err(Error::Forked)));
                assert!(matches!(connection.close().await, Err(Error::Forked)));
                assert!(connection.event().await.is_none());
                // The driver, if it runs, detects that it is a copy.
                tokio::time::sleep(Duration::from_millis(50)).await;
            });
            drop(connection);
            send_on_own_connection(peer);
            std::process::exit(0)
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
        }
    }
    runtime.block_on(async {
        connection.send("after").await.expect("the parent goes on");
        connection.close().await.expect("the peer confirms");
    });
    ExitCode::SUCCESS
}
