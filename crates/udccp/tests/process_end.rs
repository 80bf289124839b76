//! The effect of a process's end, and of a fork, on its connections. Each case is a process of its
//! own: this program, started again, in whose `main` the case runs.

#![expect(unsafe_code, reason = "a fork is unsafe where there are threads")]

mod common;

use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use common::{SERVICE, localhost};
use libtest_mimic::{Arguments, Trial};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use udccp::blocking::{Connection, Endpoint, Listener};
use udccp::{Address, CloseReason, EndpointOptions, Error, Options, TryRecvError, TrySendError};

/// Names the case to a process that is started for it.
const CASE: &str = "UDCCP_TEST_CASE";
/// Where its peer is.
const PEER: &str = "UDCCP_TEST_PEER";

/// Hangs fail.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(30));

fn main() -> ExitCode {
    if let Ok(case) = std::env::var(CASE) {
        let peer = std::env::var(PEER).expect("a peer").parse().expect("an address");
        return in_the_process(&case, peer);
    }
    let test = |name: &str, run: fn()| {
        Trial::test(name, move || {
            run();
            Ok(())
        })
    };
    let tests = vec![
        test("what_was_sent_before_main_returns_arrives_async", || all_arrive("async")),
        test("what_was_sent_before_main_returns_arrives_on_one_thread", || {
            all_arrive("one thread")
        }),
        test("what_was_sent_before_main_returns_arrives_blocking", || all_arrive("blocking")),
        test("what_was_sent_before_exit_arrives_though_nothing_is_dropped", || all_arrive("exit")),
        test("what_was_dropped_before_exit_arrives_and_is_closed", || all_arrive("dropped")),
        test("a_full_send_queue_arrives_after_main_returned", || all_arrive("queue")),
        test("a_process_that_kills_itself_can_close_all_before", || all_arrive("killed")),
        test("a_panic_in_main_ends_the_connection_in_order", || all_arrive("panic")),
        test("a_process_ends_though_its_peer_is_dead", a_process_ends_though_its_peer_is_dead),
        test("a_process_that_wants_no_farewell_is_gone_when_its_host_says_so", cut_off),
        test("a_forked_child_is_refused_and_the_parent_goes_on_blocking", || fork_is_safe("fork")),
        test("a_forked_child_is_refused_and_the_parent_goes_on_async", || {
            fork_is_safe("fork async");
        }),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

/// A busy machine may need more than the five seconds of the default.
fn lingering() -> Options {
    Options::default().close_linger(Duration::from_secs(60))
}

/// Messages that a case sends.
fn messages(case: &str) -> usize {
    if matches!(case, "queue" | "killed") { 500 } else { 10 }
}

fn start(case: &str, peer: impl Into<Address>) -> Child {
    let exe = std::env::current_exe().expect("this program has a path");
    let mut command = Command::new(exe);
    command.env(CASE, case).env(PEER, peer.into().to_string());
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts")
}

fn end_of(child: Child) -> String {
    let output = child.wait_with_output().expect("an end");
    let says = String::from_utf8_lossy(&output.stderr).into_owned();
    format!("{}: {says}", output.status)
}

fn accept(listener: &Listener) -> Connection {
    let connection = listener.accept_within(PATIENCE).expect("the process connects");
    connection.set_read_timeout(PATIENCE);
    connection
}

/// The peer gets every message, and then the orderly end: it does not wait for a dead process.
fn all_arrive(case: &str) {
    let listener = Listener::bind(localhost(false), SERVICE).expect("a listener");
    let child = start(case, listener.local_addr());
    let connection = accept(&listener);
    let mut got = 0;
    let end = loop {
        match connection.recv() {
            Ok(Some(_)) => got += 1,
            end => break end,
        }
    };
    let says = end_of(child);
    assert_eq!(got, messages(case), "{case}: {end:?}, {says}");
    assert!(matches!(end, Ok(None)), "{case}: {end:?}, {says}");
}

fn a_process_ends_though_its_peer_is_dead() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("one");
    let listener = Listener::bind(localhost(false), SERVICE).expect("a listener");
    let path = runtime.block_on(common::Relay::to(listener.local_addr()));
    let child = start("dead peer", Address { udp: path.addr(), port: listener.port() });
    let connection = accept(&listener);
    connection.send("go").expect("room");
    connection.acknowledged(PATIENCE).expect("it arrives");
    path.cut();
    connection.abort();
    let says = end_of(child);
    assert!(says.starts_with("exit status: 0"), "{says}");
}

/// Nothing tells the peer, but what its own packets meet.
fn cut_off() {
    let listener = Listener::bind(localhost(false), SERVICE).expect("a listener");
    let child = start("cut off", listener.local_addr());
    let connection = accept(&listener);
    let says = end_of(child);
    assert!(says.starts_with("exit status: 0"), "{says}");
    // Its acknowledgements may have found it out already.
    let _ = connection.send("is anybody there?");
    let end = loop {
        match connection.recv() {
            Ok(Some(_)) => {}
            end => break end,
        }
    };
    let gone = CloseReason::PortUnreachable;
    assert!(matches!(end, Err(Error::Lost(reason)) if reason == gone), "{end:?}");
}

/// The peer hears of the parent what the parent says, and of the child nothing by that connection.
fn fork_is_safe(case: &str) {
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
    let says = end_of(child);
    assert!(says.starts_with("exit status: 0"), "{says}");
}

/// The case itself. Its process ends by the return of `main`, unless it says otherwise.
fn in_the_process(case: &str, peer: Address) -> ExitCode {
    let one_thread = || tokio::runtime::Builder::new_current_thread().enable_all().build();
    let many_threads = || tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match case {
        "async" => many_threads().expect("a runtime").block_on(connect_and_send(case, peer)),
        "one thread" | "queue" => {
            one_thread().expect("a runtime").block_on(connect_and_send(case, peer));
        }
        "exit" => one_thread().expect("a runtime").block_on(async {
            let connection = send_all(case, peer).await;
            std::mem::forget(connection);
            std::process::exit(0);
        }),
        "dropped" => one_thread().expect("a runtime").block_on(async {
            drop(send_all(case, peer).await);
            std::process::exit(0);
        }),
        "blocking" => {
            let connection = Connection::connect_with(peer, SERVICE, &lingering(), None);
            let connection = connection.expect("a connection");
            (0..messages(case)).for_each(|_| connection.send("hello").expect("room"));
        }
        "killed" => {
            let connection = one_thread().expect("a runtime").block_on(send_all(case, peer));
            udccp::close_all();
            std::mem::forget(connection);
            nix::sys::signal::raise(nix::sys::signal::SIGKILL).expect("the end");
        }
        "panic" => {
            let connection = Connection::connect_with(peer, SERVICE, &lingering(), None);
            let connection = connection.expect("a connection");
            (0..messages(case)).for_each(|_| connection.send("hello").expect("room"));
            panic!("on purpose");
        }
        "dead peer" => dead_peer(peer),
        "cut off" => {
            let options = EndpointOptions::new().close_at_exit(false);
            let endpoint = Endpoint::bind_with(localhost(false), &options).expect("an endpoint");
            let connection = endpoint.connect(peer, SERVICE, &Options::default(), PATIENCE);
            let connection = connection.expect("a connection");
            connection.send("hello").expect("room");
            std::process::exit(0);
        }
        "fork" => return parent_and_child(peer),
        "fork async" => return parent_and_child_async(&one_thread().expect("a runtime"), peer),
        other => panic!("no case {other}"),
    }
    ExitCode::SUCCESS
}

async fn connect_and_send(case: &str, peer: Address) {
    drop(send_all(case, peer).await);
}

async fn send_all(case: &str, peer: Address) -> udccp::Connection {
    let connection = udccp::Connection::connect_with(peer, SERVICE, &lingering()).await;
    let connection = connection.expect("a connection");
    for _ in 0..messages(case) {
        connection.send(vec![0; 1000]).await.expect("room");
    }
    connection
}

/// The process ends with an open connection whose path is dead.
fn dead_peer(peer: Address) {
    let options = Options::default().close_linger(Duration::from_millis(500));
    let connection =
        Connection::connect_with(peer, SERVICE, &options, PATIENCE).expect("a connection");
    assert_eq!(connection.recv().expect("a message").as_deref(), Some(&b"go"[..]));
    std::thread::park_timeout(Duration::from_millis(300));
    connection.send("nobody hears this").expect("room");
}

/// What a child finds of its parent's connection. Every call fails with an error of its own.
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

fn parent_and_child(peer: Address) -> ExitCode {
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
            speak_for_itself(peer);
            std::process::exit(0)
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
        }
    }
    connection.send("after").expect("the parent goes on");
    ExitCode::SUCCESS
}

/// A child may open sockets of its own.
fn speak_for_itself(peer: Address) {
    let own = Connection::connect(peer, SERVICE).expect("a connection of its own");
    own.send("child").expect("room");
}

fn parent_and_child_async(runtime: &tokio::runtime::Runtime, peer: Address) -> ExitCode {
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
                // The driver, if it runs, finds that it is a copy.
                tokio::time::sleep(Duration::from_millis(50)).await;
            });
            drop(connection);
            speak_for_itself(peer);
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
