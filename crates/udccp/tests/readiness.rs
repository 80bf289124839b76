//! Descriptors that show whether a call would wait: each event of `poll`, `epoll` and `select`, for
//! async and blocking sockets, and never late.

#![expect(clippy::disallowed_methods, reason = "a test of sockets waits and has threads")]
#![cfg(target_os = "linux")]

mod common;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use common::{SERVICE, localhost};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::select::{FdSet, select};
use nix::sys::time::{TimeVal, TimeValLike};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use udccp::blocking::{Connection, Endpoint, Listener};
use udccp::{
    Address, CloseReason, EarlyReadiness, Error, Options, State, TryRecvError, TrySendError,
};
use udccp_testkit::{Relay, pass};

const ALL: PollFlags = PollFlags::IN.union(PollFlags::OUT).union(PollFlags::RDHUP);
const IN: PollFlags = PollFlags::IN;
const OUT: PollFlags = PollFlags::OUT;
const ENDED: PollFlags = IN.union(PollFlags::RDHUP).union(PollFlags::HUP);

/// Time limit, so that a test that hangs fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// The events that `poll` reports. `epoll` and `select` must report the same.
fn bits(fd: BorrowedFd<'_>) -> PollFlags {
    let polled = |fd| {
        let mut fds = [PollFd::from_borrowed_fd(fd, ALL)];
        poll(&mut fds, Some(&Timespec::default())).expect("a descriptor");
        fds[0].revents()
    };
    let before = polled(fd);
    let epoll = Epoll::new(EpollCreateFlags::empty()).expect("an epoll");
    let wish = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP;
    epoll.add(fd, EpollEvent::new(wish, 7)).expect("it can be waited on");
    let mut events = [EpollEvent::empty()];
    // Level-triggered, so the second wait reports the same.
    for _ in 0..2 {
        let count = epoll.wait(&mut events, EpollTimeout::ZERO).expect("an epoll");
        let seen = if count == 0 { EpollFlags::empty() } else { events[0].events() };
        if polled(fd) == before {
            assert_eq!(seen.bits(), i32::from(before.bits()), "epoll and poll agree");
        }
    }
    if fd.as_raw_fd() >= 1024 {
        // `select` cannot show more.
        return before;
    }
    let (mut reads, mut writes) = (FdSet::new(), FdSet::new());
    reads.insert(fd);
    writes.insert(fd);
    let mut now = TimeVal::seconds(0);
    select(None, &mut reads, &mut writes, None, &mut now).expect("a descriptor");
    if polled(fd) == before {
        assert_eq!(reads.contains(fd), before.intersects(IN | PollFlags::HUP));
        assert_eq!(writes.contains(fd), before.intersects(OUT | PollFlags::ERR));
    }
    before
}

