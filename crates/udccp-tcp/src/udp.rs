//! UDP: a sender that leaves all control to its source, and a sink that counts.

use core::net::{IpAddr, SocketAddr};

use udccp_base::{
    Datagram, Ecn, HeaderBytes, Instant, Machine, Message, Payload, Probe, SendOutcome, Transport,
};

use crate::wire::Sum;

/// Length of the UDP header in bytes (RFC 768).
const HEADER: usize = 8;
/// Largest payload of a datagram over IPv4 without fragments on a 1500-byte path.
const USUAL_PAYLOAD: usize = 1472;
/// Largest payload that the length field and an IPv4 packet can hold.
const MAX_PAYLOAD: usize = 65_507;

/// Sends every message at once as one datagram: always writable, the rate is the source's.
#[derive(Debug)]
pub struct UdpSender {
    local: SocketAddr,
    remote: SocketAddr,
    pseudo: Sum,
    queue: std::collections::VecDeque<Payload>,
    closed: bool,
}

/// Receives datagrams and hands their data on, message by message.
#[derive(Debug)]
pub struct UdpSink {
    local: SocketAddr,
    remote: SocketAddr,
    pseudo: Sum,
    delivered: std::collections::VecDeque<Payload>,
    bad_datagrams: u64,
    closed: bool,
}

impl UdpSender {
    /// A sender at `local` to `remote`; both addresses carry the UDP port.
    pub fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            local,
            remote,
            pseudo: pseudo(local.ip(), remote.ip()),
            queue: std::collections::VecDeque::new(),
            closed: false,
        }
    }

    fn emit(&mut self, payload: Payload) -> Datagram {
        let len = HEADER + payload.len();
        let mut header = [0; HEADER];
        header[0..2].copy_from_slice(&self.local.port().to_be_bytes());
        header[2..4].copy_from_slice(&self.remote.port().to_be_bytes());
        header[4..6].copy_from_slice(&(len as u16).to_be_bytes());
        let mut sum = self.pseudo.add_length(len).add(&header);
        if let Payload::Bytes(data) = &payload {
            sum = sum.add(data);
        }
        // A checksum of zero would say that there is none (RFC 768).
        let sum = match sum.finish() {
            0 => 0xffff,
            s => s,
        };
        header[6..8].copy_from_slice(&sum.to_be_bytes());
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
    /// A sink at `local` for datagrams from `remote`; both addresses carry the UDP port.
    pub fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            local,
            remote,
            pseudo: pseudo(remote.ip(), local.ip()),
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
        let (header, rest) = d.header.split_first_chunk::<HEADER>()?;
        let half = |i: usize| u16::from_be_bytes([header[i], header[i + 1]]);
        let len = d.header.len() + d.payload.len();
        let ports = half(0) == self.remote.port() && half(2) == self.local.port();
        let mut sum = self.pseudo.add_length(len).add(&d.header);
        if let Payload::Bytes(data) = &d.payload {
            sum = sum.add(data);
        }
        let intact = half(6) == 0 || sum.finish() == 0;
        if !ports || usize::from(half(4)) != len || !intact {
            return None;
        }
        let in_header = !rest.is_empty();
        Some(if in_header { Payload::Bytes(d.header.slice(HEADER..)) } else { d.payload })
    }
}

fn pseudo(src: IpAddr, dst: IpAddr) -> Sum {
    Sum::pseudo_header(src, dst, Datagram::UDP)
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

impl Transport for UdpSender {
    fn open(&mut self, _now: Instant) {}

    fn send(&mut self, _now: Instant, message: Message) -> SendOutcome {
        // What no datagram can hold will never be taken.
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

    fn poll_delivered(&mut self, _now: Instant) -> Option<Payload> {
        None
    }

    fn is_closed(&self) -> bool {
        self.closed && self.queue.is_empty()
    }

    fn max_payload(&self) -> usize {
        USUAL_PAYLOAD
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

impl Transport for UdpSink {
    fn open(&mut self, _now: Instant) {}

    fn send(&mut self, _now: Instant, message: Message) -> SendOutcome {
        SendOutcome::Closed(message)
    }

    fn is_writable(&self) -> bool {
        false
    }

    fn close(&mut self, _now: Instant) {
        self.closed = true;
    }

    fn poll_delivered(&mut self, _now: Instant) -> Option<Payload> {
        self.delivered.pop_front()
    }

    fn is_closed(&self) -> bool {
        self.closed
    }

    fn max_payload(&self) -> usize {
        USUAL_PAYLOAD
    }

    fn probe(&self) -> Probe {
        Probe::default()
    }
}
