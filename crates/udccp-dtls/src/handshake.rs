//! The DTLS handshake, which follows that of DCCP.

use std::time::Duration;

use bytes::Bytes;
use udccp::Connection;

use crate::engine::{Engine, Event};
use crate::{Alert, DtlsOptions, Error, Version, records};

//= 5238-3.5-1
/// Handshake packets fit the smallest MTU of IPv6, 1280 bytes, with the headers of IPv6, UDP and
/// DCCP and room for DCCP's options. So a flight never has to be split again.
const PACKET_BYTES: usize = 1100;
/// With smaller packets a handshake is impractical.
const LEAST_PACKET_BYTES: usize = 256;
/// Time limit for an alert to reach the peer.
const REFUSAL_WITHIN: Duration = Duration::from_millis(500);

/// The result of a handshake.
#[derive(Debug)]
pub(crate) struct Established {
    pub(crate) engine: Engine,
    pub(crate) version: Version,
    pub(crate) certificate: Option<Vec<u8>>,
    /// Messages that arrived with the end of the handshake.
    pub(crate) early: Vec<Bytes>,
    pub(crate) closed_by_peer: bool,
    /// Packets of the handshake that we sent.
    pub(crate) packets_sent: u64,
}

/// Runs the handshake within its time limit. If it fails, the peer is sent.
pub(crate) async fn run(
    connection: &Connection,
    options: &DtlsOptions,
    is_client: bool,
) -> Result<Established, Error> {
    let mps = connection.max_message_size();
    if mps < LEAST_PACKET_BYTES {
        return Err(Error::PathTooNarrow { max_message_size: mps, needed: LEAST_PACKET_BYTES });
    }
    //= 5238-3.5-2
    //= 5238-3.5-4
    //= 5238-3.5-7
    let engine = Engine::new(options, is_client, mps.min(PACKET_BYTES))?;
    let mut handshake = Handshake {
        connection,
        options,
        is_client,
        engine,
        certificate: None,
        early: Vec::new(),
        connected: false,
        closed_by_peer: false,
        packets_sent: 0,
    };
    let allowed = options.handshake_timeout;
    let done = match tokio::time::timeout(allowed, handshake.run()).await {
        Ok(done) => done.and_then(|()| handshake.version()).map_err(closed),
        Err(_) => Err(Error::HandshakeTimeout(allowed)),
    };
    match done {
        Ok(version) => Ok(Established {
            engine: handshake.engine,
            version,
            certificate: handshake.certificate,
            early: handshake.early,
            closed_by_peer: handshake.closed_by_peer,
            packets_sent: handshake.packets_sent,
        }),
        Err(e) => {
            handshake.refuse(&e).await;
            Err(e)
        }
    }
}

/// Reports a close by the peer in the same way at any stage.
fn closed(e: Error) -> Error {
    match &e {
        Error::Dccp(below) if matches!(**below, udccp::Error::Closed) => {
            Error::Handshake("the peer closed the DCCP connection".into())
        }
        _ => e,
    }
}

struct Handshake<'a> {
    connection: &'a Connection,
    options: &'a DtlsOptions,
    is_client: bool,
    engine: Engine,
    certificate: Option<Vec<u8>>,
    early: Vec<Bytes>,
    connected: bool,
    closed_by_peer: bool,
    packets_sent: u64,
}

