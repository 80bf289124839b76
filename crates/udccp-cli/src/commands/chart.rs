//! Draws goodput over time as text: a strip of bars for each flow, all with the same scale.

use std::fmt::Write as _;

use udccp_scenario::{FlowRecord, Record};

/// Most bars in a strip.
const WIDTH: usize = 60;
/// Lines per strip, for few flows and for many.
const HEIGHTS: (usize, usize) = (3, 1);
/// Up to this number, flows count as few.
const FEW: usize = 4;
/// With more flows than this, nothing is drawn.
const MOST: usize = 16;
/// Characters for eighths of a line.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The chart, or an empty string if there is nothing to draw.
pub(crate) fn goodput(record: &Record) -> String {
    let flows: Vec<(&FlowRecord, Vec<f64>)> =
        record.flows.iter().take(MOST).map(|f| (f, bars(&f.series.goodput_mbps))).collect();
    let top = flows.iter().flat_map(|(_, bars)| bars).copied().fold(0.0, f64::max);
    let times = record.flows.first().map(|f| f.series.t_s.as_slice()).unwrap_or_default();
    let [_, .., last_s] = times else { return String::new() };
    if top <= 0.0 {
        return String::new();
    }
    let width = flows.iter().map(|(_, bars)| bars.len()).max().unwrap_or(0);
    // A series starts with the run.
    let (from, to) = ("0 s", format!("{last_s:.0} s"));
    let digits = if top < 10.0 { 2 } else { 0 };
    let mut out = format!("\ngoodput over time, 0 to {top:.digits$} Mbit/s\n");
    let height = if flows.len() <= FEW { HEIGHTS.0 } else { HEIGHTS.1 };
    for (flow, bars) in &flows {
        for line in (0..height).rev() {
            // The name is next to the bottom line of its strip.
            let name = if line == 0 { flow.name.as_str() } else { "" };
            let strip: String = bars.iter().map(|v| mark(v / top, line, height)).collect();
            let _ = writeln!(out, "{}", format!("{name:10} {strip}").trim_end());
        }
    }
    // A space between them, however few bars there are.
    let pad = width.saturating_sub(from.len()).max(to.len() + 1);
    let _ = writeln!(out, "{:10} {from}{to:>pad$}", "");
    let left_out = record.flows.len().saturating_sub(MOST);
    if left_out > 0 {
        let _ = writeln!(out, "{left_out} more flows are not shown");
    }
    out
}

/// Reduces the samples to at most [`WIDTH`] means of equally many samples.
fn bars(samples: &[f64]) -> Vec<f64> {
    let each = samples.len().div_ceil(WIDTH).max(1);
    samples.chunks(each).map(|c| c.iter().sum::<f64>() / c.len() as f64).collect()
}

/// The character of a bar of height `part` in a line, counted from the bottom.
fn mark(part: f64, line: usize, height: usize) -> char {
    let eighths = (part * (8 * height) as f64).round() as usize;
    // Any value above zero is visible.
    let eighths = if part > 0.0 { eighths.max(1) } else { 0 };
    BARS[eighths.saturating_sub(8 * line).min(8)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(flows: &[(&str, &[f64])]) -> Record {
        let mut record = Record::default();
        for (name, goodput) in flows {
            let mut flow = FlowRecord { name: (*name).to_owned(), ..FlowRecord::default() };
            flow.series.t_s = (1..=goodput.len()).map(|t| t as f64).collect();
            flow.series.goodput_mbps = goodput.to_vec();
            record.flows.push(flow);
        }
        record
    }

    #[test]
    fn strips_of_several_flows_share_a_scale() {
        let figure = goodput(&record(&[("up", &[0.0, 6.0, 12.0, 24.0]), ("low", &[0.1; 4])]));
        let lines: Vec<&str> = figure.lines().skip(1).collect();
        assert_eq!(lines[0], "goodput over time, 0 to 24 Mbit/s");
        assert_eq!(lines[1], "              █", "the highest fills three lines: {figure}");
        assert_eq!(lines[2], "             ▄█");
        assert_eq!(lines[3], "up          ▆██");
        assert_eq!(lines[6], "low        ▁▁▁▁", "what is there is seen, however small");
        assert_eq!(lines[7], "           0 s 4 s");
    }

    #[test]
    fn long_runs_are_drawn_by_means_and_many_flows_by_one_line_each() {
        let long: Vec<f64> = (0..900).map(f64::from).collect();
        let names: Vec<String> = (0..20).map(|n| format!("f{n}")).collect();
        let flows: Vec<(&str, &[f64])> = names.iter().map(|n| (n.as_str(), &long[..])).collect();
        let figure = goodput(&record(&flows));
        assert_eq!(figure.lines().count(), 2 + MOST + 2, "{figure}");
        assert!(figure.contains("4 more flows are not shown"), "{figure}");
        assert!(figure.lines().all(|l| l.chars().count() <= 11 + WIDTH), "{figure}");
    }

    /// Regression: computed with a mean interval, the axis started at 0.7 - 0.72 s: "-0 s".
    #[test]
    fn axis_starts_at_the_begin_of_the_first_interval() {
        let mut record = record(&[("a", &[1.0; 30])]);
        let times = &mut record.flows[0].series.t_s;
        *times = (1..=29).map(|n| f64::from(n) * 0.7).chain([20.9]).collect();
        let figure = goodput(&record);
        let axis = figure.lines().last().unwrap();
        assert!(axis.trim_start().starts_with("0 s") && axis.ends_with("21 s"), "{axis}");
    }

    #[test]
    fn empty_series_draw_nothing() {
        assert_eq!(goodput(&record(&[])), "");
        assert_eq!(goodput(&record(&[("silent", &[0.0; 9])])), "");
    }
}
