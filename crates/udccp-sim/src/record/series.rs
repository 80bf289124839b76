//! The series of a flow during a run.

use udccp_base::{MaybeDuration, MaybeNumber};

use super::path::{PathRecorder, Step};
use super::{Interval, sample};
use crate::result::{FlowSample, SenderSample};

/// A flow at the end of each interval.
#[derive(Debug)]
pub(crate) enum Series {
    /// Of a sender that has had no rate, as most only have a window.
    Window(Vec<FlowStep>),
    /// Of one that has a rate.
    Rate(Vec<(FlowStep, SenderRate)>),
}

/// What was delivered so far, and the sender's congestion state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowStep {
    delivered: Step,
    cwnd_packets: MaybeNumber,
    srtt: MaybeDuration,
    congestion_events: u64,
}

/// The rest of the sender's congestion state, if it has a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SenderRate {
    x_bytes_per_sec: MaybeNumber,
    loss_event_rate: MaybeNumber,
}

impl Series {
    /// An empty one, with room for so many samples.
    pub(crate) fn with_capacity(samples: usize) -> Self {
        Self::Window(Vec::with_capacity(samples))
    }

    /// An interval ends: adds what happened so far.
    pub(crate) fn push(&mut self, forward: &PathRecorder, sender: SenderSample) {
        let SenderSample { cwnd_packets, srtt, x_bytes_per_sec, loss_event_rate, .. } = sender;
        let (delivered, congestion_events) = (forward.step(), sender.congestion_events);
        let step = FlowStep { delivered, cwnd_packets, srtt, congestion_events };
        let rate = SenderRate { x_bytes_per_sec, loss_event_rate };
        match self {
            Self::Window(steps) if rate == SenderRate::default() => steps.push(step),
            Self::Window(steps) => {
                let mut all = Vec::with_capacity(steps.capacity());
                all.extend(steps.iter().map(|before| (*before, SenderRate::default())));
                all.push((step, rate));
                *self = Self::Rate(all);
            }
            Self::Rate(steps) => steps.push((step, rate)),
        }
    }

    /// The samples of these intervals, which are all that there were.
    pub(crate) fn samples(&self, intervals: &[Interval]) -> Vec<FlowSample> {
        match self {
            Self::Window(steps) => {
                let steps = steps.iter().map(|step| (*step, SenderRate::default()));
                samples(steps, intervals)
            }
            Self::Rate(steps) => samples(steps.iter().copied(), intervals),
        }
    }
}

fn samples(
    steps: impl Iterator<Item = (FlowStep, SenderRate)>,
    intervals: &[Interval],
) -> Vec<FlowSample> {
    let mut before = Step::default();
    let mut samples = Vec::with_capacity(intervals.len());
    for ((step, rate), at) in steps.zip(intervals) {
        let FlowStep { delivered, cwnd_packets, srtt, congestion_events } = step;
        let SenderRate { x_bytes_per_sec, loss_event_rate } = rate;
        let sender = SenderSample {
            cwnd_packets,
            srtt,
            x_bytes_per_sec,
            loss_event_rate,
            congestion_events,
        };
        samples.push(sample(delivered, before, *at, sender));
        before = delivered;
    }
    samples
}

#[cfg(test)]
mod tests {
    use udccp_base::{Duration, Instant};

    use super::*;

    #[test]
    fn a_sender_that_gets_a_rate_keeps_its_earlier_samples() {
        let window = SenderSample {
            cwnd_packets: Some(3.0).into(),
            srtt: Some(Duration::from_millis(9)).into(),
            congestion_events: 7,
            ..SenderSample::default()
        };
        let rate = SenderSample {
            x_bytes_per_sec: Some(5e6).into(),
            loss_event_rate: Some(0.01).into(),
            ..SenderSample::default()
        };
        let mut series = Series::with_capacity(3);
        let mut path = PathRecorder::default();
        let mut intervals = Vec::new();
        for (second, sender) in (1..).zip([window, rate, window]) {
            path.delivered(Instant::ZERO, Instant::ZERO, 100 * second as u32, true);
            series.push(&path, sender);
            let span = Duration::from_secs(1);
            intervals.push(Interval { end: Duration::from_secs(second), span });
        }
        let found = series.samples(&intervals);
        assert_eq!(found.iter().map(|s| s.sender).collect::<Vec<_>>(), [window, rate, window]);
        assert_eq!(found.iter().map(|s| s.wire_bytes).collect::<Vec<_>>(), [100, 200, 300]);
        assert_eq!(found[2].end, Duration::from_secs(3));
    }
}
