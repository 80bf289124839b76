//! Builds a whole link from one description.

use udccp_base::{DataRate, Duration, Instant, Seed};

use crate::chain::Chain;
use crate::change::Change;
use crate::delay::{Delay, DelayConfig, Reorder, Variation};
use crate::filter::{Corrupt, Duplicate, Filter, Mtu};
use crate::gather::Gather;
use crate::limit::QueueLimit;
use crate::link::Link;
use crate::loss::{GilbertElliott, Loss, LossConfig};
use crate::opportunities::{Opportunities, TraceDriven};
use crate::packet::Packet;
use crate::queue::{
    CoDel, CoDelConfig, DropHead, DropTail, FqCoDel, FqCoDelConfig, Pie, PieConfig, Queue, Red,
    RedConfig,
};
use crate::rate_delay::{RateDelay, RateDelayConfig};
use crate::scheduled::Scheduled;
use crate::transmitter::Transmitter;

/// The queue in front of the transmitter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum QueueConfig {
    /// Drops arriving packets while the queue is full.
    #[default]
    DropTail,
    /// Drops the packet that has waited longest while the queue is full.
    DropHead,
    /// RED and Adaptive RED. The limit is that of the link.
    Red(RedConfig),
    /// CoDel. The limit is that of the link.
    CoDel(CoDelConfig),
    /// FQ-CoDel. The limit is that of the link.
    FqCoDel(FqCoDelConfig),
    /// PIE. The limit is that of the link.
    Pie(PieConfig),
}

/// All properties of one direction of a link. By default it loses nothing and adds no delay.
///
/// A packet passes, in this order: the MTU, loss, duplication, queue and transmitter, delay (with
/// reordering, and gathering at the far end), corruption.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkConfig {
    /// Rate of the transmitter, in bits of IP packets; `None`: transmission takes no time.
    pub rate: Option<DataRate>,
    /// Transmit at the times of this trace; `rate` is then ignored.
    pub trace: Option<Opportunities>,
    /// One-way propagation delay.
    pub delay: Duration,
    /// Size in bytes of a token bucket, which replaces the transmitter, as in Linux's `tbf`: see
    /// [`RateDelay::with_token_bucket`]. Only with a drop-tail queue, and only if no change of the
    /// link concerns anything but loss.
    pub token_bucket: Option<u32>,
    /// Limit of the queue (default unlimited, as for a host's own queue).
    pub limit: QueueLimit,
    /// The queue in front of the transmitter (default drop-tail).
    pub queue: QueueConfig,
    /// Which packets are lost (default none).
    pub loss: LossConfig,
    /// How the delay of each packet differs from `delay` (default not at all).
    pub variation: Variation,
    /// Packets may overtake each other if their delays allow it (default false).
    pub free_order: bool,
    /// Packets that are reordered; `None`: none.
    pub reorder: Option<Reorder>,
    /// Packets that the far end receives together; only on a link that keeps packets in order.
    pub gather: Gather,
    /// Share of packets that are duplicated, 0 to 1.
    pub duplicate: f64,
    /// Share of packets that arrive corrupted, 0 to 1, and are therefore dropped.
    pub corrupt: f64,
    /// Length of the longest packet that passes, in bytes of IP length; `None`: no limit.
    pub mtu: Option<u32>,
    /// Changes of the link and their times.
    pub changes: Vec<(Instant, Change)>,
}

impl LinkConfig {
    /// Whether a single [`RateDelay`], the fast element, supports all of it.
    pub fn is_plain(&self) -> bool {
        let only_queue = self.queue == QueueConfig::DropTail && self.trace.is_none();
        let plain_delay = matches!(self.variation, Variation::None | Variation::Uniform(_))
            && !self.free_order
            && self.reorder.is_none();
        let passes_all = self.mtu.is_none() && self.duplicate <= 0.0 && self.corrupt <= 0.0;
        only_queue && plain_delay && passes_all && self.changes.is_empty()
    }

    /// The same link without random or recorded effects: no loss, variation of delay, reordering,
    /// duplication or corruption.
    #[must_use]
    pub fn without_chance(&self) -> Self {
        let is_loss = |(_, change): &(Instant, Change)| matches!(change, Change::Loss(_));
        Self {
            loss: LossConfig::None,
            variation: Variation::None,
            free_order: false,
            reorder: None,
            duplicate: 0.0,
            corrupt: 0.0,
            changes: self.changes.iter().filter(|change| !is_loss(change)).cloned().collect(),
            ..self.clone()
        }
    }

