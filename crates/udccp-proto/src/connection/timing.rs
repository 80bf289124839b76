//! Records when things happened, and makes timestamp options of it (RFC 4340 section 13).

use udccp_base::{Duration, Instant, MaybeDuration, MaybeInstant};

/// Round-trip time to assume while none is known (RFC 4340 section 3.4).
pub(crate) const DEFAULT_RTT: Duration = Duration::from_millis(200);

const UNIT_NANOS: u64 = 10_000;

/// Clock readings of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// When the connection began: zero of the Timestamps that we send.
    epoch: Instant,
    /// When a valid packet last arrived.
    pub(crate) last_valid: Instant,
    /// A Timestamp to be echoed, and when it came.
    owed_echo: (u32, MaybeInstant),
    /// When the last Request or Response left, until the peer acknowledges one.
    greeting: MaybeInstant,
    /// Round-trip time of the handshake, as the peer's Timestamp Echo has it.
    pub(crate) handshake_rtt: MaybeDuration,
    /// The same by our clock alone, from the last Request or Response to the first acknowledgement
    /// of one. The peer knows what our Timestamps will be and can put anything in an echo; it
    /// cannot acknowledge a number that it has not seen.
    pub(crate) handshake_measured: MaybeDuration,
    /// Keep-alive probes sent since the last valid packet.
    pub(crate) keep_alive_probes: u32,
    /// When the first data left that no packet of the peer followed.
    pub(crate) unanswered_since: MaybeInstant,
}

impl Timing {
    /// Nothing happened before `now`.
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            epoch: now,
            last_valid: now,
            owed_echo: (0, MaybeInstant::NONE),
            greeting: MaybeInstant::NONE,
            handshake_rtt: MaybeDuration::NONE,
            handshake_measured: MaybeDuration::NONE,
            keep_alive_probes: 0,
            unanswered_since: MaybeInstant::NONE,
        }
    }

    /// A Request or Response left.
    pub(crate) fn on_greeting(&mut self, now: Instant) {
        self.greeting = MaybeInstant::some(now);
    }

    /// The first acknowledgement of a Request or Response arrived. Returns whether it is the first.
    pub(crate) fn on_greeting_known(&mut self, now: Instant) -> bool {
        let Some(left) = self.greeting.take() else { return false };
        let is_first = self.handshake_measured == MaybeDuration::NONE;
        if is_first {
            self.handshake_measured = MaybeDuration::some(now - left);
        }
        is_first
    }

    /// Value of a Timestamp option.
    pub(crate) fn timestamp(&self, now: Instant) -> u32 {
        (now.saturating_since(self.epoch).as_nanos() / UNIT_NANOS) as u32
    }

    /// A Timestamp option came.
    pub(crate) fn owe_echo(&mut self, now: Instant, timestamp: u32) {
        self.owed_echo = (timestamp, MaybeInstant::some(now));
    }

    /// Whether an echo is owed.
    pub(crate) fn owes_echo(&self) -> bool {
        self.owed_echo.1 != MaybeInstant::NONE
    }

    /// Takes the echo that is owed: the timestamp, and its elapsed time in units of 10
    /// microseconds.
    pub(crate) fn take_echo(&mut self, now: Instant) -> Option<(u32, u32)> {
        //= 4340-13.1-1
        //= 4340-13.2-4
        //= 4340-13.3-1
        //= 4340-13.3-3
        let at = self.owed_echo.1.take()?;
        Some((self.owed_echo.0, units(now.saturating_since(at))))
    }

    /// Round-trip time that a Timestamp Echo measures; `None` where it cannot be an echo of ours.
    pub(crate) fn rtt_of_echo(
        &self,
        now: Instant,
        timestamp: u32,
        elapsed_units: u32,
    ) -> Option<Duration> {
        let round = self.timestamp(now).wrapping_sub(timestamp);
        // An echo from the future, or more elapsed time than there was, is nonsense.
        let rtt = round.checked_sub(elapsed_units).filter(|_| round < u32::MAX / 2)?;
        Some(Duration::from_nanos(u64::from(rtt) * UNIT_NANOS))
    }
}

/// A span in units of 10 microseconds; what does not fit is the largest value.
fn units(span: Duration) -> u32 {
    u32::try_from(span.as_nanos() / UNIT_NANOS).unwrap_or(u32::MAX)
}

/// A span of this many units of 10 microseconds.
pub(crate) fn span(units: u32) -> Duration {
    Duration::from_nanos(u64::from(units) * UNIT_NANOS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_measures_the_round_trip_without_the_wait() {
        let start = Instant::from_nanos(7_000_000_000);
        let mut t = Timing::new(start);
        let sent = t.timestamp(start + Duration::from_millis(40));
        assert_eq!(sent, 4000);
        let rtt = t.rtt_of_echo(start + Duration::from_millis(100), sent, 1000);
        assert_eq!(rtt, Some(Duration::from_millis(50)));
        assert_eq!(t.rtt_of_echo(start, sent, 0), None);
        assert_eq!(t.rtt_of_echo(start + Duration::from_millis(41), sent, 200), None);
        t.owe_echo(start, 77);
        assert_eq!(t.take_echo(start + Duration::from_micros(25)), Some((77, 2)));
        assert_eq!(t.take_echo(start), None);
    }
}
