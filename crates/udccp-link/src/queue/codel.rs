//! Controlled delay.

use udccp_base::{Duration, Instant};

use super::backlogged::Fifo;
use super::{Queue, Waiting, mark};
use crate::limit::{Backlog, QueueLimit};
use crate::link::Drops;
use crate::packet::Packet;
use crate::stats::DropReason;

/// The settings of a [`CoDel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelConfig {
    /// The acceptable standing delay: `TARGET` (RFC 8289 section 4.3).
    pub target: Duration,
    /// How long the delay may exceed it: `INTERVAL`, about the longest usual round-trip time.
    pub interval: Duration,
    /// No packet is dropped while at most this many bytes wait: the largest packet, `MAXPACKET`.
    pub max_packet: u32,
    /// Mark packets of ECN-capable transports instead of dropping them.
    pub ecn: bool,
    /// Hard limit of the queue.
    pub limit: QueueLimit,
}

impl Default for CoDelConfig {
    /// Target 5 ms, interval 100 ms, largest packet 1500 bytes, no ECN, no limit.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            max_packet: 1500,
            ecn: false,
            limit: QueueLimit::Unlimited,
        }
    }
}

/// The state of CoDel without the packets: RFC 8289 section 5.
#[derive(Clone, Debug, Default)]
pub(crate) struct Controller {
    /// When the delay will have been above the target for a whole interval.
    first_above: Option<Instant>,
    /// Time of the next drop, while in the drop state.
    drop_next: Instant,
    /// Drops since the drop state began.
    count: u32,
    /// `count` at the start of the last drop state.
    last_count: u32,
    dropping: bool,
}

impl Controller {
    /// The time of the drop after the one at `t`: `INTERVAL / sqrt(count)` later.
    fn control_law(&self, t: Instant, interval: Duration) -> Instant {
        let step = interval.as_nanos() as f64 / libm::sqrt(f64::from(self.count.max(1)));
        t + Duration::from_nanos(step as u64)
    }

    /// Takes a packet out and returns whether it may be dropped (`dodequeue`).
    fn take<P: Packet>(
        &mut self,
        now: Instant,
        config: &CoDelConfig,
        fifo: &mut Fifo<P>,
    ) -> (Option<Waiting<P>>, bool) {
        let Some(first) = fifo.pop() else {
            self.first_above = None;
            return (None, false);
        };
        let waited = now - first.since;
        if waited < config.target || fifo.backlog().bytes <= u64::from(config.max_packet) {
            self.first_above = None;
            return (Some(first), false);
        }
        let ok_to_drop = match self.first_above {
            Some(at) => now >= at,
            None => {
                self.first_above = Some(now + config.interval);
                false
            }
        };
        (Some(first), ok_to_drop)
    }

    /// The next packet of `fifo`, after dropping those that have to be dropped. A packet that is
    /// marked instead of dropped leaves the queue.
    pub(crate) fn dequeue<P: Packet>(
        &mut self,
        now: Instant,
        config: &CoDelConfig,
        fifo: &mut Fifo<P>,
        marked: &mut u64,
        drops: &mut Drops<P>,
    ) -> Option<Waiting<P>> {
        let (mut first, mut ok_to_drop) = self.take(now, config, fifo);
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                let mut victim = first?;
                self.count += 1;
                if mark(&mut victim.packet, config.ecn, marked) {
                    self.drop_next = self.control_law(self.drop_next, config.interval);
                    return Some(victim);
                }
                drops.push((victim.packet, DropReason::EarlyDrop));
                (first, ok_to_drop) = self.take(now, config, fifo);
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next, config.interval);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            let mut victim = first?;
            first = if mark(&mut victim.packet, config.ecn, marked) {
                Some(victim)
            } else {
                drops.push((victim.packet, DropReason::EarlyDrop));
                self.take(now, config, fifo).0
            };
            self.begin_dropping(now, config.interval);
        }
        first
    }

    /// Enters the drop state, at the previous drop rate if that was not long ago.
    fn begin_dropping(&mut self, now: Instant, interval: Duration) {
        self.dropping = true;
        let delta = self.count - self.last_count;
        let recent = now - self.drop_next < interval * 16;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = self.control_law(now, interval);
        self.last_count = self.count;
    }
}

/// Controlled delay (RFC 8289): drops from the front, at an increasing rate, while the delay of
/// departing packets has exceeded a target for an interval.
#[derive(Debug)]
pub struct CoDel<P> {
    config: CoDelConfig,
    controller: Controller,
    fifo: Fifo<P>,
    marked: u64,
}

impl<P: Packet> CoDel<P> {
    /// An empty queue.
    pub fn new(config: CoDelConfig) -> Self {
        Self { config, controller: Controller::default(), fifo: Fifo::default(), marked: 0 }
    }
}

impl<P: Packet + core::fmt::Debug + Send> Queue<P> for CoDel<P> {
    fn enqueue(&mut self, now: Instant, packet: P, idle: bool, drops: &mut Drops<P>) {
        if idle || self.config.limit.admits(self.fifo.backlog(), packet.wire_len()) {
            self.fifo.push(now, packet);
        } else {
            drops.push((packet, DropReason::QueueFull));
        }
    }

    fn dequeue(&mut self, now: Instant, drops: &mut Drops<P>) -> Option<Waiting<P>> {
        self.controller.dequeue(now, &self.config, &mut self.fifo, &mut self.marked, drops)
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn limit(&self) -> QueueLimit {
        self.config.limit
    }

    fn marked(&self) -> u64 {
        self.marked
    }
}
