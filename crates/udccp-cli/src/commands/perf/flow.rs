//! One direction of one stream.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::time::MissedTickBehavior;
use udccp::{Connection, Error};

use super::clock;
use super::messages::{BATCH, Mint};
use super::meter::Meter;

/// Messages taken from the connection at once.
const RECEIVE_BATCH: usize = 512;
/// How long the last messages may take to be accounted for.
const DRAIN_WITHIN: Duration = Duration::from_secs(5);

/// A sender's view of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sent {
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
    pub(super) seconds: f64,
}

impl Sent {
    /// The stream so far.
    pub(super) fn of(connection: &Connection, seconds: f64) -> Self {
        let Some(stats) = connection.stats() else { return Self::default() };
        Self {
            messages: stats.counters.data_packets_sent,
            bytes: stats.counters.data_bytes_sent,
            acked: stats.counters.data_packets_acked,
            lost: stats.counters.data_packets_lost,
            srtt_ms: stats.srtt.map(|d| d.as_millis_f64()),
            cwnd_packets: stats.cwnd_packets,
            congestion_events: stats.congestion_events,
            timeouts: stats.timeouts,
            seconds,
        }
    }

    /// What went since an earlier look; `seconds` is the time between the looks.
    pub(super) fn since(&self, earlier: &Self, seconds: f64) -> Self {
        Self {
            messages: self.messages - earlier.messages,
            bytes: self.bytes - earlier.bytes,
            acked: self.acked - earlier.acked,
            lost: self.lost - earlier.lost,
            congestion_events: self.congestion_events - earlier.congestion_events,
            timeouts: self.timeouts - earlier.timeouts,
            seconds,
            ..*self
        }
    }
}

/// What to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) test: u64,
    pub(super) stream: u16,
    pub(super) length: usize,
    pub(super) bits_per_s: Option<u64>,
    pub(super) duration: Duration,
}

/// Sends for the time that the load says, then waits until all of it is accounted for.
pub(super) async fn send(connection: &Connection, load: Load) -> Result<Sent, Error> {
    // Messages that attached the stream are not part of the load.
    let before = Sent::of(connection, 0.0);
    let began = clock();
    let mint = Mint::new(load.test, load.stream, load.length);
    let sending = async {
        match load.bits_per_s {
            None => flood(connection, mint, began).await,
            Some(rate) => pace(connection, mint, began, rate).await,
        }
    };
    match tokio::time::timeout(load.duration, sending).await {
        Err(_elapsed) => {}
        Ok(Err(e)) => return Err(e),
        Ok(Ok(never)) => match never {},
    }
    let seconds = began.elapsed().as_secs_f64();
    let at_end = Sent::of(connection, seconds).since(&before, seconds);
    let _ = tokio::time::timeout(DRAIN_WITHIN, connection.drained()).await;
    let total = Sent::of(connection, seconds).since(&before, seconds);
    // The rate is that of the time measured; what became of the messages is known later.
    Ok(Sent { bytes: at_end.bytes, ..total })
}

/// As fast as it goes.
async fn flood(
    connection: &Connection,
    mut mint: Mint,
    began: Instant,
) -> Result<std::convert::Infallible, Error> {
    loop {
        connection.send_batch(mint.make(BATCH, nanos_since(began))).await?;
    }
}

/// At a rate: every millisecond, what is due by then.
async fn pace(
    connection: &Connection,
    mut mint: Mint,
    began: Instant,
    bits_per_s: u64,
) -> Result<std::convert::Infallible, Error> {
    let mut tick = tokio::time::interval(Duration::from_millis(1));
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let bits_per_message = mint.length() as f64 * 8.0;
    let mut sent = 0_u64;
    loop {
        let due = began.elapsed().as_secs_f64() * bits_per_s as f64 / bits_per_message;
        let mut count = (due as u64 + 1).saturating_sub(sent);
        sent += count;
        while count > 0 {
            let some = count.min(BATCH as u64);
            connection.send_batch(mint.make(some as usize, nanos_since(began))).await?;
            count -= some;
        }
        tick.tick().await;
    }
}

fn nanos_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Counts what arrives until the connection ends.
pub(super) async fn receive(connection: &Connection, meter: &Arc<Meter>) -> Result<(), Error> {
    let mut batch = Vec::with_capacity(RECEIVE_BATCH);
    while connection.recv_batch(&mut batch, RECEIVE_BATCH).await? > 0 {
        meter.count(&batch, clock());
        batch.clear();
    }
    Ok(())
}
