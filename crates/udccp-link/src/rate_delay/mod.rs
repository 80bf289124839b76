//! The element of most links: a drop-tail queue, a transmitter, a propagation delay.

use udccp_base::{DataRate, Duration, Instant, Ring, Rng};

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

/// The settings of a [`RateDelay`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateDelayConfig {
    /// Rate of the transmitter, in bits of IP packets; `None`: transmission takes no time.
    pub rate: Option<DataRate>,
    /// Propagation delay from the end of serialisation to the far end.
    pub delay: Duration,
    /// Limit of the queue in front of the transmitter.
    pub limit: QueueLimit,
}

/// First in, first out: drop-tail queue, transmitter, propagation delay; optionally loss before the
/// queue.
///
/// In such a link the times of a packet are known when it arrives. So they are computed then, and
/// all packets are stored in one line in order of delivery. There is one pending event, at a cost
/// of a few nanoseconds per packet, however long the line is.
#[derive(Debug)]
pub struct RateDelay<P> {
    serializer: Serializer,
    delay: Duration,
    /// The first in line: most links hold no other.
    first: Option<P>,
    /// When the first in line is delivered; [`Instant::MAX`] if there is none.
    next: Instant,
    /// Those behind it, in the order of their delivery.
    others: Ring<Option<Held<P>>>,
    /// `None` if there is no limit, nobody reads a counter, and there are no extras. Boxed, because
    /// of many flows nearly all links are such.
    more: Option<Box<More>>,
}

/// The queue in front of the transmitter, with what passes it, and the rest of what few links have.
#[derive(Debug)]
struct More {
    limit: QueueLimit,
    /// What the limit left room for at the last look, less what has joined since.
    room: u64,
    /// Bytes of all that had begun transmission at the last look. The rest waits, or has begun
    /// since.
    begun_bytes: u64,
    /// How many had begun, modulo 2^32.
    begun: u32,
    /// How many have left the line, modulo 2^32.
    left: u32,
    /// Bytes of all packets that were ever in line, and of those that have left it.
    entered_bytes: u64,
    left_bytes: u64,
    /// When the transmission of the first in line begins.
    first_begins: Instant,
    /// How long the transmitter was idle before packets that found it so.
    idle_ns: u64,
    /// Where somebody reads them.
    records: Option<Records>,
    extras: Option<Box<Extras>>,
}

impl More {
    fn new(limit: QueueLimit) -> Self {
        Self {
            limit,
            room: 0,
            begun_bytes: 0,
            begun: 0,
            left: 0,
            entered_bytes: 0,
            left_bytes: 0,
            first_begins: Instant::MAX,
            idle_ns: 0,
            records: None,
            extras: None,
        }
    }

    /// What is in line, and had begun transmission at the last look.
    fn begun_in_line(&self) -> Tally {
        let bytes = self.begun_bytes.saturating_sub(self.left_bytes);
        let packets = if bytes > 0 { self.begun.wrapping_sub(self.left) } else { 0 };
        Tally { packets: packets.into(), bytes }
    }

    /// Uses room for a packet; returns whether there is as much. More may be free by now.
    #[inline(always)]
    fn take_room(&mut self, len: u32) -> bool {
        match self.room.checked_sub(self.limit.cost(len)) {
            Some(left) => {
                self.room = left;
                true
            }
            None => false,
        }
    }
}

/// What is counted.
#[derive(Debug, Default)]
struct Records {
    /// Bytes of all packets that arrived. How many packets is the sum of those dropped, lost at
    /// random, and accepted: without delay, or counted by `queue_delay`.
    arrived_bytes: u64,
    /// Packets that found the transmitter idle.
    undelayed: u64,
    /// Packets dropped because the queue was full.
    dropped: Tally,
    queue_delay: DelayHistogram,
}

impl Records {
    /// The queue delays of all packets that were accepted.
    fn queue_delays(&self) -> DelayHistogram {
        let mut delays = self.queue_delay.clone();
        delays.record_several(Duration::ZERO, self.undelayed);
        delays
    }
}

