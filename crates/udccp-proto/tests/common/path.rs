//! One direction of a path: a bottleneck with a queue, and what it does to packets.

use bytes::BytesMut;
use udccp_base::{Datagram, Duration, Ecn, Instant, Payload, Rng};
use udccp_wire::{PacketType, PacketView};

/// The packets that a path loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loses {
    Any,
    /// Only acknowledgements without data.
    Acks,
    /// Only packets with data.
    Data,
}

/// What a path does to packets. By default it carries them all at once.
#[derive(Clone, Debug)]
pub struct Path {
    /// Bytes per second of the bottleneck; `None` is unlimited.
    pub rate: Option<u64>,
    /// Longest time in the queue of the bottleneck. Packets that would wait longer are lost.
    pub queue: Duration,
    /// Share of the packets in `loses` that are lost.
    pub loss: f64,
    pub loses: Loses,
    /// Share of packets that arrive twice.
    pub duplicate: f64,
    /// Share of packets that take up to `detour` longer.
    pub reorder: f64,
    pub detour: Duration,
    /// Share of ECN-capable packets that get a congestion mark.
    pub marks: f64,
    /// Makes all packets ECN-incapable, and so removes all marks.
    pub bleaches: bool,
    /// Share of packets in which one bit is flipped.
    pub corrupts: f64,
    /// The largest IP packet.
    pub mtu: usize,
    /// Whether a router reports packets that are too large.
    pub reports_mtu: bool,
    /// When the bottleneck has sent what is in its queue.
    pub free: Instant,
}

impl Default for Path {
    fn default() -> Self {
        Self {
            rate: None,
            queue: Duration::MAX,
            loss: 0.0,
            loses: Loses::Any,
            duplicate: 0.0,
            reorder: 0.0,
            detour: Duration::ZERO,
            marks: 0.0,
            bleaches: false,
            corrupts: 0.0,
            mtu: usize::MAX,
            reports_mtu: true,
            free: Instant::ZERO,
        }
    }
}

impl Path {
    /// This path without its faults.
    pub fn healed(&self) -> Self {
        Self { rate: self.rate, queue: self.queue, free: self.free, ..Self::default() }
    }

    /// How long each copy of a packet takes, in addition to the delay of the network.
    pub fn carry(&mut self, now: Instant, rng: &mut Rng, d: &Datagram) -> [Option<Duration>; 2] {
        if d.ip_len() > self.mtu || self.may_lose(d) && happens(rng, self.loss) {
            return [None; 2];
        }
        let waits = self.free.saturating_since(now);
        let Some(rate) = self.rate else { return self.copies(rng, Duration::ZERO) };
        if waits > self.queue {
            return [None; 2];
        }
        let took = Duration::from_nanos(d.ip_len() as u64 * 1_000_000_000 / rate);
        self.free = now + waits + took;
        self.copies(rng, waits + took)
    }

    fn copies(&self, rng: &mut Rng, took: Duration) -> [Option<Duration>; 2] {
        let is_twice = happens(rng, self.duplicate);
        [Some(took), is_twice.then_some(took)].map(|took| {
            let detour = happens(rng, self.reorder).then(|| rng.below(self.detour.as_nanos() + 1));
            Some(took? + Duration::from_nanos(detour.unwrap_or(0)))
        })
    }

    /// What the path makes of a packet that it carries. `None` if the UDP checksum, which hosts
    /// verify, shows that it is damaged.
    pub fn alter(&self, rng: &mut Rng, mut d: Datagram) -> Option<Datagram> {
        if d.ecn.is_capable() && happens(rng, self.marks) {
            d.ecn = Ecn::Ce;
        }
        if self.bleaches {
            d.ecn = Ecn::NotEct;
        }
        if !happens(rng, self.corrupts) {
            return Some(d);
        }
        (d.dst.port() == 0).then(|| flip_a_bit(rng, &d))
    }

    fn may_lose(&self, d: &Datagram) -> bool {
        match self.loses {
            Loses::Any => true,
            Loses::Acks => !has_data(d) && kind(d) == Some(PacketType::Ack),
            Loses::Data => has_data(d),
        }
    }
}

/// A message begins with its number, of this many bytes. Without it, nobody knows what it was.
pub const NUMBER: usize = 8;

/// Any bit of headers or data, except those of a message's number.
fn flip_a_bit(rng: &mut Rng, d: &Datagram) -> Datagram {
    let mut all = BytesMut::from(&d.header[..]);
    all.extend_from_slice(&d.payload.to_bytes());
    let bit = rng.below(all.len() as u64 * 8) as usize;
    let number = d.header.len()..d.header.len() + NUMBER;
    let byte = if number.contains(&(bit / 8)) { bit / 8 - number.start } else { bit / 8 };
    all[byte] ^= 1 << (bit % 8);
    Datagram { header: all.freeze().into(), payload: Payload::EMPTY, ..d.clone() }
}

/// Draws a number only if that can matter, so that a path without faults leaves others' numbers.
fn happens(rng: &mut Rng, share: f64) -> bool {
    share > 0.0 && rng.chance(share)
}

fn kind(d: &Datagram) -> Option<PacketType> {
    Some(PacketView::new(&d.header, d.transport_len()).ok()?.header().packet_type())
}

fn has_data(d: &Datagram) -> bool {
    matches!(kind(d), Some(PacketType::Data | PacketType::DataAck))
}
