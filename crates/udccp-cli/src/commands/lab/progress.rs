//! Shows the progress of a campaign on standard error. On a terminal: a bar with the remaining
//! time, the latest runs and the first table so far. Elsewhere: an occasional line.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use udccp_lab::analysis::Analysis;
use udccp_lab::schema::Experiment;
use udccp_lab::{PlanOptions, Progress, Record, Start, Task, WorkEstimate, label, report};

use super::files::LabFiles;
use crate::output;

/// Number of finished runs to show.
const RECENT: usize = 3;
/// Number of table lines to show.
const TABLE_LINES: usize = 16;
/// Minimum interval between updates of the table: a fixed time, and a multiple of the last update's
/// duration.
const TABLE_EVERY: (Duration, u32) = (Duration::from_secs(1), 20);

/// Number of processor cores.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Formats a duration for readers.
pub(super) fn time(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Progress of one campaign.
pub(super) struct Bars<'a> {
    experiments: &'a [Experiment],
    files: &'a LabFiles,
    options: PlanOptions,
    shared: Arc<Shared>,
}

/// State shared with a signal handler.
struct Shared {
    bar: ProgressBar,
    below: ProgressBar,
    all: MultiProgress,
    jobs: usize,
    state: Mutex<State>,
}

struct State {
    begun: Instant,
    start: Start,
    /// Finished runs, including those of the store.
    there: usize,
    /// The campaign's progress.
    estimate: WorkEstimate,
    /// Tenths of the work already reported, without a terminal.
    reported: u64,
    recent: VecDeque<String>,
    table: String,
    next_table: Instant,
}

#[expect(clippy::disallowed_methods, reason = "the time left is real time")]
fn now() -> Instant {
    Instant::now()
}

impl<'a> Bars<'a> {
    /// Creates the display; nothing is shown yet.
    pub(super) fn new(
        experiments: &'a [Experiment],
        files: &'a LabFiles,
        options: PlanOptions,
        jobs: usize,
    ) -> Self {
        let all = MultiProgress::new();
        let style = |template| {
            ProgressStyle::with_template(template)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("━╸ ")
        };
        let bar = all.add(ProgressBar::new(0).with_style(style("{bar:30} {msg}")));
        let below = all.add(ProgressBar::new(0).with_style(style("{msg}")));
        let begun = now();
        let state = State {
            begun,
            start: Start::default(),
            there: 0,
            estimate: WorkEstimate::default(),
            reported: 0,
            recent: VecDeque::new(),
            table: String::new(),
            next_table: begun + TABLE_EVERY.0,
        };
        let shared = Arc::new(Shared { bar, below, all, jobs, state: Mutex::new(state) });
        Self { experiments, files, options, shared }
    }

    /// Removes the display.
    pub(super) fn end(&self) {
        self.shared.clear();
    }

    /// The action for an interrupt.
    pub(super) fn leave(&self) -> impl FnOnce() + Send + 'static {
        let shared = Arc::clone(&self.shared);
        move || {
            shared.clear();
            let state = shared.state();
            let (there, total) = (state.there, state.start.total);
            output::note(&format!(
                "stopped: {there} of {total} runs are stored; the same command resumes"
            ));
        }
    }

    /// Updates the table of this run's experiment if it is due.
    fn table(&self, task: &Task) {
        let begun = now();
        if self.shared.bar.is_hidden() || self.shared.state().next_table > begun {
            return;
        }
        let Some(experiment) = self.experiments.iter().find(|e| e.id == task.experiment) else {
            return;
        };
        // Prevent other threads from starting an update meanwhile.
        self.shared.state().next_table = begun + Duration::from_secs(3600);
        let table = match self.files.results(experiment, self.options) {
            Ok(results) => first_table(&report::text(&Analysis::of(experiment, results))),
            Err(_) => String::new(),
        };
        let pause = TABLE_EVERY.0.max(begun.elapsed() * TABLE_EVERY.1);
        let mut state = self.shared.state();
        state.table = format!("\n{}, so far:\n{table}", experiment.id);
        state.next_table = now() + pause;
    }
}

