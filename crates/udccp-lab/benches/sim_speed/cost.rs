//! Measures what a run costs.

use udccp_lab::Record;
use udccp_testkit::CountingAllocator;

/// The cost of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Data packets (of flows from senders to receivers) delivered.
    pub(crate) delivered: u64,
    pub(crate) events: u64,
    pub(crate) cpu_s: f64,
    /// Peak heap memory of the run.
    pub(crate) heap_bytes: usize,
}

impl Cost {
    pub(crate) fn of(record: &Record, heap_bytes: usize) -> Self {
        let delivered = record.flows.iter().map(|f| f.packets_delivered).sum();
        Self { delivered, events: record.cost.events, cpu_s: record.cost.cpu_s, heap_bytes }
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.delivered as f64 / self.cpu_s
    }

    pub(crate) fn ns_per_packet(&self) -> f64 {
        self.cpu_s * 1e9 / self.delivered as f64
    }

    pub(crate) fn events_per_packet(&self) -> f64 {
        self.events as f64 / self.delivered as f64
    }
}

/// The cheapest of several runs: other load on the machine only adds cost.
pub(crate) fn best(runs: impl Iterator<Item = Cost>) -> Cost {
    runs.min_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s)).expect("at least one run")
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// Runs a function. Returns how far its peak heap use exceeded the use before it.
pub(crate) fn with_heap<T>(run: impl FnOnce() -> T) -> (T, usize) {
    ALLOCATOR.peak_of(run)
}

/// Peak memory of the process, in MiB.
pub(crate) fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}
