//! Tables and figures as CSV, embedded in the page for copying.

use core::fmt::Write as _;

use udccp_scenario::{SIM, backend_title};

use super::html::escape;
use super::svg::{Chart, Line};
use crate::analysis::{Cell, TableResult};
use crate::schema::METRIC_KEY;

/// Hidden text for a script to copy.
pub(super) fn hidden(text: &str) -> String {
    format!("<pre class=\"csv\" hidden>{}</pre>\n", escape(text))
}

/// One line per value of each source.
pub(super) fn table(result: &TableResult<'_>, others: &[(&str, &TableResult<'_>)]) -> String {
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in result.cells().flat_map(|c| &c.labels) {
        if key != METRIC_KEY && !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    let mut out = keys.iter().map(|k| field(k)).collect::<Vec<_>>().join(",");
    if !keys.is_empty() {
        out.push(',');
    }
    out.push_str(
        "metric,unit,source,mean,ci95_low,ci95_high,runs,runs_asked,compared_with,difference,",
    );
    out.push_str("verdict\n");
    let sources = core::iter::once((backend_title(SIM), result)).chain(others.iter().copied());
    for (title, table) in sources {
        for cell in table.cells() {
            line(&mut out, &keys, title, cell);
        }
    }
    out
}

fn line(out: &mut String, keys: &[&str], source: &str, cell: &Cell) {
    let label = |key: &&str| cell.labels.iter().find(|(k, _)| k == key).map(|(_, l)| l.as_str());
    // Four digits more than are printed: enough for computing, without noise.
    let digits = cell.shown.digits + 4;
    let number = |value: Option<f64>| {
        let text = value.map_or_else(String::new, |v| format!("{v:.digits$}"));
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let verdict = cell.agreement.word();
    let mut fields: Vec<String> =
        keys.iter().map(|key| field(label(key).unwrap_or_default())).collect();
    fields.push(field(cell.shown.title()));
    fields.push(field(&cell.shown.unit));
    fields.push(field(source));
    fields.push(number(cell.mean()));
    let interval = cell.mean().and_then(|_| cell.spread.interval());
    fields.push(number(interval.map(|(low, _)| low)));
    fields.push(number(interval.map(|(_, high)| high)));
    fields.push(cell.basis.runs.to_string());
    fields.push(cell.basis.asked.to_string());
    fields.push(number(cell.published.and_then(|p| p.value)));
    fields.push(number(cell.mean().and_then(|_| cell.difference())));
    fields.push(verdict.to_owned());
    let _ = writeln!(out, "{}", fields.join(","));
}

/// The points of charts: dense lines as columns if they share x values, other lines with one point
/// per line.
pub(super) fn charts(charts: &[Chart]) -> String {
    let mut out = String::new();
    for chart in charts {
        if !out.is_empty() {
            out.push('\n');
        }
        if let Some(panel) = &chart.panel {
            let _ = writeln!(out, "{}", field(panel));
        }
        out.push_str(&lines(chart));
    }
    out
}

fn lines(chart: &Chart) -> String {
    let lines: Vec<&Line> = chart.lines.iter().filter(|l| !l.points.is_empty()).collect();
    let places = |l: &Line| l.points.iter().map(|p| p.x.to_bits()).collect::<Vec<_>>();
    let is_dense = lines.iter().all(|l| l.marker.is_none());
    let shares = lines.windows(2).all(|w| places(w[0]) == places(w[1]));
    let digits = chart.y_print.0 + 2;
    let mut out = String::new();
    if is_dense && shares && !lines.is_empty() && chart.shapes.is_empty() {
        let heads = core::iter::once(field(&chart.x_name));
        let heads: Vec<String> = heads.chain(lines.iter().map(|l| field(&l.label))).collect();
        let _ = writeln!(out, "{}", heads.join(","));
        for (i, point) in lines[0].points.iter().enumerate() {
            let values: Vec<String> =
                lines.iter().map(|l| format!("{:.digits$}", l.points[i].y)).collect();
            let _ = writeln!(out, "{},{}", point.x, values.join(","));
        }
        return out;
    }
    let (x, y) = (field(&chart.x_name), field(&chart.y_name));
    let _ = writeln!(out, "line,{x},{y},low,high");
    for (line, point) in lines.iter().flat_map(|l| l.points.iter().map(move |p| (l, p))) {
        let (low, high) = point.bar.map_or((String::new(), String::new()), |(low, high)| {
            (format!("{low:.digits$}"), format!("{high:.digits$}"))
        });
        let label = field(&line.label);
        let _ = writeln!(out, "{label},{},{:.digits$},{low},{high}", point.x, point.y);
    }
    for shape in &chart.shapes {
        let (low, high) = (shape.low, shape.high);
        let title = field(&shape.title);
        let _ = writeln!(out, "{title},{},,{low:.digits$},{high:.digits$}", shape.x);
    }
    out
}

/// A CSV field, quoted if necessary.
fn field(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_or_a_quote_stays_in_its_field() {
        assert_eq!(field("round-trip time, ms"), "\"round-trip time, ms\"");
        assert_eq!(field("say \"no\""), "\"say \"\"no\"\"\"");
        assert_eq!(field("plain"), "plain");
    }
}
