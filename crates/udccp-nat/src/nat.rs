//! The translator.

use core::net::SocketAddr;
use std::collections::VecDeque;

use udccp_base::{Datagram, Instant};
use udccp_wire::PacketType;

use crate::config::NatConfig;
use crate::icmp;
use crate::packet::{self, End, ParsedPacket, Ports};
use crate::table::Table;

/// A side of a NAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The side of the hosts with private addresses.
    Inside,
    /// The rest of the network.
    Outside,
}

/// Counters of a NAT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NatStats {
    /// Packets from inside that were forwarded.
    pub outbound: u64,
    /// Packets from outside that were forwarded.
    pub inbound: u64,
    /// Packets from inside to the NAT's own address that were forwarded to the inside.
    pub hairpinned: u64,
    /// Packets from outside that were filtered.
    pub filtered: u64,
    /// Packets dropped because they are not DCCP, or because no external port is free.
    pub dropped: u64,
    /// ICMP errors sent for unsolicited Listens and Syncs.
    pub icmp_sent: u64,
    /// ICMP messages translated.
    pub icmp_translated: u64,
}

/// An unsolicited Listen or Sync that is to be answered later.
#[derive(Debug)]
struct Unsolicited {
    answer_at: Instant,
    datagram: Datagram,
    seen: ParsedPacket,
}

/// Most unsolicited packets that are kept to be answered; others are not answered.
const MAX_UNSOLICITED: usize = 64;

//= 5597-4.2-1
//= 5597-4.2-2
//= 5597-6-1
/// A NAT. Its driver passes in datagrams and timeouts, and takes outgoing datagrams from
/// [`Nat::poll_transmit`].
#[derive(Debug)]
pub struct Nat {
    config: NatConfig,
    table: Table,
    unsolicited: VecDeque<Unsolicited>,
    leaving: VecDeque<(Side, Datagram)>,
    stats: NatStats,
}

impl Nat {
    /// A NAT without mappings.
    pub fn new(config: NatConfig) -> Self {
        Self {
            config,
            table: Table::default(),
            unsolicited: VecDeque::new(),
            leaving: VecDeque::new(),
            stats: NatStats::default(),
        }
    }

    /// Handles a datagram that arrived on one side.
    pub fn handle_datagram(&mut self, now: Instant, from: Side, datagram: Datagram) {
        if datagram.protocol == icmp::PROTOCOL {
            return self.translate_icmp(from, &datagram);
        }
        let Some(seen) = packet::read(&datagram) else {
            self.stats.dropped += 1;
            return;
        };
        match from {
            Side::Inside => self.outbound(now, datagram, &seen),
            Side::Outside => self.inbound(now, datagram, &seen, false),
        }
    }

