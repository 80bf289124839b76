//! Measures X_recv, the rate at which data arrives (RFC 5348 section 6.2, RFC 4342 section 8.3).

use udccp_base::{Duration, Instant};

use super::Rate;

/// Feedback times remembered: enough to look back a round-trip time when losses made several
/// reports in it. Where a round-trip time is believed to be longer than all of them, the rate is
/// that of the time that they cover.
const MARKS: usize = 8;

/// Counts data, and measures from one report to another that is a round-trip time away or more.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceiveRate {
    bytes: u64,
    packets: u64,
    /// When the first data since the newest report arrived.
    resumed: Option<Instant>,
    /// Time of each report, without silences, and the bytes before it, newest first.
    marks: [Option<(Instant, u64)>; MARKS],
    /// Silences so far, in whole round-trip times.
    silence: Duration,
    largest: Rate,
}

impl ReceiveRate {
    /// A data packet arrived.
    pub(crate) fn on_data(&mut self, now: Instant, bytes: u32) {
        self.resumed.get_or_insert(now);
        self.bytes += u64::from(bytes);
        self.packets += 1;
    }

    /// Mean size of the data packets, at least 1.
    pub(crate) fn mean_size(&self) -> u32 {
        u32::try_from(self.bytes / self.packets.max(1)).unwrap_or(u32::MAX).max(1)
    }

    //= 5348-6.2-1
    /// The rate since the newest report that is (all but an eighth of) a round-trip time old; zero
    /// before the first report. Whole round-trip times of silence before the data came do not
    /// count, since a feedback timer ended in each of them: a sender that spoke again after a pause
    /// sends no less than a packet in two round-trip times.
    pub(crate) fn rate(&self, now: Instant, rtt: Duration) -> Rate {
        let enough = rtt / 8 * 7;
        let busy = now - self.silence - self.new_silence(now, rtt);
        let marks = || self.marks.iter().flatten();
        let since = marks().find(|(at, _)| busy - *at >= enough).or_else(|| marks().last());
        let Some(&(at, before)) = since else { return Rate::default() };
        let age = busy - at;
        let is_full = self.marks[MARKS - 1].is_some();
        let span = if age >= enough || is_full { age } else { rtt };
        Rate::of(self.bytes - before, span)
    }

    /// Round-trip times of silence since the newest report, all but what leaves one to measure in.
    fn new_silence(&self, now: Instant, rtt: Duration) -> Duration {
        let (Some((at, _)), Some(resumed)) = (self.marks[0], self.resumed) else {
            return Duration::ZERO;
        };
        if rtt.is_zero() {
            return Duration::ZERO;
        }
        let newest = at + self.silence;
        let rounds = |span: Duration| span.as_nanos() / rtt.as_nanos();
        rtt * rounds(resumed - newest).min(rounds(now - newest).saturating_sub(1))
    }

    /// A report of `rate` leaves, which was measured with this round-trip time.
    pub(crate) fn on_report(&mut self, now: Instant, rtt: Duration, rate: Rate) {
        self.silence += self.new_silence(now, rtt);
        self.resumed = None;
        self.marks.rotate_right(1);
        self.marks[0] = Some((now - self.silence, self.bytes));
        self.largest = self.largest.max(rate);
    }

    /// The largest rate reported so far.
    pub(crate) fn largest(&self) -> Rate {
        self.largest
    }
}
