//! The effect of a process's end, and of a fork, on its connections. Each case runs in the `main`
//! of a separate process, which is this program started again.

#[path = "../common/mod.rs"]
mod common;
#[cfg(unix)]
mod forks;
#[cfg(target_os = "linux")]
mod signals;

use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use common::{SERVICE, localhost};
use libtest_mimic::{Arguments, Trial};
use udccp::blocking::{Connection, Endpoint, Listener};
use udccp::{Address, EndpointOptions, Options};
use udccp_testkit::{Relay, pass};

/// The environment variable with the name of the case.
const CASE: &str = "UDCCP_TEST_CASE";
/// The environment variable with the address of the peer.
const PEER: &str = "UDCCP_TEST_PEER";

/// Time limit, so that a test that hangs fails.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(30));

fn main() -> ExitCode {
    if let Ok(case) = std::env::var(CASE) {
        let peer = std::env::var(PEER).expect("a peer").parse().expect("an address");
        return run_child(&case, peer);
    }
    let test = |name: &str, run: fn()| {
        Trial::test(name, move || {
            run();
            Ok(())
        })
    };
    #[cfg_attr(not(target_os = "linux"), expect(unused_mut, reason = "more are for Linux"))]
    let mut tests = vec![
        test("what_was_sent_before_main_returns_arrives_async", || all_arrive("async")),
        test("what_was_sent_before_main_returns_arrives_on_one_thread", || {
            all_arrive("one thread")
        }),
        test("what_was_sent_before_main_returns_arrives_blocking", || all_arrive("blocking")),
        #[cfg(unix)]
        test("what_was_sent_before_exit_arrives_though_nothing_is_dropped", || all_arrive("exit")),
        #[cfg(unix)]
        test("what_was_dropped_before_exit_arrives_and_is_closed", || all_arrive("dropped")),
        test("a_full_send_queue_arrives_after_main_returned", || all_arrive("queue")),
        test("a_process_that_kills_itself_can_close_all_before", || all_arrive("killed")),
        test("a_panic_in_main_ends_the_connection_in_order", || all_arrive("panic")),
        #[cfg(unix)]
        test("a_process_waits_for_a_peer_that_reads_late", a_peer_that_reads_late),
        test("a_process_ends_though_its_peer_is_dead", a_process_ends_though_its_peer_is_dead),
        #[cfg(target_os = "linux")]
        test("process_without_close_at_exit_is_detected_by_its_hosts_report", || {
            cut_off("cut off");
        }),
        #[cfg(target_os = "linux")]
        test("runtime_that_ends_before_exit_is_detected_by_its_hosts_report", || {
            cut_off("cut off async")
        }),
        #[cfg(unix)]
        test("a_forked_child_is_refused_and_the_parent_goes_on_blocking", || {
            forks::are_safe("fork");
        }),
        #[cfg(unix)]
        test("a_forked_child_is_refused_and_the_parent_goes_on_async", || {
            forks::are_safe("fork async");
        }),
    ];
    #[cfg(target_os = "linux")]
    for ccid in [2, 3, 4] {
        let (talk, deaf) = (format!("talk {ccid}"), format!("deaf {ccid}"));
        let add = |name: &str, run: fn(&str), case: String| {
            Trial::test(format!("{name}_{ccid}"), move || {
                run(&case);
                Ok(())
            })
        };
        tests.push(add(
            "a_stopped_peer_goes_on_a_killed_one_ends",
            signals::stopped_and_killed,
            talk,
        ));
        tests.push(add(
            "a_connection_that_nobody_reads_goes_on_and_ends",
            signals::nobody_reads,
            deaf,
        ));
    }
    let mut arguments = Arguments::from_args();
    // Nearly all of the time is spent waiting.
    arguments.test_threads.get_or_insert(8);
    libtest_mimic::run(&arguments, tests).exit_code()
}

/// Settings for a busy machine, which may need more than the default of five seconds.
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

fn assert_success(child: Child) {
    let output = child.wait_with_output().expect("an end");
    assert!(output.status.success(), "{output:?}");
}

fn accept(listener: &Listener) -> Connection {
    let connection = listener.accept_within(PATIENCE).expect("the process connects");
    connection.set_read_timeout(PATIENCE);
    connection
}

/// The peer gets every message, and then the orderly end, without waiting for a dead process.
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

/// The peer reads only after the time that the process's connection may linger.
#[cfg(unix)]
fn a_peer_that_reads_late() {
    let slow = Options::default().recv_queue(1 << 20, 32);
    let listener = Listener::bind_with(localhost(false), [SERVICE], &slow).expect("a listener");
    let child = start("queue", listener.local_addr());
    let connection = accept(&listener);
    // Longer than a process lives whose connections must not linger.
    std::thread::park_timeout(Duration::from_millis(1500));
    let got = std::iter::from_fn(|| connection.recv().expect("the orderly end")).count();
    assert_success(child);
    assert!(got > messages("queue") / 2, "{got}");
}

fn a_process_ends_though_its_peer_is_dead() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("one");
    let listener = Listener::bind(localhost(false), SERVICE).expect("a listener");
    let path = runtime.block_on(Relay::start(listener.local_addr(), pass));
    let child = start("dead peer", Address { udp: path.addr(), port: listener.port() });
    let connection = accept(&listener);
    connection.send("go").expect("room");
    connection.acknowledged(PATIENCE).expect("it arrives");
    path.cut();
    connection.abort();
    assert_success(child);
}

/// The peer is not told. Only the answers to its own packets show the end.
#[cfg(target_os = "linux")]
fn cut_off(case: &str) {
    use udccp::{CloseReason, Error};

    let listener = Listener::bind(localhost(false), SERVICE).expect("a listener");
    let child = start(case, listener.local_addr());
    let connection = accept(&listener);
    assert_success(child);
    // Its acknowledgements may have revealed the end already.
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

/// Runs the case. Its process ends by a return from `main`, unless the case ends it otherwise.
fn run_child(case: &str, peer: Address) -> ExitCode {
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
            kill();
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
        "cut off async" => cut_off_async(peer),
        #[cfg(unix)]
        "fork" => return forks::parent_and_child(peer),
        #[cfg(unix)]
        "fork async" => {
            return forks::parent_and_child_async(&one_thread().expect("a runtime"), peer);
        }
        #[cfg(target_os = "linux")]
        talk if talk.starts_with("talk") => return signals::talk(talk, peer),
        #[cfg(target_os = "linux")]
        deaf if deaf.starts_with("deaf") => return signals::send_and_never_read(deaf, peer),
        other => panic!("no case {other}"),
    }
    ExitCode::SUCCESS
}

/// Leaves a connection open behind the end of its runtime.
fn cut_off_async(peer: Address) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let connection = runtime.block_on(async {
        let options = EndpointOptions::new().close_at_exit(false);
        let endpoint = udccp::Endpoint::bind_with(localhost(false), &options);
        let endpoint = endpoint.expect("an endpoint");
        let connection = endpoint.connect(peer, SERVICE, &Options::default()).await;
        let connection = connection.expect("a connection");
        connection.send("hello").await.expect("room");
        connection.flushed().await.expect("it has left");
        connection
    });
    drop(runtime);
    // If the end of the runtime closed connections, a thread would do so now.
    std::thread::park_timeout(Duration::from_millis(200));
    std::mem::forget(connection);
}

/// Ends this process without exit handlers.
fn kill() {
    #[cfg(unix)]
    nix::sys::signal::raise(nix::sys::signal::SIGKILL).expect("the end");
    #[cfg(not(unix))]
    std::process::abort();
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
