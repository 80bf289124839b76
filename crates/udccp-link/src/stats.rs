//! Counters of a link.

use core::ops::{AddAssign, Sub};

use udccp_base::{DataRate, Duration};

use crate::histogram::DelayHistogram;

/// Why a link dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// The queue was at its limit.
    QueueFull,
    /// Random loss.
    RandomLoss,
    /// No route to the destination.
    NoRoute,
    /// Dropped by queue management before the queue is full (RED, CoDel and PIE).
    EarlyDrop,
    /// The link was down.
    LinkDown,
    /// The packet was longer than the link's MTU.
    TooLong,
    /// The packet was corrupted, so the receiver's checksum would fail.
    Corrupted,
}

impl DropReason {
    /// Number of reasons.
    pub const COUNT: usize = 7;
    /// All reasons.
    pub const ALL: [Self; Self::COUNT] = [
        Self::QueueFull,
        Self::RandomLoss,
        Self::NoRoute,
        Self::EarlyDrop,
        Self::LinkDown,
        Self::TooLong,
        Self::Corrupted,
    ];

    /// A name for reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue full",
            Self::RandomLoss => "random loss",
            Self::NoRoute => "no route",
            Self::EarlyDrop => "queue management",
            Self::LinkDown => "link down",
            Self::TooLong => "longer than the MTU",
            Self::Corrupted => "corrupted",
        }
    }
}

/// A number of packets and their bytes (of IP length).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets.
    pub packets: u64,
    /// Bytes of IP length.
    pub bytes: u64,
}

impl Tally {
    /// Counts one packet.
    pub const fn count(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}

/// A [`Tally`] that counts with two instructions. With two members, the compiler adds a vector of
/// both, which takes six.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    /// Packets in the lower half, bytes in the upper.
    both: u128,
}

impl Counter {
    /// Counts one packet.
    #[inline(always)]
    pub const fn count(&mut self, bytes: u32) {
        self.both += (bytes as u128) << u64::BITS | 1;
    }

    /// The counts.
    pub const fn tally(self) -> Tally {
        Tally { packets: self.both as u64, bytes: (self.both >> u64::BITS) as u64 }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

impl Sub for Tally {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(earlier.packets),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }
}

/// Counters of a link since its start, or between two times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets that arrived at the near end.
    pub arrived: Tally,
    /// Packets that reached the far end.
    pub departed: Tally,
    /// Packets that were dropped, by [`DropReason`] (as an index).
    pub dropped: [Tally; DropReason::COUNT],
    /// Copies that the link made. `arrived + duplicated = departed + dropped + inside`.
    pub duplicated: Tally,
    /// Packets that were marked "congestion experienced".
    pub marked: u64,
    /// Time that the transmitter was busy.
    pub busy: Duration,
    /// Time from arrival to the start of transmission, of every packet that was not dropped.
    pub queue_delay: DelayHistogram,
}

impl LinkStats {
    /// What was counted since `earlier`, an earlier copy of the same link's counters.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut dropped = self.dropped;
        for (now, before) in dropped.iter_mut().zip(earlier.dropped) {
            *now = *now - before;
        }
        Self {
            arrived: self.arrived - earlier.arrived,
            departed: self.departed - earlier.departed,
            dropped,
            duplicated: self.duplicated - earlier.duplicated,
            marked: self.marked.saturating_sub(earlier.marked),
            busy: self.busy.saturating_sub(earlier.busy),
            queue_delay: self.queue_delay.since(&earlier.queue_delay),
        }
    }

    /// All packets dropped, for any reason.
    pub fn dropped_total(&self) -> Tally {
        let mut total = Tally::default();
        for tally in self.dropped {
            total += tally;
        }
        total
    }

    /// Packets dropped for `reason`.
    pub const fn dropped_by(&self, reason: DropReason) -> Tally {
        self.dropped[reason as usize]
    }

    /// Share of `span` in which the transmitter was busy, 0 to 1; zero for an empty span.
    pub fn utilisation(&self, span: Duration) -> f64 {
        if span.is_zero() {
            return 0.0;
        }
        self.busy.as_secs_f64() / span.as_secs_f64()
    }

    /// Mean rate of departures over `span`.
    pub fn departure_rate(&self, span: Duration) -> DataRate {
        DataRate::of(self.departed.bytes, span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_since_a_time_subtract_every_counter() {
        let counted = |n: u64| {
            let tally = Tally { packets: n, bytes: 100 * n };
            let mut stats = LinkStats {
                arrived: tally,
                departed: tally,
                dropped: [tally; DropReason::COUNT],
                duplicated: tally,
                marked: n,
                busy: Duration::from_millis(n),
                queue_delay: DelayHistogram::default(),
            };
            (0..n).for_each(|_| stats.queue_delay.record(Duration::from_millis(1)));
            stats
        };
        assert_eq!(counted(7).since(&counted(3)), counted(4));
    }
}
