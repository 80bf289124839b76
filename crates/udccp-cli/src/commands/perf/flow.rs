//! One direction of one stream.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::time::MissedTickBehavior;
use udccp::{Connection, Error, Outgoing};

use super::clock;
use super::messages::{BATCH, MessageFactory};
use super::meter::Meter;
use super::spec::SEND_QUEUE_BYTES;

/// Messages read from the connection at once.
const RECEIVE_BATCH: usize = 512;
/// Time limit for the last messages to be sent, and then to be accounted for.
const DRAIN_WITHIN: Duration = Duration::from_secs(5);
/// If the send queue takes longer than this to empty, its messages expire at the end of the test.
const LONG_QUEUE_SECONDS: f64 = 0.1;

/// The sender's result for a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sent {
    /// Messages sent.
    pub(super) messages: u64,
    pub(super) bytes: u64,
    /// Messages that the peer reported received.
    pub(super) acked: u64,
    /// Messages judged lost.
    pub(super) lost: u64,
    pub(super) srtt_ms: Option<f64>,
    pub(super) cwnd_packets: Option<u32>,
    pub(super) congestion_events: u64,
    pub(super) timeouts: u64,
    /// Time until the last message was sent.
    pub(super) seconds: f64,
}

impl Sent {
    /// The result so far.
    pub(super) fn of(connection: &Connection, seconds: f64) -> Self {
        let Some(stats) = connection.stats() else { return Self::default() };
        Self {
            messages: stats.counters.data_packets_sent,
            bytes: stats.counters.data_bytes_sent,
            acked: stats.counters.data_packets_acked,
            lost: stats.counters.data_packets_lost,
            srtt_ms: stats.srtt.map(|d| d.as_secs_f64() * 1e3),
            cwnd_packets: stats.cwnd_packets,
            congestion_events: stats.congestion_events,
            timeouts: stats.timeouts,
            seconds,
        }
    }

    /// The difference from an earlier result; `seconds` is the time between them.
    pub(super) fn since(&self, earlier: &Self, seconds: f64) -> Self {
        Self {
            messages: self.messages.saturating_sub(earlier.messages),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            acked: self.acked.saturating_sub(earlier.acked),
            lost: self.lost.saturating_sub(earlier.lost),
            congestion_events: self.congestion_events.saturating_sub(earlier.congestion_events),
            timeouts: self.timeouts.saturating_sub(earlier.timeouts),
            seconds,
            ..*self
        }
    }
}

/// The traffic to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) test: u64,
    pub(super) stream: u16,
    pub(super) length: usize,
    pub(super) bits_per_s: Option<u64>,
    /// `None` means until the connection ends.
    pub(super) duration: Option<Duration>,
}

impl Load {
    /// A message for the send queue. On a slow path it may wait there for many seconds, so it
    /// expires when the test's time is over.
    fn message(&self, data: bytes::Bytes, mint: &MessageFactory, elapsed: Duration) -> Outgoing {
        let Some(duration) = self.duration else { return data.into() };
        let left = mint.bytes_made().saturating_sub(SEND_QUEUE_BYTES as u64) as f64;
        if left * LONG_QUEUE_SECONDS > SEND_QUEUE_BYTES as f64 * elapsed.as_secs_f64() {
            return data.into();
        }
        Outgoing::new(data).lifetime(duration.saturating_sub(elapsed))
    }
}

/// Sends for the load's duration, until the last message has been sent. Returns how many seconds
/// that took, however it ended.
pub(super) async fn send(connection: &Connection, load: Load) -> (f64, Result<(), Error>) {
    let began = clock();
    let sending = async {
        match load.bits_per_s {
            None => flood(connection, load, began).await,
            Some(rate) => pace(connection, load, began, rate).await,
        }
    };
    let result = match load.duration {
        None => sending.await,
        Some(duration) => match tokio::time::timeout(duration, sending).await {
            Err(_elapsed) => {
                let _ = tokio::time::timeout(DRAIN_WITHIN, connection.flushed()).await;
                return (began.elapsed().as_secs_f64(), Ok(()));
            }
            Ok(result) => result,
        },
    };
    (began.elapsed().as_secs_f64(), result.map(|never| match never {}))
}

/// Waits until all messages are accounted for, or the connection has ended.
pub(super) async fn account(connection: &Connection) {
    let _ = tokio::time::timeout(DRAIN_WITHIN, connection.acknowledged()).await;
}

/// Sends as fast as possible.
async fn flood(
    connection: &Connection,
    load: Load,
    began: Instant,
) -> Result<std::convert::Infallible, Error> {
    let mut mint = MessageFactory::new(load.test, load.stream, load.length);
    loop {
        let elapsed = began.elapsed();
        let batch = mint.make(BATCH, nanos(elapsed));
        connection.send_batch(batch.map(|m| load.message(m, &mint, elapsed))).await?;
    }
}

/// Sends at a rate: every millisecond, whatever is due.
async fn pace(
    connection: &Connection,
    load: Load,
    began: Instant,
    bits_per_s: u64,
) -> Result<std::convert::Infallible, Error> {
    let mut mint = MessageFactory::new(load.test, load.stream, load.length);
    let mut tick = tokio::time::interval(Duration::from_millis(1));
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let bits_per_message = load.length as f64 * 8.0;
    let mut sent = 0_u64;
    loop {
        let due = began.elapsed().as_secs_f64() * bits_per_s as f64 / bits_per_message;
        let mut count = (due as u64 + 1).saturating_sub(sent);
        sent += count;
        while count > 0 {
            let some = count.min(BATCH as u64);
            let elapsed = began.elapsed();
            let batch = mint.make(some as usize, nanos(elapsed));
            connection.send_batch(batch.map(|m| load.message(m, &mint, elapsed))).await?;
            count -= some;
        }
        tick.tick().await;
    }
}

fn nanos(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}

/// Counts received messages until the connection ends.
pub(super) async fn receive(connection: &Connection, meter: &Arc<Meter>) -> Result<(), Error> {
    let mut batch = Vec::with_capacity(RECEIVE_BATCH);
    while connection.recv_batch(&mut batch, RECEIVE_BATCH).await? > 0 {
        meter.count(&batch, clock());
        batch.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsent_messages_are_discarded_only_on_a_slow_path() {
        let load = |duration| Load { test: 1, stream: 0, length: 1000, bits_per_s: None, duration };
        let minute = Duration::from_secs(60);
        let message = |batches, duration, elapsed| {
            let load = load(duration);
            let mut mint = MessageFactory::new(1, 0, load.length);
            (0..batches).for_each(|_| drop(mint.make(BATCH, 0)));
            load.message(bytes::Bytes::new(), &mint, elapsed)
        };
        let (plain, second) = (Outgoing::new(""), Duration::from_secs(1));
        let until_the_end = Outgoing::new("").lifetime(minute - second);
        // At 1 MB/s the queue of 1 MiB takes a second to empty, at 64 MB/s 16 ms.
        assert_eq!(message(32, Some(minute), second), until_the_end);
        assert_eq!(message(1024, Some(minute), second), plain);
        assert_eq!(message(32, None, second), plain, "until it is stopped");
    }
}