fn wait_for_bits(fd: BorrowedFd<'_>, expected: PollFlags) {
    let begun = Instant::now();
    while bits(fd) != expected {
        assert!(begun.elapsed() < PATIENCE, "{:?} and not {expected:?}", bits(fd));
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn pair(client: &Options, server: &Options) -> (Connection, Connection) {
    let listener = Listener::bind_with(localhost(false), [SERVICE], server).expect("a listener");
    let connection = Connection::connect_with(listener.local_addr(), SERVICE, client, None);
    (connection.expect("a connection"), listener.accept().expect("a connection"))
}

#[test]
fn a_listener_is_readable_while_a_connection_waits() {
    let listener = Listener::bind(localhost(false), SERVICE).expect("a listener");
    assert_eq!(bits(listener.as_fd()), PollFlags::empty());
    let _one = Connection::connect(listener.local_addr(), SERVICE).expect("a connection");
    let _two = Connection::connect(listener.local_addr(), SERVICE).expect("a connection");
    wait_for_bits(listener.as_fd(), IN);
    assert!(listener.try_accept().expect("a connection").is_some());
    wait_for_bits(listener.as_fd(), IN);
    listener.accept().expect("a connection");
    assert_eq!(bits(listener.as_fd()), PollFlags::empty());
    assert!(listener.try_accept().expect("nobody").is_none());
}

#[test]
fn a_connection_is_readable_until_it_was_read_and_the_end_stays() {
    let (client, server) = pair(&Options::default(), &Options::default());
    let readiness = server.readiness().expect("a descriptor");
    assert_eq!(readiness.as_raw_fd(), server.as_raw_fd(), "there is one");
    assert_eq!(bits(server.as_fd()), OUT);
    for _ in 0..3 {
        client.send("").expect("room");
        wait_for_bits(server.as_fd(), IN | OUT);
        assert_eq!(server.try_peek().expect("a message").len(), 0);
        assert_eq!(bits(server.as_fd()), IN | OUT);
        assert_eq!(server.try_recv().expect("a message").len(), 0);
        // At once: after everything was read, there is nothing to read.
        assert_eq!(bits(server.as_fd()), OUT);
    }
    client.send("last").expect("room");
    client.close().expect("an orderly end");
    wait_for_bits(server.as_fd(), ENDED);
    assert_eq!(server.try_recv().expect("what came before the end"), "last");
    assert!(matches!(server.try_recv(), Err(TryRecvError::Ended(_))));
    assert_eq!(bits(server.as_fd()), ENDED);
    drop(server);
    assert_eq!(bits(readiness.as_fd()), ENDED | OUT, "a clone outlives its connection");
}

#[test]
fn a_connection_is_writable_exactly_while_a_largest_message_is_taken() {
    let slow = Options::default().recv_queue(1 << 20, 4);
    let few = Options::default().send_queue(1 << 20, 3);
    let (client, server) = pair(&few, &slow);
    let largest = || vec![1; client.max_message_size()];
    assert_eq!(bits(client.as_fd()), OUT);
    let is_full = (0..10_000).any(|_| {
        let was = bits(client.as_fd());
        match client.try_send(largest()) {
            Ok(()) => false,
            Err(TrySendError::Full(_)) if was.is_empty() => true,
            // Room may have become available in between, and never disappears by itself.
            Err(e) => panic!("{was:?}: {e}"),
        }
    });
    assert!(is_full, "nobody reads");
    let begun = Instant::now();
    while bits(client.as_fd()) != OUT {
        assert!(begun.elapsed() < PATIENCE, "the peer reads");
        while server.try_recv().is_ok() {}
    }
    client.try_send(largest()).expect("it said so");
}

#[test]
fn an_abort_of_a_full_connection_is_an_error() {
    let slow = Options::default().recv_queue(1 << 20, 4);
    let few = Options::default().send_queue(1 << 20, 3);
    let (client, _server) = pair(&few, &slow);
    let begun = Instant::now();
    while !bits(client.as_fd()).is_empty() {
        assert!(begun.elapsed() < PATIENCE, "it is full once");
        // The queue is full, but the driver may not have sent the waiting messages.
        while client.try_send(vec![1; 1000]).is_ok() {}
    }
    client.abort();
    wait_for_bits(client.as_fd(), ENDED | PollFlags::ERR | OUT);
}

#[test]
fn an_error_is_shown_as_one_and_shutdown_read_as_the_end_of_reading() {
    let (client, server) = pair(&Options::default(), &Options::default());
    client.shutdown_read();
    assert_eq!(bits(client.as_fd()), IN | OUT | PollFlags::RDHUP);
    assert_eq!(client.recv().expect("the end"), None);
    assert_eq!(bits(server.as_fd()), OUT);
    client.abort();
    // The kernel shows an error only until it is fetched. `send` fails at once with the reason.
    wait_for_bits(server.as_fd(), ENDED | PollFlags::ERR | OUT);
    let TrySendError::Failed(e) = server.try_send("x").expect_err("it is over") else { panic!() };
    assert_eq!(e.errno(), nix::libc::ECONNRESET);
}

#[test]
fn readiness_of_handshakes_is_writable_or_error() {
    let silent = std::net::UdpSocket::bind(localhost(false)).expect("a socket");
    let endpoint = Endpoint::bind(localhost(false)).expect("an endpoint");
    let to = silent.local_addr().expect("an address");
    let connecting = endpoint.start_connect(to, SERVICE, &Options::default()).expect("it starts");
    let readiness = connecting.readiness().expect("a descriptor");
    assert_eq!(bits(readiness.as_fd()), PollFlags::empty());
    assert_eq!(udccp::errno::of_connect(connecting.state()), nix::libc::EALREADY);
    assert_eq!(connecting.local_addr().expect("one").udp, endpoint.local_addr());

    let listener = Listener::bind(localhost(false), SERVICE).expect("a listener");
    let there = listener.local_addr();
    let mut connecting = Connection::start_connect(there, SERVICE, &Options::default());
    let connecting = connecting.as_mut().expect("it starts");
    let fd = connecting.readiness().expect("a descriptor");
    wait_for_bits(fd.as_fd(), OUT);
    let connection = connecting.try_connect().expect("a connection").expect("at once");
    assert_eq!(connection.as_raw_fd(), fd.as_raw_fd(), "the same goes on");
    assert!(matches!(connection.state(), State::PartOpen | State::Open));
    assert!(connecting.try_connect().is_err() && connecting.local_addr().is_none());

    let other = "SC:othr".parse().expect("a service code");
    let mut refused = endpoint.start_connect(there, other, &Options::default()).expect("it starts");
    wait_for_bits(refused.readiness().expect("one").as_fd(), ENDED | PollFlags::ERR | OUT);
    let e = refused.try_connect().expect_err("it is refused");
    assert_eq!(e.errno(), nix::libc::EBADRQC);
}

#[test]
fn async_sockets_have_the_same_descriptors_and_they_end_with_their_runtime() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("one");
    let (client, server, listener) = runtime.block_on(async {
        let listener = udccp::Listener::bind(localhost(false), SERVICE).expect("a listener");
        let client = udccp::Connection::connect(listener.local_addr(), SERVICE).await;
        (client.expect("a connection"), listener.accept().await.expect("a connection"), listener)
    });
    assert_eq!((bits(server.as_fd()), bits(listener.as_fd())), (OUT, PollFlags::empty()));
    client.try_send("hello").expect("room");
    wait_for_bits(server.as_fd(), IN | OUT);
    assert_eq!(server.try_recv().expect("a message"), "hello");
    assert_eq!(bits(server.as_fd()), OUT);
    drop(runtime);
    wait_for_bits(server.as_fd(), ENDED | PollFlags::ERR | OUT);
    wait_for_bits(listener.as_fd(), ENDED | PollFlags::ERR | OUT);
}

/// Otherwise a program that closed and waits on the descriptor would sleep until the last Close is
/// given up, which may be long after `close` has reported that nobody confirms it.
#[test]
fn a_close_that_nobody_confirms_in_time_is_shown_as_an_error() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("one");
    let listener = Listener::bind(localhost(false), SERVICE).expect("a listener");
    let relay = runtime.block_on(Relay::start(listener.local_addr(), pass));
    let peer = Address { udp: relay.addr(), port: listener.port() };
    // Closes are sent for longer than any test lasts.
    let options = Options::default().close_retries(1000).close_linger(Duration::from_millis(200));
    let client = Connection::connect_with(peer, SERVICE, &options, None).expect("a connection");
    let server = listener.accept().expect("a connection");
    server.send("before").expect("room");
    wait_for_bits(client.as_fd(), IN | OUT);
    relay.cut();
    client.start_close();
    wait_for_bits(client.as_fd(), ENDED | PollFlags::ERR | OUT);
    let in_vain = |e: &Error| matches!(e, Error::Lost(CloseReason::CloseTimeout));
    assert!(client.close().is_err_and(|e| in_vain(&e)));
    // It is readable: first received messages, and then the reason why no more are awaited.
    assert_eq!(client.try_recv().expect("a message"), "before");
    let end = client.try_recv().expect_err("the end");
    assert!(matches!(&end, TryRecvError::Ended(e) if in_vain(e)), "{end:?}");
    assert!(client.recv().is_err_and(|e| in_vain(&e)));
    assert_eq!(client.close_reason(), None, "the peer may yet confirm");
    relay.restore();
    assert!(client.closed(Some(PATIENCE)).is_ok());
    assert_eq!(client.recv().expect("the end"), None);
}

