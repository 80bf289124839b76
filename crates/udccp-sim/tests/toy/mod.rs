//! Toy transports for tests and benchmarks: a fixed window with acks, and a datagram sender.

#![allow(dead_code, reason = "every test uses its own part")]

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use bytes::{BufMut, BytesMut};
use udccp_base::{
    AppPort, Datagram, Duration, Ecn, HeaderBytes, Instant, Machine, Message, Payload, Probe,
    SendOutcome, Transport,
};
use udccp_sim::PairAddresses;

const PROTOCOL: u8 = 253;
const HEADER: usize = 12;
pub(crate) const QUEUE: usize = 16;

/// Writes headers without an allocation per packet.
#[derive(Debug, Default)]
struct Wire {
    arena: BytesMut,
}

impl Wire {
    fn datagram(&mut self, from: IpAddr, to: IpAddr, word: u64, payload: Payload) -> Datagram {
        if self.arena.capacity() < HEADER {
            self.arena.reserve(64 * 1024);
        }
        self.arena.put_u64(word);
        self.arena.put_u32(0);
        Datagram {
            src: SocketAddr::new(from, 0),
            dst: SocketAddr::new(to, 0),
            protocol: PROTOCOL,
            ecn: Ecn::NotEct,
            header: HeaderBytes::take_from(&mut self.arena),
            payload,
        }
    }
}

fn word_of(datagram: &Datagram) -> u64 {
    u64::from_be_bytes(datagram.header[..8].try_into().unwrap())
}

/// Keeps `window` packets in flight, and treats an ack of the highest number as an ack of all
/// packets. With a window of `u64::MAX` it sends everything at once, like UDP.
#[derive(Debug)]
pub(crate) struct ToySender {
    at: PairAddresses,
    window: u64,
    wire: Wire,
    queue: VecDeque<Payload>,
    next: u64,
    acked: u64,
    timer: Option<Instant>,
    is_open: bool,
    is_closing: bool,
    pub(crate) timeouts: u64,
}

impl ToySender {
    pub(crate) fn new(at: PairAddresses, window: u64) -> Box<Self> {
        Box::new(Self {
            at,
            window,
            wire: Wire::default(),
            queue: VecDeque::new(),
            next: 0,
            acked: 0,
            timer: None,
            is_open: false,
            is_closing: false,
            timeouts: 0,
        })
    }

    pub(crate) fn udp(at: PairAddresses) -> Box<Self> {
        Self::new(at, u64::MAX)
    }
}

const TIMEOUT: Duration = Duration::from_secs(1);

impl Machine for ToySender {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram) {
        self.acked = self.acked.max(word_of(&datagram) + 1);
        self.timer = (self.acked < self.next).then(|| now + TIMEOUT);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.timer.is_some_and(|due| due <= now) {
            self.timeouts += 1;
            self.acked = self.next;
            self.timer = None;
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        if !self.is_open || self.next - self.acked >= self.window {
            return None;
        }
        let payload = self.queue.pop_front()?;
        if self.window < u64::MAX && self.timer.is_none() {
            self.timer = Some(now + TIMEOUT);
        }
        let datagram = self.wire.datagram(self.at.sender, self.at.receiver, self.next, payload);
        self.next += 1;
        Some(datagram)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timer
    }
}

impl AppPort for ToySender {
    fn send(&mut self, _now: Instant, message: Message) -> SendOutcome {
        if self.is_closing {
            return SendOutcome::Closed(message);
        }
        if self.queue.len() >= QUEUE {
            return SendOutcome::Full(message);
        }
        self.queue.push_back(message.payload);
        SendOutcome::Accepted
    }

    fn is_writable(&self) -> bool {
        !self.is_closing && self.queue.len() < QUEUE
    }

    fn close(&mut self, _now: Instant) {
        self.is_closing = true;
    }

    fn max_payload(&self) -> usize {
        1500 - 20 - HEADER
    }
}

impl Transport for ToySender {
    fn open(&mut self, _now: Instant) {
        self.is_open = true;
    }

    fn poll_delivered(&mut self, _now: Instant) -> Option<Payload> {
        None
    }

    fn is_closed(&self) -> bool {
        self.is_closing && self.queue.is_empty()
    }

    fn probe(&self) -> Probe {
        Probe { cwnd_packets: Some(self.window as f64), ..Probe::default() }
    }
}

/// Delivers received data; acks every second packet, or after 40 ms.
#[derive(Debug)]
pub(crate) struct ToyReceiver {
    at: PairAddresses,
    wire: Wire,
    highest: u64,
    unacked: u32,
    timer: Option<Instant>,
    delivered: VecDeque<Payload>,
    acks: bool,
}

impl ToyReceiver {
    pub(crate) fn new(at: PairAddresses) -> Box<Self> {
        Box::new(Self {
            at,
            wire: Wire::default(),
            highest: 0,
            unacked: 0,
            timer: None,
            delivered: VecDeque::new(),
            acks: true,
        })
    }

    pub(crate) fn udp(at: PairAddresses) -> Box<Self> {
        let mut sink = Self::new(at);
        sink.acks = false;
        sink
    }
}

impl Machine for ToyReceiver {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram) {
        self.highest = self.highest.max(word_of(&datagram));
        self.delivered.push_back(datagram.payload);
        if self.acks {
            self.unacked += 1;
            self.timer.get_or_insert(now + Duration::from_millis(40));
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.timer.is_some_and(|due| due <= now) {
            self.unacked = self.unacked.max(2);
        }
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Datagram> {
        if self.unacked < 2 {
            return None;
        }
        self.unacked = 0;
        self.timer = None;
        Some(self.wire.datagram(self.at.receiver, self.at.sender, self.highest, Payload::EMPTY))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timer
    }
}

impl AppPort for ToyReceiver {
    fn send(&mut self, _now: Instant, message: Message) -> SendOutcome {
        SendOutcome::Closed(message)
    }

    fn is_writable(&self) -> bool {
        false
    }

    fn close(&mut self, _now: Instant) {}

    fn max_payload(&self) -> usize {
        0
    }
}

impl Transport for ToyReceiver {
    fn open(&mut self, _now: Instant) {}

    fn poll_delivered(&mut self, _now: Instant) -> Option<Payload> {
        self.delivered.pop_front()
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn probe(&self) -> Probe {
        Probe::default()
    }
}
