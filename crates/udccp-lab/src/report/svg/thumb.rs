//! A figure as a thumbnail: its lines and bars without text.

use core::fmt::Write as _;

use super::super::html::escape;
use super::chart::Chart;

const WIDTH: f64 = 240.0;
const HEIGHT: f64 = 120.0;
const MARGIN: f64 = 6.0;
/// Lines with fewer points are drawn thicker.
const SPARSE: usize = 40;

impl Chart {
    /// The small picture as an `<svg>` element.
    pub(crate) fn thumbnail(&self) -> String {
        let (x, y) = (self.x.over(MARGIN, WIDTH - MARGIN), self.y.over(HEIGHT - MARGIN, MARGIN));
        let mut svg = format!(
            "<svg class=\"thumb\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             aria-label=\"{}\">\n<path class=\"axis\" d=\"M{MARGIN} {MARGIN}V{base}H{right}\"/>\n",
            escape(&self.description),
            base = HEIGHT - MARGIN,
            right = WIDTH - MARGIN
        );
        for shape in &self.shapes {
            let middle = x.px(shape.x) + shape.shift_px / 3.0;
            let (top, bottom) = (y.px(shape.high), y.px(shape.low));
            let half = (shape.half_px / 3.0).max(1.2);
            let fill = if shape.is_hollow { "none" } else { &shape.colour };
            let _ = writeln!(
                svg,
                "<rect x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
                 fill=\"{fill}\" fill-opacity=\"0.6\" stroke=\"{}\"/>",
                middle - half,
                half * 2.0,
                (bottom - top).max(0.5),
                shape.colour
            );
        }
        for line in self.lines.iter().filter(|l| !l.points.is_empty()) {
            let width = if line.points.len() > SPARSE { 1.0 } else { 2.0 };
            let _ = writeln!(svg, "{}", line.bare_path(x, y, width));
        }
        svg.push_str("</svg>\n");
        svg
    }
}