/// The descriptor is readable for every message, so a reader that sleeps only on it misses none. It
/// is not readable once everything was read, even while more arrive on another thread.
#[test]
fn readiness_has_no_missed_or_spurious_wake_ups() {
    const MESSAGES: u32 = 20_000;
    let (client, server) = pair(&Options::default(), &Options::default());
    let sender = std::thread::spawn(move || {
        for n in 0..MESSAGES {
            client.send(common::numbered(n, 100)).expect("room");
        }
        client.close().expect("an orderly end");
    });
    let (mut got, mut vain) = (0, 0);
    loop {
        let mut fds = [PollFd::new(&server, IN)];
        let patience = Timespec::try_from(PATIENCE).expect("short");
        assert_eq!(poll(&mut fds, Some(&patience)), Ok(1), "slept through message {got}");
        match server.try_recv() {
            Ok(message) => {
                assert_eq!(common::number_of(&message), got);
                got += 1;
            }
            Err(TryRecvError::Empty) => vain += 1,
            Err(TryRecvError::Ended(_)) => break,
        }
    }
    sender.join().expect("it sends");
    assert_eq!((got, vain), (MESSAGES, 0));
}

/// A program with only `epoll` serves a thousand connections at once.
#[test]
fn epoll_alone_serves_a_thousand_connections() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    const CLIENTS: usize = 1000;
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, hard.min(8192), hard).expect("two descriptors for each");
    let backlog = Options::default().backlog(CLIENTS);
    let listener = Listener::bind_with(localhost(false), [SERVICE], &backlog).expect("a listener");
    let to = listener.local_addr();
    let server = std::thread::spawn(move || epoll::server::serve(&listener, CLIENTS));
    let endpoint = Endpoint::bind(localhost(false)).expect("an endpoint");
    let connect = |_| endpoint.connect(to, SERVICE, &Options::default(), Some(PATIENCE));
    let clients: Vec<_> = (0..CLIENTS).map(|n| connect(n).expect("a connection")).collect();
    for round in 0..3 {
        for (n, client) in clients.iter().enumerate() {
            client.send(common::numbered(round * 1000 + n as u32, 50)).expect("room");
        }
        for (n, client) in clients.iter().enumerate() {
            client.set_read_timeout(Some(PATIENCE));
            let echo = client.recv().expect("an answer").expect("no end");
            assert_eq!(common::number_of(&echo), round * 1000 + n as u32);
        }
    }
    clients.iter().for_each(Connection::start_close);
    let served = server.join().expect("no panic").expect("no error");
    assert_eq!((served.clients, served.most, served.messages), (CLIENTS, CLIENTS, 3000));
}

