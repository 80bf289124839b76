//! The DTLS state machine and its clock: bytes and time in, events out.

use std::time::{Duration, Instant};

use bytes::Bytes;
use dimpl::{CryptoError, CryptoOperation};

use crate::options::ENGINE_QUEUE_PACKETS;
use crate::{Alert, DtlsOptions, Error, Version, records};

/// Initial size of the buffer that the machine writes to; it grows if a packet is larger.
const BUFFER_BYTES: usize = 2048;
/// Larger packets contain no valid records (2^14 bytes and their protection).
const LARGEST_PACKET_BYTES: usize = 18 << 10;
/// Size of the buffer during the handshake. It does not grow for a certificate, so it must hold as
/// much as the machine can assemble. The system backs only the part that is used.
const HANDSHAKE_BUFFER_BYTES: usize = ENGINE_QUEUE_PACKETS * LARGEST_PACKET_BYTES;

/// The machine replaces a key after three quarters of its records at the earliest, but only when it
/// processes a timeout or a packet. A sender that receives nothing has to trigger that itself.
const LOOKS_PER_KEY: u64 = 16;

/// Output of the machine.
#[derive(Debug)]
pub(crate) enum Event {
    /// A packet to send.
    Packet(Bytes),
    /// The peer's certificate. The handshake verifies that the peer has its key.
    Certificate(Vec<u8>),
    /// The handshake is complete.
    Connected,
    /// A message from the peer.
    Data(Bytes),
    /// The peer sends nothing more.
    CloseNotify,
}

/// The machine's clock, which stops while a flight is queued for sending.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// The total time for which it was stopped.
    lag: Duration,
    stopped: Option<Instant>,
}

impl Clock {
    pub(crate) fn now(&self) -> Instant {
        self.at(real_now())
    }

    /// Stops the clock.
    pub(crate) fn stop(&mut self) {
        self.stop_at(real_now());
    }

    /// Continues the clock.
    pub(crate) fn go_on(&mut self) {
        self.go_on_at(real_now());
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    fn at(&self, real: Instant) -> Instant {
        self.stopped.unwrap_or(real) - self.lag
    }

    fn stop_at(&mut self, real: Instant) {
        self.stopped.get_or_insert(real);
    }

    fn go_on_at(&mut self, real: Instant) {
        if let Some(since) = self.stopped.take() {
            self.lag += real.saturating_duration_since(since);
        }
    }

    /// Converts the machine's time `at` to real time, assuming that the clock runs from now on.
    fn to_real(&self, at: Instant) -> Instant {
        at + self.lag
    }
}

fn real_now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The DTLS state machine of one side.
pub(crate) struct Engine {
    machine: dimpl::Dtls,
    pub(crate) clock: Clock,
    due: Instant,
    buffer: Vec<u8>,
    /// How many messages between checks of the key's age, and how many remain until the next.
    look_every: u64,
    until_look: u64,
}

impl Engine {
    /// A machine whose handshake packets have at most `packet_bytes`.
    pub(crate) fn new(
        options: &DtlsOptions,
        is_client: bool,
        packet_bytes: usize,
    ) -> Result<Self, Error> {
        let clock = Clock::default();
        let now = clock.now();
        let machine = options.machine(is_client, packet_bytes, now)?;
        let look_every = (options.records_per_key / LOOKS_PER_KEY).max(1);
        let buffer = vec![0; HANDSHAKE_BUFFER_BYTES];
        Ok(Self { machine, clock, due: now, buffer, look_every, until_look: look_every })
    }

    /// When to call [`Self::tick`].
    pub(crate) fn due(&self) -> tokio::time::Instant {
        self.clock.to_real(self.due).into()
    }

    /// The negotiated version; `None` before.
    pub(crate) fn version(&self) -> Option<Version> {
        match self.machine.protocol_version()? {
            dimpl::ProtocolVersion::DTLS1_2 => Some(Version::Dtls12),
            dimpl::ProtocolVersion::DTLS1_3 => Some(Version::Dtls13),
            _ => None,
        }
    }

    /// To be called when due, and to start the handshake.
    pub(crate) fn tick(&mut self, events: &mut Vec<Event>) -> Result<(), Error> {
        let done = self.machine.handle_timeout(self.clock.now());
        self.drain(events);
        done.map_err(error)
    }

