//! Closing, lingering and cancelling, and calls that peek.

#![expect(clippy::disallowed_methods, reason = "a test of sockets waits and has threads")]

mod common;

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use common::{SERVICE, listener, localhost, pair, run};
use udccp::blocking::{self, Listener};
use udccp::{
    Address, CloseReason, Connection, Error, Options, Outgoing, ResetCode, State, TryRecvError,
};
use udccp_testkit::{Relay, pass};

const PATIENCE: Option<Duration> = Some(Duration::from_secs(30));
const SHORT: Duration = Duration::from_millis(200);

fn is_abort(end: &Result<Option<bytes::Bytes>, Error>) -> bool {
    let Err(Error::Lost(CloseReason::PeerReset { code, .. })) = end else { return false };
    *code == ResetCode::Aborted
}

#[test]
fn zero_linger_resets_on_close_and_drop() {
    run(async {
        for drops in [false, true] {
            let (client, server) = pair(&Options::default(), &Options::default()).await;
            assert_eq!(client.linger(), Some(Duration::from_secs(5)));
            client.set_linger(Duration::ZERO);
            client.send("x").await.unwrap();
            if drops {
                drop(client);
            } else {
                let end = client.close().await;
                assert!(matches!(end, Err(Error::Lost(CloseReason::LocalAbort))), "{end:?}");
            }
            let end = loop {
                match server.recv().await {
                    Ok(Some(_)) => {}
                    end => break end,
                }
            };
            assert!(is_abort(&end), "{end:?}");
        }
    });
}

#[test]
fn the_end_of_a_connection_before_its_accept_is_seen_after_it() {
    run(async {
        let listener = listener(&Options::default());
        for linger in [Duration::from_secs(5), Duration::ZERO] {
            let client = Connection::connect(listener.local_addr(), SERVICE).await.unwrap();
            client.set_linger(linger);
            let end = client.close().await;
            assert_eq!(end.is_ok(), !linger.is_zero(), "{end:?}");
            // The server may process the Request only now.
            let server = listener.accept().await.unwrap();
            let end = server.closed().await;
            assert_eq!(end.is_ok(), !linger.is_zero(), "{end:?}");
            assert_eq!(server.event().await, None);
            let end = server.recv().await;
            assert!(is_abort(&end) || matches!(end, Ok(None)), "{end:?}");
        }
    });
}

#[test]
fn linger_time_can_be_raised_while_connected() {
    run(async {
        let hasty = Options::default().close_linger(Duration::ZERO).send_queue(1 << 20, 512);
        let (client, server) = pair(&hasty, &Options::default()).await;
        client.set_linger(Duration::from_secs(60));
        for _ in 0..300 {
            client.try_send(vec![0; 1000]).unwrap();
        }
        let reader = async {
            let mut got = 0;
            while server.recv().await.unwrap().is_some() {
                got += 1;
            }
            got
        };
        let (closed, got) = tokio::join!(client.close(), reader);
        closed.unwrap();
        assert_eq!(got, 300);
    });
}

#[test]
fn a_drop_that_waits_returns_when_the_peer_has_confirmed() {
    let listener = Listener::bind(localhost(false), SERVICE).unwrap();
    let client = blocking::Connection::connect(listener.local_addr(), SERVICE).unwrap();
    let server = listener.accept().unwrap();
    let endpoint = client.endpoint();
    client.set_wait_on_drop(true);
    let other = client.clone();
    other.send("last words").unwrap();
    drop(client);
    assert!(other.close_reason().is_none(), "not the last handle");
    drop(other);
    // A connection that has ended is no longer live, even in TIMEWAIT.
    endpoint.wait_idle(Some(Duration::ZERO)).expect("it is over already");
    assert_eq!(server.recv().unwrap().unwrap(), "last words");
    assert_eq!(server.recv().unwrap(), None);
}

/// Settings with which Closes are sent for longer than any test lasts.
fn patient() -> Options {
    Options::default().close_retries(1000).close_linger(SHORT)
}

fn is_unconfirmed(end: &Result<(), Error>) -> bool {
    matches!(end, Err(Error::Lost(CloseReason::CloseTimeout)))
}

