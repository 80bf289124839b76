//! Records when things happened, and computes timestamp options (RFC 4340 section 13).

use udccp_base::{Duration, Instant, MaybeDuration, MaybeInstant};
use udccp_wire::Seqno;

/// Round-trip time to assume while none is known (RFC 4340 section 3.4).
pub(crate) const DEFAULT_RTT: Duration = Duration::from_millis(200);

const UNIT_NANOS: u64 = 10_000;

/// Clock readings of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Timing {
    /// When a valid packet last arrived.
    pub(crate) last_valid: Instant,
    /// Present in the handshake, and once the peer has sent a Timestamp after it.
    stamps: Option<Box<Stamps>>,
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

/// What is measured in the handshake, and for the peer.
#[derive(Clone, Debug)]
struct Stamps {
    /// When the connection began, which is zero in the Timestamps that we send. They are sent in
    /// the handshake only.
    epoch: Instant,
    /// The last Timestamp that we sent, until one is echoed.
    sent: Option<u32>,
    /// The peer's Timestamp that we have to echo.
    owed_echo: u32,
    /// When that Timestamp arrived.
    owed_since: MaybeInstant,
    /// When the last Request or Response was sent, until the peer acknowledges one.
    greeting: MaybeInstant,
    /// A peer may send Timestamps on every packet, and no packet should take an allocation.
    is_lasting: bool,
}

impl Stamps {
    const fn new(epoch: Instant, is_lasting: bool) -> Self {
        let (owed_since, greeting) = (MaybeInstant::NONE, MaybeInstant::NONE);
        Self { epoch, sent: None, owed_echo: 0, owed_since, greeting, is_lasting }
    }

    fn timestamp(&self, now: Instant) -> u32 {
        (now.saturating_since(self.epoch).as_nanos() / UNIT_NANOS) as u32
    }

    fn are_needed(&self) -> bool {
        let waits = [self.owed_since, self.greeting].iter().any(|at| *at != MaybeInstant::NONE);
        waits || self.sent.is_some() || self.is_lasting
    }
}

impl Timing {
    /// The state of a connection that begins at `now`.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            last_valid: now,
            stamps: Some(Box::new(Stamps::new(now, false))),
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
        self.stamps(now).greeting = MaybeInstant::some(now);
    }

    /// A Request or Response was acknowledged. Returns whether that is the first time.
    pub(crate) fn on_greeting_known(&mut self, now: Instant) -> bool {
        let greeting = self.stamps.as_mut().and_then(|stamps| stamps.greeting.take());
        let Some(left) = greeting else { return false };
        self.free_stamps();
        let is_first = self.handshake_measured == MaybeDuration::NONE;
        if is_first {
            self.handshake_measured = MaybeDuration::some(now - left);
        }
        is_first
    }

    /// Whether no Request or Response waits to be acknowledged.
    pub(crate) fn is_greeting_known(&self) -> bool {
        self.stamps.as_ref().is_none_or(|stamps| stamps.greeting == MaybeInstant::NONE)
    }

    /// Value of a Timestamp option that is sent now.
    pub(crate) fn send_timestamp(&mut self, now: Instant) -> u32 {
        let stamps = self.stamps(now);
        let timestamp = stamps.timestamp(now);
        stamps.sent = Some(timestamp);
        timestamp
    }

    fn stamps(&mut self, now: Instant) -> &mut Stamps {
        self.stamps.get_or_insert_with(|| Box::new(Stamps::new(now, true)))
    }

    fn free_stamps(&mut self) {
        self.stamps.take_if(|stamps| !stamps.are_needed());
    }

    /// A Timestamp option arrived.
    pub(crate) fn owe_echo(&mut self, now: Instant, timestamp: u32) {
        let stamps = self.stamps(now);
        (stamps.owed_echo, stamps.owed_since) = (timestamp, MaybeInstant::some(now));
    }

    /// Whether we owe an echo.
    pub(crate) fn owes_echo(&self) -> bool {
        self.stamps.as_ref().is_some_and(|stamps| stamps.owed_since != MaybeInstant::NONE)
    }

    /// Takes the echo that we owe: the timestamp, and its elapsed time in units of 10 microseconds.
    pub(crate) fn take_echo(&mut self, now: Instant) -> Option<(u32, u32)> {
        //= 4340-13.1-1
        //= 4340-13.2-4
        //= 4340-13.3-1
        //= 4340-13.3-3
        let stamps = self.stamps.as_mut()?;
        let (at, timestamp) = (stamps.owed_since.take()?, stamps.owed_echo);
        self.free_stamps();
        Some((timestamp, units(now.saturating_since(at))))
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
        let stamps = self.stamps.as_mut()?;
        let round = stamps.timestamp(now).wrapping_sub(timestamp);
        stamps.sent.filter(|&last| timestamp <= last)?;
        // The elapsed time cannot exceed the whole time.
        let rtt = round.checked_sub(elapsed_units)?;
        stamps.sent = None;
        self.free_stamps();
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
    fn memory_of_the_handshake_is_freed_unless_the_peer_goes_on_sending_timestamps() {
        let start = Instant::from_nanos(7_000_000_000);
        let mut t = Timing::new(start);
        let sent = t.send_timestamp(start);
        t.on_greeting(start);
        t.owe_echo(start, 77);
        assert!(t.rtt_of_echo(start, sent, 0).is_some() && t.on_greeting_known(start));
        assert!(t.stamps.is_some(), "an echo is owed");
        assert!(t.take_echo(start).is_some() && t.stamps.is_none());
        assert!(t.is_greeting_known() && !t.owes_echo() && !t.on_greeting_known(start));
        for timestamp in [78, 79] {
            t.owe_echo(start, timestamp);
            assert_eq!(t.take_echo(start), Some((timestamp, 0)));
            assert!(t.stamps.is_some(), "the next one takes no allocation");
        }
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