    /// Processes a packet that arrived. Returns whether it was useful.
    pub(crate) fn feed(&mut self, packet: &[u8], events: &mut Vec<Event>) -> Result<bool, Error> {
        if packet.len() > LARGEST_PACKET_BYTES {
            return Ok(false);
        }
        if self.machine.is_active() && self.version().is_none() {
            if let Some(alert) = records::clear_alert(packet) {
                return Err(Error::PeerAlert(alert));
            }
            if !records::names_server_version(packet) {
                // Later parts of a flight arrived first, which the machine could not interpret.
                return Ok(false);
            }
        }
        self.tick(events)?;
        let (before, due) = (events.len(), self.due);
        // The machine drops a whole packet if its first record was read before, so a repeated
        // flight with new records after old ones would never arrive. Pass records one by one.
        let mut records = records::each(packet);
        let done = records.try_for_each(|record| match self.machine.handle_packet(record) {
            // Dropped like any other packet.
            Err(dimpl::Error::ReceiveQueueFull) => Ok(()),
            other => other.map_err(error),
        });
        self.drain(events);
        done.map(|()| events.len() > before || self.due != due)
    }

    /// Encrypts a message. This may change [`Self::due`].
    pub(crate) fn send(&mut self, data: &[u8], events: &mut Vec<Event>) -> Result<(), Error> {
        self.until_look -= 1;
        if self.until_look == 0 {
            self.until_look = self.look_every;
            self.tick(events)?;
        }
        let done = self.machine.send_application_data(data);
        self.drain(events);
        match done {
            Ok(_) => Ok(()),
            Err(dimpl::Error::ConnectionClosed) => Err(Error::Closed),
            Err(e) => Err(Error::Protection(e.to_string())),
        }
    }

    /// Ends sending: creates a close_notify.
    pub(crate) fn close(&mut self, events: &mut Vec<Event>) {
        if self.machine.close().is_ok() {
            self.drain(events);
        }
    }

