//! Protected connections.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;
use udccp::{Connection, ConnectionEvent, ConnectionStats, Outgoing, TrySendError};

use crate::handshake::transmit;
use crate::shared::{DtlsStats, Shared, packets};
use crate::{DtlsOptions, Error, Fingerprint, Version, handshake, pump, records};

/// Most received messages that wait here. Beyond that, DCCP's own queue slows the peer down.
const INCOMING_MESSAGES: usize = 64;

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
        let mut done = handshake::run(&connection, options, is_client).await?;
        let early = std::mem::take(&mut done.early);
        let closed_by_peer = done.closed_by_peer;
        let (tx, incoming) = mpsc::channel(INCOMING_MESSAGES.max(early.len()));
        let shared = Arc::new(Shared::new(connection, done));
        for message in early {
            // The channel has room for all of them.
            if tx.try_send(message).is_ok() {
                shared.counts.received();
            }
        }
        if closed_by_peer {
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
        self.shared.check_open()?;
        //= 5238-3.5-4
        let (len, max) = (message.len(), self.max_message_size());
        if len > max {
            return Err(Error::MessageTooLarge { len, max });
        }
        // A record that was created must be sent, so wait for room first.
        self.shared.connection_open(self.shared.connection.writable().await)?;
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
            self.shared.connection_open(transmit(&self.shared.connection, packet).await)?;
        }
        if let Some(record) = last {
            let sent = self.shared.connection.send(message.with_payload(record)).await;
            if let Err(udccp::Error::MessageTooLarge { .. }) = sent {
                return Err(Error::MessageTooLarge { len, max: self.max_message_size() });
            }
            self.shared.connection_open(sent)?;
            self.shared.counts.sent();
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
        match self.shared.ending() {
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
        self.shared.counts.read()
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
