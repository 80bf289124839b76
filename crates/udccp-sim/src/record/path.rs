//! One direction of one flow.

use udccp_base::{Duration, Instant};
use udccp_link::{DelayHistogram, DropReason};

use super::jitter::JitterMeter;
use crate::result::{PathCounts, PathWindow};

/// Counts one direction of one flow; delays and jitter only where asked for. What happens is told
/// in the order of time.
#[derive(Debug, Default)]
pub struct PathRecorder {
    now: Totals,
    at_last: Step,
    times: Option<Box<Times>>,
    window: Window,
}

/// The measured window.
#[derive(Debug, Default)]
enum Window {
    /// It has not begun.
    #[default]
    Ahead,
    /// It began with these counts.
    From(Totals),
    /// It is over.
    Measured(Box<PathWindow>),
}

impl Window {
    #[inline]
    const fn is_open(&self) -> bool {
        matches!(self, Self::From(_))
    }
}

/// Delay and jitter in the measured window.
#[derive(Debug, Default)]
struct Times {
    delay: DelayHistogram,
    jitter: JitterMeter,
}

/// What has a series: bytes delivered, with headers and to the application.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    pub(super) wire_bytes: u64,
    pub(super) goodput_bytes: u64,
}

/// Everything that is counted upwards.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    /// Packets (those in the network are not counted here).
    counts: PathCounts,
    /// Application bytes.
    goodput_bytes: u64,
    /// One-way times of all packets delivered, with data or without.
    transit_ns: u64,
}

impl Totals {
    fn since(&self, before: &Self) -> Self {
        let (now, old) = (&self.counts, &before.counts);
        let mut dropped = now.dropped;
        for (count, before) in dropped.iter_mut().zip(old.dropped) {
            *count -= before;
        }
        Self {
            counts: PathCounts {
                sent: now.sent - old.sent,
                sent_data: now.sent_data - old.sent_data,
                duplicated: now.duplicated - old.duplicated,
                delivered: now.delivered - old.delivered,
                delivered_data: now.delivered_data - old.delivered_data,
                dropped,
                in_flight: 0,
            },
            goodput_bytes: self.goodput_bytes - before.goodput_bytes,
            transit_ns: self.transit_ns - before.transit_ns,
        }
    }
}

impl PathRecorder {
    /// A recorder that also keeps delays and jitter.
    pub fn with_times() -> Self {
        Self { times: Some(Box::default()), ..Self::default() }
    }

    /// A host put a packet on its access link.
    #[inline]
    pub fn sent(&mut self, len: u32, has_data: bool) {
        self.now.counts.sent.count(len);
        self.now.counts.sent_data += u64::from(has_data);
    }

    /// A packet that had left at `sent` reached the other host.
    #[inline]
    pub fn delivered(&mut self, sent: Instant, now: Instant, len: u32, has_data: bool) {
        self.now.counts.delivered.count(len);
        self.now.transit_ns += (now - sent).as_nanos();
        if !has_data {
            return;
        }
        self.now.counts.delivered_data += 1;
        if let Some(times) = &mut self.times {
            let measures = self.window.is_open();
            times.jitter.record(sent, now, measures);
            if measures {
                times.delay.record(now - sent);
            }
        }
    }

    /// The data packet that was just delivered has this number, where a backend numbers packets.
    pub fn numbered(&mut self, number: u64, transit: Duration) {
        if let Some(times) = &mut self.times {
            times.jitter.number(number, transit, self.window.is_open());
        }
    }

    /// A link made copies.
    pub fn duplicated(&mut self, copies: u64) {
        self.now.counts.duplicated += copies;
    }

    /// A packet was dropped.
    pub fn dropped(&mut self, reason: DropReason) {
        self.now.counts.dropped[reason as usize] += 1;
    }

    /// The receiving application got data.
    #[inline]
    pub fn goodput(&mut self, bytes: u64) {
        self.now.goodput_bytes += bytes;
    }

    /// What was delivered since the last call.
    pub(super) fn step(&mut self) -> Step {
        let wire_bytes = self.now.counts.delivered.bytes;
        let now = Step { wire_bytes, goodput_bytes: self.now.goodput_bytes };
        let last = core::mem::replace(&mut self.at_last, now);
        Step {
            wire_bytes: now.wire_bytes - last.wire_bytes,
            goodput_bytes: now.goodput_bytes - last.goodput_bytes,
        }
    }

    /// The measured window begins.
    pub fn window_begins(&mut self) {
        self.window = Window::From(self.now);
    }

    /// The measured window ends, after this time.
    pub fn window_ends(&mut self, span: Duration) {
        let from = match &self.window {
            Window::From(from) => *from,
            Window::Ahead | Window::Measured(_) => Totals::default(),
        };
        let step = self.now.since(&from);
        let times = self.times.take().map(|t| *t).unwrap_or_default();
        self.window = Window::Measured(Box::new(PathWindow {
            span,
            sent: step.counts.sent,
            delivered: step.counts.delivered,
            dropped: step.counts.dropped_total(),
            goodput_bytes: step.goodput_bytes,
            transit_ns: step.transit_ns,
            jitter: times.jitter.get(),
            delay: times.delay,
        }));
    }

    /// Whole-run counts, goodput bytes, and the measured window.
    pub fn finish(self, in_flight: u64) -> (PathCounts, u64, PathWindow) {
        let window = match self.window {
            Window::Measured(window) => *window,
            Window::Ahead | Window::From(_) => PathWindow::default(),
        };
        (PathCounts { in_flight, ..self.now.counts }, self.now.goodput_bytes, window)
    }
}
