//! The forecast of a campaign's remaining time is correct within a third after the first minute,
//! however wrong the estimates of its runs are and however busy the machine is. Simulated in
//! virtual time.

use udccp_base::Seed;
use udccp_lab::forecast::{Forecast, PlannedRun, order};

/// A run, and its actual duration in seconds of its worker.
type Run = (PlannedRun, f64);

/// A moment of a campaign: elapsed seconds, forecast remaining seconds, actual remaining seconds.
#[derive(Debug)]
struct Moment {
    elapsed_s: f64,
    remaining_time_s: f64,
    truth_s: f64,
}

/// Simulates a campaign of `jobs` workers on a machine that gives each worker 1/`slow` of a core.
/// Returns the forecast after each run.
fn simulate(mut runs: Vec<Run>, jobs: usize, slow: f64) -> Vec<Moment> {
    order(&mut runs, |(planned, _)| planned);
    let mut forecast = Forecast::new(runs.iter().map(|(planned, _)| planned));
    let mut queue = runs.into_iter();
    let mut workers: Vec<(f64, Run)> = Vec::new();
    let mut moments = Vec::new();
    let mut now_s = 0.0;
    loop {
        while workers.len() < jobs {
            let Some(run) = queue.next() else { break };
            forecast.started(&run.0);
            workers.push((now_s + run.1 * slow, run));
        }
        let first = workers.iter().enumerate().min_by(|a, b| a.1.0.total_cmp(&b.1.0));
        let Some((i, _)) = first else { break };
        let (end_s, (planned, took_s)) = workers.remove(i);
        now_s = end_s;
        forecast.done(&planned, took_s);
        moments.push((now_s, forecast.estimate().remaining_time_s(now_s, jobs)));
    }
    let truth = |(elapsed_s, remaining_time_s)| Moment {
        elapsed_s,
        remaining_time_s,
        truth_s: now_s - elapsed_s,
    };
    moments.into_iter().map(truth).collect()
}

/// Checks that forecasts are correct within a third, or within two longest runs near the end.
fn check(name: &str, moments: &[Moment], longest_s: f64) {
    let later = moments.iter().filter(|s| s.elapsed_s >= 60.0);
    let mut seen = 0;
    for moment in later {
        let off_s = (moment.remaining_time_s - moment.truth_s).abs();
        assert!(off_s <= (moment.truth_s / 3.0).max(2.0 * longest_s), "{name}: {moment:?}");
        seen += 1;
    }
    assert!(seen > 10, "{name}: a campaign of more than a minute");
}

fn longest_s(runs: &[Run]) -> f64 {
    runs.iter().map(|(_, took_s)| *took_s).fold(0.0, f64::max)
}

/// A recorded campaign: four experiments with all their runs, on a busy machine with two cores.
/// Each line has a scenario's kind, its expected duration, and the duration of each run in
/// milliseconds.
const RECORDED: &str = include_str!("data/campaign.csv");

fn recorded() -> Vec<Run> {
    let mut runs = Vec::new();
    for (n, line) in RECORDED.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(',').collect();
        let [kind, expected, took] = fields[..] else { panic!("line {}", n + 1) };
        let seconds = |ms: &str| ms.parse::<f64>().expect("milliseconds") / 1000.0;
        let kind = kind.to_owned();
        let planned = PlannedRun { kind, scenario: n.to_string(), expected_s: seconds(expected) };
        runs.extend(took.split_whitespace().map(|ms| (planned.clone(), seconds(ms))));
    }
    runs
}

#[test]
fn the_time_left_of_a_recorded_campaign_is_right_within_a_third_from_its_first_minute_on() {
    for (jobs, slow) in [(1, 1.0), (2, 4.0), (2, 8.0), (3, 30.0)] {
        let runs = recorded();
        let longest = slow * longest_s(&runs);
        check(&format!("{jobs} jobs, {slow}"), &simulate(runs, jobs, slow), longest);
    }
}

/// Sixty kinds of runs. The estimate for a kind is wrong by a factor of up to `wrong` in either
/// direction, for a scenario by up to another quarter, and for a seed by a tenth.
fn campaign(seed: u64, wrong: f64) -> Vec<Run> {
    let mut rng = Seed(seed).stream("campaign");
    let mut draw = || (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let mut runs = Vec::new();
    for kind in 0..60 {
        let size_s = 0.05 + 3.0 * draw() * draw();
        let worth = libm::pow(wrong, 2.0 * draw() - 1.0);
        for scenario in 0..1 + (6.0 * draw()) as usize {
            let expected_s = size_s * (0.5 + draw());
            let scenario_worth = worth * (0.75 + 0.5 * draw());
            for _ in 0..5 {
                let planned = PlannedRun {
                    kind: format!("kind {kind}"),
                    scenario: format!("{kind}/{scenario}"),
                    expected_s,
                };
                runs.push((planned, expected_s * scenario_worth * (0.9 + 0.2 * draw())));
            }
        }
    }
    runs
}

#[test]
fn the_time_left_is_right_within_a_third_from_the_first_minute_on() {
    for seed in 1..=5 {
        for (jobs, slow, wrong) in [(2, 1.0, 8.0), (2, 3.0, 4.0), (4, 1.5, 2.0), (1, 1.0, 1.0)] {
            let runs = campaign(seed, wrong);
            let longest = slow * longest_s(&runs);
            let moments = simulate(runs, jobs, slow);
            check(&format!("seed {seed}, {jobs} jobs, {wrong}"), &moments, longest);
        }
    }
}

/// Regression: estimates were too low for late runs, since the longest runs come first.
#[test]
fn wrong_estimates_are_corrected_before_the_short_runs() {
    let run = |kind: &str, n: usize, expected_s, took_s| {
        let planned =
            PlannedRun { kind: kind.to_owned(), scenario: format!("{kind} {n}"), expected_s };
        (planned, took_s)
    };
    let long = (0..60).map(|n| run("right", n, 4.0, 4.0));
    let short = (0..300).map(|n| run("ten times too low", n, 0.1, 1.0));
    let moments = simulate(long.chain(short).collect(), 2, 1.0);
    check("two kinds", &moments, 4.0);
    let first = moments.iter().find(|s| s.elapsed_s >= 60.0).expect("a minute");
    assert!((first.remaining_time_s / first.truth_s - 1.0).abs() < 0.05, "{first:?}");
}

#[test]
fn forecast_starts_at_the_estimate_and_ends_at_zero() {
    let runs = campaign(1, 1.0);
    let mut forecast = Forecast::new(runs.iter().map(|(planned, _)| planned));
    let all_s: f64 = runs.iter().map(|(planned, _)| planned.expected_s).sum();
    let estimate = forecast.estimate();
    assert!((estimate.remaining_time_s(0.0, 4) - all_s / 4.0).abs() < 1e-6 * all_s);
    assert!(estimate.part().abs() < 1e-9);
    for (i, (planned, took_s)) in runs.iter().enumerate() {
        forecast.started(planned);
        match i % 3 {
            0 => forecast.done(planned, *took_s),
            1 => forecast.found(planned),
            _ => forecast.failed(planned),
        }
    }
    let estimate = forecast.estimate();
    assert!(
        estimate.remaining_time_s(10.0, 4).abs() < 1e-9 && (estimate.part() - 1.0).abs() < 1e-9
    );
}
