//! Measures X_recv, the rate at which data arrives (RFC 5348 section 6.2, RFC 4342 section 8.3).

use udccp_base::{Duration, Instant, MaybeInstant};

use super::Rate;

/// Number of feedback times to remember: enough to look back a round-trip time if losses caused
/// several reports in it. If the round-trip time is believed to be longer than all of them, the
/// rate is measured over the time that they cover.
const MARKS: usize = 8;

/// Counts data, and measures the rate since a report that is at least about a round-trip time old.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceiveRate {
    bytes: u64,
    packets: u64,
    /// Arrival of the first data since the newest report.
    resumed: Option<Instant>,
    /// Time of each report, minus silences, and the bytes received before it. Newest first.
    marks: [(MaybeInstant, u64); MARKS],
    /// Total silence so far, in whole round-trip times.
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

    /// Mean size of the data packets in bytes, at least 1.
    pub(crate) fn mean_size(&self) -> u32 {
        u32::try_from(self.bytes / self.packets.max(1)).unwrap_or(u32::MAX).max(1)
    }

    //= 5348-6.2-1
    /// The rate since the newest report that is at least seven eighths of a round-trip time old.
    /// Zero before the first report. Whole round-trip times of silence before the data do not
    /// count, because a feedback timer expired in each of them. A sender that resumes after a pause
    /// therefore sends at least one packet in two round-trip times.
    pub(crate) fn rate(&self, now: Instant, rtt: Duration) -> Rate {
        let enough = rtt / 8 * 7;
        let busy = now - self.silence - self.new_silence(now, rtt);
        let marks = || self.marks.iter().filter_map(|(at, before)| Some((at.get()?, *before)));
        let since = marks().find(|(at, _)| busy - *at >= enough).or_else(|| marks().next_back());
        let Some((at, before)) = since else { return Rate::default() };
        let age = busy - at;
        let is_full = self.marks[MARKS - 1].0 != MaybeInstant::NONE;
        let span = if age >= enough || is_full { age } else { rtt };
        Rate::of(self.bytes - before, span)
    }

    /// Silence since the newest report in whole round-trip times, except one to measure in.
    fn new_silence(&self, now: Instant, rtt: Duration) -> Duration {
        let (Some(at), Some(resumed)) = (self.marks[0].0.get(), self.resumed) else {
            return Duration::ZERO;
        };
        if rtt.is_zero() {
            return Duration::ZERO;
        }
        let newest = at + self.silence;
        let rounds = |span: Duration| span.as_nanos() / rtt.as_nanos();
        rtt * rounds(resumed - newest).min(rounds(now - newest).saturating_sub(1))
    }

    /// A report of `rate`, measured with this round-trip time, is sent.
    pub(crate) fn on_report(&mut self, now: Instant, rtt: Duration, rate: Rate) {
        self.silence += self.new_silence(now, rtt);
        self.resumed = None;
        self.marks.rotate_right(1);
        self.marks[0] = (MaybeInstant::some(now - self.silence), self.bytes);
        self.largest = self.largest.max(rate);
    }

    /// The largest rate reported so far.
    pub(crate) fn largest(&self) -> Rate {
        self.largest
    }
}
