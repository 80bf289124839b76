//! Measures the speed of a target in processor time, which other load does not affect.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static STORIES: AtomicU64 = AtomicU64::new(0);
static STEPS: AtomicU64 = AtomicU64::new(0);

/// Counts one session with this many steps; prints the rates every million sessions.
pub fn count(steps: usize) {
    let steps = STEPS.fetch_add(steps as u64, Relaxed) + steps as u64;
    let sessions = STORIES.fetch_add(1, Relaxed) + 1;
    if sessions.is_multiple_of(1_000_000) {
        let seconds = processor_seconds();
        let (each, all) = (sessions as f64 / seconds, steps as f64 / seconds);
        eprintln!("{sessions} sessions, {steps} steps: {each:.0} and {all:.0} a processor second");
    }
}

/// Processor time of this process (Linux; fields 14 and 15 of proc(5)'s stat, in hundredths of a
/// second).
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    ((ticks(11) + ticks(12)) / 100.0).max(0.01)
}
