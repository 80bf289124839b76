//! Cancel safety: a future that is polled once and dropped has taken nothing and sent nothing, and
//! does not affect the next call.

mod common;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use common::{SERVICE, listener, localhost, number_of, numbered, pair, run, without_timeouts};
use futures_util::FutureExt;
use udccp::{Connection, ConnectionEvent, Endpoint, MessageFate, Options, Outgoing};

/// The result of a call if it is ready at once; otherwise the call is cancelled.
fn once<T>(call: impl Future<Output = T>) -> Option<T> {
    call.now_or_never()
}

/// Repeats a call, cancelling it each time that it is not ready at once.
async fn by_attempts<T, F: Future<Output = T>>(mut call: impl FnMut() -> F) -> (T, u32) {
    let mut cancelled = 0;
    loop {
        if let Some(out) = once(call()) {
            return (out, cancelled);
        }
        cancelled += 1;
        tokio::time::sleep(Duration::from_micros(50)).await;
    }
}

#[test]
fn receiving_that_is_cancelled_loses_no_message() {
    run(async {
        let (client, server) = pair(&Options::default(), &Options::default()).await;
        let sender = tokio::spawn(async move {
            for n in 0..600 {
                client.send(numbered(n, 100)).await.unwrap();
                tokio::time::sleep(Duration::from_micros(100)).await;
            }
            client.close().await.unwrap();
        });
        let (mut expected, mut cancelled, mut buffer) = (0, 0, [0; 200]);
        let mut take = |message: &[u8]| {
            assert_eq!(number_of(message), expected, "in order and complete");
            expected += 1;
            expected < 600
        };
        loop {
            let (peeked, more) = by_attempts(|| server.peek()).await;
            let peeked = peeked.unwrap().expect("a message");
            cancelled += more;
            let kind = number_of(&peeked) % 4;
            let is_more = match kind {
                0 => take(&by_attempts(|| server.recv()).await.0.unwrap().unwrap()),
                1 => take(&by_attempts(|| server.recv_with_meta()).await.0.unwrap().unwrap().data),
                2 => {
                    let into = server.recv_into(&mut buffer);
                    let got = once(into).expect("peeked at").unwrap().unwrap();
                    take(&buffer[..got.copied])
                }
                _ => {
                    let mut batch = Vec::new();
                    assert_eq!(once(server.recv_batch(&mut batch, 1)).unwrap().unwrap(), 1);
                    take(&batch[0])
                }
            };
            if !is_more {
                break;
            }
        }
        let mut batch = Vec::new();
        while once(server.recv_batch(&mut batch, 9)).is_none() {
            assert!(batch.is_empty(), "it was cancelled");
            tokio::time::sleep(Duration::from_micros(50)).await;
        }
        assert!(batch.is_empty() && server.recv().await.unwrap().is_none());
        assert!(cancelled > 10, "{cancelled} calls were cancelled");
        sender.await.unwrap();
    });
}

#[test]
fn a_send_that_is_cancelled_did_not_send() {
    run(async {
        let few = Options::default().send_queue(1 << 20, 4);
        let (client, server) = pair(&few, &Options::default()).await;
        let reader = tokio::spawn(async move {
            let mut expected = 0;
            while let Some(message) = server.recv().await.unwrap() {
                assert_eq!(number_of(&message), expected, "once and in order");
                expected += 1;
            }
            expected
        });
        let mut cancelled = 0;
        for n in 0..1500 {
            let (sent, more) = match n % 2 {
                0 => by_attempts(|| client.send(numbered(n, 1000))).await,
                _ => {
                    let whole = numbered(n, 1000);
                    let (one, other) = whole.split_at(300);
                    let pieces = [one, other].map(std::io::IoSlice::new);
                    by_attempts(|| client.send_vectored(&pieces)).await
                }
            };
            sent.unwrap();
            cancelled += more;
        }
        client.close().await.unwrap();
        assert_eq!(reader.await.unwrap(), 1500);
        assert!(cancelled > 10, "{cancelled} calls were cancelled");
    });
}

#[test]
fn an_accept_that_is_cancelled_leaves_the_client_in_the_queue() {
    run(async {
        let listener = listener(&Options::default());
        assert!(once(listener.accept()).is_none());
        let client = Connection::connect(listener.local_addr(), SERVICE).await.unwrap();
        let (server, _) = by_attempts(|| listener.accept()).await;
        client.send("hello").await.unwrap();
        assert_eq!(server.unwrap().recv().await.unwrap().unwrap(), "hello");
    });
}

