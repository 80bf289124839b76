//! Forecasts the rest of a campaign: estimates of its runs, corrected by the time that completed
//! runs took.

use std::collections::{BTreeMap, BTreeSet};

/// A run to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedRun {
    /// The runs to which it is similar: those of one case or variant of one experiment.
    pub kind: String,
    /// Its scenario. Runs that differ only in the seed take about the same time.
    pub scenario: String,
    /// Its expected duration in seconds.
    pub expected_s: f64,
}

/// The progress of a campaign, in seconds of one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WorkEstimate {
    /// Completed, plus half of what is running.
    pub done_s: f64,
    /// Left to do, plus half of what is running.
    pub remaining_s: f64,
}

impl WorkEstimate {
    /// Seconds of real time left with `jobs` workers, `elapsed_s` after the start: at the speed so
    /// far or, before any run is complete, as expected.
    pub fn remaining_time_s(self, elapsed_s: f64, jobs: usize) -> f64 {
        if self.done_s > 0.0 && elapsed_s > 0.0 {
            self.remaining_s * elapsed_s / self.done_s
        } else {
            self.remaining_s / jobs.max(1) as f64
        }
    }

    /// The part that is complete, 0 to 1.
    pub fn part(self) -> f64 {
        let all = self.done_s + self.remaining_s;
        if all > 0.0 { self.done_s / all } else { 1.0 }
    }
}

/// Expected and actual durations of runs.
#[derive(Clone, Copy, Debug, Default)]
struct Durations {
    runs: f64,
    expected_s: f64,
    took_s: f64,
}

impl Durations {
    fn add(&mut self, expected_s: f64, took_s: f64) {
        self.runs += 1.0;
        self.expected_s += expected_s;
        self.took_s += took_s;
    }

    fn ratio(&self) -> Option<f64> {
        (self.expected_s > 0.0).then(|| self.took_s / self.expected_s)
    }
}

/// Runs of one scenario that are not complete.
#[derive(Clone, Debug, Default)]
struct ScenarioRuns {
    kind: String,
    waiting: usize,
    running: usize,
    expected_s: f64,
}

/// The forecast of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Forecast {
    scenarios: BTreeMap<String, ScenarioRuns>,
    seen_scenarios: BTreeMap<String, Durations>,
    seen_kinds: BTreeMap<String, Durations>,
    done_s: f64,
}

impl Forecast {
    /// A forecast with no run complete.
    pub fn new<'a>(runs: impl IntoIterator<Item = &'a PlannedRun>) -> Self {
        let mut forecast = Self::default();
        for run in runs {
            let open = forecast.scenarios.entry(run.scenario.clone()).or_default();
            open.kind.clone_from(&run.kind);
            open.waiting += 1;
            open.expected_s = run.expected_s;
        }
        forecast
    }

    /// A worker starts a run.
    pub fn started(&mut self, run: &PlannedRun) {
        if let Some(open) = self.scenarios.get_mut(&run.scenario) {
            open.waiting = open.waiting.saturating_sub(1);
            open.running += 1;
        }
    }

    /// A run is complete, and took this many seconds of its worker.
    pub fn done(&mut self, run: &PlannedRun, took_s: f64) {
        self.end(run);
        self.done_s += took_s;
        self.seen_kinds.entry(run.kind.clone()).or_default().add(run.expected_s, took_s);
        self.seen_scenarios.entry(run.scenario.clone()).or_default().add(run.expected_s, took_s);
    }

    /// A run was made by another campaign, which saves its time; more may follow.
    pub fn found(&mut self, run: &PlannedRun) {
        let mean = self.mean_ratio();
        self.done_s += self.run_s(&run.scenario, &run.kind, run.expected_s, mean);
        self.end(run);
    }

    /// A run failed.
    pub fn failed(&mut self, run: &PlannedRun) {
        self.end(run);
    }

    fn end(&mut self, run: &PlannedRun) {
        if let Some(open) = self.scenarios.get_mut(&run.scenario) {
            open.running = open.running.saturating_sub(1);
        }
    }

    /// The present progress.
    pub fn estimate(&self) -> WorkEstimate {
        let mut estimate = WorkEstimate { done_s: self.done_s, remaining_s: 0.0 };
        let mean = self.mean_ratio();
        for (scenario, open) in &self.scenarios {
            if open.waiting + open.running == 0 {
                continue;
            }
            let run_s = self.run_s(scenario, &open.kind, open.expected_s, mean);
            let half_s = 0.5 * run_s * open.running as f64;
            estimate.done_s += half_s;
            estimate.remaining_s += half_s + run_s * open.waiting as f64;
        }
        estimate
    }

    /// Mean ratio of actual to expected durations over the kinds that have completed runs.
    fn mean_ratio(&self) -> f64 {
        let ratios = self.seen_kinds.values().filter_map(Durations::ratio);
        let (n, sum) = ratios.fold((0.0, 0.0), |(n, sum), ratio| (n + 1.0, sum + ratio));
        if n > 0.0 { sum / n } else { 1.0 }
    }

    /// Duration of a run: that of the same scenario, otherwise the expected one times the ratio of
    /// its kind or, without one, the `mean` ratio.
    fn run_s(&self, scenario: &str, kind: &str, expected_s: f64, mean: f64) -> f64 {
        if let Some(seen) = self.seen_scenarios.get(scenario) {
            return seen.took_s / seen.runs;
        }
        let of_kind = self.seen_kinds.get(kind).and_then(Durations::ratio);
        expected_s * of_kind.unwrap_or(mean)
    }
}

/// Sorts runs into the order in which they are to be made. First come those from which the forecast
/// learns most: the shortest of each kind, starting with the kinds that take most of the time, then
/// one of each scenario. All others follow. Within each step the longest come first, so that no
/// worker is left with a long run at the end.
pub fn order<T>(runs: &mut Vec<T>, planned: impl Fn(&T) -> &PlannedRun) {
    runs.sort_by(|a, b| planned(b).expected_s.total_cmp(&planned(a).expected_s));
    // The duration of a kind, and the place of its last run, which is its shortest.
    let mut kinds: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
    for (i, run) in runs.iter().enumerate() {
        let PlannedRun { kind, expected_s, .. } = planned(run);
        let of = kinds.entry(kind).or_default();
        *of = (of.0 + expected_s, i);
    }
    let mut order: Vec<(f64, usize)> = kinds.into_values().collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut order: Vec<usize> = order.into_iter().map(|(_, i)| i).collect();
    let firsts: BTreeSet<usize> = order.iter().copied().collect();
    let mut scenarios: BTreeSet<&str> =
        firsts.iter().map(|i| planned(&runs[*i]).scenario.as_str()).collect();
    let rest = (0..runs.len()).filter(|i| !firsts.contains(i));
    let (seconds, rest): (Vec<usize>, Vec<usize>) =
        rest.partition(|i| scenarios.insert(&planned(&runs[*i]).scenario));
    order.extend(seconds.into_iter().chain(rest));
    let mut slots: Vec<Option<T>> = runs.drain(..).map(Some).collect();
    runs.extend(order.into_iter().filter_map(|i| slots[i].take()));
}
