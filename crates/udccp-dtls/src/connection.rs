//! A protected connection.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};
use udccp::{Connection, ConnectionEvent, ConnectionStats, Outgoing, TrySendError};

use crate::engine::{Engine, Event};
use crate::handshake::transmit;
use crate::{DtlsOptions, Error, Fingerprint, Version, handshake, pump, records};

/// Messages that wait to be read before the peer is slowed down by DCCP's own queue.
const INCOMING_MESSAGES: usize = 64;
/// A close_notify that DCCP reports lost is sent again, so often in all.
const CLOSE_NOTIFIES: u32 = 3;
/// How long each may take to be accounted for.
const CLOSE_NOTIFY_WITHIN: Duration = Duration::from_secs(2);

/// A DTLS connection on a DCCP connection of its own (RFC 5238).
///
/// Every method takes `&self`, so tasks may share it in an `Arc`. Messages keep their boundaries
/// and are sent once. Dropping it says close_notify and closes in order in the background;
/// [`Self::close`] waits for the end.
#[derive(Debug)]
pub struct DtlsConnection {
    shared: Arc<Shared>,
    incoming: tokio::sync::Mutex<mpsc::Receiver<Bytes>>,
}

/// What the connection counts, from the end of its handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DtlsStats {
    /// Messages protected and handed to DCCP.
    pub messages_sent: u64,
    /// Messages received and found genuine.
    pub messages_received: u64,
    /// Packets received that were of no use: forged, damaged, repeated, or left over from the
    /// handshake.
    pub packets_discarded: u64,
    /// Packets that our side of the handshake took, repetitions included.
    pub handshake_packets_sent: u64,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) connection: Connection,
    engine: Mutex<Engine>,
    version: Version,
    certificate: Option<Vec<u8>>,
    /// How it ended: by a close_notify, ours or theirs, or by an error.
    end: OnceLock<Result<(), Error>>,
    /// Our close_notify, once it is made: a close that was given up can be taken up again.
    notify: OnceLock<Vec<Bytes>>,
    /// A send has set a timer of the engine.
    pub(crate) due_changed: Notify,
    pub(crate) counts: Counts,
}

