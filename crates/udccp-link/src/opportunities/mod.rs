//! A link that transmits at the times of a trace.

use std::sync::Arc;

use udccp_base::{Duration, Instant};

use crate::change::Change;
use crate::limit::{Backlog, QueueLimit};
use crate::line::Line;
use crate::link::{Drops, Link};
use crate::packet::Packet;
use crate::queue::Queue;
use crate::stats::LinkStats;

/// Times at which a link can transmit, which repeat: a packet-delivery trace of mahimahi (R.
/// Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", 2015; the tool `mm-link`).
/// Each time is an opportunity for [`BYTES`](Self::BYTES) bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opportunities {
    /// Since the start of the trace, ascending.
    times: Arc<[Duration]>,
}

impl Opportunities {
    /// Bytes of one opportunity.
    pub const BYTES: u32 = 1500;

    /// A trace of these times, which repeats after the last one. `None` unless they ascend (equal
    /// times may follow each other) and the last is above zero.
    pub fn new(times: impl Into<Arc<[Duration]>>) -> Option<Self> {
        let times = times.into();
        let ends_well = times.last().is_some_and(|last| !last.is_zero());
        (ends_well && times.is_sorted()).then_some(Self { times })
    }

    /// The times.
    pub fn times(&self) -> &[Duration] {
        &self.times
    }

    /// The time after which the trace repeats.
    pub fn period(&self) -> Duration {
        self.times.last().copied().unwrap_or(Duration::MAX)
    }

    /// The mean rate of the whole trace.
    pub fn mean_rate(&self) -> udccp_base::DataRate {
        udccp_base::DataRate::of(self.times.len() as u64 * u64::from(Self::BYTES), self.period())
    }

    /// The time that an opportunity counts as busy: since the previous opportunity at another time,
    /// divided among those at the same time.
    fn span(&self, index: usize) -> Duration {
        let at = self.times[index];
        let first = self.times.partition_point(|t| *t < at);
        let after = self.times.partition_point(|t| *t <= at);
        let before = if first == 0 { Duration::ZERO } else { self.times[first - 1] };
        (at - before) / (after - first) as u64
    }
}

/// A queue, and a transmitter that works at the times of a trace.
///
/// As in mahimahi, an opportunity without a packet is lost. One opportunity can carry several short
/// packets, and a packet that does not fit continues in the next. A packet leaves with the
/// opportunity that carries its last byte. An opportunity at the time of an arrival comes first.
#[derive(Debug)]
pub struct TraceDriven<P> {
    line: Line<P>,
    trace: Opportunities,
    /// Start of the current repetition, and the next opportunity in it.
    base: Instant,
    index: usize,
    /// The packet in transmission, and how many of its bytes are left.
    service: Option<(P, u32)>,
    busy: Duration,
}

impl<P: Packet> TraceDriven<P> {
    /// An idle link whose trace starts at time zero.
    pub fn new(trace: Opportunities, queue: Box<dyn Queue<P>>) -> Self {
        let (base, index, busy) = (Instant::ZERO, 0, Duration::ZERO);
        Self { line: Line::new(queue), trace, base, index, service: None, busy }
    }

    fn next(&self) -> Instant {
        self.base + self.trace.times[self.index]
    }

    fn step(&mut self) {
        self.index += 1;
        if self.index == self.trace.times.len() {
            self.index = 0;
            self.base += self.trace.period();
        }
    }

    fn is_idle(&self) -> bool {
        self.service.is_none() && self.line.is_empty()
    }

    /// Processes the opportunities up to `now`: uses them, or skips them if nothing waits.
    fn catch_up(&mut self, now: Instant, drops: &mut Drops<P>) {
        while !self.is_idle() && self.next() <= now {
            self.transmit(drops);
            self.step();
        }
        if self.next() <= now {
            let period = self.trace.period();
            let rounds = (now - self.base).as_nanos() / period.as_nanos();
            self.base += period * rounds;
            let since = now - self.base;
            // The last one ends the period, so it is after `since`.
            self.index = self.trace.times.partition_point(|t| *t <= since);
        }
    }

    /// Uses one opportunity.
    fn transmit(&mut self, drops: &mut Drops<P>) {
        let at = self.next();
        let mut room = Opportunities::BYTES;
        while room > 0 {
            let next = self.service.take().or_else(|| {
                let packet = self.line.next(at, drops)?;
                let len = packet.wire_len();
                Some((packet, len))
            });
            let Some((packet, left)) = next else { break };
            let sent = left.min(room);
            room -= sent;
            if left > sent {
                self.service = Some((packet, left - sent));
            } else {
                self.line.transmitted(at, packet);
            }
        }
        let used = u64::from(Opportunities::BYTES - room);
        self.busy += self.trace.span(self.index) * used / u64::from(Opportunities::BYTES);
    }
}

impl<P: Packet + core::fmt::Debug + Send> Link<P> for TraceDriven<P> {
    fn handle_packet(&mut self, now: Instant, packet: P, drops: &mut Drops<P>) {
        self.catch_up(now, drops);
        // Packets are transmitted only at opportunities, so none is transmitted now.
        self.line.arrive(now, packet, false, drops);
    }

    fn poll_departure(&mut self, now: Instant, drops: &mut Drops<P>) -> Option<P> {
        self.catch_up(now, drops);
        self.line.depart(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let next = (!self.is_idle()).then(|| self.next());
        self.line.departure().or(next)
    }

    fn packets_inside(&self) -> usize {
        self.line.packets() + usize::from(self.service.is_some())
    }

    fn backlog(&mut self, _now: Instant) -> Backlog {
        self.line.queue.backlog()
    }

    fn limit(&self) -> QueueLimit {
        self.line.queue.limit()
    }

    fn keeps_order(&self) -> bool {
        self.line.queue.keeps_order()
    }

    fn change(&mut self, now: Instant, change: &Change, drops: &mut Drops<P>) {
        self.catch_up(now, drops);
        if let Change::Down(down) = change {
            let service = self.service.take().map(|(packet, _)| packet);
            self.line.set_down(now, *down, service, drops);
        }
    }

    fn stats(&self, _now: Instant) -> LinkStats {
        self.line.stats(self.busy)
    }
}

#[cfg(test)]
mod tests;