#[test]
fn a_connect_that_is_cancelled_leaves_no_connection() {
    run(async {
        let listener = listener(&Options::default());
        let endpoint = Endpoint::bind(localhost(false)).unwrap();
        let options = Options::default();
        for _ in 0..5 {
            assert!(once(endpoint.connect(listener.local_addr(), SERVICE, &options)).is_none());
            endpoint.wait_idle().await;
        }
        assert_eq!(endpoint.stats().connections, 0);
        // The server's half of the handshakes ends too, by the client's Resets.
        while listener.endpoint().stats().connections > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let client = endpoint.connect(listener.local_addr(), SERVICE, &options);
        let (client, server) = tokio::join!(client, listener.accept());
        assert_eq!(client.unwrap().local_addr().port, server.unwrap().peer_addr().port);
    });
}

#[test]
fn waits_that_are_cancelled_end_the_next_time() {
    run(async {
        let few = without_timeouts().send_queue(1 << 20, 2);
        let (client, server) = pair(&few, &Options::default()).await;
        let token = |n| Outgoing::new(numbered(n, 1000)).token(n.into());
        let mut n = 0;
        while client.try_send(token(n)).is_ok() {
            n += 1;
        }
        assert!(once(server.event()).is_none());
        for _ in 0..3 {
            let _ = (once(client.writable()), once(client.flushed()), once(client.acknowledged()));
            assert!(once(server.closed()).is_none());
        }
        client.writable().await.unwrap();
        client.flushed().await.unwrap();
        client.acknowledged().await.unwrap();
        assert!(once(server.readable()).is_some());
        let mut known = 0;
        while known < n {
            let (event, _) = by_attempts(|| client.event()).await;
            if let Some(ConnectionEvent::MessageFate { token, fate }) = event {
                assert_eq!((token, fate), (known.into(), MessageFate::Acknowledged));
                known += 1;
            }
        }
        client.close().await.unwrap();
        server.closed().await.unwrap();
    });
}

#[test]
fn a_close_that_is_cancelled_goes_on() {
    run(async {
        let (client, server) = pair(&Options::default(), &Options::default()).await;
        client.send("last").await.unwrap();
        assert!(once(client.close()).is_none());
        assert_eq!(server.recv().await.unwrap().unwrap(), "last");
        assert!(server.recv().await.unwrap().is_none());
        client.closed().await.unwrap();
        let endpoint = client.endpoint();
        assert!(once(endpoint.recv_stun()).is_none());
        once(endpoint.wait_idle());
        endpoint.wait_idle().await;
    });
}

struct Task;

impl Wake for Task {
    fn wake(self: Arc<Self>) {}
}

/// Many short tasks may each wait on one connection.
#[test]
fn cancelled_wait_releases_its_waker() {
    run(async {
        let few = Options::default().send_queue(1 << 20, 2);
        let (client, server) = pair(&few, &Options::default()).await;
        while client.try_send(numbered(0, 1000)).is_ok() {}
        let (listener, endpoint) = (listener(&Options::default()), client.endpoint());
        let (mut batch, mut buffer) = (Vec::new(), [0; 9]);
        let task = Arc::new(Task);
        let waker = Waker::from(Arc::clone(&task));
        let (message, more) = (numbered(1, 1000), [numbered(2, 1000)]);
        let waits = || {
            let mut cx = Context::from_waker(&waker);
            let mut is_pending = |call: Pin<&mut dyn Future<Output = ()>>| {
                assert!(call.poll(&mut cx).is_pending());
            };
            macro_rules! wait {
                ($($call:expr),*) => {$(is_pending(pin!(async { let _ = $call.await; }));)*};
            }
            wait!(client.send(message), client.send_batch(more), client.writable());
            wait!(client.flushed(), client.acknowledged(), client.event(), client.closed());
            wait!(server.recv(), server.recv_with_meta(), server.recv_into(&mut buffer));
            wait!(server.recv_batch(&mut batch, 9), server.peek(), server.readable());
            wait!(listener.accept(), endpoint.recv_stun(), endpoint.wait_idle());
        };
        waits();
        drop(waker);
        assert_eq!(Arc::strong_count(&task), 1);
    });
}

/// As in an event loop that gives up a wait.
#[test]
fn forgotten_poll_releases_its_waker() {
    run(async {
        let (client, server) = pair(&Options::default(), &Options::default()).await;
        let listener = listener(&Options::default());
        let task = Arc::new(Task);
        let waker = Waker::from(Arc::clone(&task));
        let mut cx = Context::from_waker(&waker);
        assert!(server.poll_recv(&mut cx).is_pending() && server.poll_closed(&mut cx).is_pending());
        assert!(listener.poll_accept(&mut cx).is_pending());
        assert_eq!(Arc::strong_count(&task), 4);
        server.remove_waker(&waker);
        listener.remove_waker(&waker);
        drop((waker, client));
        assert_eq!(Arc::strong_count(&task), 1);
    });
}
