//! The endpoint under test, its clock, and the peer that the script controls.

use std::collections::VecDeque;
use std::net::SocketAddr;

use udccp_base::{Datagram, Instant, Machine};
use udccp_proto::{ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, ListenerId, State};
use udccp_wire::{PacketView, Seqno, ServiceCode};

use crate::variables::Variables;

/// When a script starts on the endpoint's clock.
pub(crate) const START: u64 = 1_000_000_000;

/// A packet that the endpoint sent, and when.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) datagram: Datagram,
}

/// Everything that a script acts on.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) end: Endpoint,
    pub(crate) config: ConnectionConfig,
    pub(crate) service: ServiceCode,
    pub(crate) listener: Option<ListenerId>,
    pub(crate) id: Option<ConnectionId>,
    /// Our address, then the peer's.
    pub(crate) addresses: [SocketAddr; 2],
    pub(crate) ports: [u16; 2],
    pub(crate) endpoint: EndpointConfig,
    pub(crate) variables: Variables,
    /// Packets sent and not yet matched.
    pub(crate) sent: VecDeque<Sent>,
    pub(crate) events: VecDeque<String>,
    /// The events so far, one per line.
    pub(crate) trace: Vec<String>,
    pub(crate) is_started: bool,
}

impl World {
    pub(crate) fn new() -> Self {
        let endpoint = EndpointConfig::new([43; 32]);
        let config = ConnectionConfig { handshake_timestamps: false, ..Default::default() };
        Self {
            now: Instant::from_nanos(START),
            end: Endpoint::new(endpoint.clone()),
            config,
            service: ServiceCode::from_chars(b"test").unwrap_or(ServiceCode(42)),
            listener: None,
            id: None,
            addresses: ["10.0.0.1:0", "10.0.0.2:0"].map(|a| a.parse().expect("an address")),
            ports: [5001, 40_000],
            endpoint,
            variables: Variables::default(),
            sent: VecDeque::new(),
            events: VecDeque::new(),
            trace: Vec::new(),
            is_started: false,
        }
    }

    /// Creates the endpoint with the settings so far.
    pub(crate) fn start(&mut self) {
        if !self.is_started {
            self.is_started = true;
            self.end = Endpoint::new(self.endpoint.clone());
        }
    }

    pub(crate) fn seconds(&self, at: Instant) -> f64 {
        (at.as_nanos() - START) as f64 / 1e9
    }

    /// Records an event with the script's line.
    pub(crate) fn note(&mut self, line: usize, what: &str) {
        let line = if line == 0 { String::new() } else { line.to_string() };
        self.trace.push(format!("{line:>4} {:10.4} {what}", self.seconds(self.now)));
    }

    /// Takes all packets that the endpoint sends now.
    pub(crate) fn drain(&mut self) {
        self.collect();
        while let Some(datagram) = self.end.poll_transmit(self.now) {
            self.remember(&datagram);
            let text = format!("     > {}", describe(&datagram));
            self.note(0, &text);
            self.sent.push_back(Sent { at: self.now, datagram });
        }
        self.collect();
    }

    /// Collects events, and accepts connections.
    pub(crate) fn collect(&mut self) {
        if let Some(listener) = self.listener
            && let Some(id) = self.end.accept(listener)
        {
            self.id.get_or_insert(id);
        }
        while let Some(event) = self.end.poll_event() {
            self.events.push_back(format!("{:?}", event.kind));
        }
    }

    /// Records the endpoint's first and greatest numbers, for `$iss` and `$gss`.
    fn remember(&mut self, d: &Datagram) {
        let Ok(view) = PacketView::new(&d.header, d.transport_len()) else { return };
        let raw = view.seq_raw();
        let seq = match self.variables.get("gss") {
            Some(gss) => raw.extend(Seqno::new(gss as u64)),
            None => raw.bits(),
        };
        if self.variables.get("iss").is_none() {
            self.variables.set("iss", seq.value().into());
        }
        let newest = match self.variables.get("gss") {
            Some(gss) => Seqno::new(gss as u64).max(seq),
            None => seq,
        };
        self.variables.set("gss", newest.value().into());
    }

    /// Advances time to `until`, or until the endpoint has something to send.
    pub(crate) fn pass_until(&mut self, until: Instant) {
        for _ in 0..1_000_000 {
            self.drain();
            if !self.sent.is_empty() {
                return;
            }
            let Some(at) = self.end.poll_timeout().filter(|at| *at <= until) else { break };
            self.now = self.now.max(at);
            self.end.handle_timeout(self.now);
        }
        self.now = self.now.max(until);
    }

    /// The state of the connection in the RFC's sense. For a server's connection before it is
    /// accepted, it is derived from what the endpoint holds.
    pub(crate) fn state(&self) -> State {
        match self.id.and_then(|id| self.end.state(id)) {
            Some(state) => state,
            None if self.id.is_some() => State::Closed,
            None if self.end.endpoint_stats().connections > 0 => State::Respond,
            None if self.listener.is_some() => State::Listen,
            None => State::Closed,
        }
    }
}

/// A packet in one line.
pub(crate) fn describe(d: &Datagram) -> String {
    match PacketView::new(&d.header, d.transport_len()) {
        Ok(view) => {
            let ecn = if d.ecn.is_capable() { format!(" {:?}", d.ecn) } else { String::new() };
            format!("{view}{ecn}")
        }
        Err(e) => format!("{} bytes, malformed: {e}", d.transport_len()),
    }
}