impl Handshake<'_> {
    async fn run(&mut self) -> Result<(), Error> {
        let mut events = Vec::new();
        // The machine's clock starts here, after DCCP's handshake.
        //= 5238-3.2-4
        //= 5238-3.2-5
        let mut done = self.engine.tick(&mut events);
        loop {
            // Even after an error, the machine may have an alert to send.
            self.take(&mut events).await?;
            done?;
            // Send the last flight before returning: nothing stops its timer afterwards.
            if self.connected && !self.engine.clock.is_stopped() {
                return Ok(());
            }
            done = self.wait(&mut events).await;
        }
    }

    /// Waits for the next packet, or until the machine is due.
    async fn wait(&mut self, events: &mut Vec<Event>) -> Result<(), Error> {
        let due = self.engine.due();
        tokio::select! {
            received = self.connection.recv() => match received {
                Ok(Some(packet)) => self.feed(&packet, events),
                // The next read reports the error; earlier messages can still be read.
                _ if self.connected => {
                    self.engine.clock.go_on();
                    Ok(())
                }
                Ok(None) => Err(udccp::Error::Closed.into()),
                Err(e) => Err(e.into()),
            },
            flushed = self.connection.flushed(), if self.engine.clock.is_stopped() => {
                self.engine.clock.go_on();
                // As above.
                if self.connected { Ok(()) } else { Ok(flushed?) }
            }
            () = tokio::time::sleep_until(due), if !self.engine.clock.is_stopped() => {
                self.engine.tick(events)
            }
        }
    }

    fn feed(&mut self, packet: &[u8], events: &mut Vec<Event>) -> Result<(), Error> {
        // The machine ignores a client with none of its versions.
        if !self.is_client
            && records::offered_versions(packet).is_some_and(|v| !self.options.allows(&v))
        {
            return Err(Error::Version);
        }
        self.engine.feed(packet, events).map(drop)
    }

    async fn take(&mut self, events: &mut Vec<Event>) -> Result<(), Error> {
        for event in events.drain(..) {
            match event {
                Event::Packet(packet) => {
                    self.packets_sent += 1;
                    transmit(self.connection, packet).await?;
                }
                Event::Certificate(der) => {
                    self.options.check_certificate(&der)?;
                    self.certificate = Some(der);
                }
                Event::Connected => self.connected = true,
                Event::Data(message) => self.early.push(message),
                Event::CloseNotify => self.closed_by_peer = true,
            }
        }
        // A flight that waits for congestion control is not lost: its timer must not run.
        //= 5238-3.3-1
        let waiting = self.connection.stats().is_some_and(|s| s.send_queue_packets > 0);
        match waiting {
            true => self.engine.clock.stop(),
            false => self.engine.clock.go_on(),
        }
        Ok(())
    }

    /// The negotiated version; an error if the peer has not sent everything required.
    fn version(&self) -> Result<Version, Error> {
        if self.options.needs_certificate() && self.certificate.is_none() {
            return Err(Error::NoCertificate);
        }
        self.engine.version().ok_or_else(|| Error::Handshake("no version was agreed on".into()))
    }

    /// Tells the peer that the handshake has failed: with an alert if there are no keys yet, and
    /// with a DCCP-Reset in any case.
    async fn refuse(&self, error: &Error) {
        let alert = match error {
            Error::Dccp(_) | Error::PeerAlert(_) => None,
            Error::CertificateRefused { .. } => Some(Alert::BAD_CERTIFICATE),
            Error::Version => Some(Alert::PROTOCOL_VERSION),
            Error::WrongKey => Some(Alert::DECRYPT_ERROR),
            _ => Some(Alert::HANDSHAKE_FAILURE),
        };
        // With DTLS 1.3, the peer has keys by now and ignores unencrypted alerts.
        let has_keys = self.engine.version() == Some(Version::Dtls13);
        if let Some(alert) = alert.filter(|&a| a == Alert::PROTOCOL_VERSION || !has_keys) {
            let sent = async {
                self.connection.send(records::alert(alert)).await?;
                self.connection.acknowledged().await
            };
            let _ = tokio::time::timeout(REFUSAL_WITHIN, sent).await;
        }
        self.connection.abort();
    }
}

//= 5238-3-1
//= 5238-3-2
//= 5238-3-3
//= 5238-3.5-7
/// Sends a packet of the engine. If the path MTU has become smaller, splits it between records.
pub(crate) async fn transmit(connection: &Connection, packet: Bytes) -> Result<(), udccp::Error> {
    let mps = connection.max_message_size();
    if packet.len() <= mps {
        return connection.send(packet).await;
    }
    for packet in records::repack(packet, mps) {
        connection.send(packet).await?;
    }
    Ok(())
}