#[test]
fn close_waits_for_linger_and_continues_in_the_background() {
    run(async {
        let listener = listener(&Options::default());
        let relay = Relay::start(listener.local_addr(), pass).await;
        let peer = Address { udp: relay.addr(), port: listener.port() };
        let options = patient();
        let (client, server) =
            tokio::join!(Connection::connect_with(peer, SERVICE, &options), listener.accept());
        let (client, server) = (client.unwrap(), server.unwrap());
        relay.cut();
        let begun = Instant::now();
        let end = client.close().await;
        assert!(is_unconfirmed(&end) && begun.elapsed() >= SHORT, "{end:?}");
        let end = std::future::poll_fn(|cx| client.poll_close(cx)).await;
        assert!(is_unconfirmed(&end), "{end:?}");
        assert_eq!(client.close_reason(), None, "the peer may yet confirm");
        relay.restore();
        client.closed().await.unwrap();
        client.close().await.unwrap();
        assert_eq!(server.recv().await.unwrap(), None);
    });
}

#[test]
fn blocking_close_and_drop_wait_no_longer_than_linger() {
    run(async {
        let listener = listener(&Options::default());
        let relay = Relay::start(listener.local_addr(), pass).await;
        let peer = Address { udp: relay.addr(), port: listener.port() };
        let client = tokio::task::spawn_blocking(move || {
            blocking::Connection::connect_with(peer, SERVICE, &patient(), PATIENCE).unwrap()
        });
        let (client, server) = tokio::join!(client, listener.accept());
        let (client, _server) = (client.unwrap(), server.unwrap());
        relay.cut();
        client.set_wait_on_drop(true);
        let end = tokio::task::spawn_blocking(move || client.close()).await.unwrap();
        assert!(is_unconfirmed(&end), "{end:?}");
    });
}

#[test]
fn cancelled_handshake_notifies_the_server() {
    let server = UdpSocket::bind(localhost(false)).unwrap();
    server.set_read_timeout(PATIENCE).unwrap();
    let to = server.local_addr().unwrap();
    let connecting = blocking::Connection::start_connect(to, SERVICE, &Options::default()).unwrap();
    assert_eq!(connecting.state(), State::Request);
    assert_eq!(connecting.peer_addr().unwrap().udp, to);
    let mut packet = [0; 2048];
    let types = std::iter::from_fn(|| {
        server.recv(&mut packet).unwrap();
        Some(packet[8] >> 1 & 15)
    });
    let mut types = types;
    assert_eq!(types.next(), Some(0), "a Request");
    connecting.cancel();
    assert_eq!(types.find(|&ty| ty != 0), Some(7), "a Reset");
}

#[test]
fn a_handshake_may_be_waited_for_again_after_a_timeout() {
    let server = UdpSocket::bind(localhost(false)).unwrap();
    let to = server.local_addr().unwrap();
    let mut connecting =
        blocking::Connection::start_connect(to, SERVICE, &Options::default()).unwrap();
    for _ in 0..2 {
        let e = connecting.wait(Some(Duration::from_millis(5))).unwrap_err();
        assert!(matches!(e, Error::TimedOut), "{e}");
        assert!(connecting.try_connect().unwrap().is_none());
    }
}

#[test]
fn a_batch_that_is_cancelled_loses_nothing() {
    run(async {
        let few = Options::default().send_queue(1 << 20, 8);
        let (client, server) = pair(&few, &Options::default()).await;
        let mut numbers = 0..2000_u32;
        let reader = tokio::spawn(async move {
            let mut expected = 0;
            while let Some(message) = server.recv().await.unwrap() {
                assert_eq!(common::number_of(&message), expected);
                expected += 1;
            }
            expected
        });
        let mut rounds = 0;
        while !numbers.is_empty() {
            let batch = numbers.by_ref().map(|n| common::numbered(n, 500));
            let _ =
                tokio::time::timeout(Duration::from_micros(200), client.send_batch(batch)).await;
            rounds += 1;
        }
        client.close().await.unwrap();
        assert_eq!(reader.await.unwrap(), 2000);
        assert!(rounds > 3, "it was cancelled {rounds} times");
    });
}

#[test]
fn full_queue_becomes_writable_again() {
    run(async {
        let few = Options::default().send_queue(1 << 20, 8);
        let (client, server) = pair(&few, &Options::default()).await;
        tokio::spawn(async move { while let Ok(Some(_)) = server.recv().await {} });
        for _ in 0..100 {
            // No message was refused, and still the wait ends.
            while client.stats().unwrap().send_queue_packets < 8 {
                client.try_send(vec![0; 1000]).unwrap();
            }
            client.writable().await.unwrap();
        }
    });
}