/// Features that not all links have.
#[derive(Debug, Default)]
struct Extras {
    /// Loses packets before the queue.
    loss: Option<Loss>,
    lost: Tally,
    /// How much earlier packets leave than their transmission would end: the time to fill a bucket.
    lead: Option<Duration>,
    jitter: Option<Jitter>,
    gathering: Option<Gathering>,
}

/// Random delay of delivery, in order.
#[derive(Debug)]
struct Jitter {
    below: Duration,
    rng: Rng,
    last: Instant,
}

impl Extras {
    /// Whether an arriving packet is lost.
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

/// When a packet that a link has accepted is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    begin: Instant,
    /// When it reaches the far end.
    pub deliver: Instant,
}

impl<P: Packet> RateDelay<P> {
    /// An empty link.
    pub fn new(config: RateDelayConfig) -> Self {
        let records = Some(Records::default());
        Self {
            serializer: Serializer::new(config.rate),
            delay: config.delay,
            first: None,
            next: Instant::MAX,
            others: Ring::default(),
            more: Some(Box::new(More { records, ..More::new(config.limit) })),
        }
    }

    fn extras_ref(&self) -> Option<&Extras> {
        self.more.as_ref()?.extras.as_deref()
    }

    fn extras(&mut self) -> &mut Extras {
        let more = self.more.get_or_insert_with(|| Box::new(More::new(QueueLimit::Unlimited)));
        more.extras.get_or_insert_default()
    }

    /// Delays the delivery of each packet by a time with uniform distribution in `0..below`, but
    /// never before the one ahead of it. Random numbers come from `rng`, which nothing else should
    /// use.
    ///
    /// This is the timing noise of real hosts. Without it, flows of equal packets over equal links
    /// meet a full queue in a fixed phase, and one of them takes all the losses (S. Floyd and V.
    /// Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", 1992). To prevent that,
    /// the transmission time of one packet at the bottleneck is enough.
    #[must_use]
    pub fn with_jitter(mut self, below: Duration, rng: Rng) -> Self {
        let jitter = Jitter { below, rng, last: Instant::ZERO };
        if !below.is_zero() {
            self.extras().jitter = Some(jitter);
        }
        self
    }

    /// Shapes with a token bucket of `bytes` instead of a transmitter, as Linux's `tbf` does. A
    /// packet leaves when there are tokens for it: at once, or earlier than its transmission would
    /// end by the time to transmit `bytes`. Without a rate this has no effect.
    #[must_use]
    pub fn with_token_bucket(mut self, bytes: u32) -> Self {
        if let Some(rate) = self.serializer.rate() {
            self.extras().lead = Some(rate.time_for(bytes.into()));
        }
        self
    }

    /// Loses packets before the queue, according to `rule`.
    #[must_use]
    pub fn with_loss(mut self, rule: Loss) -> Self {
        self.extras().loss = Some(rule);
        self
    }

    /// Makes the far end receive packets together, according to `config`.
    #[must_use]
    pub fn with_gather(mut self, config: Gather) -> Self {
        if let Some(gathering) = Gathering::new(config) {
            self.extras().gathering = Some(gathering);
        }
        self
    }

    /// Counts nothing but random losses: what departed or found no room is in no number, and no
    /// delay is recorded. A link without limit, loss and the like then knows neither its backlog
    /// nor how long its transmitter was busy.
    #[must_use]
    pub fn without_records(mut self) -> Self {
        self.more.take_if(|more| more.limit == QueueLimit::Unlimited && more.extras.is_none());
        if let Some(more) = &mut self.more {
            more.records = None;
        }
        self
    }

    /// The packets whose transmission has not begun by `now`.
    fn waiting(&mut self, now: Instant) -> Backlog {
        let Some(more) = self.more.as_deref() else { return Backlog::default() };
        let mut begun = more.begun_in_line();
        while let Some((begin, packet)) = self.in_line(more, begun.packets as usize)
            && begin <= now
        {
            begun.count(packet.wire_len());
        }
        let waiting = self.inside() - begun;
        if let Some(more) = &mut self.more {
            more.begun = more.left.wrapping_add(begun.packets as u32);
            more.begun_bytes = more.left_bytes + begun.bytes;
        }
        Backlog { packets: waiting.packets, bytes: waiting.bytes }
    }