    /// Checks the values.
    ///
    /// # Errors
    /// A description of the first value that is out of range.
    pub fn check(&self) -> Result<(), String> {
        let changed = self.changes.iter().filter_map(|(_, change)| match change {
            Change::Loss(loss) => Some(loss),
            _ => None,
        });
        if self.token_bucket.is_some() && !self.is_first_in_first_out() {
            let why = "a token bucket takes a drop-tail queue, packets that stay in order, and a \
                       link of which only the loss changes";
            return Err(why.into());
        }
        if self.gather != Gather::default() && (self.free_order || self.reorder.is_some()) {
            let why = "delay ticks and interrupt moderation take packets that stay in order: no \
                       reordering, and no varying delay that lets them overtake";
            return Err(why.into());
        }
        let mut shares = vec![("duplication", self.duplicate), ("corruption", self.corrupt)];
        shares.extend(self.reorder.map(|reorder| ("reordering", reorder.probability)));
        for loss in core::iter::once(&self.loss).chain(changed) {
            match loss {
                LossConfig::Random(probability) => shares.push(("loss", *probability)),
                LossConfig::GilbertElliott(GilbertElliott { p, r, h, k }) => {
                    shares.extend([("p", *p), ("r", *r), ("h", *h), ("k", *k)]);
                }
                _ => {}
            }
        }
        match shares.iter().find(|(_, share)| !(0.0..=1.0).contains(share)) {
            Some((what, share)) => {
                Err(format!("{what} is {share}; a probability must be between 0 and 1"))
            }
            None => Ok(()),
        }
    }

    /// The fast element with the properties that it supports. It draws random numbers from streams
    /// of `seed` with the link's name.
    pub fn plain<P: Packet>(&self, seed: Seed, name: &str) -> RateDelay<P> {
        let plain = self.first_in_first_out(seed, name);
        match self.loses() {
            true => plain.with_loss(self.loss_rule(seed, name)),
            false => plain,
        }
    }

    /// The fast element for queue, transmitter and delay only.
    fn first_in_first_out<P: Packet>(&self, seed: Seed, name: &str) -> RateDelay<P> {
        let Self { rate, delay, limit, .. } = *self;
        let below = match self.variation {
            Variation::Uniform(below) => below,
            _ => Duration::ZERO,
        };
        let plain = RateDelay::new(RateDelayConfig { rate, delay, limit })
            .with_jitter(below, seed.stream(&format!("jitter/{name}")))
            .with_gather(self.gather);
        match self.token_bucket {
            Some(bytes) => plain.with_token_bucket(bytes),
            None => plain,
        }
    }

    /// Builds the whole link. It draws random numbers from streams of `seed` with the link's name.
    pub fn build<P>(&self, seed: Seed, name: &str) -> Box<dyn Link<P>>
    where
        P: Packet + Clone + core::fmt::Debug + Send + 'static,
    {
        match self.chain(seed, name) {
            Some(chain) if self.changes.is_empty() => Box::new(chain),
            Some(chain) => Box::new(Scheduled::new(chain, self.changes.clone())),
            None => Box::new(self.plain::<P>(seed, name)),
        }
    }

    /// The elements in a row; `None` if the fast one supports everything.
    fn chain<P>(&self, seed: Seed, name: &str) -> Option<Chain<P>>
    where
        P: Packet + Clone + core::fmt::Debug + Send + 'static,
    {
        if self.is_plain() {
            return None;
        }
        let mut chain = Parts(None);
        if let Some(mtu) = self.mtu {
            chain.add(Box::new(Filter::new(Mtu(mtu))));
        }
        if self.loses() {
            chain.add(Box::new(Filter::new(self.loss_rule(seed, name))));
        }
        if self.duplicate > 0.0 {
            let rng = seed.stream(&format!("duplicate/{name}"));
            chain.add(Box::new(Filter::new(Duplicate::new(self.duplicate, rng))));
        }
        self.transport(&mut chain, seed, name);
        if self.corrupt > 0.0 {
            let rng = seed.stream(&format!("corrupt/{name}"));
            chain.add(Box::new(Filter::new(Corrupt::new(self.corrupt, rng))));
        }
        chain.0
    }