#[test]
fn messages_can_be_peeked_measured_and_truncated() {
    run(async {
        let (client, server) = pair(&Options::default(), &Options::default()).await;
        assert_eq!(server.next_len(), None);
        assert!(matches!(server.try_peek(), Err(TryRecvError::Empty)));
        for message in ["hello", "", "world"] {
            client.send(message).await.unwrap();
        }
        assert_eq!(server.peek().await.unwrap().unwrap(), "hello");
        assert_eq!(server.next_len(), Some(5));
        let mut buffer = [0; 3];
        let got = server.recv_into(&mut buffer).await.unwrap().unwrap();
        assert_eq!((&buffer, got.copied, got.message_len), (b"hel", 3, 5));
        assert!(got.is_truncated());

        server.readable().await.unwrap();
        assert_eq!(server.next_len(), Some(0), "an empty message, and not the end");
        assert_eq!(server.peek().await.unwrap().as_deref(), Some(&b""[..]));
        let got = server.recv_into(&mut buffer).await.unwrap().unwrap();
        assert_eq!((got.copied, got.message_len, got.is_truncated()), (0, 0, false));

        server.readable().await.unwrap();
        let mut buffer = [0; 8];
        let got = server.try_recv_into(&mut buffer).unwrap();
        assert_eq!((&buffer[..got.copied], got.is_truncated()), (&b"world"[..], false));
        client.close().await.unwrap();
        server.readable().await.unwrap();
        assert_eq!((server.next_len(), server.peek().await.unwrap()), (None, None));
        assert_eq!(server.recv_into(&mut buffer).await.unwrap(), None);
        assert!(matches!(server.try_peek(), Err(TryRecvError::Ended(Error::Closed))));
    });
}

#[test]
fn a_batch_at_once_is_what_has_arrived_and_no_more_than_asked_for() {
    let listener = Listener::bind(localhost(false), SERVICE).unwrap();
    assert!(listener.try_accept().unwrap().is_none());
    let client = blocking::Connection::connect(listener.local_addr(), SERVICE).unwrap();
    let server = listener.accept().unwrap();
    assert!(matches!(server.try_recv_batch(3), Err(TryRecvError::Empty)));
    client.send_batch(["one", "", "three"]).unwrap();
    client.acknowledged(PATIENCE).unwrap();
    assert_eq!(server.try_recv_batch(0).unwrap().len(), 0);
    assert_eq!(server.try_recv_batch(2).unwrap(), ["one", ""]);
    client.close().unwrap();
    assert_eq!(server.try_recv_batch(2).unwrap(), ["three"]);
    assert!(matches!(server.try_recv_batch(2), Err(TryRecvError::Ended(Error::Closed))));
}

#[test]
fn poll_functions_work_without_a_runtime_and_clones_are_one_connection() {
    let listener = Listener::bind(localhost(false), SERVICE).unwrap();
    let client = blocking::Connection::connect(listener.local_addr(), SERVICE).unwrap();
    let server = listener.accept().unwrap();
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let mut slot = Some(Outgoing::from("hello"));
    assert!(client.poll_send(&mut cx, &mut slot).is_ready() && slot.is_none());
    assert!(client.poll_writable(&mut cx).is_ready());
    assert!(client.poll_closed(&mut cx).is_pending());
    server.readable(PATIENCE).unwrap();
    assert!(
        matches!(server.poll_recv(&mut cx), std::task::Poll::Ready(Ok(Some(m))) if m == "hello")
    );
    assert!(server.poll_recv(&mut cx).is_pending());
    let begun = Instant::now();
    while client.poll_close(&mut cx).is_pending() {
        assert!(begun.elapsed() < PATIENCE.unwrap());
    }
    assert!(client.close_reason().is_some_and(CloseReason::is_orderly));
}

#[test]
fn clones_and_halves_of_an_async_connection_are_one() {
    run(async {
        let (client, server) = pair(&Options::default(), &Options::default()).await;
        let clone: Connection = client.clone();
        drop(client);
        let (send, recv) = clone.into_split();
        send.send_vectored(&[std::io::IoSlice::new(b"he"), std::io::IoSlice::new(b"llo")])
            .await
            .unwrap();
        send.acknowledged().await.unwrap();
        assert_eq!(server.recv().await.unwrap().unwrap(), "hello");
        server.send("back").await.unwrap();
        recv.readable().await.unwrap();
        assert_eq!(recv.try_peek().unwrap(), "back");
        drop((send, recv));
        assert_eq!(server.recv().await.unwrap(), None);
    });
}