    /// Handles the timeout that `poll_timeout` announced.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(due) = self.unsolicited.pop_front_if(|u| u.answer_at <= now) {
            self.answer_unsolicited(&due);
        }
    }

    /// The next datagram to send, with its side.
    pub fn poll_transmit(&mut self) -> Option<(Side, Datagram)> {
        self.leaving.pop_front()
    }

    /// When to call `handle_timeout`; `None` while nothing is pending.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.unsolicited.front().map(|u| u.answer_at)
    }

    /// The counters.
    pub const fn stats(&self) -> NatStats {
        self.stats
    }

    /// Current number of mappings.
    pub fn mappings(&self) -> usize {
        self.table.len()
    }

    /// The external address and port of a native DCCP endpoint inside, if it has a mapping.
    pub fn external_of(&self, internal: SocketAddr) -> Option<SocketAddr> {
        let port = self.table.peek_external(Ports::Dccp, internal)?;
        Some(SocketAddr::new(self.config.external, port))
    }

    fn outbound(&mut self, now: Instant, datagram: Datagram, seen: &ParsedPacket) {
        let ends = (seen.src, seen.dst);
        let port = self.table.outbound(now, &self.config, seen.ports, ends, seen.ty);
        let Some(port) = port else {
            self.stats.dropped += 1;
            return;
        };
        let external = SocketAddr::new(self.config.external, port);
        if seen.ty == Some(PacketType::Request) {
            //= 5597-4.3-6
            let answered = |u: &Unsolicited| u.seen.dst == external && u.seen.src == seen.dst;
            self.unsolicited.retain(|u| !answered(u));
        }
        let datagram = packet::rewrite(datagram, seen, End::Source, external);
        if seen.dst.ip() == self.config.external {
            //= 5597-7.2-1
            //= 5597-7.2-2
            let seen = ParsedPacket { src: external, ..*seen };
            return self.inbound(now, datagram, &seen, true);
        }
        self.stats.outbound += 1;
        self.leaving.push_back((Side::Outside, datagram));
    }

    fn inbound(&mut self, now: Instant, datagram: Datagram, seen: &ParsedPacket, is_hairpin: bool) {
        let at_us = seen.dst.ip() == self.config.external;
        let ends = (seen.dst.port(), seen.src);
        let internal = at_us
            .then(|| self.table.inbound(now, &self.config, seen.ports, ends, seen.ty))
            .flatten();
        let Some(internal) = internal else {
            self.stats.filtered += 1;
            return self.note_unsolicited(now, datagram, *seen);
        };
        match is_hairpin {
            true => self.stats.hairpinned += 1,
            false => self.stats.inbound += 1,
        }
        let datagram = packet::rewrite(datagram, seen, End::Destination, internal);
        self.leaving.push_back((Side::Inside, datagram));
    }

    //= 5597-4.3-5
    /// Handles a packet without a mapping. A Listen or Sync may belong to a connection that is
    /// about to open from inside, so it is answered late or never. Any other packet is dropped
    /// silently.
    fn note_unsolicited(&mut self, now: Instant, datagram: Datagram, seen: ParsedPacket) {
        let is_early = matches!(seen.ty, Some(PacketType::Listen | PacketType::Sync));
        let is_answered = self.config.sends_icmp && seen.ports == Ports::Dccp;
        if is_early && is_answered && self.unsolicited.len() < MAX_UNSOLICITED {
            let answer_at = now + self.config.unsolicited_wait;
            self.unsolicited.push_back(Unsolicited { answer_at, datagram, seen });
        }
    }

    //= 5597-4.3-7
    fn answer_unsolicited(&mut self, due: &Unsolicited) {
        if let Some(error) = icmp::port_unreachable(self.config.external, &due.datagram) {
            self.stats.icmp_sent += 1;
            self.send_outside(error);
        }
    }

    //= 5597-7.3-1
    //= 5597-7.3-2
    /// Forwards an ICMP error to the host concerned. It changes no mapping.
    fn translate_icmp(&mut self, from: Side, datagram: &Datagram) {
        let Some(quoted) = icmp::quoted(datagram) else {
            self.stats.dropped += 1;
            return;
        };
        let translated = match from {
            Side::Outside => {
                let external = Some(quoted.src).filter(|s| s.ip() == self.config.external);
                let internal =
                    external.and_then(|at| self.table.peek_internal(quoted.ports, at.port()));
                internal.map(|to| (Side::Inside, icmp::translate(datagram, End::Source, to)))
            }
            Side::Inside => {
                let port = self.table.peek_external(quoted.ports, quoted.dst);
                let to = port.map(|port| SocketAddr::new(self.config.external, port));
                to.map(|to| (Side::Outside, icmp::translate(datagram, End::Destination, to)))
            }
        };
        match translated {
            Some((Side::Inside, Some(message))) => {
                self.stats.icmp_translated += 1;
                self.leaving.push_back((Side::Inside, message));
            }
            Some((Side::Outside, Some(message))) => {
                self.stats.icmp_translated += 1;
                self.send_outside(message);
            }
            _ => self.stats.dropped += 1,
        }
    }

    /// Sends an ICMP message outside, unless it is to our own address: then it concerns a packet of
    /// an internal host.
    fn send_outside(&mut self, message: Datagram) {
        match message.dst.ip() == self.config.external {
            true => self.translate_icmp(Side::Outside, &message),
            false => self.leaving.push_back((Side::Outside, message)),
        }
    }
}
