//! Protected connections.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};
use udccp::{Connection, ConnectionEvent, ConnectionStats, Outgoing, TrySendError};

use crate::engine::{Engine, Event};
use crate::handshake::transmit;
use crate::{DtlsOptions, Error, Fingerprint, Version, handshake, pump, records};

/// Most received messages that wait here. Beyond that, DCCP's own queue slows the peer down.
const INCOMING_MESSAGES: usize = 64;
/// How often a close_notify that DCCP reports lost is sent in total.
const CLOSE_NOTIFIES: u32 = 3;
/// How long each close_notify may take to be reported received or lost.
const CLOSE_NOTIFY_WITHIN: Duration = Duration::from_secs(2);

/// A DTLS connection on a DCCP connection of its own (RFC 5238).
///
/// All methods take `&self`, so tasks can share it in an `Arc`. Messages keep their boundaries and
/// are sent once. Dropping it sends a close_notify and closes the connection in the background;
/// [`Self::close`] waits for the end.
#[derive(Debug)]
pub struct DtlsConnection {
    shared: Arc<Shared>,
    incoming: tokio::sync::Mutex<mpsc::Receiver<Bytes>>,
}

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
    version: Version,
    certificate: Option<Vec<u8>>,
    /// How it ended: by a close_notify of either side, or by an error.
    end: OnceLock<Result<(), Error>>,
    /// Our close_notify, once it exists, so that a close that was cancelled can be continued.
    notify: OnceLock<Vec<Bytes>>,
    /// Notified when a send has set a timer of the engine.
    pub(crate) due_changed: Notify,
    pub(crate) counts: Counts,
}

/// Counters that both the pump and senders increment.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    sent: AtomicU64,
    received: AtomicU64,
    discarded: AtomicU64,
    handshake: u64,
}