    fn drain(&mut self, events: &mut Vec<Event>) {
        loop {
            match self.machine.poll_output(&mut self.buffer) {
                dimpl::Output::Packet(packet) => {
                    events.push(Event::Packet(Bytes::copy_from_slice(packet)));
                }
                dimpl::Output::BufferTooSmall { needed } => self.buffer.resize(needed, 0),
                dimpl::Output::Connected => {
                    self.buffer = vec![0; BUFFER_BYTES];
                    events.push(Event::Connected);
                }
                dimpl::Output::PeerCert(der) => events.push(Event::Certificate(der.to_vec())),
                dimpl::Output::ApplicationData(data) => {
                    events.push(Event::Data(Bytes::copy_from_slice(data)));
                }
                dimpl::Output::CloseNotify => events.push(Event::CloseNotify),
                dimpl::Output::Timeout(due) => {
                    self.due = due;
                    return;
                }
                _ => {}
            }
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("machine", &self.machine).finish_non_exhaustive()
    }
}

fn error(e: dimpl::Error) -> Error {
    match e {
        dimpl::Error::SecurityError(dimpl::SecurityError::FatalAlert { description }) => {
            Error::PeerAlert(Alert(description))
        }
        dimpl::Error::CertificateError(
            dimpl::CertificateError::NoClientCertificateReceived
            | dimpl::CertificateError::NoServerCertificateReceived,
        ) => Error::NoCertificate,
        dimpl::Error::CryptoError(CryptoError::OperationFailed(CryptoOperation::Decrypt)) => {
            Error::WrongKey
        }
        dimpl::Error::Timeout(_) => Error::Handshake("the peer does not answer".into()),
        other => Error::Handshake(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= 5238-3.3-1 test
    #[test]
    fn stopped_clock_does_not_advance() {
        let start = real_now();
        let after = |s| start + Duration::from_secs(s);
        let mut clock = Clock::default();
        clock.stop_at(after(1));
        clock.stop_at(after(2));
        assert!(clock.is_stopped());
        assert_eq!(clock.at(after(6)), after(1));
        clock.go_on_at(after(6));
        assert_eq!(clock.at(after(8)), after(3));
        assert_eq!(clock.to_real(after(3)), after(8));
    }

    /// Two connected ends, whose keys last for about `records` each.
    fn connected(records: u64) -> (Engine, Engine) {
        let me = crate::Identity::self_signed("server.example").unwrap();
        let versions = Version::Dtls13..=Version::Dtls13;
        let mut options = DtlsOptions::new().versions(versions).identity(me);
        options.records_per_key = records;
        let server = options.clone();
        let client = options.dangerous_accept_any();
        let engine = |options: &DtlsOptions, is_client| Engine::new(options, is_client, 1100);
        let (mut a, mut b) = (engine(&client, true).unwrap(), engine(&server, false).unwrap());
        let mut events = Vec::new();
        a.tick(&mut events).unwrap();
        for _ in 0..8 {
            for packet in packets(&mut events) {
                b.feed(&packet, &mut events).unwrap();
            }
            for packet in packets(&mut events) {
                a.feed(&packet, &mut events).unwrap();
            }
        }
        (a, b)
    }

    fn packets(events: &mut Vec<Event>) -> Vec<Bytes> {
        let packet = |event| match event {
            Event::Packet(packet) => Some(packet),
            _ => None,
        };
        events.drain(..).filter_map(packet).collect()
    }

    /// One end of a DTLS 1.3 handshake with packets of this size.
    fn end(is_client: bool, packet_bytes: usize) -> Engine {
        let me = crate::Identity::self_signed("server.example").unwrap();
        let options = DtlsOptions::new().versions(Version::Dtls13..=Version::Dtls13);
        let options = options.flight_timeout(Duration::from_millis(10));
        let options = match is_client {
            true => options.dangerous_accept_any(),
            false => options.identity(me),
        };
        Engine::new(&options, is_client, packet_bytes).unwrap()
    }

    /// The client acknowledges the first part of a message whose second part is lost. The server
    /// then repeats the second part after messages that the client has already read.
    #[test]
    fn a_packet_that_begins_with_what_is_known_is_read_to_its_end() {
        // Packets end in the certificate, between two messages, or in CertificateVerify.
        for packet_bytes in (420..660).step_by(20) {
            let mut ends = [end(true, packet_bytes), end(false, packet_bytes)];
            let (mut events, mut done, mut lost) = (Vec::new(), [false; 2], false);
            ends[0].tick(&mut events).unwrap();
            let mut sent = [packets(&mut events), Vec::new()];
            let start = real_now();
            for round in 1..1000 {
                for to in [1, 0] {
                    for packet in std::mem::take(&mut sent[1 - to]) {
                        ends[to].feed(&packet, &mut events).unwrap();
                    }
                    done[to] |= events.iter().any(|e| matches!(e, Event::Connected));
                    sent[to].extend(packets(&mut events));
                    if to == 1 && sent[1].len() > 1 && !lost {
                        lost = sent[1].pop().is_some();
                    }
                }
                if done == [true; 2] {
                    break;
                }
                for (end, sent) in ends.iter_mut().zip(&mut sent) {
                    end.clock.stopped = Some(start + round * Duration::from_millis(1));
                    end.tick(&mut events).unwrap();
                    sent.extend(packets(&mut events));
                }
            }
            assert_eq!((done, lost), ([true; 2], true), "packets of {packet_bytes} bytes");
        }
    }

    #[test]
    fn keys_are_updated_at_their_usage_limit() {
        let (mut a, mut b) = connected(50);
        let (mut events, mut answers, mut updates) = (Vec::new(), Vec::new(), 0);
        let idle = a.due();
        for n in 0..500_u32 {
            a.send(&n.to_be_bytes(), &mut events).unwrap();
            let sent = packets(&mut events);
            // The update is repeated by a timer if it is lost.
            updates += usize::from(a.due() < idle);
            for packet in sent {
                b.feed(&packet, &mut answers).unwrap();
            }
            let is_data = |e: &Event| matches!(e, Event::Data(d) if d[..] == n.to_be_bytes());
            assert!(answers.iter().any(is_data), "message {n}");
            for packet in packets(&mut answers) {
                a.feed(&packet, &mut events).unwrap();
            }
        }
        assert!(updates >= 9, "{updates}");
    }
}
