//! Curves computed from a definition, without runs.

use udccp_metrics::jain;

use super::super::svg::{Chart, Line, LinePoint, Scale};
use super::Drawing;
use crate::schema::{Curve, CurveFunction};

/// Points of a curve, at equal ratios.
const POINTS: usize = 201;

pub(super) fn draw(curve: &Curve) -> Drawing {
    let CurveFunction::JainOfTwo = curve.function;
    let ratio = |i: usize| {
        let part = i as f64 / (POINTS - 1) as f64;
        curve.from * libm::exp(part * libm::log(curve.to / curve.from)) / curve.fixed
    };
    let point = |x: f64| jain(&[x, 1.0]).ok().map(|y| LinePoint::bare(x, y));
    let points: Vec<LinePoint> = (0..POINTS).map(ratio).filter_map(point).collect();
    let (low, high) = (curve.from / curve.fixed, curve.to / curve.fixed);
    let line = Line {
        label: "Jain fairness index".to_owned(),
        colour: "#2878b5".to_owned(),
        dash: 0,
        marker: None,
        published: false,
        points,
        band: Vec::new(),
    };
    let chart = Chart {
        description: "Jain's fairness index of two flows against the ratio of their shares".into(),
        panel: None,
        x_name: "flow 1 / flow 2".to_owned(),
        y_name: "Jain fairness index".to_owned(),
        x: Scale::log(low, high),
        x_ticks: None,
        y: Scale::new(0.5, 1.0),
        y_print: (2, String::new()),
        level: None,
        shaded: None,
        events: Vec::new(),
        lines: vec![line],
        shapes: Vec::new(),
    };
    let caption = format!(
        "Computed from the definition, no run: flow 2 has {}, flow 1 from {} to {}.",
        curve.fixed, curve.from, curve.to
    );
    Drawing { charts: vec![chart], caption }
}
