//! Observers of every packet: captures and the checker.

use std::collections::VecDeque;

use udccp_base::{Datagram, Instant, Payload};
use udccp_link::{Link, Packet};

use crate::capture::{Capture, Envelope, PcapWriter};
use crate::error::SimError;
use crate::names::hop_name;
use crate::network::Network;
use crate::packet::{Meta, PacketHandle};

/// A packet in the network.
type Observed<'a> = (&'a Datagram, Meta);

/// Sees every packet at every step, and keeps the first failure for [`Self::take_failure`].
pub(crate) struct Observer {
    captures: Option<Captures>,
    checker: Option<Checker>,
    failure: Option<SimError>,
}

impl Observer {
    /// An observer, or `None` if there is nothing to observe. `link_name` is the name of a link.
    pub(crate) fn new(
        network: &Network,
        link_name: &dyn Fn(usize) -> String,
        pairs: &[Option<String>],
        capture: Option<Capture<'_>>,
        check: bool,
    ) -> Result<Option<Box<Self>>, SimError> {
        let captures = capture.map(|c| Captures::open(c, network, pairs)).transpose()?;
        let checker =
            check.then(|| Checker::new((0..network.links.len()).map(link_name).collect()));
        let any = captures.is_some() || checker.is_some();
        Ok(any.then(|| Box::new(Self { captures, checker, failure: None })))
    }

    /// A host put a packet on its link.
    pub(crate) fn sent(
        &mut self,
        now: Instant,
        host: usize,
        handle: PacketHandle,
        packet: Observed<'_>,
    ) {
        if let Some(captures) = &mut self.captures {
            let point = captures.of_host[host];
            captures.write(point, now, handle, packet, &mut self.failure);
        }
        if let Some(checker) = &mut self.checker {
            checker.sent(handle, packet);
        }
    }

    /// A link accepted a packet, which is inside it `times` times (copies included).
    pub(crate) fn entered(
        &mut self,
        now: Instant,
        index: usize,
        link: &mut dyn Link<PacketHandle>,
        uid: u32,
        times: u64,
    ) {
        let Some(checker) = &mut self.checker else { return };
        checker.in_order[index] = link.keeps_order();
        checker.lines[index].extend(core::iter::repeat_n(uid, times as usize));
        let backlog = link.backlog(now);
        if !link.limit().holds(backlog) {
            let what = format!("queue of {} over its limit: {backlog:?}", checker.names[index]);
            self.fail(now, what);
        }
    }

    /// A packet reached the far end of a link.
    pub(crate) fn departed(
        &mut self,
        now: Instant,
        index: usize,
        handle: PacketHandle,
        packet: Observed<'_>,
    ) {
        if let Some(captures) = &mut self.captures {
            let point = captures.of_link[index];
            captures.write(point, now, handle, packet, &mut self.failure);
        }
        let Some(checker) = &mut self.checker else { return };
        let fault = match checker.take(index, packet.1.uid) {
            Some(0) => return,
            Some(_) if !checker.in_order[index] => return,
            Some(_) => "delivers out of turn",
            None => "delivers what it never got:",
        };
        let what = format!("{} {fault} packet {}", checker.names[index], packet.1.uid);
        self.fail(now, what);
    }

    /// A link dropped a packet.
    pub(crate) fn dropped(&mut self, index: usize, uid: u32) {
        if let Some(checker) = &mut self.checker {
            checker.dropped(index, uid);
        }
    }

    /// A packet reached its host.
    pub(crate) fn delivered(
        &mut self,
        now: Instant,
        host: usize,
        handle: PacketHandle,
        packet: Observed<'_>,
    ) {
        if let Some(captures) = &mut self.captures {
            let point = captures.of_host[host];
            captures.write(point, now, handle, packet, &mut self.failure);
        }
        let Some(checker) = &mut self.checker else { return };
        if checker.fingerprints[handle.slot() as usize] != fingerprint(packet.0) {
            let what = format!("packet {} is not what was sent", packet.1.uid);
            self.fail(now, what);
        }
    }

    /// Returns the first failure.
    pub(crate) fn take_failure(&mut self) -> Result<(), Box<SimError>> {
        self.failure.take().map_or(Ok(()), |failure| Err(Box::new(failure)))
    }

    /// Completes the captures.
    pub(crate) fn finish(&mut self) -> Result<(), SimError> {
        self.take_failure().map_err(|failure| *failure)?;
        let Some(captures) = &mut self.captures else { return Ok(()) };
        for (point, writer) in &mut captures.points {
            let name = || point.clone();
            writer.finish().map_err(|error| SimError::Capture { point: name(), error })?;
        }
        Ok(())
    }

    fn fail(&mut self, at: Instant, what: String) {
        self.failure.get_or_insert(SimError::Invariant { at, what });
    }
}

/// All observation points with a capture.
struct Captures {
    points: Vec<(String, PcapWriter)>,
    of_host: Vec<Option<usize>>,
    of_link: Vec<Option<usize>>,
}

