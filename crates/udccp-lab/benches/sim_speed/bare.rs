//! The simulator without a protocol: links, events and recorders with plain packets.

use udccp_base::{
    AppPort, DataRate, Datagram, Duration, Ecn, HeaderBytes, Instant, Machine, Message, Payload,
    Probe, Seed, SendOutcome, Transport,
};
use udccp_sim::{
    ConstantRate, Dumbbell, DumbbellConfig, PairAddresses, PairConfig, QueueLimit, RunConfig,
};

use crate::cost::Cost;

/// Runs two constant rates that together nearly fill 100 Mbit/s at 100 ms. Time is measured from
/// the first event.
pub(crate) fn run(duration: Duration) -> Cost {
    let rate = DataRate::from_mbps(100);
    let rtt = Duration::from_millis(100);
    let mut network = Dumbbell::new(DumbbellConfig::symmetric(rate, rtt, QueueLimit::Packets(833)));
    for name in ["first", "second"] {
        let at = network.next_addresses();
        let source = ConstantRate::new(DataRate::from_mbps(49), 1500);
        let (sender, receiver) = (Bare::new(at), Bare::new(at));
        let pair = PairConfig::new(name, Box::new(sender), Box::new(receiver), Box::new(source));
        network.add_pair(pair);
    }
    let begun = cpu_time::ThreadTime::now();
    let result = network.run(RunConfig { check: false, ..RunConfig::new(duration, Seed(1)) });
    let result = result.expect("a run without protocols");
    let delivered = result.flows.iter().map(|f| f.forward.delivered.packets).sum();
    let (events, cpu_s) = (result.cost.events, begun.elapsed().as_secs_f64());
    Cost { delivered, events, cpu_s, heap_bytes: 0 }
}

/// Sends every message as one packet without a header, and delivers received packets.
#[derive(Debug)]
struct Bare {
    at: PairAddresses,
    waiting: std::collections::VecDeque<Payload>,
    arrived: std::collections::VecDeque<Payload>,
}

impl Bare {
    fn new(at: PairAddresses) -> Self {
        Self { at, waiting: Default::default(), arrived: Default::default() }
    }
}

impl Machine for Bare {
    fn handle_datagram(&mut self, _: Instant, datagram: Datagram) {
        self.arrived.push_back(datagram.payload);
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant) -> Option<Datagram> {
        let payload = self.waiting.pop_front()?;
        Some(Datagram {
            src: (self.at.sender, 0).into(),
            dst: (self.at.receiver, 0).into(),
            protocol: 253,
            ecn: Ecn::NotEct,
            header: HeaderBytes::EMPTY,
            payload,
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

impl AppPort for Bare {
    fn send(&mut self, _: Instant, message: Message) -> SendOutcome {
        self.waiting.push_back(message.payload);
        SendOutcome::Accepted
    }

    fn is_writable(&self) -> bool {
        true
    }

    fn close(&mut self, _: Instant) {}

    fn max_payload(&self) -> usize {
        1480
    }
}

impl Transport for Bare {
    fn open(&mut self, _: Instant) {}

    fn poll_delivered(&mut self, _: Instant) -> Option<Payload> {
        self.arrived.pop_front()
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn probe(&self) -> Probe {
        Probe::default()
    }
}