    /// Whether the fast element supports this queue, transmitter and delay.
    fn is_first_in_first_out(&self) -> bool {
        let moves = |(_, change): &(Instant, Change)| !matches!(change, Change::Loss(_));
        let fixed = !self.changes.iter().any(moves);
        let bare = Self { mtu: None, duplicate: 0.0, corrupt: 0.0, ..self.clone() };
        fixed && (Self { loss: LossConfig::None, changes: Vec::new(), ..bare }).is_plain()
    }

    /// Adds queue, transmitter and delay: the fast element if it supports them, otherwise two
    /// elements.
    fn transport<P>(&self, chain: &mut Parts<P>, seed: Seed, name: &str)
    where
        P: Packet + core::fmt::Debug + Send + 'static,
    {
        if self.is_first_in_first_out() {
            chain.add(Box::new(self.first_in_first_out(seed, name)));
            return;
        }
        let queue = self.queue(seed, name);
        chain.add(match &self.trace {
            Some(trace) => Box::new(TraceDriven::new(trace.clone(), queue)) as Box<dyn Link<P>>,
            None => Box::new(Transmitter::new(self.rate, queue)),
        });
        let config = DelayConfig {
            delay: self.delay,
            variation: self.variation.clone(),
            free_order: self.free_order,
            reorder: self.reorder,
            gather: self.gather,
        };
        let rng = seed.stream(&format!("jitter/{name}"));
        let reorder = seed.stream(&format!("reorder/{name}"));
        chain.add(Box::new(Delay::new(config, rng, reorder)));
    }

    fn queue<P>(&self, seed: Seed, name: &str) -> Box<dyn Queue<P>>
    where
        P: Packet + core::fmt::Debug + Send + 'static,
    {
        let limit = self.limit;
        let rng = |kind: &str| seed.stream(&format!("{kind}/{name}"));
        match self.queue {
            QueueConfig::DropTail => Box::new(DropTail::new(limit)),
            QueueConfig::DropHead => Box::new(DropHead::new(limit)),
            QueueConfig::Red(red) => Box::new(Red::new(RedConfig { limit, ..red }, rng("red"))),
            QueueConfig::CoDel(codel) => Box::new(CoDel::new(CoDelConfig { limit, ..codel })),
            QueueConfig::FqCoDel(fq) => {
                let codel = CoDelConfig { limit, ..fq.codel };
                Box::new(FqCoDel::new(FqCoDelConfig { codel, ..fq }, &mut rng("fq-codel")))
            }
            QueueConfig::Pie(pie) => Box::new(Pie::new(PieConfig { limit, ..pie }, rng("pie"))),
        }
    }

    fn loss_rule(&self, seed: Seed, name: &str) -> Loss {
        Loss::new(self.loss.clone(), seed.stream(&format!("loss/{name}")))
    }

    fn loses(&self) -> bool {
        let changes = self.changes.iter().any(|(_, change)| matches!(change, Change::Loss(_)));
        changes || !matches!(self.loss, LossConfig::None)
    }
}

/// A chain in progress, which may be empty.
struct Parts<P>(Option<Chain<P>>);

impl<P> Parts<P> {
    fn add(&mut self, element: Box<dyn Link<P>>) {
        self.0 = Some(match self.0.take() {
            Some(chain) => chain.then(element),
            None => Chain::new(element),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_beyond_the_fast_element_are_not_plain() {
        let ms = Duration::from_millis;
        let base = LinkConfig::default();
        assert!(base.is_plain());
        assert!(LinkConfig { variation: Variation::Uniform(ms(1)), ..base.clone() }.is_plain());
        let steps = [(ms(0), ms(1))];
        let reorder = Reorder { probability: 0.1, gap: 1, by: None };
        let others = [
            LinkConfig { trace: Opportunities::new([ms(1)]), ..base.clone() },
            LinkConfig { queue: QueueConfig::CoDel(CoDelConfig::default()), ..base.clone() },
            LinkConfig { variation: Variation::Normal(ms(1)), ..base.clone() },
            LinkConfig { variation: Variation::Trace(steps.into()), ..base.clone() },
            LinkConfig { free_order: true, ..base.clone() },
            LinkConfig { reorder: Some(reorder), ..base.clone() },
            LinkConfig { duplicate: 0.1, ..base.clone() },
            LinkConfig { corrupt: 0.1, ..base.clone() },
            LinkConfig { mtu: Some(1500), ..base.clone() },
            LinkConfig { changes: vec![(Instant::ZERO, Change::Down(true))], ..base },
        ];
        for other in others {
            assert!(!other.is_plain(), "{other:?}");
        }
    }
}
