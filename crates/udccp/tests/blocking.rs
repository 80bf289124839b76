//! The blocking sockets.

mod common;

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use common::{SERVICE, localhost, number_of, numbered, without_timeouts};
use udccp::blocking::{Connection, Endpoint, Listener};
use udccp::ccid::{self, AckSample, Algorithm, CongestionControl, CustomAlgorithm};
use udccp::{Ccid2Options, Error, Options, TryRecvError};

fn pair(options: &Options) -> (Connection, Connection) {
    let listener = Listener::bind_with(localhost(false), [SERVICE], options).unwrap();
    let limit = Some(Duration::from_secs(60));
    let client = Connection::connect_with(listener.local_addr(), SERVICE, options, limit).unwrap();
    (client, listener.accept_within(limit).unwrap())
}

/// Runs `work` with a time limit, so that a test that hangs fails.
fn within<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, hear) = mpsc::channel();
    let worker = thread::Builder::new().spawn(move || tell.send(work())).unwrap();
    match hear.recv_timeout(Duration::from_secs(300)) {
        Ok(done) => done,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the test hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(worker.join().unwrap_err())
        }
    }
}

#[test]
fn messages_go_both_ways_and_close_delivers_the_queue() {
    within(|| {
        let (client, server) = pair(&without_timeouts());
        let sender = client.clone();
        let sending = thread::Builder::new()
            .spawn(move || {
                sender.send_batch((0..50_000).map(|n| numbered(n, 1400))).unwrap();
                sender.close().unwrap();
            })
            .unwrap();
        for n in 0..50_000 {
            assert_eq!(number_of(&server.recv().unwrap().unwrap()), n);
        }
        assert_eq!(server.recv().unwrap(), None);
        sending.join().unwrap();
        assert_eq!(client.stats().unwrap().counters.data_packets_lost, 0);
    });
}

#[test]
fn a_slow_reader_loses_nothing() {
    within(|| {
        let options = Options::default().recv_queue(128 << 10, 256);
        // Long enough to deliver the queue even on a busy machine.
        let (client, server) = pair(&options.close_linger(Duration::from_secs(60)));
        let sending = thread::Builder::new()
            .spawn(move || {
                (0..2_000).for_each(|n| client.send(numbered(n, 1000)).unwrap());
                client.close().unwrap();
            })
            .unwrap();
        for n in 0..2_000 {
            if n % 100 == 0 {
                thread::park_timeout(Duration::from_millis(20));
            }
            assert_eq!(number_of(&server.recv().unwrap().unwrap()), n);
        }
        sending.join().unwrap();
        assert_eq!(server.stats().unwrap().counters.drops.receive_queue_full, 0);
    });
}

#[test]
fn waiting_ends_at_the_timeout_and_the_connection_lives_on() {
    within(|| {
        let (client, server) = pair(&Options::default());
        server.set_read_timeout(Some(Duration::from_millis(30)));
        assert!(matches!(server.recv(), Err(Error::TimedOut)));
        assert!(matches!(server.try_recv(), Err(TryRecvError::Empty)));
        client.send("late").unwrap();
        server.set_read_timeout(Some(Duration::from_secs(10)));
        assert_eq!(server.recv().unwrap().unwrap(), "late");
    });
}

