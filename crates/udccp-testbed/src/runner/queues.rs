//! Samples the queues of a namespace: their lengths and drop counters.

use std::io;

use nix::net::if_::if_nametoindex;
use udccp_netns::{Discipline, QueueReader};

use crate::observations::QueueSample;

/// The devices of one namespace that are watched.
pub(super) struct Queues {
    reader: QueueReader,
    /// Number of the device in the namespace, and of the queue in the plan.
    devices: Vec<(u32, usize)>,
}

impl Queues {
    /// Opens a reader in this thread's namespace.
    pub(super) fn open(devices: &[(String, usize)]) -> io::Result<Self> {
        let reader = QueueReader::open()?;
        let numbered =
            |(name, queue): &(String, usize)| Ok((if_nametoindex(name.as_str())?, *queue));
        let devices = devices.iter().map(numbered).collect::<nix::Result<_>>()?;
        Ok(Self { reader, devices })
    }

    /// Samples each queue. Returns its number in the plan with the sample.
    pub(super) fn sample(&mut self, at_ns: u64) -> io::Result<Vec<(usize, QueueSample)>> {
        let begin =
            |&(_, queue): &(u32, usize)| (queue, QueueSample { at_ns, ..QueueSample::default() });
        let mut found: Vec<(usize, QueueSample)> = self.devices.iter().map(begin).collect();
        self.reader.read(|discipline| {
            let at = self.devices.iter().position(|(index, _)| *index == discipline.device);
            if let Some(at) = at {
                record_discipline(&mut found[at].1, discipline);
            }
        })?;
        Ok(found)
    }
}

/// Handles: netem is 1, the token bucket 2, the queue 3 (see the plan).
fn record_discipline(sample: &mut QueueSample, found: Discipline) {
    match found.handle {
        1 => sample.line_drops = Some(found.drops),
        2 => {
            (sample.sent_bytes, sample.sent_packets) = (found.sent_bytes, found.sent_packets);
            sample.bucket_drops = found.drops;
        }
        3 => {
            (sample.waiting, sample.waiting_bytes) = (found.waiting, found.waiting_bytes);
            sample.queue_drops = found.drops;
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_qdisc_fills_its_part_of_a_sample() {
        let mut sample = QueueSample::default();
        let counted = |handle| Discipline {
            handle,
            sent_bytes: 1000,
            sent_packets: 2,
            waiting: 7,
            waiting_bytes: 10_500,
            drops: 40 + u64::from(handle),
            ..Discipline::default()
        };
        for handle in [1, 2, 3, 9] {
            record_discipline(&mut sample, counted(handle));
        }
        assert_eq!(
            (sample.line_drops, sample.bucket_drops, sample.queue_drops),
            (Some(41), 42, 43)
        );
        assert_eq!((sample.sent_bytes, sample.sent_packets), (1000, 2));
        assert_eq!((sample.waiting, sample.waiting_bytes), (7, 10_500));
    }
}
