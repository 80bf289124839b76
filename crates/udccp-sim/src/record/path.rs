//! Records one direction of one flow.

use udccp_base::{Duration, Instant};
use udccp_link::{Counter, DelayHistogram, DropReason, Tally};

use super::jitter::JitterMeter;
use crate::result::{PathCounts, PathWindow};

/// Counts one direction of one flow; delays and jitter only if requested. Calls are in order of
/// time.
#[derive(Debug, Default)]
pub struct PathRecorder {
    now: Totals,
    times: Option<Box<Times>>,
    window: Window,
    /// Only if something was dropped or duplicated.
    rare: Option<Box<Rare>>,
}

/// The measured window...
#[derive(Debug, Default)]
enum Window {
    /// ... has not begun.
    #[default]
    Ahead,
    /// ... lasts, and these are the counts with which it began, if there were any.
    Open(Option<Box<Counted>>),
    /// ... is over.
    Over(Box<Counted>),
}

impl Window {
    /// Whether delays and jitter are measured now, and not only followed; `None` if neither.
    #[inline(always)]
    const fn measures(&self) -> Option<bool> {
        match self {
            Self::Ahead => Some(false),
            Self::Open(_) => Some(true),
            Self::Over(_) => None,
        }
    }
}

/// Delay and jitter in the measured window.
#[derive(Debug, Default)]
pub(crate) struct Times {
    delay: DelayHistogram,
    jitter: JitterMeter,
}

/// What [`PathWindow`] has of every direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    span: Duration,
    sent: Tally,
    delivered: Tally,
    dropped: u64,
    goodput_bytes: u64,
    transit_ns: u64,
}

/// What has a series: bytes delivered so far, with headers and to the application.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Step {
    pub(super) wire_bytes: u64,
    pub(super) goodput_bytes: u64,
}

/// Everything that only counts up.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    sent: Counter,
    sent_data: u64,
    delivered: Counter,
    delivered_data: u64,
    /// Application bytes.
    goodput_bytes: u64,
    /// One-way times of all packets delivered, with data or without.
    transit_ns: u64,
}

/// The same for what happens on few paths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rare {
    duplicated: u32,
    dropped: [u32; DropReason::COUNT],
}

impl PathRecorder {
    /// A recorder that also keeps delays and jitter.
    pub fn with_times() -> Self {
        Self { times: Some(Box::default()), ..Self::default() }
    }

    /// A host put a packet on its access link.
    #[inline]
    pub fn sent(&mut self, len: u32, has_data: bool) {
        self.now.sent.count(len);
        self.now.sent_data += u64::from(has_data);
    }

    /// A packet that had left at `sent` reached the other host.
    #[inline(always)]
    pub fn delivered(&mut self, sent: Instant, now: Instant, len: u32, has_data: bool) {
        self.now.delivered.count(len);
        self.now.transit_ns += (now - sent).as_nanos();
        if has_data {
            self.delivered_data(sent, now);
        }
    }

    /// The same for what is counted only of packets with data.
    #[inline(always)]
    fn delivered_data(&mut self, sent: Instant, now: Instant) {
        self.now.delivered_data += 1;
        let (Some(times), Some(measures)) = (&mut self.times, self.window.measures()) else {
            return;
        };
        times.jitter.record(sent, now, measures);
        if measures {
            times.delay.record(now - sent);
        }
    }

    /// The data packet just delivered has this number, for backends that number packets.
    pub fn numbered(&mut self, number: u64, transit: Duration) {
        if let (Some(times), Some(measures)) = (&mut self.times, self.window.measures()) {
            times.jitter.number(number, transit, measures);
        }
    }

    /// A link made copies.
    pub fn duplicated(&mut self, copies: u64) {
        self.rare.get_or_insert_default().duplicated += copies as u32;
    }

    /// A packet was dropped.
    pub fn dropped(&mut self, reason: DropReason) {
        self.rare.get_or_insert_default().dropped[reason as usize] += 1;
    }

    /// The receiving application received data.
    #[inline]
    pub fn goodput(&mut self, bytes: u64) {
        self.now.goodput_bytes += bytes;
    }

    /// The amounts delivered so far.
    pub(super) const fn step(&self) -> Step {
        let wire_bytes = self.now.delivered.tally().bytes;
        Step { wire_bytes, goodput_bytes: self.now.goodput_bytes }
    }

    /// The measured window begins.
    pub fn window_begins(&mut self) {
        let counted = self.since(&Counted::default(), Duration::ZERO);
        let is_first = counted == Counted::default();
        self.window = Window::Open((!is_first).then(|| Box::new(counted)));
    }

    /// The measured window ends; `span` is its length.
    pub fn window_ends(&mut self, span: Duration) {
        let before = match &self.window {
            Window::Open(Some(before)) => **before,
            _ => Counted::default(),
        };
        self.window = Window::Over(Box::new(self.since(&before, span)));
    }

    /// What was counted since then, in this time.
    fn since(&self, before: &Counted, span: Duration) -> Counted {
        let Totals { sent, delivered, goodput_bytes, transit_ns, .. } = &self.now;
        let dropped: u64 = self.rare.iter().flat_map(|rare| rare.dropped).map(u64::from).sum();
        Counted {
            span,
            sent: sent.tally() - before.sent,
            delivered: delivered.tally() - before.delivered,
            dropped: dropped - before.dropped,
            goodput_bytes: goodput_bytes - before.goodput_bytes,
            transit_ns: transit_ns - before.transit_ns,
        }
    }

    /// Whole-run counts, goodput bytes, and the measured window.
    pub fn finish(self, in_flight: u64) -> (PathCounts, u64, PathWindow) {
        let mut window = PathWindow::default();
        if let Window::Over(counted) = self.window {
            let Counted { span, sent, delivered, dropped, goodput_bytes, transit_ns } = *counted;
            let times = self.times.map(|times| *times).unwrap_or_default();
            let (jitter, delay) = (times.jitter.get(), times.delay);
            window = PathWindow {
                span,
                sent,
                delivered,
                dropped,
                goodput_bytes,
                delay,
                transit_ns,
                jitter,
            };
        }
        let Totals { sent, sent_data, delivered, delivered_data, .. } = self.now;
        let Rare { duplicated, dropped } = self.rare.map_or(Rare::default(), |rare| *rare);
        let counts = PathCounts {
            sent: sent.tally(),
            sent_data,
            duplicated: duplicated.into(),
            delivered: delivered.tally(),
            delivered_data,
            dropped: dropped.map(u64::from),
            in_flight,
        };
        (counts, self.now.goodput_bytes, window)
    }
}