impl Counts {
    pub(crate) fn received(&self) {
        self.received.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn discarded(&self) {
        self.discarded.fetch_add(1, Ordering::Relaxed);
    }
}

impl Shared {
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
    fn close_notify(&self) -> &[Bytes] {
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
    async fn send_close_notify(&self) {
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
    async fn ensure_close_notify(self: Arc<Self>, queued: bool) {
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
}

fn packets(events: Vec<Event>) -> Vec<Bytes> {
    let packet = |event| match event {
        Event::Packet(packet) => Some(packet),
        _ => None,
    };
    events.into_iter().filter_map(packet).collect()
}

impl DtlsConnection {
    /// The client's side: runs DTLS on a DCCP connection that is used for nothing else.
    ///
    /// # Errors
    /// [`Error::NoVerification`] and other invalid settings; [`Error::CertificateRefused`],
    /// [`Error::PeerAlert`] or [`Error::Handshake`] if one side rejects the other;
    /// [`Error::HandshakeTimeout`]; [`Error::Dccp`] if the DCCP connection ends.
    pub async fn client(connection: Connection, options: &DtlsOptions) -> Result<Self, Error> {
        Self::establish(connection, options, true).await
    }

    /// The server's side.
    ///
    /// # Errors
    /// As [`Self::client`]; [`Error::NoIdentity`].
    pub async fn server(connection: Connection, options: &DtlsOptions) -> Result<Self, Error> {
        Self::establish(connection, options, false).await
    }

    //= 5238-3.4-1
    /// Takes ownership of the connection, so that nothing can be sent on it unencrypted, before or
    /// after, and no second DTLS connection can follow.
    async fn establish(
        connection: Connection,
        options: &DtlsOptions,
        is_client: bool,
    ) -> Result<Self, Error> {
        let done = handshake::run(&connection, options, is_client).await?;
        let room = INCOMING_MESSAGES.max(done.early.len());
        let (tx, incoming) = mpsc::channel(room);
        let shared = Arc::new(Shared {
            connection,
            engine: Mutex::new(done.engine),
            version: done.version,
            certificate: done.certificate,
            end: OnceLock::new(),
            notify: OnceLock::new(),
            due_changed: Notify::new(),
            counts: Counts { handshake: done.packets_sent, ..Counts::default() },
        });
        for message in done.early {
            // The channel has room for all of them.
            if tx.try_send(message).is_ok() {
                shared.counts.received();
            }
        }
        if done.closed_by_peer {
            shared.end(Ok(()));
        } else {
            tokio::spawn(pump::run(Arc::clone(&shared), tx));
        }
        Ok(Self { shared, incoming: tokio::sync::Mutex::new(incoming) })
    }

    /// Sends a message, waiting while DCCP's send queue is full. Lifetime, priority and token of an
    /// [`Outgoing`] work as without DTLS; [`Self::event`] reports the fates.
    ///
    /// Cancel safe: the message is sent whole or not at all.
    ///
    /// # Errors
    /// [`Error::MessageTooLarge`]; [`Error::Closed`] after a close_notify of either side; otherwise
    /// the error that ended the connection.
    pub async fn send(&self, message: impl Into<Outgoing>) -> Result<(), Error> {
        let message = message.into();
        self.check_open()?;
        //= 5238-3.5-4
        let (len, max) = (message.len(), self.max_message_size());
        if len > max {
            return Err(Error::MessageTooLarge { len, max });
        }
        // A record that was created must be sent, so wait for room first.
        self.connection_open(self.shared.connection.writable().await)?;
        let mut events = Vec::new();
        {
            let mut engine = self.shared.engine();
            let due = engine.due();
            engine.send(message.payload(), &mut events)?;
            if engine.due() != due {
                self.shared.due_changed.notify_one();
            }
        }
        let mut packets = packets(events);
        let last = packets.pop();
        for packet in packets {
            self.connection_open(transmit(&self.shared.connection, packet).await)?;
        }
        if let Some(record) = last {
            let sent = self.shared.connection.send(message.with_payload(record)).await;
            if let Err(udccp::Error::MessageTooLarge { .. }) = sent {
                return Err(Error::MessageTooLarge { len, max: self.max_message_size() });
            }
            self.connection_open(sent)?;
            self.shared.counts.sent.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Receives the next message; `None` after a close_notify of either side, when everything was
    /// read.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    /// After everything was read: [`Error::Truncated`] if DCCP ended without a close_notify;
    /// otherwise the error that ended the connection.
    pub async fn recv(&self) -> Result<Option<Bytes>, Error> {
        if let Some(message) = self.incoming.lock().await.recv().await {
            return Ok(Some(message));
        }
        match self.shared.end.get() {
            Some(Ok(())) => Ok(None),
            Some(Err(e)) => Err(e.clone()),
            None => Err(Error::Protection("its task has stopped".into())),
        }
    }

    /// Waits for the next event of the DCCP connection: the fate of a message with a token
    /// ([`Outgoing::token`]), a new largest message size, and others that [`Connection::event`]
    /// returns. Sizes in events do not include the overhead of DTLS; for the usable size, see
    /// [`Self::max_message_size`]. `None` after the connection has ended and all events were read.
    ///
    /// Cancel safe.
    pub async fn event(&self) -> Option<ConnectionEvent> {
        self.shared.connection.event().await
    }

    /// Closes: sends close_notify, repeated a few times until DCCP reports it received, then closes
    /// the DCCP connection. What was sent before is still delivered. Ready when the peer has
    /// confirmed.
    ///
    /// Cancel safe: from the first poll on, nothing more can be sent. To wait for the end, call
    /// this again; or drop the connection.
    ///
    /// # Errors
    /// As [`Connection::close`].
    pub async fn close(&self) -> Result<(), Error> {
        self.shared.send_close_notify().await;
        Ok(self.shared.connection.close().await?)
    }

    //= 5238-3.5-7
    /// The largest message that fits in one packet of this path now, in bytes, with room for the
    /// overhead of DTLS.
    pub fn max_message_size(&self) -> usize {
        let overhead = records::overhead(self.shared.version);
        self.shared.connection.max_message_size().saturating_sub(overhead)
    }

    /// The peer's certificate in DER; `None` if it was not asked for one.
    pub fn peer_certificate(&self) -> Option<&[u8]> {
        self.shared.certificate.as_deref()
    }

    /// The fingerprint of the peer's certificate; `None` if there is none.
    pub fn peer_fingerprint(&self) -> Option<Fingerprint> {
        self.peer_certificate().map(Fingerprint::of)
    }

    /// The negotiated version of DTLS.
    pub fn version(&self) -> Version {
        self.shared.version
    }

    /// Counters of DTLS.
    pub fn stats(&self) -> DtlsStats {
        let counts = &self.shared.counts;
        DtlsStats {
            messages_sent: counts.sent.load(Ordering::Relaxed),
            messages_received: counts.received.load(Ordering::Relaxed),
            packets_discarded: counts.discarded.load(Ordering::Relaxed),
            handshake_packets_sent: counts.handshake,
        }
    }

    /// State and counters of the DCCP connection; `None` only in a forked child.
    pub fn dccp_stats(&self) -> Option<ConnectionStats> {
        self.shared.connection.stats()
    }

    /// The peer's address and ports.
    pub fn peer_addr(&self) -> udccp::Address {
        self.shared.connection.peer_addr()
    }

    /// The service code that client and server agreed on.
    pub fn service_code(&self) -> udccp::ServiceCode {
        self.shared.connection.service_code()
    }

    /// Waits until the fate of everything sent so far is known, see [`Connection::acknowledged`].
    ///
    /// # Errors
    /// The connection ended first.
    pub async fn acknowledged(&self) -> Result<(), Error> {
        Ok(self.shared.connection.acknowledged().await?)
    }

    fn check_open(&self) -> Result<(), Error> {
        match self.shared.end.get() {
            None => Ok(()),
            Some(Ok(())) => Err(Error::Closed),
            Some(Err(e)) => Err(e.clone()),
        }
    }

    /// If DTLS has announced an end, report that instead of the end of DCCP that follows.
    fn connection_open(&self, done: Result<(), udccp::Error>) -> Result<(), Error> {
        done.map_err(|e| self.check_open().err().unwrap_or_else(|| e.into()))
    }
}

impl Drop for DtlsConnection {
    fn drop(&mut self) {
        let connection = &self.shared.connection;
        // Sent at once, in case the runtime is shutting down; a task does the rest.
        let mut queued = true;
        for packet in self.shared.close_notify() {
            match connection.try_send(packet.clone()) {
                Ok(()) => {}
                Err(TrySendError::Full(_)) => queued = false,
                Err(TrySendError::Failed(_)) => return,
            }
        }
        let is_patient = connection.linger().is_some_and(|linger| !linger.is_zero());
        let runtime = tokio::runtime::Handle::try_current();
        if let Some(runtime) = runtime.ok().filter(|_| is_patient) {
            runtime.spawn(Arc::clone(&self.shared).ensure_close_notify(queued));
        }
        // The pump ends with its receiver. The DCCP connection closes in order when both are gone.
    }
}