/// The first table of a report.
fn first_table(text: &str) -> String {
    let lines = text.lines().take_while(|l| !l.is_empty());
    lines.take(TABLE_LINES).map(|l| format!("{l}\n")).collect()
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // After a panic, the display may be slightly wrong, but the campaign ends anyway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
        self.below.finish_and_clear();
        let _ = self.all.clear();
    }

    /// Counts a finished run.
    fn advance(&self, estimate: WorkEstimate) {
        let mut state = self.state();
        state.there += 1;
        state.estimate = estimate;
        let left = format!("about {} left", time(self.remaining_time_s(&state)));
        let says = format!("{} of {} runs, {left}", state.there, state.start.total);
        if !self.bar.is_hidden() {
            // A forecast that grows must not move the bar backwards.
            let position = (1000.0 * estimate.part()) as u64;
            self.bar.set_position(self.bar.position().max(position));
            self.bar.set_message(says);
            let recent: Vec<&str> = state.recent.iter().map(String::as_str).collect();
            self.below.set_message(format!("{}\n{}", recent.join("\n"), state.table));
            return;
        }
        let tenths = (10.0 * estimate.part() + 1e-6) as u64;
        if tenths > state.reported || state.there == state.start.total {
            state.reported = tenths;
            output::note(&says);
        }
    }

    /// Remaining time in seconds.
    fn remaining_time_s(&self, state: &State) -> f64 {
        state.estimate.remaining_time_s(state.begun.elapsed().as_secs_f64(), self.jobs)
    }
}

impl Progress for Bars<'_> {
    fn begin(&self, start: Start) {
        let mut state = self.shared.state();
        (state.start, state.there, state.begun) = (start, start.stored, now());
        state.estimate = WorkEstimate { done_s: 0.0, remaining_s: start.expected_s };
        let open = start.total - start.stored;
        if start.shared && open > 0 {
            output::note("another campaign uses this store: the two share the runs");
        }
        if open == 0 {
            return;
        }
        let left = time(self.shared.remaining_time_s(&state));
        let says = format!("{} runs, {} of them in the store", start.total, start.stored);
        if self.shared.bar.is_hidden() {
            output::note(&format!("{says}; about {left} left"));
            return;
        }
        self.shared.bar.set_length(1000);
        self.shared.bar.set_message(format!("{says}, about {left} left"));
        self.shared.bar.tick();
    }

    fn done(&self, task: &Task, record: &Record, estimate: WorkEstimate) {
        let name = if self.experiments.len() > 1 {
            format!("{}: {}", task.experiment, label(task))
        } else {
            label(task)
        };
        {
            let mut state = self.shared.state();
            state.recent.push_back(format!("  {name}: {}", result(record)));
            if state.recent.len() > RECENT {
                state.recent.pop_front();
            }
        }
        self.table(task);
        self.shared.advance(estimate);
    }

    fn found(&self, estimate: WorkEstimate) {
        self.shared.advance(estimate);
    }
}

/// A run in a few words: each flow's goodput (or the sum if there are many), and the fairness.
fn result(record: &Record) -> String {
    let rates: Vec<f64> = record.flows.iter().filter_map(|f| f.goodput_mbps).collect();
    let goodput = match rates.len() {
        0 => return "no goodput".to_owned(),
        1..=4 => rates.iter().map(|r| format!("{r:.2}")).collect::<Vec<_>>().join(" + "),
        n => format!("{:.2} by {n} flows", rates.iter().sum::<f64>()),
    };
    let jain = record.system.jain_goodput.map(|j| format!(", Jain index {j:.2}"));
    format!("goodput {goodput} Mbit/s{}", jain.unwrap_or_default())
}
