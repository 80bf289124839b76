//! The element that most links are: a drop-tail queue, a transmitter, a propagation delay.

use std::collections::VecDeque;

use udccp_base::{DataRate, Duration, Instant, Rng};

use crate::change::Change;
use crate::filter::{Rule, Verdict};
use crate::gather::{Gather, Gathering};
use crate::histogram::DelayHistogram;
use crate::limit::{Backlog, QueueLimit};
use crate::link::{Drops, Link};
use crate::loss::Loss;
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

/// First in, first out: drop-tail queue, then transmitter, then propagation delay; before them
/// loss, where it is asked for.
///
/// In such a link the whole future of a packet is known when it arrives, so it is computed then,
/// and the packets stand in one line in the order of their delivery: one pending event, a few
/// nanoseconds a packet, whatever the length of the line.
#[derive(Debug)]
pub struct RateDelay<P> {
    config: RateDelayConfig,
    serializer: Serializer,
    /// In the order of their delivery.
    line: VecDeque<Held<P>>,
    /// When the first in line is delivered; [`Instant::MAX`] while there is none.
    next: Instant,
    /// How many from the front of `line` had begun serialisation when last looked at...
    begun: usize,
    /// ... and the bytes of the rest. They wait, or have begun since.
    waiting_bytes: u64,
    /// Few links have any, and they are long.
    extras: Option<Box<Extras>>,
    arrived: Tally,
    /// For want of room.
    dropped: Tally,
    /// Where anybody asks how long packets waited.
    queue_delay: Option<Box<DelayHistogram>>,
}

/// What not all links do.
#[derive(Debug, Default)]
struct Extras {
    /// Loses packets before the queue.
    loss: Option<Loss>,
    lost: Tally,
    /// By how much packets leave before their serialisation would end: a full bucket's worth.
    lead: Option<Duration>,
    jitter: Option<Jitter>,
    gathering: Option<Gathering>,
}

/// Delivery made later by chance, in order.
#[derive(Debug)]
struct Jitter {
    below: Duration,
    rng: Rng,
    last: Instant,
}

impl Extras {
    /// Whether a packet that arrives is lost.
    fn loses(&mut self, now: Instant, len: u32) -> bool {
        let is_lost = self.loss.as_mut().is_some_and(|loss| loss.judge(now, len) != Verdict::Pass);
        if is_lost {
            self.lost.count(len);
        }
        is_lost
    }

    /// When a packet that arrived at `now` leaves the queue and is delivered.
    fn shift(&mut self, now: Instant, transmitted: Transmission, delay: Duration) -> Times {
        let Transmission { mut begin, mut end } = transmitted;
        if let Some(lead) = self.lead {
            begin = now.max(end - lead);
            end = begin;
        }
        let mut deliver = end + delay;
        if let Some(jitter) = &mut self.jitter {
            deliver = jitter.apply(deliver);
        }
        if let Some(gathering) = &mut self.gathering {
            deliver = gathering.apply(deliver);
        }
        Times { begin, deliver }
    }
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
    times: Times,
    packet: P,
}