#[test]
fn sending_times_out_when_the_peer_reads_nothing() {
    within(|| {
        let options = Options::default().recv_queue(20_000, 20).send_queue(20_000, 20);
        let (client, _server) = pair(&options);
        client.set_write_timeout(Some(Duration::from_millis(50)));
        let e = (0..10_000).find_map(|_| client.send(vec![0; 1000]).err());
        assert!(matches!(e, Some(Error::TimedOut)), "{e:?}");
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test that hangs fails")]
fn polling_reader_that_never_waits_receives_messages() {
    within(|| {
        // The connection has no timers of its own that would make the thread run.
        let patient = Ccid2Options::new().delayed_ack(Duration::from_secs(600));
        let (client, server) = pair(&Options::default().keep_alive(None).ccid2(patient));
        let next = Duration::from_micros(50);
        for _ in 0..20 {
            for n in 0..20 {
                server.send(numbered(n, 4)).unwrap();
                assert_eq!(number_of(&client.recv().unwrap().unwrap()), n);
            }
            // Now a reading thread may drive, but none is waiting.
            server.send(numbered(20, 4)).unwrap();
            let started = Instant::now();
            let message = loop {
                match client.try_recv() {
                    Ok(message) => break message,
                    Err(e) => assert!(matches!(e, TryRecvError::Empty), "{e}"),
                }
                assert!(started.elapsed() < Duration::from_secs(20), "nobody reads the socket");
                thread::park_timeout(next);
            };
            assert_eq!(number_of(&message), 20);
        }
    });
}

/// A window of seven packets, whatever happens.
#[derive(Clone, Debug)]
struct Seven;

impl CongestionControl for Seven {
    fn name(&self) -> &'static str {
        "seven"
    }
    fn cwnd(&self) -> u32 {
        7
    }
    fn ssthresh(&self) -> u32 {
        u32::MAX
    }
    fn on_ack(&mut self, _: &AckSample) {}
    fn on_congestion_event(&mut self, _: ccid::Instant, _: u32) {}
    fn on_rto(&mut self, _: ccid::Instant, _: u32) {}
    fn set_window(&mut self, _: ccid::Instant, _: u32, _: u32) {}
    fn clamp(&mut self, _: u32) {}
}

/// Regression: an application could not name the trait, and so not write an algorithm.
#[test]
fn window_algorithm_of_an_application_decides() {
    within(|| {
        let seven = Algorithm::Custom(CustomAlgorithm::new("seven", |_| Box::new(Seven)));
        let options = Options::default().ccid2(Ccid2Options::new().algorithm(seven));
        let (client, server) = pair(&options);
        for n in 0..100 {
            client.send(numbered(n, 4)).unwrap();
            assert_eq!(number_of(&server.recv().unwrap().unwrap()), n);
        }
        assert_eq!(client.stats().unwrap().cwnd_packets, Some(7));
    });
}

#[test]
fn accepting_and_connecting_time_out() {
    within(|| {
        let listener = Listener::bind(localhost(false), SERVICE).unwrap();
        let soon = Some(Duration::from_millis(20));
        assert!(matches!(listener.accept_within(soon), Err(Error::TimedOut)));
        assert!(listener.try_accept().unwrap().is_none());
        let silent = std::net::UdpSocket::bind(localhost(false)).unwrap();
        let e = Endpoint::bind(localhost(false))
            .unwrap()
            .connect(silent.local_addr().unwrap(), SERVICE, &Options::default(), soon)
            .unwrap_err();
        assert!(matches!(e, Error::TimedOut), "{e}");
    });
}

#[test]
fn client_between_bind_and_listen_is_not_refused() {
    within(|| {
        let endpoint = Endpoint::bind(localhost(false)).unwrap();
        let udp = endpoint.local_addr();
        let client = thread::Builder::new()
            .spawn(move || Connection::connect(udp, SERVICE).map(drop))
            .unwrap();
        thread::park_timeout(Duration::from_millis(50));
        let listener = endpoint.listen(udp.port(), [SERVICE], &Options::default()).unwrap();
        listener.accept().unwrap();
        client.join().unwrap().unwrap();
    });
}

#[test]
fn the_driver_ends_with_its_last_handle() {
    within(|| {
        let endpoint = Endpoint::bind(localhost(false)).unwrap();
        let addr = endpoint.local_addr();
        drop(endpoint.listen(7, [SERVICE], &Options::default()).unwrap());
        drop(endpoint);
        #[expect(clippy::disallowed_methods, reason = "a test that waits for a thread")]
        let deadline = Instant::now() + Duration::from_secs(60);
        while let Err(e) = Endpoint::bind(addr) {
            assert!(matches!(e, Error::PortInUse { .. }), "{e}");
            #[expect(clippy::disallowed_methods, reason = "a test that waits for a thread")]
            let now = Instant::now();
            assert!(now < deadline, "the port is never freed");
            thread::park_timeout(Duration::from_millis(5));
        }
    });
}

#[test]
fn end_that_stops_reading_notifies_its_peer() {
    within(|| {
        let (client, server) = pair(&Options::default());
        server.shutdown_read();
        assert_eq!(server.recv().unwrap(), None);
        client.send("is anybody there?").unwrap();
        let limit = Some(Duration::from_secs(10));
        let next = || client.event(limit).unwrap();
        assert!((0..2).any(|_| next() == Some(udccp::ConnectionEvent::PeerShutdownRead)));
    });
}

fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    thread::Builder::new().spawn(work).unwrap()
}

/// A client and a server that have exchanged messages until both drive their sockets themselves.
fn talking() -> (Connection, Connection) {
    // No timer may wake anything later.
    let (client, server) = pair(&Options::default().keep_alive(None).idle_limit(None));
    let answering = server.clone();
    let answers = in_thread(move || {
        for _ in 0..200 {
            let question = answering.recv().unwrap().unwrap();
            answering.send(question).unwrap();
        }
    });
    for _ in 0..200 {
        client.send("question").unwrap();
        assert_eq!(client.recv().unwrap().unwrap(), "question");
    }
    answers.join().unwrap();
    (client, server)
}

#[test]
fn driving_reader_notices_calls_of_other_threads() {
    within(|| {
        let (client, server) = talking();
        let other = client.clone();
        // Usually it drives by then.
        let closing = in_thread(move || {
            thread::park_timeout(Duration::from_millis(50));
            // The peer sends no answer to a Reset that could wake a thread.
            other.abort();
        });
        client.send("one more").unwrap();
        assert_eq!(server.recv().unwrap().unwrap(), "one more");
        server.send("and its answer").unwrap();
        assert_eq!(client.recv().unwrap().unwrap(), "and its answer");
        let _ = client.recv();
        assert!(client.close_reason().is_some());
        closing.join().unwrap();
        assert!(server.recv().is_err());
    });
}

#[test]
fn absent_driving_reader_returns_the_socket_to_its_thread() {
    within(|| {
        let (client, server) = talking();
        for _ in 0..20 {
            server.send("unread").unwrap();
        }
        server.acknowledged(Some(Duration::from_secs(20))).unwrap();
        client.set_read_timeout(Some(Duration::from_millis(20)));
        for _ in 0..20 {
            assert_eq!(client.recv().unwrap().unwrap(), "unread");
        }
        assert!(matches!(client.recv(), Err(Error::TimedOut)));
        let reading = client.clone();
        reading.set_read_timeout(None);
        let reader = in_thread(move || while reading.recv().unwrap().is_some() {});
        // Several tasks wait now: for messages, and for everything to be acknowledged.
        for _ in 0..50 {
            client.send("one way").unwrap();
            client.acknowledged(Some(Duration::from_secs(20))).unwrap();
            assert_eq!(server.recv().unwrap().unwrap(), "one way");
        }
        server.close().unwrap();
        reader.join().unwrap();
    });
}

struct Task(#[expect(dead_code, reason = "it is there to be dropped")] Option<Connection>);

impl std::task::Wake for Task {
    fn wake(self: std::sync::Arc<Self>) {}
}

/// Some executors keep a task only by its wakers.
#[test]
fn dropped_connection_releases_wakers_that_own_connections() {
    within(|| {
        let listener = Listener::bind(localhost(false), SERVICE).unwrap();
        let (at, endpoint) = (listener.local_addr(), Endpoint::bind(localhost(false)).unwrap());
        let connect = || endpoint.connect(at, SERVICE, &Options::default(), None).unwrap();
        let (one, other) = (connect(), connect());
        let waker = std::sync::Arc::new(Task(Some(other))).into();
        assert!(one.poll_closed(&mut std::task::Context::from_waker(&waker)).is_pending());
        drop((waker, one));
        endpoint.wait_idle(None).unwrap();
    });
}
