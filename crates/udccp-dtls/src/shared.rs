//! What a connection, its receiving task and its end share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use udccp::Connection;

use crate::engine::{Engine, Event};
use crate::handshake::{Established, transmit};
use crate::{Error, Version};

/// How often a close_notify that DCCP reports lost is sent in total.
const CLOSE_NOTIFIES: u32 = 3;
/// How long each close_notify may take to be reported received or lost.
const CLOSE_NOTIFY_WITHIN: Duration = Duration::from_secs(2);

/// Counters of a connection, from the end of its handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DtlsStats {
    /// Messages encrypted and handed to DCCP.
    pub messages_sent: u64,
    /// Messages received and authenticated.
    pub messages_received: u64,
    /// Packets received and discarded: forged, damaged, repeated, or left over from the handshake.
    pub packets_discarded: u64,
    /// Packets that our side sent in the handshake, including retransmissions.
    pub handshake_packets_sent: u64,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) connection: Connection,
    engine: Mutex<Engine>,
    pub(crate) version: Version,
    pub(crate) certificate: Option<Vec<u8>>,
    /// How it ended: by a close_notify of either side, or by an error.
    end: OnceLock<Result<(), Error>>,
    /// Our close_notify, once it exists, so that a close that was cancelled can be continued.
    notify: OnceLock<Vec<Bytes>>,
    /// Notified when a send has set a timer of the engine.
    pub(crate) due_changed: Notify,
    pub(crate) counts: Counts,
}

/// Counters that both the receiving task and senders increment.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    sent: AtomicU64,
    received: AtomicU64,
    discarded: AtomicU64,
    handshake: u64,
}

impl Counts {
    pub(crate) fn sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn received(&self) {
        self.received.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn discarded(&self) {
        self.discarded.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> DtlsStats {
        DtlsStats {
            messages_sent: self.sent.load(Ordering::Relaxed),
            messages_received: self.received.load(Ordering::Relaxed),
            packets_discarded: self.discarded.load(Ordering::Relaxed),
            handshake_packets_sent: self.handshake,
        }
    }
}

impl Shared {
    pub(crate) fn new(connection: Connection, done: Established) -> Self {
        Self {
            connection,
            engine: Mutex::new(done.engine),
            version: done.version,
            certificate: done.certificate,
            end: OnceLock::new(),
            notify: OnceLock::new(),
            due_changed: Notify::new(),
            counts: Counts { handshake: done.packets_sent, ..Counts::default() },
        }
    }

    pub(crate) fn engine(&self) -> MutexGuard<'_, Engine> {
        // A panic elsewhere cannot leave the engine inconsistent: it happens between two calls.
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how the connection ended, unless that is set already.
    pub(crate) fn end(&self, how: Result<(), Error>) {
        if self.end.set(how).is_ok() {
            tracing::debug!("DTLS connection ended: {:?}", self.end.get());
        }
    }

    /// The packets of our close_notify; none if the connection ended in another way.
    pub(crate) fn close_notify(&self) -> &[Bytes] {
        self.notify.get_or_init(|| {
            let mut events = Vec::new();
            if self.end.set(Ok(())).is_ok() {
                self.engine().close(&mut events);
            }
            packets(events)
        })
    }

    /// Time limit for data sent before a close to be delivered.
    fn linger(&self) -> Duration {
        self.connection.linger().unwrap_or_default().max(CLOSE_NOTIFY_WITHIN)
    }

    /// Sends a close_notify until DCCP reports it received, at most [`CLOSE_NOTIFIES`] times.
    pub(crate) async fn send_close_notify(&self) {
        let (connection, notify) = (&self.connection, self.close_notify());
        let acked = || connection.stats().map_or(0, |s| s.counters.data_packets_acked);
        // Wait first for earlier messages, so that the next acknowledgement is that of the
        // close_notify. A slow path may need all the time for that; the close_notify is sent
        // nevertheless.
        if let Ok(Err(_)) = tokio::time::timeout(self.linger(), connection.acknowledged()).await {
            return;
        }
        for _ in 0..CLOSE_NOTIFIES {
            let before = acked();
            let reported = async {
                for packet in notify {
                    transmit(connection, packet.clone()).await?;
                }
                connection.acknowledged().await?;
                Ok::<_, udccp::Error>(acked() >= before + notify.len() as u64)
            };
            // The connection has ended, or the peer has received everything.
            if let Ok(Err(_) | Ok(true)) = tokio::time::timeout(CLOSE_NOTIFY_WITHIN, reported).await
            {
                return;
            }
        }
    }

    /// Makes sure that the close_notify of a dropped connection arrives, whether or not it was
    /// `queued`.
    pub(crate) async fn ensure_close_notify(self: Arc<Self>, queued: bool) {
        let missed = || self.connection.stats().map(|s| (s.counters.data_packets_lost, s.timeouts));
        let before = missed();
        if queued {
            let _ = tokio::time::timeout(self.linger(), self.connection.acknowledged()).await;
        }
        let is_settled = self.connection.stats().is_none_or(|s| {
            let c = s.counters;
            c.data_packets_acked + c.data_packets_lost >= c.data_packets_sent
        });
        // Packets given up by a timeout are in neither count, and late ones are in both.
        if !queued || !is_settled || missed() != before {
            self.send_close_notify().await;
        }
    }

    /// How the connection ended; `None` while it is open.
    pub(crate) fn ending(&self) -> Option<&Result<(), Error>> {
        self.end.get()
    }

    pub(crate) fn check_open(&self) -> Result<(), Error> {
        match self.ending() {
            None => Ok(()),
            Some(Ok(())) => Err(Error::Closed),
            Some(Err(e)) => Err(e.clone()),
        }
    }

    /// If DTLS has announced an end, report that instead of the end of DCCP that follows.
    pub(crate) fn connection_open(&self, done: Result<(), udccp::Error>) -> Result<(), Error> {
        done.map_err(|e| self.check_open().err().unwrap_or_else(|| e.into()))
    }
}

pub(crate) fn packets(events: Vec<Event>) -> Vec<Bytes> {
    let packet = |event| match event {
        Event::Packet(packet) => Some(packet),
        _ => None,
    };
    events.into_iter().filter_map(packet).collect()
}
