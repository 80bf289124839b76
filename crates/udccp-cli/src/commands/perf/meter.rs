//! Counts received messages.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::messages::{Header, Kind};

/// Counts the received messages of one stream.
#[derive(Debug)]
pub(super) struct Meter {
    epoch: Instant,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    messages: u64,
    bytes: u64,
    /// One more than the highest number received.
    expected: u64,
    out_of_order: u64,
    /// Jitter of RFC 3550 section 6.4.1, in nanoseconds.
    jitter_ns: f64,
    last_transit_ns: Option<i128>,
    first_ns: Option<u64>,
    last_ns: u64,
}

/// The receiver's result for a stream, so far or between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Received {
    pub(super) messages: u64,
    pub(super) bytes: u64,
    /// Messages missing below the highest number received.
    pub(super) lost: u64,
    pub(super) out_of_order: u64,
    /// `None` before the second message.
    pub(super) jitter_ms: Option<f64>,
    /// Time from the first message to the last.
    pub(super) seconds: f64,
}

impl Meter {
    pub(super) fn new(epoch: Instant) -> Self {
        Self { epoch, state: Mutex::default() }
    }

    /// Counts messages that arrived together.
    pub(super) fn count(&self, messages: &[bytes::Bytes], now: Instant) {
        let now_ns = u64::try_from((now - self.epoch).as_nanos()).unwrap_or(u64::MAX);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for message in messages {
            if let Some(header) = Header::read(message).filter(|h| h.kind == Kind::Data) {
                state.count(&header, message.len() as u64, now_ns);
            }
        }
    }

    /// The result so far.
    pub(super) fn total(&self) -> Received {
        let s = *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Received {
            messages: s.messages,
            bytes: s.bytes,
            lost: s.expected.saturating_sub(s.messages),
            out_of_order: s.out_of_order,
            jitter_ms: (s.messages > 1).then_some(s.jitter_ns / 1e6),
            seconds: s.first_ns.map_or(0.0, |first| (s.last_ns - first) as f64 / 1e9),
        }
    }
}

impl State {
    fn count(&mut self, header: &Header, len: u64, now_ns: u64) {
        self.messages += 1;
        self.bytes += len;
        if header.number >= self.expected {
            self.expected = header.number + 1;
        } else {
            self.out_of_order += 1;
        }
        // The offset between the two clocks cancels out in the difference.
        let transit = i128::from(now_ns) - i128::from(header.made_ns);
        if let Some(last) = self.last_transit_ns.replace(transit) {
            self.jitter_ns += ((transit - last).unsigned_abs() as f64 - self.jitter_ns) / 16.0;
        }
        self.first_ns.get_or_insert(now_ns);
        self.last_ns = now_ns;
    }
}

impl Received {
    /// The difference from an earlier result; `seconds` is the time between them.
    pub(super) fn since(&self, earlier: &Self, seconds: f64) -> Self {
        Self {
            messages: self.messages - earlier.messages,
            bytes: self.bytes - earlier.bytes,
            // A message that arrives late reduces the losses.
            lost: self.lost.saturating_sub(earlier.lost),
            out_of_order: self.out_of_order - earlier.out_of_order,
            jitter_ms: self.jitter_ms,
            seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn losses_are_gaps_and_late_arrivals_fill_them() {
        let epoch = super::super::clock();
        let meter = Meter::new(epoch);
        let arrive = |number: u64, at_us: u64| {
            let made_ns = number * 1_000_000;
            let header = Header { kind: Kind::Data, stream: 0, test: 1, number, made_ns };
            meter.count(&[header.message()], epoch + Duration::from_micros(at_us));
        };
        arrive(0, 500);
        assert_eq!(meter.total().jitter_ms, None, "one message has no jitter");
        arrive(1, 1_500);
        arrive(4, 4_500);
        assert_eq!((meter.total().lost, meter.total().out_of_order), (2, 0));
        assert_eq!(meter.total().jitter_ms, Some(0.0), "evenly late is not jitter");
        arrive(2, 5_300);
        let total = meter.total();
        assert_eq!((total.messages, total.lost, total.out_of_order), (4, 1, 1));
        let jitter_ms = total.jitter_ms.unwrap();
        assert!((jitter_ms - 2.8 / 16.0).abs() < 1e-9, "{jitter_ms}");
    }
}