    /// The packet with so many before it in line, and when its transmission begins.
    fn in_line(&self, more: &More, before: usize) -> Option<(Instant, &P)> {
        match before.checked_sub(1) {
            None => Some((more.first_begins, self.first.as_ref()?)),
            Some(at) => self.others.get(at)?.as_ref().map(|held| (held.times.begin, &held.packet)),
        }
    }

    /// Number of packets in line.
    fn packets(&self) -> u64 {
        u64::from(self.first.is_some()) + self.others.len() as u64
    }

    /// The packets in line.
    fn inside(&self) -> Tally {
        let bytes = match &self.more {
            Some(more) => more.entered_bytes - more.left_bytes,
            None => {
                let others = (0..self.others.len()).filter_map(|at| self.others.get(at)?.as_ref());
                let all = self.first.iter().chain(others.map(|held| &held.packet));
                all.map(|packet| u64::from(packet.wire_len())).sum()
            }
        };
        Tally { packets: self.packets(), bytes }
    }

    /// Whether a packet that arrives while the transmitter is busy really has to be dropped. Called
    /// if there was no room at the last look. If it is not dropped, it has taken its room.
    #[inline(never)]
    fn is_full(&mut self, now: Instant, len: u32) -> bool {
        let waiting = self.waiting(now);
        self.more.as_mut().is_some_and(|more| {
            more.room = more.limit.room(waiting);
            !more.take_room(len)
        })
    }

    /// Accepts a packet of `len` bytes that arrives at `now`. The caller then either calls
    /// [`Self::hold`], or delivers it at that time itself, which avoids the line for a packet that
    /// nothing can overtake.
    ///
    /// # Errors
    /// Why the packet is dropped: random loss or a full queue.
    #[inline(always)]
    pub fn accept(&mut self, now: Instant, len: u32) -> Result<Times, DropReason> {
        let Some(more) = &mut self.more else {
            let Transmission { begin, end } = match self.serializer.is_busy(now) {
                true => self.serializer.append(len),
                false => self.serializer.begin(now, len),
            };
            return Ok(Times { begin, deliver: end + self.delay });
        };
        if more.extras.is_some() {
            return self.accept_with_extras(now, len);
        }
        let Transmission { begin, end } = self.transmit(now, len)?;
        self.record(now, len, begin);
        Ok(Times { begin, deliver: end + self.delay })
    }

    /// The general case of [`Self::accept`].
    #[inline(never)]
    fn accept_with_extras(&mut self, now: Instant, len: u32) -> Result<Times, DropReason> {
        if self.extras().loses(now, len) {
            if let Some(records) = self.records_mut() {
                records.arrived_bytes += u64::from(len);
            }
            return Err(DropReason::RandomLoss);
        }
        let was_busy = self.serializer.is_busy(now);
        let (transmitted, delay) = (self.transmit(now, len)?, self.delay);
        let times = self.extras().shift(now, transmitted, delay);
        if let Some(more) = self.more.as_mut().filter(|_| !was_busy && times.begin > now) {
            // The bucket has no tokens for it: it waits although nothing was ahead of it.
            more.room = more.room.saturating_sub(more.limit.cost(len));
        }
        self.record(now, len, times.begin);
        Ok(times)
    }

    /// Queues a packet for the transmitter, if there is room.
    #[inline(always)]
    fn transmit(&mut self, now: Instant, len: u32) -> Result<Transmission, DropReason> {
        let Some(more) = &mut self.more else { return Ok(self.serializer.append(len)) };
        // A packet does not queue for an idle transmitter.
        if !self.serializer.is_busy(now) {
            more.idle_ns += self.serializer.idle_ns(now);
            return Ok(self.serializer.begin(now, len));
        }
        // How many have begun matters only if the queue seems full.
        if !more.take_room(len) && self.is_full(now, len) {
            if let Some(records) = self.records_mut() {
                records.arrived_bytes += u64::from(len);
                records.dropped.count(len);
            }
            return Err(DropReason::QueueFull);
        }
        Ok(self.serializer.append(len))
    }

