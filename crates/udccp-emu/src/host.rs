//! A host of the network that is really a TUN device: what its kernel sends goes into the network,
//! what the network delivers goes to its kernel.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::BytesMut;
use udccp_base::{
    AppPort, Datagram, Instant, Machine, Message, Payload, Probe, SendOutcome, Transport,
};
use udccp_sim::{Source, SourceStats};

use crate::clock::Clock;
use crate::packet;
use crate::timing::Meter;
use crate::tun::Tun;

/// Most packets that one turn reads, so that a host which never stops does not stop the others.
const BATCH: u32 = 256;
/// Room for packets, taken at once.
const ARENA: usize = 256 << 10;
/// The longest IP packet.
const LONGEST: usize = 65_535;

/// The door between the network and a TUN device.
#[derive(Debug)]
pub(crate) struct TunHost {
    tun: Arc<Tun>,
    /// Its number.
    number: usize,
    clock: Clock,
    meter: Rc<RefCell<Meter>>,
    dccp_udp_port: Option<u16>,
    /// Time to live of what arrives.
    ttl: u8,
    identification: u16,
    buffer: Box<[u8]>,
    arena: BytesMut,
    /// Packets read at this instant.
    turn: (Instant, u32),
}

/// What a door knows.
pub(crate) struct TunAttachment {
    pub(crate) tun: Arc<Tun>,
    pub(crate) number: usize,
    pub(crate) clock: Clock,
    /// UDP port around DCCP, if the flow has one: only to know data from acknowledgements.
    pub(crate) dccp_udp_port: Option<u16>,
    /// Routers on the way of its flow.
    pub(crate) routers: u8,
}

impl TunHost {
    pub(crate) fn new(place: TunAttachment, meter: Rc<RefCell<Meter>>) -> Self {
        let TunAttachment { tun, number, clock, dccp_udp_port, routers } = place;
        Self {
            tun,
            number,
            clock,
            meter,
            dccp_udp_port,
            ttl: Datagram::TTL.saturating_sub(routers),
            identification: 0,
            buffer: vec![0; LONGEST].into(),
            arena: BytesMut::new(),
            turn: (Instant::ZERO, 0),
        }
    }
}

impl Machine for TunHost {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram) {
        self.identification = self.identification.wrapping_add(1);
        let Some(header) = packet::ip_header(&datagram, self.identification, self.ttl) else {
            return self.meter.borrow_mut().refused();
        };
        let at = self.clock.now();
        let data = match &datagram.payload {
            Payload::Bytes(bytes) => &bytes[..],
            Payload::Zeros(_) => &[],
        };
        let written = self.tun.write([&header, &datagram.header, data]);
        let mut meter = self.meter.borrow_mut();
        meter.delivered(self.number, now, at);
        if written.is_err() {
            meter.refused();
        }
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        if self.turn.0 != now {
            self.turn = (now, 0);
        }
        while self.turn.1 < BATCH {
            let len = self.tun.read(&mut self.buffer).ok()??;
            self.turn.1 += 1;
            if self.arena.capacity() < len {
                self.arena.reserve(ARENA);
            }
            self.arena.extend_from_slice(&self.buffer[..len]);
            let packet = self.arena.split().freeze();
            match packet::datagram(packet, self.dccp_udp_port) {
                Some(datagram) => return Some(datagram),
                None => self.meter.borrow_mut().refused(),
            }
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

/// The application is a program in the host's namespace; there is none here.
impl AppPort for TunHost {
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

impl Transport for TunHost {
    fn open(&mut self, _now: Instant) {}

    fn poll_delivered(&mut self, _now: Instant) -> Option<Payload> {
        None
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn probe(&self) -> Probe {
        Probe::default()
    }
}

/// The source of a flow whose application is a program elsewhere.
#[derive(Debug)]
pub(crate) struct Elsewhere;

impl Source for Elsewhere {
    fn start(&mut self, _now: Instant) {}

    fn feed(&mut self, _now: Instant, _transport: &mut dyn AppPort) -> bool {
        false
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn stats(&self) -> SourceStats {
        SourceStats::default()
    }
}
