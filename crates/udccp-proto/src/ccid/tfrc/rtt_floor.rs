//! Limits how small a round-trip time the peer may report.

use udccp_base::{Duration, Instant, MaybeDuration};

use crate::ccid::LONGEST_RTT;

/// How long a minimum is used.
const STANDS: Duration = Duration::from_secs(10);
/// Number of consecutive measurements below half of the floor that it takes to lower it that far.
const WITNESSES: u8 = 3;

/// The minimum that our own clock recently measured on the path, from sending a packet to its
/// acknowledgement, including the receiver's delay. No smaller sample is accepted, whatever Elapsed
/// Time or Timestamp Echo the peer reports.
///
/// On a path that reorders, a packet that overtakes others is acknowledged after almost no time. A
/// much smaller time must therefore be measured three times in a row. If a receiver sleeps, its
/// acknowledgement is late by that time. One measurement is therefore not enough to replace the
/// minimum. Nor are several that no packet lives for: they all measure the same sleep.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RttFloor {
    least: MaybeDuration,
    /// The minimum of the previous period.
    before: MaybeDuration,
    since: Instant,
    /// Whether `least` is based on two or more measurements.
    is_confirmed: bool,
    /// Number of consecutive measurements below half of the floor. Below, the largest of them.
    witnesses: u8,
    largest: Duration,
}

impl RttFloor {
    /// The floor. Zero before the first measurement.
    pub(crate) fn get(&self) -> Duration {
        self.least.shorter(self.before).get().unwrap_or_default()
    }

    /// Records a measurement by our clock, including the receiver's delay.
    pub(crate) fn measured(&mut self, now: Instant, total: Duration) {
        if total > LONGEST_RTT {
            return;
        }
        if self.is_confirmed && now - self.since >= STANDS {
            (self.before, self.least, self.is_confirmed) = (self.least, MaybeDuration::NONE, false);
            self.since = now;
        }
        let floor = self.get();
        if total >= floor / 2 {
            self.witnesses = 0;
        } else {
            self.witnesses += 1;
            self.largest = self.largest.max(total);
            if self.witnesses < WITNESSES {
                return;
            }
        }
        let seen = if self.witnesses == 0 { total } else { self.largest };
        (self.witnesses, self.largest) = (0, Duration::ZERO);
        if self.least.shorter(self.before) == MaybeDuration::NONE {
            self.since = now;
        }
        self.is_confirmed = self.least != MaybeDuration::NONE;
        self.least = self.least.shorter(MaybeDuration::some(seen));
    }
}
