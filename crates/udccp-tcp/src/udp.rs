//! Sends and receives UDP: the source alone controls the sender; the sink counts.

use core::net::SocketAddr;

use udccp_base::{
    AppPort, Datagram, Ecn, HeaderBytes, Instant, Machine, Message, Payload, Probe, SendOutcome,
    Transport,
};

use udccp_packet::PseudoHeader;
use udccp_packet::udp::{HEADER_LEN, UdpHeader};

/// Largest payload of a datagram over IPv4 without fragments on a 1500-byte path.
const USUAL_PAYLOAD: usize = 1472;
/// Largest payload that the length field and an IPv4 packet can hold.
const MAX_PAYLOAD: usize = 65_507;

/// Sends each message at once as one datagram. It is always writable; the source sets the rate.
#[derive(Debug)]
pub struct UdpSender {
    local: SocketAddr,
    remote: SocketAddr,
    pseudo: PseudoHeader,
    queue: std::collections::VecDeque<Payload>,
    closed: bool,
}

/// Receives datagrams and delivers their data, message by message.
#[derive(Debug)]
pub struct UdpSink {
    local: SocketAddr,
    remote: SocketAddr,
    pseudo: PseudoHeader,
    delivered: std::collections::VecDeque<Payload>,
    bad_datagrams: u64,
    closed: bool,
}

impl UdpSender {
    /// A sender at `local` to `remote`; both addresses have UDP ports.
    pub fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            local,
            remote,
            pseudo: PseudoHeader::new(local.ip(), remote.ip()),
            queue: std::collections::VecDeque::new(),
            closed: false,
        }
    }

    fn emit(&mut self, payload: Payload) -> Datagram {
        let ports = (self.local.port(), self.remote.port());
        let (bytes, zeros) = parts(&payload);
        let header = UdpHeader::around(ports, &self.pseudo, &[bytes], zeros);
        let header = header.expect("`send` takes no payload above the limit").to_bytes();
        Datagram {
            src: without_port(self.local),
            dst: without_port(self.remote),
            protocol: Datagram::UDP,
            ecn: Ecn::NotEct,
            header: HeaderBytes::short(&header).unwrap_or_default(),
            payload,
        }
    }
}

impl UdpSink {
    /// A sink at `local` for datagrams from `remote`; both addresses have UDP ports.
    pub fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            local,
            remote,
            pseudo: PseudoHeader::new(remote.ip(), local.ip()),
            delivered: std::collections::VecDeque::new(),
            bad_datagrams: 0,
            closed: false,
        }
    }

    /// Datagrams that were malformed, had a wrong checksum, or were for other ports.
    pub fn bad_datagrams(&self) -> u64 {
        self.bad_datagrams
    }

    /// The data of an intact datagram for our ports.
    fn take(&self, d: Datagram) -> Option<Payload> {
        let (header, rest) = UdpHeader::read(&d.header)?;
        let (bytes, zeros) = parts(&d.payload);
        let ports = header.src_port == self.remote.port() && header.dst_port == self.local.port();
        let len_is_right = header.payload_len() == rest.len() + d.payload.len();
        let is_intact =
            header.checksum == 0 || header.is_valid(&self.pseudo, &[rest, bytes], zeros);
        if !ports || !len_is_right || !is_intact {
            return None;
        }
        let in_header = !rest.is_empty();
        Some(if in_header { Payload::Bytes(d.header.slice(HEADER_LEN..)) } else { d.payload })
    }
}

/// A payload as bytes and a count of zero bytes after them.
fn parts(payload: &Payload) -> (&[u8], usize) {
    match payload {
        Payload::Bytes(data) => (data, 0),
        Payload::Zeros(n) => (&[], *n as usize),
    }
}

fn without_port(mut address: SocketAddr) -> SocketAddr {
    address.set_port(0);
    address
}

impl Machine for UdpSender {
    fn handle_datagram(&mut self, _now: Instant, _datagram: Datagram) {}

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant) -> Option<Datagram> {
        let payload = self.queue.pop_front()?;
        Some(self.emit(payload))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

impl AppPort for UdpSender {
    fn send(&mut self, _now: Instant, message: Message) -> SendOutcome {
        // A message that fits in no datagram is never accepted.
        if self.closed || message.payload.len() > MAX_PAYLOAD {
            return SendOutcome::Closed(message);
        }
        self.queue.push_back(message.payload);
        SendOutcome::Accepted
    }

    fn is_writable(&self) -> bool {
        !self.closed
    }

    fn close(&mut self, _now: Instant) {
        self.closed = true;
    }

    fn max_payload(&self) -> usize {
        USUAL_PAYLOAD
    }
}

impl Transport for UdpSender {
    fn open(&mut self, _now: Instant) {}

    fn poll_delivered(&mut self, _now: Instant) -> Option<Payload> {
        None
    }

    fn is_closed(&self) -> bool {
        self.closed && self.queue.is_empty()
    }

    fn probe(&self) -> Probe {
        Probe::default()
    }
}

impl Machine for UdpSink {
    fn handle_datagram(&mut self, _now: Instant, datagram: Datagram) {
        match self.take(datagram) {
            Some(payload) => self.delivered.push_back(payload),
            None => self.bad_datagrams += 1,
        }
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant) -> Option<Datagram> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

impl AppPort for UdpSink {
    fn send(&mut self, _now: Instant, message: Message) -> SendOutcome {
        SendOutcome::Closed(message)
    }

    fn is_writable(&self) -> bool {
        false
    }

    fn close(&mut self, _now: Instant) {
        self.closed = true;
    }

    fn max_payload(&self) -> usize {
        USUAL_PAYLOAD
    }
}

impl Transport for UdpSink {
    fn open(&mut self, _now: Instant) {}

    fn poll_delivered(&mut self, _now: Instant) -> Option<Payload> {
        self.delivered.pop_front()
    }

    fn is_closed(&self) -> bool {
        self.closed
    }

    fn probe(&self) -> Probe {
        Probe::default()
    }
}
