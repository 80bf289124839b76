//! A stream at the client: a connection with its sender and receiver.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use udccp::{Connection, Error};

use super::clock;
use super::control::StreamResult;
use super::flow::{self, Load, Sent};
use super::meter::{Meter, Received};
use super::report::StreamInterval;
use super::spec::{Direction, Spec};
use crate::exit::{CliResult, Exit, Failure};

/// Time limit for reading what has arrived when the connection has ended.
const READ_WITHIN: Duration = Duration::from_secs(2);

/// One stream of the test.
pub(super) struct Stream {
    /// Its number, from 0.
    pub(super) n: u16,
    pub(super) connection: Arc<Connection>,
    /// The server's result, once received.
    pub(super) server: Option<StreamResult>,
    direction: Direction,
    meter: Arc<Meter>,
    sending: Option<JoinHandle<(f64, Result<(), Error>)>>,
    receiving: Option<JoinHandle<Result<(), Error>>>,
    /// Why it ended early.
    failure: Option<Failure>,
    began: Instant,
    /// Time from the start until the last message was sent.
    seconds: Option<f64>,
    /// Messages sent before the test, to attach the stream; they are not part of the load.
    before: Sent,
    /// Counts at the last row.
    seen_sent: Sent,
    seen_received: Received,
}

impl Stream {
    /// A stream that the server has confirmed.
    pub(super) fn new(n: u16, connection: Connection, direction: Direction) -> Self {
        let now = clock();
        let (connection, meter) = (Arc::new(connection), Arc::new(Meter::new(now)));
        let receiving = {
            let (connection, meter) = (Arc::clone(&connection), Arc::clone(&meter));
            tokio::spawn(async move { flow::receive(&connection, &meter).await })
        };
        let before = Sent::of(&connection, 0.0);
        Self {
            n,
            connection,
            server: None,
            direction,
            meter,
            sending: None,
            receiving: Some(receiving),
            failure: None,
            began: now,
            seconds: None,
            before,
            seen_sent: before,
            seen_received: Received::default(),
        }
    }

    /// Starts sending, if the client sends.
    pub(super) fn start(&mut self, spec: &Spec, test: u64) {
        self.began = clock();
        if !self.direction.client_sends() {
            return;
        }
        let load = Load {
            test,
            stream: self.n,
            length: spec.length,
            bits_per_s: spec.bits_per_s,
            duration: spec.duration(),
        };
        let connection = Arc::clone(&self.connection);
        self.sending = Some(tokio::spawn(async move { flow::send(&connection, load).await }));
    }

    /// Waits until one of the streams ends early.
    pub(super) async fn any_failure(streams: &mut [Self]) -> Failure {
        poll_fn(|cx| {
            for stream in &mut *streams {
                let _ = stream.poll_received(cx);
                let _ = stream.poll_left(cx);
                if let Some(failure) = stream.failure.take() {
                    return Poll::Ready(failure);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Waits until the last message has been sent.
    pub(super) async fn left(&mut self) {
        poll_fn(|cx| self.poll_left(cx)).await;
    }

    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(sending) = &mut self.sending else { return Poll::Ready(()) };
        let Poll::Ready(done) = Pin::new(sending).poll(cx) else { return Poll::Pending };
        self.sending = None;
        if let Ok((seconds, result)) = done {
            self.seconds = Some(seconds);
            if let Err(e) = result {
                self.failure.get_or_insert_with(|| ended(Err(e)));
            }
        }
        Poll::Ready(())
    }

    /// Waits until everything that arrived has been read, after the end of the connection.
    pub(super) async fn received(&mut self) {
        let _ = tokio::time::timeout(READ_WITHIN, poll_fn(|cx| self.poll_received(cx))).await;
    }

    fn poll_received(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(receiving) = &mut self.receiving else { return Poll::Ready(()) };
        let Poll::Ready(done) = Pin::new(receiving).poll(cx) else { return Poll::Pending };
        self.receiving = None;
        if let Ok(result) = done {
            self.failure.get_or_insert_with(|| ended(result));
        }
        Poll::Ready(())
    }

    /// Waits until all messages have been sent and are accounted for.
    pub(super) async fn finish(&mut self) -> CliResult<()> {
        self.left().await;
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        flow::account(&self.connection).await;
        Ok(())
    }

    /// Stops sending; the server learns of it at once.
    pub(super) fn abort(&mut self) {
        if let Some(sending) = self.sending.take() {
            sending.abort();
        }
        self.connection.abort();
        let began = self.began;
        self.seconds.get_or_insert_with(|| began.elapsed().as_secs_f64());
    }

    /// Counts since the last row.
    pub(super) fn take_interval(&mut self, seconds: f64) -> StreamInterval {
        let (sent, received) = (Sent::of(&self.connection, seconds), self.meter.total());
        let interval = StreamInterval {
            stream: self.n,
            sent: self.direction.client_sends().then(|| sent.since(&self.seen_sent, seconds)),
            received: self
                .direction
                .server_sends()
                .then(|| received.since(&self.seen_received, seconds)),
        };
        (self.seen_sent, self.seen_received) = (sent, received);
        interval
    }

    /// This side's result.
    pub(super) fn result(&self) -> StreamResult {
        let sent = || {
            let total = Sent::of(&self.connection, 0.0);
            total.since(&self.before, self.seconds.unwrap_or_default())
        };
        StreamResult {
            sent: self.direction.client_sends().then(sent),
            received: self.direction.server_sends().then(|| self.meter.total()),
        }
    }
}

/// Why a stream ended that should have continued.
fn ended(result: Result<(), Error>) -> Failure {
    match result {
        Ok(()) | Err(Error::Closed) => {
            Failure::new(Exit::ConnectionLost, "the server ended the test")
                .hint("look at what the server printed, and whether it still runs")
        }
        Err(e) => failed(e),
    }
}

/// An error of a connection, with the flag that avoids it.
pub(super) fn failed(error: Error) -> Failure {
    let fits = match &error {
        Error::MessageTooLarge { max, .. } => Some(format!("use -l {max} or less")),
        _ => None,
    };
    let failure = Failure::from(error);
    match fits {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
