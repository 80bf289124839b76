//! Flags that choose a run of a scenario file, for any backend, and its record as text.

use std::fmt::Write as _;
use std::path::PathBuf;

use udccp_lab::schema::{Case, Experiment, Grid, Link, Point, Scenario, Topology, Variant};
use udccp_scenario::document::Override;
use udccp_scenario::{QuantileRecord, Record, TimingRecord};

use super::numbers::whole;
use super::{chart, lookup};
use crate::exit::{CliResult, Exit, Failure};

/// Flags that choose a run.
#[derive(Debug, clap::Args)]
pub(crate) struct Choice {
    /// The scenario: a file, or the name of one of `scenarios/`, here or built in (two-flows); also
    /// an experiment, with values for all its axes
    scenario: PathBuf,
    /// Seed of the run's random numbers [default: that of the file]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = whole(0..=u64::MAX))]
    seed: Option<u64>,
    /// Change a key of the file (flow.second.protocol=tcp/cubic) or choose the value of a grid axis
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Run a case of an experiment file
    #[arg(long, value_name = "ID")]
    case: Option<String>,
    /// Run a variant of an experiment file (of its case, if it has one)
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
}

/// The chosen run.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// The file.
    pub(crate) experiment: Experiment,
    /// The scenario to run.
    pub(crate) scenario: Scenario,
    /// The seed.
    pub(crate) seed: u64,
}

impl Choice {
    /// Reads the file and finds the run.
    pub(crate) fn load(&self) -> CliResult<Chosen> {
        let experiment = Experiment::load(&lookup::scenario(&self.scenario)?).map_err(bad_input)?;
        let variant = variant(&experiment, self.variant.as_deref())?;
        let part = part(&experiment, self.case.as_deref(), variant)?;
        let (point, set) = choose(&part.grid, &self.set)?;
        let mut changes = variant.map(|v| v.changes.clone()).unwrap_or_default();
        changes.extend(set);
        let scenario = part.scenario(&point, &changes).map_err(bad_input)?;
        let seed = self.seed.unwrap_or(part.grid.seed);
        Ok(Chosen { scenario, seed, experiment })
    }
}

/// Converts errors in a file, whose text includes hints.
pub(crate) fn bad_input(errors: udccp_scenario::Diagnostics) -> Failure {
    Failure::new(Exit::BadInput, errors.to_string())
}

/// The requested case, or that of the variant, or the file itself.
fn part<'a>(
    experiment: &'a Experiment,
    case: Option<&str>,
    variant: Option<&Variant>,
) -> CliResult<&'a Case> {
    if let Some(variant) = variant
        && let (Some(asked), of) = (case, variant.case.as_deref())
        && of != Some(asked)
    {
        let of = of.map_or("the file itself".to_owned(), |id| format!("case \"{id}\""));
        let message = format!("variant \"{}\" belongs to {of}, not to \"{asked}\"", variant.id);
        return Err(Failure::new(Exit::BadInput, message).hint("leave --case out"));
    }
    let wanted = case.or_else(|| variant.and_then(|v| v.case.as_deref()));
    experiment.part(wanted).ok_or_else(|| {
        let known: Vec<&str> = experiment.parts.iter().filter_map(|p| p.id.as_deref()).collect();
        let message = match wanted {
            Some(id) => format!("there is no case \"{id}\""),
            None => "this file has only cases".to_owned(),
        };
        let hint = match (wanted, known.as_slice()) {
            (_, []) => "this file has no cases: leave --case out".to_owned(),
            (Some(id), _) => udccp_lab::suggest(id, "choose from", &known),
            (None, [first, ..]) => format!("--case {first} (choose from: {})", known.join(", ")),
        };
        Failure::new(Exit::BadInput, message).hint(hint)
    })
}

