//! Records when things happened, and computes timestamp options (RFC 4340 section 13).

use udccp_base::{Duration, Instant, MaybeDuration, MaybeInstant};
use udccp_wire::Seqno;

/// Round-trip time to assume while none is known (RFC 4340 section 3.4).
pub(crate) const DEFAULT_RTT: Duration = Duration::from_millis(200);

const UNIT_NANOS: u64 = 10_000;

/// Clock readings of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// When the connection began, which is zero in the Timestamps that we send.
    epoch: Instant,
    /// When a valid packet last arrived.
    pub(crate) last_valid: Instant,
    /// The last Timestamp that we sent, until one is echoed.
    sent: Option<u32>,
    /// The peer's Timestamp that we have to echo.
    owed_echo: u32,
    /// When that Timestamp arrived.
    owed_since: MaybeInstant,
    /// When the last Request or Response was sent, until the peer acknowledges one.
    greeting: MaybeInstant,
    /// Round-trip time of the handshake, according to the peer's Timestamp Echo.
    pub(crate) handshake_rtt: MaybeDuration,
    /// The same, measured with our clock alone from the last Request or Response to the first
    /// acknowledgement of one. The peer can predict our Timestamps and write anything in an echo,
    /// but it cannot acknowledge a number that it has not seen.
    pub(crate) handshake_measured: MaybeDuration,
    /// Silence of the peer before this does not count, because this host did not run.
    pub(crate) excused_until: Instant,
    /// Keep-alive probes sent since the last valid packet.
    pub(crate) keep_alive_probes: u16,
    /// Syncs sent because data was unanswered, since the last valid packet.
    pub(crate) silence_probes: u8,
    /// When the peer's last packet arrived, or the first data since was sent. None if all data that
    /// we sent is older than what the peer has acknowledged.
    pub(crate) unanswered_since: MaybeInstant,
    /// The last data that we sent.
    last_data: Seqno,
}

impl Timing {
    /// The state of a connection that begins at `now`.
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            epoch: now,
            last_valid: now,
            sent: None,
            owed_echo: 0,
            owed_since: MaybeInstant::NONE,
            greeting: MaybeInstant::NONE,
            handshake_rtt: MaybeDuration::NONE,
            handshake_measured: MaybeDuration::NONE,
            excused_until: now,
            keep_alive_probes: 0,
            silence_probes: 0,
            unanswered_since: MaybeInstant::NONE,
            last_data: Seqno::ZERO,
        }
    }

    /// A valid packet arrived. The peer's greatest acknowledgement so far is `gar`: data after it
    /// may have been sent while this packet was on its way, and still waits for an answer.
    #[inline(always)]
    pub(crate) fn on_valid(&mut self, now: Instant, gar: Seqno) {
        self.last_valid = now;
        if self.unanswered_since != MaybeInstant::NONE {
            let is_answered = gar.at_least(self.last_data);
            self.unanswered_since =
                if is_answered { MaybeInstant::NONE } else { MaybeInstant::some(now) };
            self.silence_probes = 0;
        }
    }

    /// Data was sent.
    #[inline(always)]
    pub(crate) fn on_data_sent(&mut self, now: Instant, seq: Seqno) {
        self.last_data = seq;
        if self.unanswered_since == MaybeInstant::NONE {
            self.unanswered_since = MaybeInstant::some(now);
        }
    }

    /// Since when the peer has been silent.
    pub(crate) fn silent_since(&self) -> Instant {
        self.last_valid.max(self.excused_until)
    }

    /// A Request or Response was sent.
    pub(crate) fn on_greeting(&mut self, now: Instant) {
        self.greeting = MaybeInstant::some(now);
    }

    /// A Request or Response was acknowledged. Returns whether that is the first time.
    pub(crate) fn on_greeting_known(&mut self, now: Instant) -> bool {
        let Some(left) = self.greeting.take() else { return false };
        let is_first = self.handshake_measured == MaybeDuration::NONE;
        if is_first {
            self.handshake_measured = MaybeDuration::some(now - left);
        }
        is_first
    }

    /// Whether no Request or Response waits to be acknowledged.
    pub(crate) fn is_greeting_known(&self) -> bool {
        self.greeting == MaybeInstant::NONE
    }

    /// Value of a Timestamp option that is sent now.
    pub(crate) fn send_timestamp(&mut self, now: Instant) -> u32 {
        let timestamp = self.timestamp(now);
        self.sent = Some(timestamp);
        timestamp
    }

    fn timestamp(&self, now: Instant) -> u32 {
        (now.saturating_since(self.epoch).as_nanos() / UNIT_NANOS) as u32
    }

    /// A Timestamp option arrived.
    pub(crate) fn owe_echo(&mut self, now: Instant, timestamp: u32) {
        (self.owed_echo, self.owed_since) = (timestamp, MaybeInstant::some(now));
    }

    /// Whether we owe an echo.
    pub(crate) fn owes_echo(&self) -> bool {
        self.owed_since != MaybeInstant::NONE
    }

    /// Takes the echo that we owe: the timestamp, and its elapsed time in units of 10 microseconds.
    pub(crate) fn take_echo(&mut self, now: Instant) -> Option<(u32, u32)> {
        //= 4340-13.1-1
        //= 4340-13.2-4
        //= 4340-13.3-1
        //= 4340-13.3-3
        let at = self.owed_since.take()?;
        Some((self.owed_echo, units(now.saturating_since(at))))
    }

    /// Round-trip time measured by a Timestamp Echo, or `None` if it cannot be an echo of ours. We
    /// send Timestamps in the handshake only, and use one echo: a later one would measure how long
    /// the peer kept it, and the peer can guess our clock.
    pub(crate) fn rtt_of_echo(
        &mut self,
        now: Instant,
        timestamp: u32,
        elapsed_units: u32,
    ) -> Option<Duration> {
        let round = self.timestamp(now).wrapping_sub(timestamp);
        self.sent.filter(|&last| timestamp <= last)?;
        // The elapsed time cannot exceed the whole time.
        let rtt = round.checked_sub(elapsed_units)?;
        self.sent = None;
        Some(Duration::from_nanos(u64::from(rtt) * UNIT_NANOS))
    }
}

/// A span in units of 10 microseconds, at most `u32::MAX`.
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
        assert_eq!(t.rtt_of_echo(start, 0, 0), None, "none was sent");
        let sent = t.send_timestamp(start + Duration::from_millis(40));
        assert_eq!(sent, 4000);
        assert_eq!(t.rtt_of_echo(start + Duration::from_millis(41), sent, 200), None);
        let rtt = t.rtt_of_echo(start + Duration::from_millis(100), sent, 1000);
        assert_eq!(rtt, Some(Duration::from_millis(50)));
        let again = t.rtt_of_echo(start + Duration::from_millis(100), sent, 1000);
        assert_eq!(again, None);
        t.owe_echo(start, 77);
        assert_eq!(t.take_echo(start + Duration::from_micros(25)), Some((77, 2)));
        assert_eq!(t.take_echo(start), None);
    }

    #[test]
    fn any_request_of_several_may_be_the_one_that_is_echoed() {
        let at = |ms| Instant::from_nanos(7_000_000_000) + Duration::from_millis(ms);
        for (echoed, rtt) in [(0, Some(1050)), (100_000, Some(50)), (100_001, None)] {
            let mut t = Timing::new(at(0));
            t.send_timestamp(at(0));
            t.send_timestamp(at(1000));
            let rtt = rtt.map(Duration::from_millis);
            assert_eq!(t.rtt_of_echo(at(1050), echoed, 0), rtt, "{echoed}");
        }
    }
}
