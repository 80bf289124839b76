//! One endpoint under test. Its peer is the test, which builds every packet.

#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part")]

use udccp_base::{Datagram, Duration, Ecn, Machine, Payload};
use udccp_proto::ccid::CcidRegistry;
use udccp_proto::{ConnectionConfig, ConnectionStats, State};
use udccp_wire::{
    Header, HeaderKind, OptionRef, OptionValue, Packet, PacketType, ResetCode, Seqno, option_kind,
};

use crate::common::packet::{finished, in_one_piece, numbers, reversed};
use crate::common::{CLIENT, Net, Pair, SERVER, service};

/// Settings that add no options unless a test requests them.
pub fn plain() -> ConnectionConfig {
    ConnectionConfig { handshake_timestamps: false, ..ConnectionConfig::default() }
}

/// A test harness: an endpoint with a connection, and the peer that the test controls.
pub struct Harness {
    pub pair: Pair,
    /// The endpoint under test.
    pub end: usize,
    /// A packet in the peer's direction, for addresses and ports.
    like: Datagram,
    /// The last number that the peer used.
    pub seq: Seqno,
    /// The greatest number that the endpoint used.
    pub gss: Seqno,
    /// ECN codepoint of the peer's packets.
    pub ecn: Ecn,
}

impl Harness {
    /// An open connection. Both ends have exchanged packets and have nothing left to send.
    pub fn open(end: usize) -> Self {
        Self::open_with(end, plain())
    }

    /// An open connection with these settings at both ends.
    pub fn open_with(end: usize, config: ConnectionConfig) -> Self {
        Self::open_of(end, config, CcidRegistry::default())
    }

    /// The same between hosts with these CCIDs.
    pub fn open_of(end: usize, config: ConnectionConfig, ccids: CcidRegistry) -> Self {
        let mut pair = Pair::connected_with(Net::with_ccids(4340, ccids), config);
        for from in [SERVER, CLIENT] {
            pair.send(from, b"hello");
            pair.pass(Duration::from_secs(1));
        }
        let like = pair.last[1 - end].clone().unwrap();
        let (_, seq, _) = numbers(&like);
        let (_, gss, _) = numbers(pair.last[end].as_ref().unwrap());
        pair.received(end);
        pair.mute(CLIENT);
        Self { pair, end, like, seq, gss, ecn: Ecn::NotEct }
    }

    /// A client that has sent its first Request, and that Request.
    pub fn requesting(config: ConnectionConfig) -> (Self, Packet) {
        let mut pair = Pair::starting(Net::new(4341), config, plain());
        pair.mute(CLIENT);
        pair.drain();
        let request = pair.last[CLIENT].clone().unwrap();
        let (_, gss, _) = numbers(&request);
        let (like, seq, ecn) = (reversed(&request), Seqno::new(7000), Ecn::NotEct);
        (Self { pair, end: CLIENT, like, seq, gss, ecn }, parse(&request))
    }

    /// A server that listens with these settings. The peer's first number will be 7001.
    pub fn listening(config: ConnectionConfig) -> Self {
        let mut pair = Pair::starting(Net::new(4342), plain(), config);
        pair.mute(CLIENT);
        pair.drain();
        let like = pair.last[CLIENT].clone().unwrap();
        let (seq, gss, ecn) = (Seqno::new(7000), Seqno::ZERO, Ecn::NotEct);
        Self { pair, end: SERVER, like, seq, gss, ecn }
    }

    /// The header fields with which the peer would acknowledge everything.
    pub fn kind(&self, ty: PacketType) -> HeaderKind {
        HeaderKind::of(ty, self.gss, service()).with_reset(ResetCode::Aborted, [0; 3])
    }

    /// The header of the peer's next packet.
    pub fn header(&self, ty: PacketType) -> Header {
        self.header_at(self.seq.next(), self.kind(ty))
    }

    /// A header of the peer.
    pub fn header_at(&self, seq: Seqno, kind: HeaderKind) -> Header {
        Header { seq, kind, ccval: 0, cscov: 0, x: true, ..parse(&self.like).header }
    }