    #[inline(always)]
    fn records_mut(&mut self) -> Option<&mut Records> {
        self.more.as_mut()?.records.as_mut()
    }

    /// Counts a packet that was accepted, and whose transmission begins at `begin`.
    #[inline(always)]
    fn record(&mut self, now: Instant, len: u32, begin: Instant) {
        if let Some(records) = self.records_mut() {
            records.arrived_bytes += u64::from(len);
            if begin == now {
                records.undelayed += 1;
            } else {
                records.queue_delay.record(begin - now);
            }
        }
    }

    /// Frees what memory it can, for a link that is no longer needed.
    pub fn shrink(&mut self) {
        if self.others.is_empty() {
            self.others = Ring::default();
        }
    }

    /// Adds an accepted packet to the line.
    #[inline(always)]
    pub fn hold(&mut self, times: Times, packet: P) {
        let is_first = self.first.is_none();
        if let Some(more) = &mut self.more {
            more.entered_bytes += u64::from(packet.wire_len());
            if is_first {
                more.first_begins = times.begin;
            }
        }
        if is_first {
            self.next = times.deliver;
            self.first = Some(packet);
        } else {
            self.others.push(Some(Held { times, packet }));
        }
    }

    /// The next packet that has reached the far end by `now`.
    #[inline(always)]
    pub fn depart(&mut self, now: Instant) -> Option<P> {
        if self.next > now {
            return None;
        }
        let (gone, begin) = match self.others.pop().flatten() {
            Some(Held { times, packet }) => {
                self.next = times.deliver;
                (self.first.replace(packet), times.begin)
            }
            None => {
                self.next = Instant::MAX;
                (self.first.take(), Instant::MAX)
            }
        };
        let gone = gone?;
        if let Some(more) = &mut self.more {
            more.first_begins = begin;
            more.left = more.left.wrapping_add(1);
            more.left_bytes += u64::from(gone.wire_len());
        }
        Some(gone)
    }

    /// When the first in line reaches the far end; [`Instant::MAX`] if there is none.
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
        self.packets() as usize
    }

    fn backlog(&mut self, now: Instant) -> Backlog {
        self.waiting(now)
    }

    #[inline]
    fn empties_at(&self, now: Instant) -> Instant {
        let lead = self.extras_ref().and_then(|extras| extras.lead).unwrap_or(Duration::ZERO);
        now.max(self.serializer.free_at() - lead)
    }

    fn limit(&self) -> QueueLimit {
        self.more.as_ref().map_or(QueueLimit::Unlimited, |more| more.limit)
    }

    fn change(&mut self, now: Instant, change: &Change, _drops: &mut Drops<P>) {
        let extras = self.more.as_mut().and_then(|more| more.extras.as_mut());
        if let Some(loss) = extras.and_then(|extras| extras.loss.as_mut()) {
            loss.change(now, change);
        }
    }

    fn stats(&self, now: Instant) -> LinkStats {
        let mut stats = self.counters(now);
        if let Some(records) = self.more.as_ref().and_then(|more| more.records.as_ref()) {
            stats.queue_delay = records.queue_delays();
        }
        stats
    }

    fn counters(&self, now: Instant) -> LinkStats {
        let lost = self.extras_ref().map_or(Tally::default(), |extras| extras.lost);
        let mut known = self.inside();
        known += lost;
        let more = self.more.as_deref();
        let (arrived, dropped) = match more.and_then(|more| more.records.as_ref()) {
            Some(records) => {
                let accepted = records.undelayed + records.queue_delay.count();
                let packets = accepted + records.dropped.packets + lost.packets;
                (Tally { packets, bytes: records.arrived_bytes }, records.dropped)
            }
            None => (known, Tally::default()),
        };
        let busy = more.map(|more| self.serializer.busy(now, more.idle_ns)).unwrap_or_default();
        let mut stats = LinkStats { arrived, busy, ..LinkStats::default() };
        stats.dropped[DropReason::RandomLoss as usize] = lost;
        stats.dropped[DropReason::QueueFull as usize] = dropped;
        // What has arrived, was not dropped, and is not inside has departed.
        stats.departed = arrived - dropped - known;
        stats
    }
}

#[cfg(test)]
mod tests;