/// Finds a variant of the experiment.
fn variant<'a>(experiment: &'a Experiment, name: Option<&str>) -> CliResult<Option<&'a Variant>> {
    let Some(name) = name else { return Ok(None) };
    let found = experiment.variants.iter().find(|v| v.id == name);
    found.map(Some).ok_or_else(|| {
        let known: Vec<&str> = experiment.variants.iter().map(|v| v.id.as_str()).collect();
        let hint = match known.as_slice() {
            [] => "this file has no variants: leave --variant out".to_owned(),
            known => udccp_lab::suggest(name, "choose from", known),
        };
        Failure::new(Exit::BadInput, format!("there is no variant \"{name}\"")).hint(hint)
    })
}

/// Splits the `--set` flags into a grid point and changes of keys.
fn choose(grid: &Grid, set: &[String]) -> CliResult<(Point, Vec<Override>)> {
    let mut changes = Vec::new();
    let mut point = Point::new();
    for text in set {
        let change = Override::parse(text).map_err(|error| bad_input(error.into()))?;
        match grid.axis(&change.path) {
            Some(axis) => {
                let label = change.node.label();
                let labels = axis.labels();
                if !labels.contains(&label) {
                    let message = format!("axis `{}` has no value \"{label}\"", axis.name);
                    let hint = format!("it has: {}", labels.join(", "));
                    return Err(Failure::new(Exit::BadInput, message).hint(hint));
                }
                if let Some((name, before)) = point.iter().find(|(name, _)| *name == axis.name) {
                    let message = format!("axis `{name}` is set twice: \"{before}\", \"{label}\"");
                    let hint = "a run has one value of each axis; `udccp lab run` takes several";
                    return Err(Failure::new(Exit::BadInput, message).hint(hint));
                }
                point.push((axis.name.clone(), label));
            }
            None => changes.push(change),
        }
    }
    let mut open = Vec::new();
    for axis in &grid.axes {
        if point.iter().any(|(name, _)| *name == axis.name) {
            continue;
        }
        let labels = axis.labels();
        match labels.as_slice() {
            [only] => point.push((axis.name.clone(), only.clone())),
            _ => open.push((axis.name.as_str(), labels)),
        }
    }
    if open.is_empty() { Ok((point, changes)) } else { Err(unchosen(&open)) }
}

/// Says which axes need a value, all at once.
fn unchosen(open: &[(&str, Vec<String>)]) -> Failure {
    let names: Vec<String> = open.iter().map(|(name, _)| format!("`{name}`")).collect();
    let message = match names.as_slice() {
        [name] => format!("the grid has an axis {name}: choose one value"),
        _ => format!("the grid has the axes {}: choose one value of each", names.join(", ")),
    };
    let flags = open.iter().map(|(name, labels)| {
        let first = labels.first().map(String::as_str).unwrap_or_default();
        format!("--set {name}=\"{first}\" (choose from: {})", labels.join(", "))
    });
    let hint = flags.collect::<Vec<_>>().join("\n      ");
    Failure::new(Exit::BadInput, message).hint(hint)
}

/// Formats a record for readers.
pub(crate) fn summary(chosen: &Chosen, record: &Record) -> String {
    let Chosen { experiment, scenario, .. } = chosen;
    let mut out = format!("{}: {}\n", experiment.id, experiment.asks);
    let time = &scenario.time;
    let _ = writeln!(
        out,
        "{}; {}, measured from {} to {}; seed {}\n",
        path(&scenario.topology),
        time.duration,
        time.measure.from,
        time.measure.to,
        record.seed
    );
    flow_lines(&mut out, record);
    out.push_str(&chart::goodput(record));
    out.push_str(&link_lines(record, scenario.topology.further.is_empty()));
    for (path, why) in &record.undefined {
        let _ = writeln!(out, "{path} has no value: {why}");
    }
    let cost = &record.cost;
    let _ = write!(
        out,
        "{} packets, {} events in {:.2} s of processor time",
        cost.packets, cost.events, cost.cpu_s
    );
    match &record.timing {
        // Only runs in virtual time are reproducible.
        None => {
            let _ = writeln!(out, "; event hash {}", record.event_hash);
        }
        Some(timing) => {
            let _ = writeln!(out, "\n{}", kept_time(timing));
        }
    }
    out
}

