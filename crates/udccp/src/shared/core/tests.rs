//! Tests of when packets are sent, and which tasks are woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use udccp_base::Instant;
use udccp_proto::{ConnectOptions, ConnectionConfig};

use crate::io::{Io, Receiver};
use crate::shared::{ConnHandle, Handle, Shared};
use crate::{EndpointOptions, Error, Options, Outgoing, ServiceCode};

const SERVICE: ServiceCode = ServiceCode(0x7465_7374);

struct NoWaker;

impl Wake for NoWaker {
    fn wake(self: Arc<Self>) {}
}

/// A socket that the test drives.
struct Driven {
    handle: Handle,
    rx: Receiver,
}

impl Driven {
    fn new() -> Self {
        Self::with(&EndpointOptions::default())
    }

    fn with(options: &EndpointOptions) -> Self {
        let at = "127.0.0.1:0".parse().unwrap();
        let shared = Shared::bind(at, options).unwrap();
        shared.set_starter(|_| Ok(()));
        let rx = Receiver::new(&shared.io);
        Self { handle: Handle::new(shared), rx }
    }

    fn shared(&self) -> &Shared {
        self.handle.shared()
    }

    /// Makes further messages part of a burst.
    fn begin_burst(&self) {
        self.shared().begin_burst();
    }

    fn turn(&mut self) {
        self.handle.shared().turn(&mut self.rx, Receiver::read, false);
    }

    /// Reads everything. Returns the number of buffers.
    fn reads(&mut self) -> usize {
        let mut buffers = 0;
        let read = |rx: &mut Receiver, io: &Io| {
            let read = rx.read(io);
            buffers += read.as_ref().unwrap_or(&0);
            read
        };
        self.handle.shared().turn(&mut self.rx, read, false);
        buffers
    }
}

/// Both ends of a connection, on sockets that the test drives.
fn connected(client: &mut Driven, server: &mut Driven) -> [ConnHandle; 2] {
    connections(client, server, 1).pop().unwrap()
}

/// Both ends of connections, on sockets that the test drives.
fn connections(client: &mut Driven, server: &mut Driven, n: usize) -> Vec<[ConnHandle; 2]> {
    let (options, at) = (Options::default(), server.shared().io.local_addr());
    let listener = server.handle.listen(at.port(), vec![SERVICE], &options).unwrap();
    let connect = |_| {
        let here = client.handle.connect(at.into(), SERVICE, &options).unwrap();
        loop {
            server.turn();
            client.turn();
            if let Some(there) = listener.try_accept().unwrap() {
                return [here, there];
            }
        }
    };
    (0..n).map(connect).collect()
}

#[test]
fn the_first_answer_of_a_reader_that_was_woken_leaves_at_once() {
    let (mut client, mut server) = (Driven::new(), Driven::new());
    let [here, there] = connected(&mut client, &mut server);
    let task = Waker::from(Arc::new(NoWaker));
    let mut cx = Context::from_waker(&task);
    let waiting = || there.stats().unwrap().send_queue_packets;
    for _ in 0..10 {
        assert!(there.poll_recv((&mut cx).into()).is_pending());
        here.try_send(Outgoing::new("question")).unwrap();
        client.turn();
        while !there.poll_recv((&mut cx).into()).is_ready() {
            server.turn();
        }
        server.begin_burst();
        there.try_send(Outgoing::new("answer")).unwrap();
        assert_eq!(waiting(), 0);
        there.try_send(Outgoing::new("more")).unwrap();
        assert_eq!(waiting(), 1, "one is an answer, more are a burst");
        for _ in ["answer", "more"] {
            while here.poll_recv((&mut cx).into()).is_pending() {
                server.turn();
                client.turn();
            }
        }
    }
}

/// A message arrives on each connection, and their readers are woken.
fn send_to_readers(
    all: &[[ConnHandle; 2]],
    client: &mut Driven,
    server: &mut Driven,
    cx: &mut Context<'_>,
) {
    assert!(all.iter().all(|[_, there]| there.poll_recv((&mut *cx).into()).is_pending()));
    for [here, _] in all {
        here.try_send(Outgoing::new("message")).unwrap();
    }
    client.turn();
    server.turn();
}

