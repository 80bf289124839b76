//! Shows the progress of a campaign on standard error: on a terminal a bar with the time left, the
//! last runs and the first table as far as it is known; elsewhere a line now and then.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use udccp_lab::analysis::Analysis;
use udccp_lab::schema::Experiment;
use udccp_lab::{Outlook, PlanOptions, Progress, Record, Start, Task, label, report};

use super::files::LabFiles;
use crate::output;

/// Finished runs that are shown.
const RECENT: usize = 3;
/// Lines of the table that are shown.
const TABLE_LINES: usize = 16;
/// The table is made again after this long, or this many times as long as making it took.
const TABLE_EVERY: (Duration, u32) = (Duration::from_secs(1), 20);

/// Cores of this machine.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A time as people say it.
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

/// What a signal handler needs too.
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
    /// Runs that are there, those of the store counted too.
    there: usize,
    /// How far the campaign is.
    outlook: Outlook,
    /// Tenths of the work that were told, where there is no terminal.
    told: u64,
    recent: VecDeque<String>,
    table: String,
    next_table: Instant,
}

#[expect(clippy::disallowed_methods, reason = "the time left is real time")]
fn now() -> Instant {
    Instant::now()
}

impl<'a> Bars<'a> {
    /// Nothing is shown yet.
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
            outlook: Outlook::default(),
            told: 0,
            recent: VecDeque::new(),
            table: String::new(),
            next_table: begun + TABLE_EVERY.0,
        };
        let shared = Arc::new(Shared { bar, below, all, jobs, state: Mutex::new(state) });
        Self { experiments, files, options, shared }
    }

    /// Removes what is shown.
    pub(super) fn end(&self) {
        self.shared.clear();
    }

    /// What to do when the user leaves.
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

    /// Makes the table of the experiment of this run again, if it is time to.
    fn table(&self, task: &Task) {
        let begun = now();
        if self.shared.bar.is_hidden() || self.shared.state().next_table > begun {
            return;
        }
        let Some(experiment) = self.experiments.iter().find(|e| e.id == task.experiment) else {
            return;
        };
        // Nobody else is to begin while this one is at work.
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
        // What is shown may be a little wrong after a panic, which ends the campaign anyway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
        self.below.finish_and_clear();
        let _ = self.all.clear();
    }

    /// One more run is behind us.
    fn advance(&self, outlook: Outlook) {
        let mut state = self.state();
        state.there += 1;
        state.outlook = outlook;
        let left = format!("about {} left", time(self.left_s(&state)));
        let says = format!("{} of {} runs, {left}", state.there, state.start.total);
        if !self.bar.is_hidden() {
            // A forecast that grows does not take back what was shown.
            let position = (1000.0 * outlook.part()) as u64;
            self.bar.set_position(self.bar.position().max(position));
            self.bar.set_message(says);
            let recent: Vec<&str> = state.recent.iter().map(String::as_str).collect();
            self.below.set_message(format!("{}\n{}", recent.join("\n"), state.table));
            return;
        }
        let tenths = (10.0 * outlook.part() + 1e-6) as u64;
        if tenths > state.told || state.there == state.start.total {
            state.told = tenths;
            output::note(&says);
        }
    }

    /// Real seconds left.
    fn left_s(&self, state: &State) -> f64 {
        state.outlook.left_s(state.begun.elapsed().as_secs_f64(), self.jobs)
    }
}

impl Progress for Bars<'_> {
    fn begin(&self, start: Start) {
        let mut state = self.shared.state();
        (state.start, state.there, state.begun) = (start, start.stored, now());
        state.outlook = Outlook { behind_s: 0.0, ahead_s: start.expected_s };
        let open = start.total - start.stored;
        if start.shared && open > 0 {
            output::note("another campaign uses this store: the two share the runs");
        }
        if open == 0 {
            return;
        }
        let left = time(self.shared.left_s(&state));
        let says = format!("{} runs, {} of them in the store", start.total, start.stored);
        if self.shared.bar.is_hidden() {
            output::note(&format!("{says}; about {left} left"));
            return;
        }
        self.shared.bar.set_length(1000);
        self.shared.bar.set_message(format!("{says}, about {left} left"));
        self.shared.bar.tick();
    }

    fn done(&self, task: &Task, record: &Record, outlook: Outlook) {
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
        self.shared.advance(outlook);
    }

    fn found(&self, outlook: Outlook) {
        self.shared.advance(outlook);
    }
}

/// A run in a few words: what each flow got (or the sum of many), and how equally.
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