    /// The peer's next packet arrives. Returns the packets that the endpoint sends at once.
    pub fn deliver(
        &mut self,
        ty: PacketType,
        options: &[OptionRef<'_>],
        data: &[u8],
    ) -> Vec<Packet> {
        let header = self.header(ty);
        self.deliver_header(&header, options, data)
    }

    /// A packet with this number and of this kind arrives.
    pub fn deliver_at(&mut self, seq: Seqno, kind: HeaderKind) -> Vec<Packet> {
        let header = self.header_at(seq, kind);
        self.deliver_header(&header, &[], &[])
    }

    /// A packet with this header arrives.
    pub fn deliver_header(
        &mut self,
        header: &Header,
        options: &[OptionRef<'_>],
        data: &[u8],
    ) -> Vec<Packet> {
        let payload = Payload::Bytes(bytes::Bytes::copy_from_slice(data));
        let d = finished(&self.like, header, options, payload);
        self.seq = self.seq.max(header.seq);
        self.deliver_datagram(Datagram { ecn: self.ecn, ..in_one_piece(&d) })
    }

    /// A datagram arrives unchanged.
    pub fn deliver_datagram(&mut self, d: Datagram) -> Vec<Packet> {
        let now = self.pair.now;
        self.pair.net.ends[self.end].handle_datagram(now, d);
        self.drain()
    }

    /// The datagram that `deliver_header` would pass in.
    pub fn datagram(&self, header: &Header, options: &[OptionRef<'_>], data: &[u8]) -> Datagram {
        let payload = Payload::Bytes(bytes::Bytes::copy_from_slice(data));
        in_one_piece(&finished(&self.like, header, options, payload))
    }

    /// The packets that the endpoint sends now.
    pub fn drain(&mut self) -> Vec<Packet> {
        self.drain_datagrams().iter().map(parse).collect()
    }

    /// The same as datagrams, with addresses and ECN codepoints.
    pub fn drain_datagrams(&mut self) -> Vec<Datagram> {
        let now = self.pair.now;
        let mut sent = Vec::new();
        while let Some(d) = self.pair.net.ends[self.end].poll_transmit(now) {
            let (_, seq, _) = numbers(&d);
            self.gss = if sent.is_empty() && self.gss == Seqno::ZERO { seq } else { self.gss };
            self.gss = self.gss.max(seq);
            sent.push(d);
        }
        assert_eq!(self.pair.net.ends[self.end].stalled(now), None, "a message waits for nothing");
        self.pair.collect();
        sent
    }

    /// Lets time pass. Returns the packets that the endpoint sends meanwhile.
    pub fn wait(&mut self, span: Duration) -> Vec<Packet> {
        let until = self.pair.now + span;
        let mut sent = Vec::new();
        loop {
            sent.extend(self.drain());
            let at = self.pair.net.ends[self.end].poll_timeout();
            let Some(at) = at.filter(|at| *at <= until) else { break };
            self.pair.net.now = self.pair.now.max(at);
            let now = self.pair.now;
            self.pair.net.ends[self.end].handle_timeout(now);
        }
        self.pair.net.now = until;
        sent.extend(self.drain());
        sent
    }

    /// The endpoint's application sends. Returns the packets that are sent at once.
    pub fn send(&mut self, text: &[u8]) -> Vec<Packet> {
        self.pair.send(self.end, text);
        self.drain()
    }

    /// The messages that the endpoint's application can read.
    pub fn read(&mut self) -> Vec<Vec<u8>> {
        self.pair.received(self.end)
    }

    pub fn state(&self) -> Option<State> {
        self.pair.state(self.end)
    }

    pub fn stats(&self) -> ConnectionStats {
        self.pair.stats(self.end)
    }
}

/// A datagram as a packet.
pub fn parse(d: &Datagram) -> Packet {
    Packet::parse(&in_one_piece(d).header, None).unwrap()
}

/// The types of packets, in order.
pub fn types(packets: &[Packet]) -> Vec<PacketType> {
    packets.iter().map(|p| p.header.packet_type()).collect()
}

/// The data of the first option of this type.
pub fn option(packet: &Packet, kind: u8) -> Option<&[u8]> {
    packet.options.iter().find(|o| o.kind == kind).map(|o| &o.data[..])
}

/// The Ack Vector of a packet, whatever its nonce echo.
pub fn vector(packet: &Packet) -> Option<&[u8]> {
    let found = option(packet, option_kind::ACK_VECTOR_0);
    found.or_else(|| option(packet, option_kind::ACK_VECTOR_1))
}

/// Whether a feature negotiation option of this type is about this feature.
pub fn about(option: &OptionValue, kind: u8, feature: u8) -> bool {
    option.kind == kind && option.data.first() == Some(&feature)
}

/// The code and data of the only Reset among these packets, if there is one.
pub fn reset(packets: &[Packet]) -> Option<(ResetCode, [u8; 3])> {
    packets.iter().find_map(|p| match p.header.kind {
        HeaderKind::Reset { code, data, .. } => Some((code, data)),
        _ => None,
    })
}
