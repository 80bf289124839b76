//! Packets that arrive separately but are received together.

use udccp_base::{Duration, Instant};

/// Causes of delay at the far end that make it receive several packets together. By default there
/// are none. Packets stay in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gather {
    /// Delays end at multiples of this, as in a delay emulator with coarse timers, such as netem
    /// before Linux 2.6.22 with its kernel's tick. All flows over the link have the same ticks.
    pub delay_tick: Option<Duration>,
    /// Shortest time between two interrupts of the network card at the far end (interrupt
    /// moderation; `rx-usecs` of ethtool). A packet after a longer silence interrupts at once.
    pub interrupt_moderation: Option<Duration>,
}

/// A link that gathers packets.
#[derive(Debug)]
pub(crate) struct Gathering {
    config: Gather,
    /// The last interrupt, which may be in the future.
    interrupt: Option<Instant>,
}

impl Gathering {
    /// `None` if nothing is to be gathered.
    pub(crate) fn new(config: Gather) -> Option<Self> {
        (config != Gather::default()).then_some(Self { config, interrupt: None })
    }

    /// When the far end receives a packet that would arrive at `deliver`. Calls must be in order of
    /// arrival.
    pub(crate) fn apply(&mut self, mut deliver: Instant) -> Instant {
        if let Some(tick) = self.config.delay_tick {
            deliver = deliver.next_multiple_of(tick);
        }
        let Some(least) = self.config.interrupt_moderation else { return deliver };
        let interrupt = match self.interrupt {
            Some(last) if deliver <= last => last,
            Some(last) => deliver.max(last + least),
            None => deliver,
        };
        self.interrupt = Some(interrupt);
        interrupt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    fn gathered(config: Gather, arrivals: &[u64]) -> Vec<u64> {
        let mut gathering = Gathering::new(config).expect("it gathers");
        arrivals.iter().map(|at| gathering.apply(us(*at)).as_nanos() / 1000).collect()
    }

    #[test]
    fn a_link_that_does_not_gather_has_no_state() {
        assert!(Gathering::new(Gather::default()).is_none());
    }

    #[test]
    fn a_delay_ends_at_the_next_tick() {
        let tick = Gather { delay_tick: Some(Duration::from_millis(4)), ..Gather::default() };
        assert_eq!(gathered(tick, &[0, 1, 3999, 4000, 4001]), [0, 4000, 4000, 4000, 8000]);
    }

    #[test]
    fn a_card_interrupts_at_once_after_silence_and_then_at_most_so_often() {
        let moderation = Some(Duration::from_micros(250));
        let card = Gather { interrupt_moderation: moderation, ..Gather::default() };
        // The fourth arrives exactly at an interrupt, the fifth just after it.
        let seen = gathered(card, &[100, 101, 200, 350, 351, 1000, 1249, 1250]);
        assert_eq!(seen, [100, 350, 350, 350, 600, 1000, 1250, 1250]);
    }

    #[test]
    fn ticks_come_before_interrupts() {
        let both = Gather {
            delay_tick: Some(Duration::from_millis(1)),
            interrupt_moderation: Some(Duration::from_micros(1_500)),
        };
        assert_eq!(gathered(both, &[10, 900, 1_100]), [1_000, 1_000, 2_500]);
    }
}
