//! Steal time: processor time that a virtual machine's host gave to others. Nothing else inside the
//! guest shows it, and it makes the emulator miss deadlines.

use std::fs;

/// Steal time above this share of all processors' time, in percent, is reported.
const NOTABLE_PERCENT: f64 = 1.0;

/// The processors' total time so far, in ticks (proc(5), `/proc/stat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Processors {
    steal_time: u64,
    all: u64,
}

impl Processors {
    /// The times so far, or zero if the kernel does not report them.
    pub(crate) fn now() -> Self {
        Self::read(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// Parses the first line: a name; user, nice, system, idle, iowait, irq, softirq, steal; then
    /// times that are included in others.
    fn read(stat: &str) -> Self {
        let fields = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
        let ticks: Vec<u64> = fields.take(8).filter_map(|field| field.parse().ok()).collect();
        Self { steal_time: ticks.get(7).copied().unwrap_or_default(), all: ticks.iter().sum() }
    }

    /// A message about the time stolen between `self` and `now`, if it was much.
    pub(crate) fn stolen_until(self, now: Self) -> Option<String> {
        let (steal_time, all) =
            (now.steal_time.saturating_sub(self.steal_time), now.all.saturating_sub(self.all));
        let percent = 100.0 * steal_time as f64 / all.max(1) as f64;
        (percent >= NOTABLE_PERCENT).then(|| {
            format!(
                "this is a virtual machine, and its host gave {percent:.0} % of the processor \
                 time to others meanwhile (steal)"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_time_is_a_share_of_total_time() {
        let before = Processors::read("cpu  100 0 50 1000 0 0 0 10 5 0\ncpu0 1 1 1 1\n");
        assert_eq!(before, Processors { steal_time: 10, all: 1_160 });
        let after = Processors::read("cpu  130 0 60 1040 0 0 0 30 5 0\n");
        let text = before.stolen_until(after).unwrap();
        assert!(text.contains("gave 20 % of"), "{text}");
        assert_eq!(before.stolen_until(before), None);
        assert_eq!(Processors::read("").stolen_until(Processors::read("nonsense")), None);
    }
}
