//! Computes the window counter, which data packets carry in CCVal (RFC 4342 section 8.1).

use udccp_base::{Duration, Instant, MaybeInstant};

/// Largest step between adjacent packets.
const MAX_STEP: u64 = 5;
/// Quarters in a round-trip time.
const QUARTERS: u64 = 4;

/// A clock that ticks every quarter of a round-trip time. It is stored without the modulus.
///
/// RFC 4342 sets last_WC_time to the time of sending, which discards the remainder of a quarter.
/// With two packets per round-trip time, that clock runs at half speed, loss events last two
/// round-trip times, and the loss event rate is too low. This clock keeps the remainder.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowCounter {
    /// last_WC.
    last: u64,
    /// When the clock reached `last`.
    since: MaybeInstant,
    /// The value in the last packet.
    sent: u64,
}

impl WindowCounter {
    //= 4342-8.1-1
    //= 5348-3.2.1-3
    //= 5348-5.2-1
    //= 4342-8.1-2
    /// The value for a packet that is sent now.
    pub(crate) fn next(&mut self, now: Instant, rtt: Duration) -> u64 {
        let since = self.since.get().unwrap_or(now);
        self.since = MaybeInstant::some(since);
        let quarter = (rtt / QUARTERS).as_nanos().max(1);
        let passed = (now - since).as_nanos();
        // Most packets are sent in the same quarter as the packet before, and need no division.
        if passed >= quarter {
            self.advance(now, since, passed / quarter, quarter);
        }
        // Acknowledgements may have moved the counter between two packets.
        self.last = self.last.min(self.sent + MAX_STEP);
        self.sent = self.last;
        self.sent
    }

    /// This many quarters of a round-trip time have passed since `since`.
    fn advance(&mut self, now: Instant, since: Instant, quarters: u64, quarter: u64) {
        self.last += quarters.min(MAX_STEP);
        self.since = match quarters {
            0..=MAX_STEP => MaybeInstant::some(since + Duration::from_nanos(quarters * quarter)),
            _ => MaybeInstant::some(now),
        };
    }

    //= 4342-8.1-3
    /// A packet with this value was acknowledged: a round-trip time has passed since it was sent.
    pub(crate) fn on_ack(&mut self, now: Instant, counter: u64, rtt: Duration) {
        let since = self.since.get().unwrap_or(now);
        let quarter = (rtt / QUARTERS).as_nanos().max(1);
        let passed = self.last + (now - since).as_nanos() / quarter;
        if passed < counter + QUARTERS {
            self.last = counter + QUARTERS;
            self.since = MaybeInstant::some(now);
        }
    }
}