#[allow(dead_code, unreachable_pub, reason = "it is a program of its own")]
#[path = "../examples/epoll.rs"]
mod epoll;

/// A program may create and wait on a descriptor before there is a socket.
#[test]
fn descriptors_can_be_created_before_their_socket() {
    let early = || EarlyReadiness::new().expect("a descriptor");
    let (of_listener, of_client) = (early(), early());
    let (door, client) = (of_listener.readiness(), of_client.readiness());
    let epoll = Epoll::new(EpollCreateFlags::empty()).expect("an epoll");
    let wish = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP;
    for (descriptor, number) in [(&door, 1), (&client, 2)] {
        epoll.add(descriptor, EpollEvent::new(wish, number)).expect("it can be waited on");
    }
    let told = |number| {
        let mut events = [EpollEvent::empty(); 2];
        let begun = Instant::now();
        loop {
            let count = match epoll.wait(&mut events, EpollTimeout::from(100_u16)) {
                // The process was stopped and continued.
                Err(Errno::EINTR) => 0,
                waited => waited.expect("an epoll"),
            };
            if let Some(event) = events[..count].iter().find(|event| event.data() == number) {
                return event.events();
            }
            assert!(begun.elapsed() < PATIENCE, "{number} is told nothing");
        }
    };
    let listener = Listener::bind(localhost(false), SERVICE).expect("a listener");
    listener.set_readiness(of_listener).expect("it is open");
    assert_eq!(listener.as_raw_fd(), door.as_raw_fd());
    let endpoint = Endpoint::bind(localhost(false)).expect("a port");
    let options = Options::default();
    let connecting = endpoint.start_connect(listener.local_addr(), SERVICE, &options);
    let mut connecting = connecting.expect("a handshake");
    connecting.set_readiness(of_client).expect("it is under way");
    assert_eq!(told(2), EpollFlags::EPOLLOUT);
    assert_eq!(told(1), EpollFlags::EPOLLIN);
    let connection = connecting.try_connect().expect("no error").expect("it is writable");
    assert_eq!(connection.as_raw_fd(), client.as_raw_fd());
    // Only one at a time: the second hangs up.
    let second = early();
    let unused = second.readiness();
    listener.set_readiness(second).expect("it is open");
    assert_eq!(listener.as_raw_fd(), door.as_raw_fd());
    assert_eq!(bits(unused.as_fd()), ENDED | OUT);
}
