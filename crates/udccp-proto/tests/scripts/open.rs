//! `open client` and `open server`: a handshake with a peer that agrees to everything.

use udccp_base::{Duration, Ecn, Instant, Machine};
use udccp_proto::State;
use udccp_wire::{
    FeatureNumber, Header, HeaderKind, OptionValue, Packet, PacketType, PseudoHeader,
    Reconciliation, Seqno, option_kind as kind,
};

use crate::world::{START, World, describe};

/// One-way delay of each packet of the handshake.
const WAY: Duration = Duration::from_millis(50);

/// The time when the connection is open and idle: one second after the start.
const DONE: u64 = START + 1_000_000_000;

/// The first sequence number of the peer's Requests and Responses.
const FIRST: u64 = 1000;

impl World {
    /// Brings the connection to OPEN, with nothing left to send, at one second.
    pub(crate) fn open(&mut self, is_server: bool) -> Result<(), String> {
        self.note(0, "  (handshake)");
        if is_server {
            let service = self.service;
            self.arrive(HeaderKind::Request { service }, Vec::new())?;
        }
        for _ in 0..20 {
            self.drain();
            let said = std::mem::take(&mut self.sent);
            self.now += WAY;
            let mut confirms = Vec::new();
            let mut first = None;
            for sent in &said {
                let mut all = sent.datagram.header.to_vec();
                all.extend_from_slice(&sent.datagram.payload.to_bytes());
                let packet = Packet::parse(&all, None).map_err(|e| e.to_string())?;
                first.get_or_insert(packet.header.packet_type());
                confirms.extend(packet.options.iter().filter_map(confirm));
            }
            let (ack, service) = (self.gss(), self.service);
            match first {
                Some(PacketType::Request) => {
                    self.arrive(HeaderKind::Response { ack, service }, confirms)?;
                }
                Some(PacketType::Reset) => return Err("the endpoint resets".into()),
                Some(PacketType::Response) => self.arrive(HeaderKind::Ack { ack }, confirms)?,
                _ if !confirms.is_empty() || self.state() != State::Open => {
                    self.arrive(HeaderKind::Ack { ack }, confirms)?;
                }
                _ => break,
            }
        }
        self.pass_until(Instant::from_nanos(DONE));
        self.sent.clear();
        self.pass_until(Instant::from_nanos(DONE));
        self.sent.clear();
        self.collect();
        self.events.clear();
        if self.state() == State::Open { Ok(()) } else { Err("no connection comes about".into()) }
    }

    fn gss(&self) -> Seqno {
        Seqno::new(self.variables.get("gss").unwrap_or(0) as u64)
    }

    fn arrive(&mut self, kind: HeaderKind, options: Vec<OptionValue>) -> Result<(), String> {
        let seq = self.variables.get("gsr").map_or(FIRST, |n| n as u64 + 1);
        self.variables.set("gsr", seq.into());
        if seq == FIRST {
            self.variables.set("isr", seq.into());
        }
        let [dst_port, src_port] = self.ports;
        let seq = Seqno::new(seq);
        let header = Header { src_port, dst_port, ccval: 0, cscov: 0, x: true, seq, kind };
        let pseudo = PseudoHeader::new(self.addresses[1].ip(), self.addresses[0].ip());
        let bytes = Packet { header, options, payload: Vec::new() }.emit(&pseudo);
        let datagram = self.datagram(bytes.map_err(|e| e.to_string())?, Ecn::NotEct);
        self.note(0, &format!("<      {}", describe(&datagram)));
        self.end.handle_datagram(self.now, datagram);
        self.collect();
        Ok(())
    }
}

/// The Confirm that grants the first choice of a Change.
fn confirm(change: &OptionValue) -> Option<OptionValue> {
    let kind = match change.kind {
        kind::CHANGE_L => kind::CONFIRM_R,
        kind::CHANGE_R => kind::CONFIRM_L,
        _ => return None,
    };
    let (&feature, values) = change.data.split_first()?;
    let info = FeatureNumber(feature).info()?;
    let data = match info.rule {
        Reconciliation::NonNegotiable => change.data.clone(),
        Reconciliation::ServerPriority => vec![feature, *values.first()?, *values.first()?],
    };
    Some(OptionValue { kind, data })
}
