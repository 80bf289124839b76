//! A transmitter behind any queue, whose rate may change.

use udccp_base::{DataRate, Duration, Instant};

use crate::change::Change;
use crate::limit::{Backlog, QueueLimit};
use crate::line::Line;
use crate::link::{Drops, Link};
use crate::packet::Packet;
use crate::queue::Queue;
use crate::stats::LinkStats;

/// Transmission time of a byte at 1 bit/s, in nanoseconds.
const BYTE_NANOS: u128 = 8_000_000_000;

/// A queue and a transmitter that takes one packet after the other from it.
///
/// With a drop-tail queue and a constant rate this equals [`RateDelay`](crate::RateDelay) without
/// its delay, to the nanosecond. It costs more, because every start of a transmission is an event.
/// In return, the queue may decide late and the rate may change.
#[derive(Debug)]
pub struct Transmitter<P> {
    line: Line<P>,
    /// Bits per second; with `None`, transmission takes no time.
    rate: Option<u64>,
    service: Option<Service<P>>,
    busy: Duration,
}

/// A packet on the transmitter.
#[derive(Debug)]
struct Service<P> {
    packet: P,
    /// Since when it is transmitted at the current rate...
    since: Instant,
    /// ... and what was left of it then, in units of 1 bit/s times 1 ns.
    left: u128,
    /// The first whole nanosecond at which it will be transmitted.
    end: Instant,
}

impl<P> Service<P> {
    fn new(packet: P, since: Instant, left: u128, rate: Option<u64>) -> Self {
        let end = match rate {
            None => since,
            Some(0) => Instant::MAX,
            Some(rate) => {
                let nanos = left.div_ceil(u128::from(rate));
                since + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
        };
        Self { packet, since, left, end }
    }
}

impl<P: Packet> Transmitter<P> {
    /// An idle transmitter. With `rate` as `None`, transmission takes no time; rate zero transmits
    /// nothing.
    pub fn new(rate: Option<DataRate>, queue: Box<dyn Queue<P>>) -> Self {
        let rate = rate.map(DataRate::bits_per_sec);
        Self { line: Line::new(queue), rate, service: None, busy: Duration::ZERO }
    }

    /// The work done in `span`, in units of [`Service::left`].
    fn work(&self, span: Duration) -> u128 {
        self.rate.map_or(0, |rate| u128::from(rate) * u128::from(span.as_nanos()))
    }

    /// The busy part of `span`: none while the rate is zero.
    fn busy_in(&self, span: Duration) -> Duration {
        if self.rate == Some(0) { Duration::ZERO } else { span }
    }

    /// Completes the transmissions that have ended by `now`, and starts the next. The fraction of a
    /// nanosecond left over goes to a packet that follows at once, so busy periods do not drift.
    fn catch_up(&mut self, now: Instant, drops: &mut Drops<P>) {
        while let Some(Service { packet, since, left, end }) =
            self.service.take_if(|service| service.end <= now)
        {
            self.busy += self.busy_in(end - since);
            let rest = self.work(end - since).saturating_sub(left);
            self.line.transmitted(end, packet);
            self.begin(end, rest, drops);
        }
    }

    fn begin(&mut self, at: Instant, rest: u128, drops: &mut Drops<P>) {
        let rate = self.rate;
        self.service = self.line.next(at, drops).map(|packet| {
            let left = u128::from(packet.wire_len()) * BYTE_NANOS;
            Service::new(packet, at, left.saturating_sub(rest), rate)
        });
    }

    fn set_rate(&mut self, now: Instant, rate: DataRate) {
        let service = self.service.take();
        let settled = service.map(|s| {
            let span = now - s.since;
            self.busy += self.busy_in(span);
            (s.packet, s.left.saturating_sub(self.work(span)))
        });
        self.rate = Some(rate.bits_per_sec());
        self.service = settled.map(|(packet, left)| Service::new(packet, now, left, self.rate));
    }

    fn set_down(&mut self, now: Instant, down: bool, drops: &mut Drops<P>) {
        let service = self.service.take();
        if let Some(service) = &service {
            self.busy += self.busy_in(now - service.since);
        }
        self.line.set_down(now, down, service.map(|s| s.packet), drops);
    }
}

impl<P: Packet + core::fmt::Debug + Send> Link<P> for Transmitter<P> {
    fn handle_packet(&mut self, now: Instant, packet: P, drops: &mut Drops<P>) {
        self.catch_up(now, drops);
        let idle = self.service.is_none();
        self.line.arrive(now, packet, idle, drops);
        if idle {
            self.begin(now, 0, drops);
            self.catch_up(now, drops);
        }
    }

    fn poll_departure(&mut self, now: Instant, drops: &mut Drops<P>) -> Option<P> {
        self.catch_up(now, drops);
        self.line.depart(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let end = self.service.as_ref().map(|service| service.end);
        self.line.departure().or(end).filter(|at| *at < Instant::MAX)
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
        match change {
            Change::Rate(rate) => self.set_rate(now, *rate),
            Change::Down(down) => self.set_down(now, *down, drops),
            Change::Delay(_) | Change::Loss(_) => {}
        }
    }

    fn stats(&self, now: Instant) -> LinkStats {
        let current = self.service.as_ref().map(|s| self.busy_in(now.min(s.end) - s.since));
        self.line.stats(self.busy + current.unwrap_or(Duration::ZERO))
    }
}

#[cfg(test)]
mod tests;
