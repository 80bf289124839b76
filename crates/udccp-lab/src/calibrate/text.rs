//! Formats a calibration as text.

use std::fmt::Write as _;

use super::score::{Fit, Judged, SetUp};
use crate::schema::{Calibration, Experiment};

/// Most set-ups to list.
const LISTED: usize = 10;

/// The chosen set-up, those that are as good, and the result on the other tables. `tested` has the
/// unchanged and the chosen set-up for the tables of `test`, if these were run.
pub fn text(
    experiment: &Experiment,
    calibration: &Calibration,
    fit: &Fit,
    tested: Option<&[SetUp; 2]>,
) -> String {
    let Some(best) = fit.best() else { return String::new() };
    let mut out = String::new();
    let own = fit.order.iter().find(|s| s.values.iter().all(|v| *v == 0));
    let _ = writeln!(
        out,
        "{}: {} set-ups fitted on {} ({} cells)\n",
        experiment.id,
        fit.order.len(),
        calibration.fit.join(", "),
        best.cells.len()
    );
    let _ = writeln!(out, "set-up                          agree     distance");
    let mut line = |what: &str, set_up: &SetUp| {
        let _ =
            writeln!(out, "{what:<28} {:>9} {:>12.2}", counts(set_up.judged(None)), set_up.mean());
    };
    line("nearest", best);
    if let Some(own) = own {
        line("the file as it stands", own);
    }
    let _ = writeln!(out, "\n(distance: mean over the cells, in tolerances, each at most 4)\n");
    knobs(&mut out, calibration, fit, best);
    let alike = fit.alike().count();
    let _ = writeln!(
        out,
        "\n{alike} of {} set-ups cannot be told apart from the nearest (two standard errors).",
        fit.order.len()
    );
    for set_up in fit.alike().take(LISTED) {
        let agree = counts(set_up.judged(None));
        let _ = writeln!(out, "  {:.2}  {agree}  {}", set_up.mean(), title(calibration, set_up));
    }
    if alike > LISTED {
        let _ = writeln!(out, "  and {} more", alike - LISTED);
    }
    if let Some([own, chosen]) = tested {
        test(&mut out, calibration, own, chosen);
    }
    out
}

/// One line per parameter: the chosen value, and those of set-ups that are as good.
fn knobs(out: &mut String, calibration: &Calibration, fit: &Fit, best: &SetUp) {
    for (i, knob) in calibration.knobs.iter().enumerate() {
        let chosen = &knob.values[best.values[i]].id;
        let open = knob.values.iter().enumerate().filter(|(v, _)| *v != best.values[i]);
        let open = open.filter(|(v, _)| fit.alike().any(|s| s.values[i] == *v));
        let open: Vec<&str> = open.map(|(_, value)| value.id.as_str()).collect();
        let rest = match open.is_empty() {
            true => "the other values are further away".to_owned(),
            false => format!("cannot be told apart from {}", open.join(", ")),
        };
        let _ = writeln!(out, "{:<14} {chosen:<16} {rest}", knob.id);
    }
}

fn test(out: &mut String, calibration: &Calibration, own: &SetUp, chosen: &SetUp) {
    let _ = writeln!(out, "\nheld-out tables          nearest     the file as it stands");
    for id in &calibration.test {
        let of = |s: &SetUp| counts(s.judged(Some(id)));
        let _ = writeln!(out, "{id:<22} {:>9} {:>25}", of(chosen), of(own));
    }
    let of = |s: &SetUp| counts(s.judged(None));
    let _ = writeln!(out, "{:<22} {:>9} {:>25}", "all of these", of(chosen), of(own));
    let _ = writeln!(out, "{:<22} {:>9.2} {:>25.2}", "distance", chosen.mean(), own.mean());
}

/// The values of a set-up that differ from the file.
fn title(calibration: &Calibration, set_up: &SetUp) -> String {
    let changed = calibration.knobs.iter().zip(&set_up.values).filter(|(_, value)| **value > 0);
    let parts: Vec<String> =
        changed.map(|(knob, value)| format!("{} {}", knob.id, knob.values[*value].id)).collect();
    if parts.is_empty() { "the file as it stands".to_owned() } else { parts.join(", ") }
}

fn counts(judged: Judged) -> String {
    format!("{} of {}", judged.agree, judged.of)
}

/// Lists the set-ups that explain a table: they make more whole points agree than the unchanged
/// file, and lose none.
pub fn whole_points(
    experiment: &Experiment,
    calibration: &Calibration,
    set_ups: &[SetUp],
) -> String {
    let mut out = format!("{}: {} set-ups, whole points\n", experiment.id, set_ups.len());
    let Some(own) = set_ups.iter().find(|s| s.values.iter().all(|v| *v == 0)) else { return out };
    for table in calibration.fit.iter().chain(&calibration.test) {
        let stands = own.points(table, own);
        let _ = writeln!(
            out,
            "\n{table}: the file as it stands agrees with {} of {} points",
            stands.agree, stands.of
        );
        let mut found: Vec<_> = set_ups.iter().map(|s| (s.points(table, own), s)).collect();
        found.sort_by_key(|(points, _)| core::cmp::Reverse(points.agree));
        let most = found.first().map_or(0, |(points, _)| points.agree);
        found.retain(|(points, _)| points.gained > 0 && points.lost == 0);
        for (points, set_up) in found.iter().take(LISTED) {
            let _ = writeln!(
                out,
                "  {} more and none lost: {}",
                points.gained,
                title(calibration, set_up)
            );
        }
        if found.is_empty() {
            let _ = writeln!(
                out,
                "  no set-up makes more agree without losing others; the most is {most}"
            );
        }
    }
    out
}
