//! A host of the network that stands for a TUN device: packets from its kernel enter the network,
//! and packets that the network delivers go to its kernel.

use std::cell::RefCell;
use std::rc::Rc;

use udccp_base::{
    AppPort, Datagram, Instant, Machine, Message, Payload, Probe, SendOutcome, Transport,
};
use udccp_sim::{Source, SourceStats};

use crate::clock::Clock;
use crate::input::TunInput;
use crate::packet;
use crate::timing::Meter;

/// Connects the network with a TUN device.
#[derive(Debug)]
pub(crate) struct TunHost {
    input: Rc<RefCell<TunInput>>,
    /// The host's number.
    number: usize,
    clock: Clock,
    meter: Rc<RefCell<Meter>>,
    /// Time to live of packets that arrive.
    ttl: u8,
    identification: u16,
}

impl TunHost {
    /// Creates the host with this number; its flow passes this many routers.
    pub(crate) fn new(
        number: usize,
        routers: u8,
        clock: Clock,
        input: Rc<RefCell<TunInput>>,
        meter: Rc<RefCell<Meter>>,
    ) -> Self {
        let ttl = Datagram::TTL.saturating_sub(routers);
        Self { input, number, clock, meter, ttl, identification: 0 }
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
        let written = self.input.borrow().tun().write([&header, &datagram.header, data]);
        let mut meter = self.meter.borrow_mut();
        meter.delivered(self.number, now, at);
        if written.is_err() {
            meter.refused();
        }
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        self.input.borrow_mut().next(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

/// The application is a program in the host's namespace, so there is none here.
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

/// The source of a flow whose application runs in another program.
#[derive(Debug)]
pub(crate) struct ExternalSource;

impl Source for ExternalSource {
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