impl Captures {
    fn open(
        mut capture: Capture<'_>,
        network: &Network,
        pairs: &[Option<String>],
    ) -> Result<Self, SimError> {
        let mut points = Vec::new();
        let mut of_host = Vec::new();
        for host in 0..network.hosts {
            let role = if host % 2 == 0 { "sender" } else { "receiver" };
            let point = pairs[host / 2].as_ref().map(|p| format!("{}-{role}", file_name(p)));
            let opened = point.map(|name| open(&mut capture, &mut points, name)).transpose()?;
            of_host.push(opened.flatten());
        }
        let hops = network.routers - 1;
        let mut of_hop = Vec::new();
        for hop in 0..hops {
            let name = file_name(&hop_name(hop, hops));
            of_hop.push(open(&mut capture, &mut points, name)?);
        }
        // Two links a hop come first, then the access links.
        let of = |link: usize| of_hop.get(link / 2).copied().flatten();
        let of_link = (0..network.links.len()).map(of).collect();
        Ok(Self { points, of_host, of_link })
    }

    fn write(
        &mut self,
        point: Option<usize>,
        now: Instant,
        handle: PacketHandle,
        packet: Observed<'_>,
        failure: &mut Option<SimError>,
    ) {
        let Some((name, writer)) = point.and_then(|p| self.points.get_mut(p)) else { return };
        let envelope = Envelope { ttl: handle.ttl(), id: packet.1.uid as u16, ecn: handle.ecn() };
        if let Err(error) = writer.packet(now, packet.0, envelope) {
            failure.get_or_insert(SimError::Capture { point: name.clone(), error });
        }
    }
}

fn open(
    capture: &mut Capture<'_>,
    points: &mut Vec<(String, PcapWriter)>,
    name: String,
) -> Result<Option<usize>, SimError> {
    let snaplen = capture.snaplen;
    let opened = (capture.open)(&name)
        .and_then(|file| file.map(|f| PcapWriter::new(f, snaplen)).transpose());
    match opened {
        Ok(Some(writer)) => {
            points.push((name, writer));
            Ok(Some(points.len() - 1))
        }
        Ok(None) => Ok(None),
        Err(error) => Err(SimError::Capture { point: name, error }),
    }
}

/// Replaces characters that a file name should not have.
fn file_name(name: &str) -> String {
    let safe = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    name.chars().map(safe).collect()
}

/// Tracks where every packet should be.
struct Checker {
    names: Vec<String>,
    /// Packets inside each link in the order of their arrival.
    lines: Vec<VecDeque<u32>>,
    in_order: Vec<bool>,
    /// Packets of which one of several copies inside each link was dropped, no matter which.
    lost_copies: Vec<Vec<u32>>,
    /// What was sent, by slot.
    fingerprints: Vec<u64>,
}

impl Checker {
    /// A checker of the links with these names.
    fn new(names: Vec<String>) -> Self {
        let count = names.len();
        Self {
            names,
            lines: vec![VecDeque::new(); count],
            in_order: vec![true; count],
            lost_copies: vec![Vec::new(); count],
            fingerprints: Vec::new(),
        }
    }

    /// Takes a packet out of a link; returns how many had arrived before it and are still inside.
    fn take(&mut self, index: usize, uid: u32) -> Option<usize> {
        let line = &mut self.lines[index];
        let at = line.iter().position(|&u| u == uid)?;
        line.remove(at);
        Some(at - self.resolve_lost_copies(index, at))
    }

    /// The first `ahead` packets in a link were overtaken. So those among them of which a copy may
    /// have been dropped are the dropped copies. Removes them and returns their number.
    fn resolve_lost_copies(&mut self, index: usize, ahead: usize) -> usize {
        let (line, lost) = (&mut self.lines[index], &mut self.lost_copies[index]);
        let mut resolved = 0;
        while let Some(at) = (0..ahead - resolved).find(|at| lost.contains(&line[*at])) {
            let uid = line.remove(at);
            let known = lost.iter().position(|lost| Some(*lost) == uid);
            known.map(|known| lost.swap_remove(known));
            resolved += 1;
        }
        resolved
    }

    /// A packet is inside a link no longer. Of several copies, what overtakes which tells later
    /// which one it was.
    fn dropped(&mut self, index: usize, uid: u32) {
        let line = &mut self.lines[index];
        let copies = line.iter().filter(|&&u| u == uid).count();
        if copies > 1 && self.in_order[index] {
            self.lost_copies[index].push(uid);
        } else if let Some(at) = line.iter().rposition(|&u| u == uid) {
            line.remove(at);
        }
    }

    fn sent(&mut self, handle: PacketHandle, packet: Observed<'_>) {
        let slot = handle.slot() as usize;
        if self.fingerprints.len() <= slot {
            self.fingerprints.resize(slot + 1, 0);
        }
        self.fingerprints[slot] = fingerprint(packet.0);
    }
}

/// Hash of all fields that must not change on the way (FNV-1a).
fn fingerprint(datagram: &Datagram) -> u64 {
    let mut h = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |byte: u64| h = (h ^ byte).wrapping_mul(0x0000_0100_0000_01b3);
    for address in [datagram.src, datagram.dst] {
        mix(u64::from(address.port()));
        match address.ip() {
            core::net::IpAddr::V4(ip) => mix(u64::from(ip.to_bits())),
            core::net::IpAddr::V6(ip) => mix((ip.to_bits() ^ (ip.to_bits() >> 64)) as u64),
        }
    }
    mix(u64::from(datagram.protocol));
    datagram.header.iter().for_each(|b| mix(u64::from(*b)));
    mix(datagram.payload.len() as u64);
    if let Payload::Bytes(bytes) = &datagram.payload {
        bytes.iter().for_each(|b| mix(u64::from(*b)));
    }
    h
}

#[cfg(test)]
mod tests;