/// Counters that both the pump and the senders raise.
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
        // A panic elsewhere leaves the engine between two calls.
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how the connection ended, if that is not known yet.
    pub(crate) fn end(&self, how: Result<(), Error>) {
        if self.end.set(how).is_ok() {
            tracing::debug!("DTLS connection ended: {:?}", self.end.get());
        }
    }

    /// The packets of our close_notify; none where the connection ended by other means.
    fn close_notify(&self) -> &[Bytes] {
        self.notify.get_or_init(|| {
            let mut events = Vec::new();
            if self.end.set(Ok(())).is_ok() {
                self.engine().close(&mut events);
            }
            packets(events)
        })
    }

    /// How long what was sent before a close may take.
    fn linger(&self) -> Duration {
        self.connection.linger().unwrap_or_default().max(CLOSE_NOTIFY_WITHIN)
    }

    /// Says close_notify until DCCP reports it received, some times at most.
    async fn say_goodbye(&self) {
        let (connection, notify) = (&self.connection, self.close_notify());
        let acked = || connection.stats().map_or(0, |s| s.counters.data_packets_acked);
        // What was sent before is settled first, so that what is acknowledged then is this. A slow
        // path may need all the time there is for that, and the goodbye is said all the same.
        if let Ok(Err(_)) = tokio::time::timeout(self.linger(), connection.acknowledged()).await {
            return;
        }
        for _ in 0..CLOSE_NOTIFIES {
            let before = acked();
            let told = async {
                for packet in notify {
                    transmit(connection, packet.clone()).await?;
                }
                connection.acknowledged().await?;
                Ok::<_, udccp::Error>(acked() >= before + notify.len() as u64)
            };
            // The connection has ended, or the peer has all of it.
            if let Ok(Err(_) | Ok(true)) = tokio::time::timeout(CLOSE_NOTIFY_WITHIN, told).await {
                return;
            }
        }
    }

    /// Sees to it that the goodbye of a dropped connection arrives, `queued` or not.
    async fn say_goodbye_behind(self: Arc<Self>, queued: bool) {
        let missed = || self.connection.stats().map(|s| (s.counters.data_packets_lost, s.timeouts));
        let before = missed();
        if queued {
            let _ = tokio::time::timeout(self.linger(), self.connection.acknowledged()).await;
        }
        let is_settled = self.connection.stats().is_none_or(|s| {
            let c = s.counters;
            c.data_packets_acked + c.data_packets_lost >= c.data_packets_sent
        });
        // What a timeout gave up is counted neither way, and what was late both ways.
        if !queued || !is_settled || missed() != before {
            self.say_goodbye().await;
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
    /// The client's side: opens a DTLS connection on a DCCP connection that carries nothing else.
    ///
    /// # Errors
    /// [`Error::NoVerification`] and other settings that cannot be used;
    /// [`Error::CertificateRefused`], [`Error::PeerAlert`] or [`Error::Handshake`] where one side
    /// does not accept the other; [`Error::HandshakeTimeout`]; the end of the DCCP connection.
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
    /// Takes the connection for good: nothing can be sent on it in the clear, before or after,
    /// and no second DTLS connection can follow on it.
    async fn establish(
        connection: Connection,
        options: &DtlsOptions,
        is_client: bool,
    ) -> Result<Self, Error> {
        let done = handshake::run(&connection, options, is_client).await?;
        let room = INCOMING_MESSAGES.max(done.early.len());
        let (tell, incoming) = mpsc::channel(room);
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
            // There is room for all of them.
            if tell.try_send(message).is_ok() {
                shared.counts.received();
            }
        }
        if done.closed_by_peer {
            shared.end(Ok(()));
        } else {
            tokio::spawn(pump::run(Arc::clone(&shared), tell));
        }
        Ok(Self { shared, incoming: tokio::sync::Mutex::new(incoming) })
    }

    /// Sends a message, waiting while DCCP's send queue is full. Lifetime, priority and token of an
    /// [`Outgoing`] count as they do without protection; [`Self::event`] has the fates.
    ///
    /// Cancel safe: the message is sent whole or not at all.
    ///
    /// # Errors
    /// [`Error::MessageTooLarge`]; [`Error::Closed`] after either side's close_notify; what ended
    /// the connection.
    pub async fn send(&self, message: impl Into<Outgoing>) -> Result<(), Error> {
        let message = message.into();
        self.check_open()?;
        //= 5238-3.5-4
        let (len, max) = (message.len(), self.max_message_size());
        if len > max {
            return Err(Error::MessageTooLarge { len, max });
        }
        // A record that is made is sent: so first wait, then make it.
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

    /// The next message; `None` once the peer has said close_notify (or we have) and all was
    /// read.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    /// [`Error::Truncated`] once all was read and DCCP ended without a close_notify; what else
    /// ended the connection.
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

    /// The next event of the DCCP connection below, waiting for it: the fate of a message that was
    /// sent with a token ([`Outgoing::token`]), another largest message, and what else
    /// [`Connection::event`] gives. Sizes in events are those without protection:
    /// [`Self::max_message_size`] has what is left. `None` once the connection has ended and all
    /// were read.
    ///
    /// Cancel safe.
    pub async fn event(&self) -> Option<ConnectionEvent> {
        self.shared.connection.event().await
    }

    /// Says close_notify, and some times again until DCCP reports it received; then closes the
    /// DCCP connection. What was sent before is still delivered. Ready when the peer has confirmed.
    ///
    /// Cancel safe: nothing more can be sent from the first poll on; wait for the end with this
    /// call again, or drop the connection.
    ///
    /// # Errors
    /// As [`Connection::close`].
    pub async fn close(&self) -> Result<(), Error> {
        self.shared.say_goodbye().await;
        Ok(self.shared.connection.close().await?)
    }

    //= 5238-3.5-7
    /// The largest message in bytes that fits in one packet of this path now, with its
    /// protection.
    pub fn max_message_size(&self) -> usize {
        let overhead = records::overhead(self.shared.version);
        self.shared.connection.max_message_size().saturating_sub(overhead)
    }

    /// The peer's certificate in DER; `None` where it was not asked for one.
    pub fn peer_certificate(&self) -> Option<&[u8]> {
        self.shared.certificate.as_deref()
    }

    /// The fingerprint of the peer's certificate.
    pub fn peer_fingerprint(&self) -> Option<Fingerprint> {
        self.peer_certificate().map(Fingerprint::of)
    }

    /// The version that both sides agreed on.
    pub fn version(&self) -> Version {
        self.shared.version
    }

    /// What was counted here.
    pub fn stats(&self) -> DtlsStats {
        let counts = &self.shared.counts;
        DtlsStats {
            messages_sent: counts.sent.load(Ordering::Relaxed),
            messages_received: counts.received.load(Ordering::Relaxed),
            packets_discarded: counts.discarded.load(Ordering::Relaxed),
            handshake_packets_sent: counts.handshake,
        }
    }

    /// What the DCCP connection below counts.
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

    /// Waits until everything sent so far is accounted for, see [`Connection::acknowledged`].
    ///
    /// # Errors
    /// The connection ended before.
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

    /// An end that DTLS has announced counts more than the one of DCCP that follows it.
    fn connection_open(&self, done: Result<(), udccp::Error>) -> Result<(), Error> {
        done.map_err(|e| self.check_open().err().unwrap_or_else(|| e.into()))
    }
}

impl Drop for DtlsConnection {
    fn drop(&mut self) {
        let connection = &self.shared.connection;
        // At once, for a runtime that ends now; what is left is for a task.
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
            runtime.spawn(Arc::clone(&self.shared).say_goodbye_behind(queued));
        }
        // The pump ends with its receiver, and the DCCP connection closes in order with both.
    }
}
