//! Several link elements in a row.

use udccp_base::Instant;

use crate::change::Change;
use crate::limit::{Backlog, QueueLimit};
use crate::link::{Drops, Link};
use crate::stats::LinkStats;

/// Elements in a row that form one link. A packet that leaves an element enters the next at the
/// same time.
#[derive(Debug)]
pub struct Chain<P> {
    elements: Vec<Box<dyn Link<P>>>,
}

impl<P> Chain<P> {
    /// A chain with one element, the first that packets pass.
    pub fn new(first: Box<dyn Link<P>>) -> Self {
        Self { elements: vec![first] }
    }

    /// Adds an element at the end.
    #[must_use]
    pub fn then(mut self, next: Box<dyn Link<P>>) -> Self {
        self.elements.push(next);
        self
    }

    /// Moves packets that leave element `from` or a later one on to the next element.
    fn advance(&mut self, from: usize, now: Instant, drops: &mut Drops<P>) {
        let last = self.elements.len() - 1;
        for i in from..last {
            let (here, behind) = self.elements.split_at_mut(i + 1);
            while let Some(packet) = here[i].poll_departure(now, drops) {
                behind[0].handle_packet(now, packet, drops);
            }
        }
    }
}

impl<P: core::fmt::Debug + Send> Link<P> for Chain<P> {
    fn handle_packet(&mut self, now: Instant, packet: P, drops: &mut Drops<P>) {
        self.elements[0].handle_packet(now, packet, drops);
        self.advance(0, now, drops);
    }

    fn poll_departure(&mut self, now: Instant, drops: &mut Drops<P>) -> Option<P> {
        self.advance(0, now, drops);
        self.elements.last_mut()?.poll_departure(now, drops)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.elements.iter().filter_map(|e| e.poll_timeout()).min()
    }

    fn packets_inside(&self) -> usize {
        self.elements.iter().map(|e| e.packets_inside()).sum()
    }

    fn backlog(&mut self, now: Instant) -> Backlog {
        let mut sum = Backlog::default();
        for element in &mut self.elements {
            let backlog = element.backlog(now);
            sum.packets += backlog.packets;
            sum.bytes += backlog.bytes;
        }
        sum
    }

    /// The time at which the last element is empty.
    fn empties_at(&self, now: Instant) -> Instant {
        self.elements.iter().map(|e| e.empties_at(now)).max().unwrap_or(now)
    }

    /// The limit of the only element that has one; unlimited if several have one.
    fn limit(&self) -> QueueLimit {
        let limits = self.elements.iter().map(|e| e.limit());
        let mut limited = limits.filter(|l| *l != QueueLimit::Unlimited);
        match (limited.next(), limited.next()) {
            (Some(limit), None) => limit,
            _ => QueueLimit::Unlimited,
        }
    }

    fn keeps_order(&self) -> bool {
        self.elements.iter().all(|e| e.keeps_order())
    }

    fn duplicated(&self) -> u64 {
        self.elements.iter().map(|e| e.duplicated()).sum()
    }

    fn change(&mut self, now: Instant, change: &Change, drops: &mut Drops<P>) {
        for element in &mut self.elements {
            element.change(now, change, drops);
        }
    }

    /// Arrivals of the first element, departures of the last, drops and queue delays of all
    /// (elements without a queue record none); the busy time is that of the busiest.
    fn stats(&self, now: Instant) -> LinkStats {
        let mut sum = LinkStats::default();
        for (i, element) in self.elements.iter().enumerate() {
            let stats = element.stats(now);
            if i == 0 {
                sum.arrived = stats.arrived;
            }
            sum.departed = stats.departed;
            for (total, dropped) in sum.dropped.iter_mut().zip(stats.dropped) {
                *total += dropped;
            }
            sum.duplicated += stats.duplicated;
            sum.marked += stats.marked;
            sum.busy = sum.busy.max(stats.busy);
            sum.queue_delay.merge(&stats.queue_delay);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use udccp_base::{DataRate, Datagram, Duration, Machine, Seed};

    use super::*;
    use crate::packet::tests::datagram;
    use crate::{Filter, LinkMachine, Loss, LossConfig, RateDelay, RateDelayConfig};

    fn rate_delay(mbps: u64, delay: Duration) -> Box<dyn Link<Datagram>> {
        Box::new(RateDelay::new(RateDelayConfig {
            rate: Some(DataRate::from_mbps(mbps)),
            delay,
            limit: QueueLimit::Packets(5),
        }))
    }

    #[test]
    fn a_chain_adds_up_and_wakes_for_the_earliest() {
        let mut chain = Chain::new(rate_delay(12, Duration::from_millis(1)))
            .then(rate_delay(6, Duration::from_millis(3)));
        let mut drops = Drops::new();
        chain.handle_packet(Instant::ZERO, datagram(1500), &mut drops);
        let mut seen = Vec::new();
        while let Some(now) = chain.poll_timeout() {
            seen.push((now.as_nanos(), chain.poll_departure(now, &mut drops).is_some()));
        }
        assert_eq!(seen, [(2_000_000, false), (7_000_000, true)]);
        assert_eq!(chain.limit(), QueueLimit::Unlimited, "two queues, no one limit");
    }

    #[test]
    fn packets_lost_before_a_queue_take_no_space_and_are_counted() {
        let loss = Filter::new(Loss::new(LossConfig::Random(0.5), Seed(3).stream("loss")));
        let mut chain = Chain::new(Box::new(loss)).then(rate_delay(12, Duration::from_millis(1)));
        let mut drops = Drops::new();
        for ms in 0..1_000 {
            let now = Instant::from_nanos(ms * 400_000);
            while chain.poll_departure(now, &mut drops).is_some() {}
            chain.handle_packet(now, datagram(1500), &mut drops);
        }
        let stats = chain.stats(Instant::from_nanos(400_000_000));
        let dropped = stats.dropped_total().packets;
        assert_eq!(dropped, drops.len() as u64);
        assert!(stats.dropped[0].packets > 0 && stats.dropped[1].packets > 0);
        let inside = chain.packets_inside() as u64;
        assert_eq!(stats.arrived.packets, stats.departed.packets + dropped + inside);
        assert_eq!(chain.limit(), QueueLimit::Packets(5));
    }

    #[test]
    fn a_link_is_driven_like_any_machine() {
        let mut machine = LinkMachine::new(rate_delay(12, Duration::from_millis(1)));
        machine.handle_datagram(Instant::ZERO, datagram(1500));
        assert_eq!(machine.poll_transmit(Instant::ZERO), None);
        let due = machine.poll_timeout().unwrap();
        machine.handle_timeout(due);
        assert_eq!(machine.poll_transmit(due), Some(datagram(1500)));
        assert_eq!(machine.poll_timeout(), None);
        assert_eq!(machine.link().packets_inside(), 0);
    }
}
