//! One direction of a path: a bottleneck with a queue, and what it does to packets.

use udccp_base::{Datagram, Duration, Instant, Rng};
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

    fn may_lose(&self, d: &Datagram) -> bool {
        match self.loses {
            Loses::Any => true,
            Loses::Acks => !has_data(d) && kind(d) == Some(PacketType::Ack),
            Loses::Data => has_data(d),
        }
    }
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