#[test]
#[cfg(target_os = "linux")]
fn answers_of_readers_that_were_woken_together_leave_together() {
    const CONNECTIONS: usize = 20;
    let (mut client, mut server) = (Driven::new(), Driven::new());
    let all = connections(&mut client, &mut server, CONNECTIONS);
    let task = Waker::from(Arc::new(NoWaker));
    let mut cx = Context::from_waker(&task);
    for _ in 0..3 {
        send_to_readers(&all, &mut client, &mut server, &mut cx);
        server.begin_burst();
        for [_, there] in &all {
            assert!(there.poll_recv((&mut cx).into()).is_ready());
            there.try_send(Outgoing::new("answer")).unwrap();
            assert!(there.poll_recv((&mut cx).into()).is_pending());
        }
        // Like a driver that is a task: after those that it woke.
        server.turn();
        let buffers = client.reads();
        assert!(all.iter().all(|[here, _]| here.poll_recv((&mut cx).into()).is_ready()));
        assert!(buffers < CONNECTIONS / 2, "answers of 20 connections came in {buffers} buffers");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn acknowledgements_of_readers_that_were_woken_together_leave_together() {
    const CONNECTIONS: usize = 20;
    let (mut client, mut server) = (Driven::new(), Driven::new());
    let all = connections(&mut client, &mut server, CONNECTIONS);
    let task = Waker::from(Arc::new(NoWaker));
    let mut cx = Context::from_waker(&task);
    let mut buffers = 0;
    // Two of the messages are acknowledged.
    for _ in ["first", "second"] {
        send_to_readers(&all, &mut client, &mut server, &mut cx);
        for [_, there] in &all {
            while there.poll_recv((&mut cx).into()).is_ready() {}
        }
        // Like a driver that is a task: after those that it woke.
        server.turn();
        buffers += client.reads();
    }
    let acked = |[here, _]: &[ConnHandle; 2]| here.stats().unwrap().counters.data_packets_acked;
    assert_eq!(all.iter().map(acked).sum::<u64>(), 2 * CONNECTIONS as u64);
    assert!(buffers < CONNECTIONS, "acknowledgements of 20 connections came in {buffers} buffers");
}

#[test]
fn the_first_packet_of_a_socket_is_of_no_burst() {
    let (client, mut server) = (Driven::new(), Driven::new());
    let remote = server.shared().io.local_addr();
    let options = ConnectOptions {
        local: client.shared().io.local_addr(),
        local_port: None,
        remote,
        remote_port: remote.port(),
        service: SERVICE,
        config: ConnectionConfig::default().into(),
    };
    // A socket's clock starts at zero.
    let (io, mut core) = (&client.shared().io, client.shared().lock());
    core.endpoint.connect(Instant::ZERO, options).unwrap();
    core.flush_burst(io, Instant::ZERO);
    assert!(server.reads() > 0);
}

#[test]
#[cfg(target_os = "linux")]
fn connections_that_are_made_and_closed_in_a_burst_leave_together() {
    const CONNECTIONS: usize = 20;
    let (mut client, mut server) = (Driven::new(), Driven::new());
    let (options, at) = (Options::default(), server.shared().io.local_addr());
    let listener = server.handle.listen(at.port(), vec![SERVICE], &options).unwrap();
    client.begin_burst();
    let connect = |_| client.handle.connect(at.into(), SERVICE, &options).unwrap();
    let here: Vec<_> = (0..CONNECTIONS).map(connect).collect();
    client.turn();
    let requests = server.reads();
    let mut there = Vec::new();
    while there.len() < CONNECTIONS {
        client.turn();
        server.turn();
        there.extend(listener.try_accept().unwrap());
    }
    client.begin_burst();
    drop(here);
    client.turn();
    let closes = server.reads();
    let task = Waker::from(Arc::new(NoWaker));
    let mut cx = Context::from_waker(&task);
    while there.iter().any(|one| one.poll_ended((&mut cx).into()).is_pending()) {
        client.turn();
        server.turn();
    }
    let most = CONNECTIONS / 4;
    assert!(requests <= most && closes <= most, "{requests} and {closes} buffers");
}

#[test]
fn close_without_further_calls_leaves_at_once() {
    let without = EndpointOptions::default().close_at_exit(false);
    let (mut client, mut server) = (Driven::with(&without), Driven::new());
    let [here, there] = connected(&mut client, &mut server);
    client.begin_burst();
    drop(here);
    server.turn();
    let task = Waker::from(Arc::new(NoWaker));
    assert!(there.poll_ended((&mut Context::from_waker(&task)).into()).is_ready());
}

#[test]
fn dropped_listener_resets_unaccepted_connections_at_once() {
    let (mut client, mut server) = (Driven::new(), Driven::new());
    let (options, at) = (Options::default(), server.shared().io.local_addr());
    let listener = server.handle.listen(at.port(), vec![SERVICE], &options).unwrap();
    let here = client.handle.connect(at.into(), SERVICE, &options).unwrap();
    let known = |server: &Driven| server.shared().lock().conns.len();
    while known(&server) == 0 {
        server.turn();
        client.turn();
    }
    drop(listener);
    assert_eq!(known(&server), 0, "it has no user who could let go of it");
    client.turn();
    let task = Waker::from(Arc::new(NoWaker));
    let end = here.poll_ended((&mut Context::from_waker(&task)).into());
    assert!(matches!(end, Poll::Ready(Err(Error::Lost(_)))), "{end:?}");
}

#[test]
fn repeated_polls_register_a_task_once() {
    let (mut client, mut server) = (Driven::new(), Driven::new());
    let [here, _there] = connected(&mut client, &mut server);
    // More than can be sent before an acknowledgement.
    (0..100).for_each(|_| here.try_send(Outgoing::new("hello")).unwrap());
    let task = Waker::from(Arc::new(NoWaker));
    let mut cx = Context::from_waker(&task);
    for _ in 0..3 {
        assert!(here.poll_acknowledged((&mut cx).into()).is_pending());
        assert!(here.poll_flushed((&mut cx).into()).is_pending());
    }
    let core = client.shared().lock();
    assert_eq!((core.awaiting_acks.len(), core.flushing.len()), (1, 1));
}

/// Counts how often it is woken.
#[derive(Default)]
struct Counts(AtomicUsize);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn readers_are_woken_when_another_handle_stops_reading() {
    let (mut client, mut server) = (Driven::new(), Driven::new());
    let [here, _there] = connected(&mut client, &mut server);
    let task = Arc::new(Counts::default());
    let waker = Waker::from(Arc::clone(&task));
    let mut cx = Context::from_waker(&waker);
    assert!(here.poll_recv((&mut cx).into()).is_pending());
    here.shutdown_read();
    assert_eq!(task.0.load(Ordering::Relaxed), 1);
    let read = here.poll_recv((&mut cx).into());
    assert!(matches!(read, Poll::Ready(Ok(None))), "{read:?}");
}

#[test]
fn blocked_senders_are_woken_when_the_peer_stops_reading() {
    let (mut client, mut server) = (Driven::new(), Driven::new());
    let [here, there] = connected(&mut client, &mut server);
    while here.try_send(Outgoing::new("hello")).is_ok() {}
    let task = Arc::new(Counts::default());
    let waker = Waker::from(Arc::clone(&task));
    let mut cx = Context::from_waker(&waker);
    let mut slot = Some(Outgoing::new("hello"));
    assert!(here.poll_send((&mut cx).into(), &mut slot).is_pending());
    there.shutdown_read();
    server.turn();
    client.turn();
    assert_eq!(task.0.load(Ordering::Relaxed), 1);
    let sent = here.poll_send((&mut cx).into(), &mut slot);
    assert!(matches!(sent, Poll::Ready(Err(Error::Closed))), "{sent:?}");
}

#[test]
fn driver_end_is_reported_to_all_and_stays_the_reason() {
    let without = EndpointOptions::default().close_at_exit(false);
    let (mut client, mut server) = (Driven::with(&without), Driven::new());
    let [here, _there] = connected(&mut client, &mut server);
    let tasks = [(); 2].map(|()| Arc::new(Counts::default()));
    let wakers = tasks.clone().map(Waker::from);
    let [mut idle, mut stun] = wakers.each_ref().map(Context::from_waker);
    assert!(client.handle.poll_idle((&mut idle).into()).is_pending());
    assert!(client.handle.poll_stun((&mut stun).into()).is_pending());
    let wake = client.shared().lock().stop();
    wake.wake();
    assert_eq!(tasks.map(|task| task.0.load(Ordering::Relaxed)), [1, 1]);
    // As `close_all_connections` does at its end.
    client.shared().with(|core, _, now| core.endpoint.abort_all(now)).unwrap();
    let sent = here.try_send(Outgoing::new("hello"));
    assert!(matches!(sent, Err(crate::TrySendError::Failed(Error::Io { .. }))), "{sent:?}");
}

#[test]
fn the_end_of_the_process_waits_for_the_longest_of_all_lingers() {
    let (mut client, mut server) = (Driven::new(), Driven::new());
    let lingers = |seconds| Options::default().close_linger(Duration::from_secs(seconds));
    let [here, _there] = connected(&mut client, &mut server);
    let peer = here.peer();
    let seconds = || client.shared().linger().as_secs();
    let _listener = client.handle.listen(0, vec![SERVICE], &lingers(100)).unwrap();
    assert_eq!(seconds(), 100);
    let _invited = client.handle.invite(7, peer, SERVICE, &lingers(200)).unwrap();
    assert_eq!(seconds(), 200);
    let _connecting = client.handle.connect(peer, SERVICE, &lingers(300)).unwrap();
    assert_eq!(seconds(), 300);
    here.set_linger(Duration::from_secs(400));
    assert_eq!(seconds(), 400);
    here.set_linger(Duration::ZERO);
    assert_eq!(seconds(), 400, "another one may need it");
}

#[test]
#[cfg(target_os = "linux")]
fn accepted_connection_uses_the_mtu_of_the_return_path() {
    let (mut client, mut server) = (Driven::new(), Driven::new());
    let (io, clock) = (&server.shared().io, &server.shared().clock);
    // The answer is kept for a second.
    io.insert_mtu(clock.now() + udccp_base::Duration::from_secs(1000), io.local_addr(), 777);
    let [here, there] = connected(&mut client, &mut server);
    let (most, narrow) = (here.max_message_size(), there.max_message_size());
    assert!(narrow < 777 && most > 777, "{narrow}, {most}");
}

#[test]
#[cfg(target_os = "linux")]
fn flood_does_not_postpone_the_end_of_a_turn() {
    let mut server = Driven::new();
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut reads = 0;
    let read = |rx: &mut Receiver, io: &Io| {
        reads += 1;
        assert!(reads < 100, "it reads on and on");
        for _ in 0..2 * quinn_udp::BATCH_SIZE {
            stranger.send_to(b"flood", io.local_addr()).unwrap();
        }
        rx.read(io)
    };
    let turn = server.handle.shared().turn(&mut server.rx, read, false);
    assert!(turn.more && reads <= super::READS, "{reads}");
}
