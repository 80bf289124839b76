//! Jitter of a stream of packets, by several definitions at once.

use udccp_base::{Duration, Instant};

use crate::result::Jitter;

/// Follows the packets of one direction in the order of their arrival.
#[derive(Debug, Default)]
pub(crate) struct JitterMeter {
    last: Last,
    /// RFC 3550 appendix A.8: 16 times the estimate, in nanoseconds.
    scaled: u64,
    transit: Mean,
    gap: Mean,
    /// Only if packets have numbers.
    numbered: Option<Box<Numbered>>,
}

/// No packet or gap yet. Times are shorter than the 580 years of all nanoseconds in a word.
const NONE: u64 = u64::MAX;

/// The change of the transit time between successive packets, divided by that of their numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Numbered {
    /// Number and transit time in nanoseconds of the previous packet.
    last: Option<(u64, u64)>,
    /// In thousandths of a nanosecond, because a change divided among many packets is small.
    mean: Mean,
}

/// The last packet; `arrival` and `gap` may be [`NONE`].
#[derive(Clone, Copy, Debug)]
struct Last {
    arrival: u64,
    transit: u64,
    gap: u64,
}

impl Default for Last {
    fn default() -> Self {
        Self { arrival: NONE, transit: 0, gap: NONE }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: u64,
    count: u64,
}

impl Mean {
    const fn add(&mut self, ns: u64) {
        self.sum = self.sum.saturating_add(ns);
        self.count += 1;
    }

    const fn get(self) -> Option<Duration> {
        match self.sum.checked_div(self.count) {
            Some(ns) => Some(Duration::from_nanos(ns)),
            None => None,
        }
    }
}

impl JitterMeter {
    /// A packet arrived. The means count it only while `measuring`; the running estimate always
    /// does.
    #[inline]
    pub(crate) fn record(&mut self, sent: Instant, arrival: Instant, measuring: bool) {
        let transit = (arrival - sent).as_nanos();
        let arrival = arrival.as_nanos();
        let last = self.last;
        let mut gap = NONE;
        if last.arrival != NONE {
            let difference = transit.abs_diff(last.transit);
            self.scaled = self.scaled + difference - ((self.scaled + 8) >> 4);
            gap = arrival - last.arrival;
            if measuring {
                self.transit.add(difference);
                if last.gap != NONE {
                    self.gap.add(gap.abs_diff(last.gap));
                }
            }
        }
        self.last = Last { arrival, transit, gap };
    }

    /// The packet that arrived has this number, among all packets numbered in the run.
    pub(crate) fn number(&mut self, number: u64, transit: Duration, measuring: bool) {
        let transit = transit.as_nanos();
        let numbered = self.numbered.get_or_insert_default();
        if let Some((last, before)) = numbered.last
            && measuring
            && let Some(share) =
                (1000 * transit.abs_diff(before)).checked_div(number.abs_diff(last))
        {
            numbered.mean.add(share);
        }
        numbered.last = Some((number, transit));
    }

    pub(crate) fn get(&self) -> Jitter {
        let rfc3550 = self.transit.get().map(|_| Duration::from_nanos(self.scaled >> 4));
        let thousandths = self.numbered.as_ref().and_then(|n| n.mean.get()).map(Duration::as_nanos);
        Jitter {
            rfc3550,
            transit: self.transit.get(),
            arrival_gap: self.gap.get(),
            per_number: thousandths.map(|ns| Duration::from_nanos((ns + 500) / 1000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    #[test]
    fn three_packets_by_hand() {
        let mut meter = JitterMeter::default();
        // Transit 100, 160, 130 us; arrivals at 100, 180, 190 us.
        for (sent, arrival) in [(0, 100), (20, 180), (60, 190)] {
            meter.record(at(sent), at(arrival), true);
        }
        let jitter = meter.get();
        assert_eq!(jitter.transit, Some(Duration::from_micros(45)));
        // Gaps 80 and 10 us.
        assert_eq!(jitter.arrival_gap, Some(Duration::from_micros(70)));
        // 60000/16 = 3750 ns, then + (30000 - 3750)/16 = 5390.6 ns.
        assert_eq!(jitter.rfc3550, Some(Duration::from_nanos(5_390)));
    }

    #[test]
    fn a_change_counts_less_the_more_packets_lie_between() {
        let mut meter = JitterMeter::default();
        let mut packet = |number, transit_us, measuring| {
            meter.number(number, Duration::from_micros(transit_us), measuring);
        };
        // Before the window; then changes of 40 and 9 us over 2 and 3 packets: 20 and 3 us.
        packet(5, 60, false);
        packet(7, 100, true);
        packet(10, 91, true);
        assert_eq!(meter.get().per_number, Some(Duration::from_nanos(11_500)));
    }

    #[test]
    fn a_steady_stream_has_none_and_a_single_packet_has_no_jitter_at_all() {
        let mut meter = JitterMeter::default();
        meter.record(at(0), at(50), true);
        assert_eq!(meter.get(), Jitter::default());
        for i in 1..100 {
            meter.record(at(i * 10), at(i * 10 + 50), true);
        }
        assert_eq!(meter.get().rfc3550, Some(Duration::ZERO));
        assert_eq!(meter.get().arrival_gap, Some(Duration::ZERO));
    }
}
