//! The element that most links are: a drop-tail queue, a transmitter, a propagation delay.

use std::collections::VecDeque;

use udccp_base::{DataRate, Duration, Instant, Rng};

use crate::limit::{Backlog, QueueLimit};
use crate::link::{Drops, Link};
use crate::packet::Packet;
use crate::serializer::{Serializer, Transmission};
use crate::stats::{DropReason, LinkStats, Tally};

/// What a [`RateDelay`] is made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateDelayConfig {
    /// Rate of the transmitter in bits of IP packets; `None` serialises in no time.
    pub rate: Option<DataRate>,
    /// Propagation delay from the end of serialisation to the far end.
    pub delay: Duration,
    /// Limit of the queue before the transmitter.
    pub limit: QueueLimit,
}

/// First in, first out: drop-tail queue, then transmitter, then propagation delay.
///
/// In such a link the whole future of a packet is known when it arrives, so it is computed then,
/// and the packets stand in one line in the order of their delivery: one pending event, a few
/// nanoseconds a packet, whatever the length of the line.
#[derive(Debug)]
pub struct RateDelay<P> {
    config: RateDelayConfig,
    serializer: Serializer,
    line: VecDeque<Held<P>>,
    /// When the first in line is delivered; [`Instant::MAX`] while there is none.
    next: Instant,
    /// How many from the front of `line` had begun serialisation when last looked at...
    begun: usize,
    /// ... and the rest of it.
    waiting: Backlog,
    jitter: Option<Jitter>,
    stats: LinkStats,
}

/// Delivery made later by chance, in order.
#[derive(Debug)]
struct Jitter {
    below: Duration,
    rng: Rng,
    last: Instant,
}

impl Jitter {
    fn apply(&mut self, deliver: Instant) -> Instant {
        let later = Duration::from_nanos(self.rng.below(self.below.as_nanos()));
        self.last = self.last.max(deliver + later);
        self.last
    }
}

#[derive(Debug)]
struct Held<P> {
    begin: Instant,
    deliver: Instant,
    packet: P,
}

impl<P: Packet> RateDelay<P> {
    /// An empty link.
    pub fn new(config: RateDelayConfig) -> Self {
        Self {
            config,
            serializer: Serializer::new(config.rate),
            line: VecDeque::new(),
            next: Instant::MAX,
            begun: 0,
            waiting: Backlog::default(),
            jitter: None,
            stats: LinkStats::default(),
        }
    }

    /// Delivers each packet later by a time drawn uniformly from `0..below`, but never before the
    /// one ahead of it. `rng` should be a stream that nothing else draws from.
    ///
    /// This is the timing noise of real hosts. Without it, flows of equal packets over equal links
    /// meet a full queue in a fixed phase, and one of them takes all the losses (S. Floyd and V.
    /// Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", 1992); a time of up to one
    /// packet's at the bottleneck is enough against that.
    #[must_use]
    pub fn with_jitter(mut self, below: Duration, rng: Rng) -> Self {
        let jitter = Jitter { below, rng, last: Instant::ZERO };
        self.jitter = (!below.is_zero()).then_some(jitter);
        self
    }

    /// What it was made from.
    pub const fn config(&self) -> &RateDelayConfig {
        &self.config
    }

    /// Takes those out of the backlog whose serialisation has begun by `now`.
    #[inline]
    fn begin_until(&mut self, now: Instant) {
        while self.waiting.packets > 0 {
            let Some(held) = self.line.get(self.begun) else { break };
            if held.begin > now {
                break;
            }
            self.waiting.packets -= 1;
            self.waiting.bytes -= u64::from(held.packet.wire_len());
            self.begun += 1;
        }
    }

    /// Whether a packet that arrives at `now` has to be dropped. Without a limit nobody asks what
    /// waits, so that is not followed then.
    #[inline]
    fn is_full(&mut self, now: Instant, len: u32) -> bool {
        if self.config.limit == QueueLimit::Unlimited {
            return false;
        }
        self.begin_until(now);
        self.serializer.is_busy(now) && !self.config.limit.admits(self.waiting, len)
    }
}

impl<P: Packet + core::fmt::Debug + Send> Link<P> for RateDelay<P> {
    #[inline]
    fn handle_packet(&mut self, now: Instant, packet: P, drops: &mut Drops<P>) {
        let len = packet.wire_len();
        self.stats.arrived.count(len);
        if self.is_full(now, len) {
            self.stats.dropped[DropReason::QueueFull as usize].count(len);
            drops.push((packet, DropReason::QueueFull));
            return;
        }
        let Transmission { begin, end } = self.serializer.transmit(now, len);
        self.stats.queue_delay.record(begin - now);
        self.waiting.packets += 1;
        self.waiting.bytes += u64::from(len);
        let mut deliver = end + self.config.delay;
        if let Some(jitter) = &mut self.jitter {
            deliver = jitter.apply(deliver);
        }
        self.next = self.next.min(deliver);
        self.line.push_back(Held { begin, deliver, packet });
    }

    #[inline]
    fn poll_departure(&mut self, now: Instant, _drops: &mut Drops<P>) -> Option<P> {
        if self.next > now {
            return None;
        }
        let held = self.line.pop_front()?;
        self.next = self.line.front().map_or(Instant::MAX, |held| held.deliver);
        if self.begun > 0 {
            self.begun -= 1;
        } else {
            // Nobody asked for the backlog since this one began.
            self.waiting.packets -= 1;
            self.waiting.bytes -= u64::from(held.packet.wire_len());
        }
        Some(held.packet)
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        (self.next < Instant::MAX).then_some(self.next)
    }

    fn packets_inside(&self) -> usize {
        self.line.len()
    }

    fn backlog(&mut self, now: Instant) -> Backlog {
        self.begin_until(now);
        self.waiting
    }

    fn limit(&self) -> QueueLimit {
        self.config.limit
    }

    fn stats(&self, now: Instant) -> LinkStats {
        let mut stats = self.stats.clone();
        stats.busy = self.serializer.busy(now);
        // What has arrived, was not dropped and is not inside has departed.
        let bytes = self.line.iter().map(|held| u64::from(held.packet.wire_len())).sum();
        let inside = Tally { packets: self.line.len() as u64, bytes };
        stats.departed = stats.arrived - stats.dropped_total() - inside;
        stats
    }
}

#[cfg(test)]
mod tests;