/// The links between routers, as the file describes them.
fn path(topology: &Topology) -> String {
    let each = |of: fn(&Link) -> String| {
        let mut all: Vec<String> = topology.hops().map(|(link, _)| of(link)).collect();
        if all.windows(2).all(|pair| pair[0] == pair[1]) {
            all.truncate(1);
        }
        all.join(", ")
    };
    let row = match topology.routers() - 1 {
        1 => String::new(),
        hops => format!("{hops} hops of "),
    };
    let rates = each(|link| link.rate.to_string());
    let limits = each(|link| link.limit.to_string());
    format!("{row}{rates}, RTT {}, queue {limits}", topology.rtt())
}

/// How the flows shared, and how busy the bottleneck was; in a row, each of its hops.
fn link_lines(record: &Record, is_dumbbell: bool) -> String {
    let system = &record.system;
    let mut out = format!(
        "\nJain index {} (of mean rates {})",
        number(system.jain, 3),
        number(system.jain_of_means, 3)
    );
    let mut line = |before: &str, name: &str, busy: Option<f64>, queue: &QuantileRecord| {
        let _ = write!(
            out,
            "{before}{name} busy {} %; queueing delay p50 {}, p95 {}, p99 {} ms",
            number(busy, 1),
            number(queue.p50, 1),
            number(queue.p95, 1),
            number(queue.p99, 1)
        );
    };
    if is_dumbbell {
        line("; ", "bottleneck", system.utilisation_percent, &system.queue_delay_ms);
    } else {
        for link in &record.links {
            // The record has the other direction too; data mostly flows in this one.
            if let Some(name) = link.name.strip_suffix(" forward") {
                line("\n", name, Some(link.utilisation_percent), &link.queue_delay_ms);
            }
        }
    }
    out + "\n"
}

/// A table of the flows.
fn flow_lines(out: &mut String, record: &Record) {
    let _ = writeln!(
        out,
        "{:10} {:18} {:>10} {:>10} {:>8} {:>9} {:>9} {:>11}",
        "flow", "protocol", "throughput", "goodput", "loss", "delay", "jitter", "delivered"
    );
    let _ = writeln!(
        out,
        "{:10} {:18} {:>10} {:>10} {:>8} {:>9} {:>9} {:>11}",
        "", "", "Mbit/s", "Mbit/s", "%", "ms", "ms", "packets"
    );
    for flow in &record.flows {
        let _ = writeln!(
            out,
            "{:10} {:18} {:>10} {:>10} {:>8} {:>9} {:>9} {:>11}",
            flow.name,
            flow.protocol,
            number(flow.throughput_mbps, 2),
            number(flow.goodput_mbps, 2),
            number(flow.loss_percent, 3),
            number(flow.delay_ms, 2),
            number(flow.jitter_ms, 3),
            flow.packets_delivered
        );
    }
}

/// Formats a number, or a dash if there is none.
fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |v| format!("{v:.digits$}"))
}

/// Formats how well a real-time run kept time; for a run in virtual time, why it is invalid.
fn kept_time(timing: &TimingRecord) -> String {
    if let (None, None, Some(why)) = (timing.delay_p50_ms, timing.rate_error_percent, &timing.why) {
        return format!("INVALID: {why}");
    }
    let verdict = match &timing.why {
        None => "valid".to_owned(),
        Some(why) => format!("INVALID: {why}"),
    };
    let delay = match (timing.late, timing.deadline_ms) {
        (Some(late), Some(deadline)) => format!(
            "scheduling delay p50 {}, p99 {}, max {} ms; {late} of {} packets more than \
             {deadline} ms late; ",
            number(timing.delay_p50_ms, 3),
            number(timing.delay_p99_ms, 3),
            number(timing.delay_max_ms, 3),
            timing.packets
        ),
        _ => "kernel path, scheduling delay unknown; ".to_owned(),
    };
    format!("{delay}rate error {} %: {verdict}", number(timing.rate_error_percent, 3))
}