/// When a packet that a link has accepted goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    begin: Instant,
    /// When it reaches the far end.
    pub deliver: Instant,
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
            waiting_bytes: 0,
            extras: None,
            arrived: Tally::default(),
            dropped: Tally::default(),
            queue_delay: Some(Box::default()),
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
        if !below.is_zero() {
            self.extras.get_or_insert_default().jitter = Some(jitter);
        }
        self
    }

    /// Shapes by a token bucket of `bytes` instead of by a transmitter, as Linux's `tbf` does. A
    /// packet leaves when its tokens are there: at once, or that many bytes' time before its
    /// serialisation would end. Without a rate this changes nothing.
    #[must_use]
    pub fn with_token_bucket(mut self, bytes: u32) -> Self {
        if let Some(rate) = self.config.rate {
            self.extras.get_or_insert_default().lead = Some(rate.time_for(bytes.into()));
        }
        self
    }

    /// Loses packets before they come to the queue.
    #[must_use]
    pub fn with_loss(mut self, rule: Loss) -> Self {
        self.extras.get_or_insert_default().loss = Some(rule);
        self
    }

    /// Has the far end see packets together, as `config` says.
    #[must_use]
    pub fn with_gather(mut self, config: Gather) -> Self {
        if let Some(gathering) = Gathering::new(config) {
            self.extras.get_or_insert_default().gathering = Some(gathering);
        }
        self
    }

    /// Keeps no record of queue delays: [`LinkStats::queue_delay`] stays empty.
    #[must_use]
    pub fn without_delay_record(mut self) -> Self {
        self.queue_delay = None;
        self
    }

    /// What it was made from.
    pub const fn config(&self) -> &RateDelayConfig {
        &self.config
    }

    /// Takes those out of the backlog whose serialisation has begun by `now`.
    fn begin_until(&mut self, now: Instant) {
        while let Some(held) = self.line.get(self.begun).filter(|held| held.times.begin <= now) {
            self.waiting_bytes -= u64::from(held.packet.wire_len());
            self.begun += 1;
        }
    }

    /// What waits; some may have begun since the last look.
    #[inline]
    fn waiting(&self) -> Backlog {
        let packets = (self.line.len() - self.begun) as u64;
        Backlog { packets, bytes: self.waiting_bytes }
    }

    /// Whether a packet that arrives at `now` has to be dropped, though it seems that there is no
    /// room.
    #[inline(never)]
    fn is_full(&mut self, now: Instant, len: u32) -> bool {
        self.begin_until(now);
        self.serializer.is_busy(now) && !self.config.limit.admits(self.waiting(), len)
    }

    /// Accepts a packet of `len` bytes that arrives at `now`. The caller either calls
    /// [`Self::hold`], or takes it as delivered at that time: this spares a packet that nothing can
    /// overtake the way through the line.
    ///
    /// # Errors
    /// Why it is dropped: it is lost, or there is no room.
    #[inline(always)]
    pub fn accept(&mut self, now: Instant, len: u32) -> Result<Times, DropReason> {
        self.arrived.count(len);
        if self.extras.is_some() {
            return self.accept_with_extras(now, len);
        }
        let Transmission { begin, end } = self.transmit(now, len)?;
        Ok(self.recorded(now, Times { begin, deliver: end + self.config.delay }))
    }

    /// The general case of [`Self::accept`].
    #[inline(never)]
    fn accept_with_extras(&mut self, now: Instant, len: u32) -> Result<Times, DropReason> {
        if self.extras.get_or_insert_default().loses(now, len) {
            return Err(DropReason::RandomLoss);
        }
        let (transmitted, delay) = (self.transmit(now, len)?, self.config.delay);
        let times = self.extras.get_or_insert_default().shift(now, transmitted, delay);
        Ok(self.recorded(now, times))
    }

    /// Queues a packet for the transmitter, if there is room.
    #[inline(always)]
    fn transmit(&mut self, now: Instant, len: u32) -> Result<Transmission, DropReason> {
        // A look at how many have begun is needed only when the line seems full.
        if !self.config.limit.admits(self.waiting(), len) && self.is_full(now, len) {
            self.dropped.count(len);
            return Err(DropReason::QueueFull);
        }
        Ok(self.serializer.transmit(now, len))
    }

    #[inline(always)]
    fn recorded(&mut self, now: Instant, times: Times) -> Times {
        if let Some(delays) = &mut self.queue_delay {
            delays.record(times.begin - now);
        }
        times
    }

    /// Gives back the memory of the line, if nothing is in it: for a link that has done its work.
    pub fn shrink(&mut self) {
        if self.line.is_empty() {
            self.line = VecDeque::new();
        }
    }

    /// Puts a packet that was accepted in the line.
    #[inline(always)]
    pub fn hold(&mut self, times: Times, packet: P) {
        if self.line.is_empty() {
            self.next = times.deliver;
        }
        self.waiting_bytes += u64::from(packet.wire_len());
        self.line.push_back(Held { times, packet });
    }

    /// The next packet that reaches the far end at `now` or before.
    #[inline(always)]
    pub fn depart(&mut self, now: Instant) -> Option<P> {
        if self.next > now {
            return None;
        }
        let gone = self.line.pop_front()?.packet;
        self.next = self.line.front().map_or(Instant::MAX, |held| held.times.deliver);
        if self.begun > 0 {
            self.begun -= 1;
        } else {
            // Nobody asked for the backlog since this one began.
            self.waiting_bytes -= u64::from(gone.wire_len());
        }
        Some(gone)
    }

    /// When the first in line reaches the far end; [`Instant::MAX`] while there is none.
    #[inline(always)]
    pub const fn next(&self) -> Instant {
        self.next
    }
}

impl<P: Packet + core::fmt::Debug + Send> Link<P> for RateDelay<P> {
    #[inline(always)]
    fn handle_packet(&mut self, now: Instant, packet: P, drops: &mut Drops<P>) {
        match self.accept(now, packet.wire_len()) {
            Ok(times) => self.hold(times, packet),
            Err(reason) => drops.push((packet, reason)),
        }
    }

    #[inline(always)]
    fn poll_departure(&mut self, now: Instant, _drops: &mut Drops<P>) -> Option<P> {
        self.depart(now)
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
        self.waiting()
    }

    #[inline]
    fn empties_at(&self, now: Instant) -> Instant {
        let lead = self.extras.as_ref().and_then(|extras| extras.lead).unwrap_or(Duration::ZERO);
        now.max(self.serializer.free_at() - lead)
    }

    fn limit(&self) -> QueueLimit {
        self.config.limit
    }

    fn change(&mut self, now: Instant, change: &Change, _drops: &mut Drops<P>) {
        if let Some(loss) = self.extras.as_mut().and_then(|extras| extras.loss.as_mut()) {
            loss.change(now, change);
        }
    }

    fn stats(&self, now: Instant) -> LinkStats {
        let queue_delay = self.queue_delay.as_deref().cloned().unwrap_or_default();
        LinkStats { queue_delay, ..self.counters(now) }
    }

    fn counters(&self, now: Instant) -> LinkStats {
        // What has arrived, was not dropped and is not inside has departed.
        let bytes = self.line.iter().map(|held| u64::from(held.packet.wire_len())).sum();
        let inside = Tally { packets: self.packets_inside() as u64, bytes };
        let mut stats = LinkStats { arrived: self.arrived, ..LinkStats::default() };
        stats.busy = self.serializer.busy(now);
        let lost = self.extras.as_ref().map_or(Tally::default(), |extras| extras.lost);
        stats.dropped[DropReason::RandomLoss as usize] = lost;
        stats.dropped[DropReason::QueueFull as usize] = self.dropped;
        stats.departed = self.arrived - self.dropped - lost - inside;
        stats
    }
}

#[cfg(test)]
mod tests;
