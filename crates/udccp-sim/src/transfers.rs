//! Pairs that exist only while they are needed: the transfers of a flow that come and go.

use core::fmt;

use udccp_base::{
    AppPort, Datagram, Instant, Machine, Message, Payload, Probe, SendOutcome, Transport,
};

use crate::address::{IpVersion, PairAddresses};
use crate::host::{Host, Lifetime};

/// Makes the transports of the pairs of a flow, each when it starts.
pub trait PairMaker: fmt::Debug {
    /// Makes sender and receiver of the pair with this number in its flow, counted from 0. The
    /// receiver must have nothing to do before a packet arrives.
    ///
    /// # Errors
    /// What is wrong with the settings, as text.
    fn make(&mut self, number: usize, at: PairAddresses)
    -> Result<[Box<dyn Transport>; 2], String>;
}

/// Makes the pairs of one flow.
#[derive(Debug)]
pub(crate) struct Maker {
    pub(crate) maker: Box<dyn PairMaker>,
    /// Number of the first pair of the flow.
    pub(crate) first: usize,
}

impl Maker {
    /// Makes the transports of a pair and gives them to its hosts.
    pub(crate) fn make(
        &mut self,
        pair: usize,
        ip: IpVersion,
        hosts: &mut [Host; 2],
    ) -> Result<(), String> {
        let at = PairAddresses::of(pair, ip);
        let made = self.maker.make(pair - self.first, at)?;
        for (host, transport) in hosts.iter_mut().zip(made) {
            debug_assert_eq!(transport.poll_timeout(), None, "nothing has happened to it");
            host.uses_quick_start = transport.uses_quick_start();
            host.watches_device = transport.watches_device();
            (host.transport, host.lifetime) = (transport, Lifetime::Transfer);
        }
        Ok(())
    }
}

/// Drops the transports of a pair. Both are spent, and no packet is on its way to either.
pub(crate) fn drop_transports(hosts: &mut [Host; 2]) {
    for host in hosts {
        let absent = Absent::after(host.transport.as_ref());
        (host.transport, host.lifetime) = (Box::new(absent), Lifetime::Ended);
    }
}

/// Replaces a transport that does not exist yet, or no longer.
#[derive(Debug, Default)]
pub(crate) struct Absent {
    /// The transport's last timer, which still wakes the host, so that events stay the same.
    due: Option<Instant>,
    /// The transport's congestion events, for the results.
    congestion_events: u64,
    timeouts: u64,
    retransmits: u64,
    is_over: bool,
}

impl Absent {
    /// The replacement of a transport that is spent.
    fn after(transport: &dyn Transport) -> Self {
        let Probe { congestion_events, timeouts, retransmits, .. } = transport.probe();
        let due = transport.poll_timeout();
        Self { due, congestion_events, timeouts, retransmits, is_over: true }
    }
}

impl Machine for Absent {
    fn handle_datagram(&mut self, _now: Instant, _datagram: Datagram) {}

    fn handle_timeout(&mut self, now: Instant) {
        self.due = self.due.filter(|due| now < *due);
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Datagram> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }
}

impl AppPort for Absent {
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

impl Transport for Absent {
    fn open(&mut self, _now: Instant) {}

    fn poll_delivered(&mut self, _now: Instant) -> Option<Payload> {
        None
    }

    fn is_closed(&self) -> bool {
        self.is_over
    }

    fn probe(&self) -> Probe {
        let Self { congestion_events, timeouts, retransmits, .. } = *self;
        Probe { congestion_events, timeouts, retransmits, ..Probe::default() }
    }
}
