//! Lines with markers and interval bars.

use core::fmt::Write as _;

use super::super::html::escape;
use super::scale::Scale;
use crate::protocol::Marker;

/// One line of a figure.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// What it is, in the legend.
    pub(crate) label: String,
    /// Its colour.
    pub(crate) colour: String,
    /// Its marker; none for dense series.
    pub(crate) marker: Option<Marker>,
    /// Whether it is drawn hollow and dashed (published values).
    pub(crate) published: bool,
    /// Its points in the order of x.
    pub(crate) points: Vec<LinePoint>,
}

/// One point.
#[derive(Clone, Debug)]
pub(crate) struct LinePoint {
    /// Where across.
    pub(crate) x: f64,
    /// Where up.
    pub(crate) y: f64,
    /// The interval.
    pub(crate) bar: Option<(f64, f64)>,
    /// What hovering says; none for points of dense series in small figures.
    pub(crate) title: Option<String>,
}

impl Line {
    /// Draws the line; `shift_px` moves it sideways so that bars at the same x stay apart.
    pub(super) fn draw(&self, svg: &mut String, x: Scale, y: Scale, shift_px: f64) {
        let at = |p: &LinePoint| (x.px(p.x) + shift_px, y.px(p.y));
        let path: Vec<String> = self
            .points
            .iter()
            .map(|p| {
                let (px, py) = at(p);
                format!("{px:.1},{py:.1}")
            })
            .collect();
        let (dash, width) = match (self.published, self.marker) {
            (true, _) => (" stroke-dasharray=\"5 4\"", 1.5),
            (false, Some(_)) => ("", 2.0),
            (false, None) => ("", 1.4),
        };
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\"\
             {dash} stroke-linejoin=\"round\"/>",
            path.join(" "),
            self.colour
        );
        for point in &self.points {
            let (px, py) = at(point);
            self.draw_point(svg, point, px, py, y);
        }
    }

    fn draw_point(&self, svg: &mut String, point: &LinePoint, px: f64, py: f64, y: Scale) {
        let colour = &self.colour;
        if let Some((low, high)) = point.bar {
            let (top, bottom) = (y.px(high.min(y.max)), y.px(low.max(y.min)));
            let (left, right) = (px - 4.0, px + 4.0);
            let _ = writeln!(
                svg,
                "<path d=\"M{px:.1} {top:.1}V{bottom:.1}M{left:.1} {top:.1}H{right:.1}\
                 M{left:.1} {bottom:.1}H{right:.1}\" stroke=\"{colour}\" stroke-width=\"1.5\" \
                 fill=\"none\"/>"
            );
        }
        let title = point
            .title
            .as_ref()
            .map_or_else(String::new, |t| format!("<title>{}</title>", escape(t)));
        match self.marker {
            Some(shape) => {
                let mark = marker(shape, px, py, 5.0, colour, self.published);
                let _ = writeln!(svg, "<g class=\"p\">{title}{mark}</g>");
            }
            None if !title.is_empty() => {
                let _ = writeln!(
                    svg,
                    "<circle class=\"h\" cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"4\" \
                     fill=\"{colour}\">{title}</circle>"
                );
            }
            None => {}
        }
    }
}

/// A marker of half-width `r`; hollow ones are filled with the paper's colour.
pub(crate) fn marker(shape: Marker, x: f64, y: f64, r: f64, colour: &str, hollow: bool) -> String {
    let fill = if hollow { "var(--paper)" } else { colour };
    let paint = format!("fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.8\"");
    let polygon = |points: &[(f64, f64)]| {
        let corners: Vec<String> =
            points.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx * r, y + dy * r)).collect();
        format!("<polygon points=\"{}\" {paint}/>", corners.join(" "))
    };
    match shape {
        Marker::Circle => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\" {paint}/>"),
        Marker::Cross => {
            let (a, b, c, d) = (x - r, x + r, y - r, y + r);
            format!(
                "<path d=\"M{a:.1} {c:.1}L{b:.1} {d:.1}M{a:.1} {d:.1}L{b:.1} {c:.1}\" {paint}/>"
            )
        }
        Marker::Plus => {
            let (a, b, c, d) = (x - r, x + r, y - r, y + r);
            format!("<path d=\"M{a:.1} {y:.1}H{b:.1}M{x:.1} {c:.1}V{d:.1}\" {paint}/>")
        }
        Marker::Arch => {
            let (left, base) = (x - 1.1 * r, y + 0.6 * r);
            let across = 2.2 * r;
            format!(
                "<path d=\"M{left:.1} {base:.1}a{0:.1} {0:.1} 0 0 1 {across:.1} 0z\" {paint}/>",
                1.1 * r
            )
        }
        _ => polygon(corners(shape)),
    }
}

/// The corners of a marker of half-width 1 that is a polygon.
fn corners(shape: Marker) -> &'static [(f64, f64)] {
    match shape {
        Marker::Circle | Marker::Cross | Marker::Plus | Marker::Arch => &[],
        Marker::Square => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        Marker::Triangle => &[(0.0, -1.1), (1.1, 0.9), (-1.1, 0.9)],
        Marker::TriangleDown => &[(0.0, 1.1), (1.1, -0.9), (-1.1, -0.9)],
        Marker::TriangleLeft => &[(-1.1, 0.0), (0.9, -1.1), (0.9, 1.1)],
        Marker::TriangleRight => &[(1.1, 0.0), (-0.9, -1.1), (-0.9, 1.1)],
        Marker::Diamond => &[(0.0, -1.2), (1.2, 0.0), (0.0, 1.2), (-1.2, 0.0)],
        Marker::Chevron => {
            &[(-1.1, -0.1), (0.0, -1.1), (1.1, -0.1), (1.1, 0.9), (0.0, 0.0), (-1.1, 0.9)]
        }
        Marker::TallDiamond => &[(0.0, -1.5), (0.7, 0.0), (0.0, 1.5), (-0.7, 0.0)],
        Marker::Pentagon => &[(0.0, -1.2), (1.1, -0.4), (0.7, 0.9), (-0.7, 0.9), (-1.1, -0.4)],
        Marker::Hexagon => {
            &[(-1.1, 0.0), (-0.6, -1.0), (0.6, -1.0), (1.1, 0.0), (0.6, 1.0), (-0.6, 1.0)]
        }
        Marker::Star => &[
            (0.0, -1.4),
            (0.35, -0.35),
            (1.4, 0.0),
            (0.35, 0.35),
            (0.0, 1.4),
            (-0.35, 0.35),
            (-1.4, 0.0),
            (-0.35, -0.35),
        ],
        Marker::Bowtie => &[(-1.2, -0.9), (-1.2, 0.9), (1.2, -0.9), (1.2, 0.9)],
        Marker::Hourglass => &[(-0.9, -1.2), (0.9, -1.2), (-0.9, 1.2), (0.9, 1.2)],
        Marker::Bar => &[(-1.3, -0.5), (1.3, -0.5), (1.3, 0.5), (-1.3, 0.5)],
        Marker::Pillar => &[(-0.5, -1.3), (0.5, -1.3), (0.5, 1.3), (-0.5, 1.3)],
    }
}
