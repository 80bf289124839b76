//! Lines with markers, interval bars and bands.

use core::fmt::Write as _;

use super::super::html::escape;
use super::super::style::Marker;
use super::scale::Scale;

/// Lines with more points than this are reduced to the minimum and maximum of each section.
const DENSE: usize = 480;

/// Dash patterns that distinguish lines of one colour; the first is solid.
pub(crate) const DASHES: [&str; 6] = ["", "7 3", "2 3", "9 3 2 3", "4 2 1 2", "1 4"];

/// One line of a figure.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Its name in the legend.
    pub(crate) label: String,
    /// Its colour.
    pub(crate) colour: String,
    /// Index into [`DASHES`].
    pub(crate) dash: usize,
    /// Its marker; `None` for dense series.
    pub(crate) marker: Option<Marker>,
    /// Whether it is drawn hollow and dashed (published values).
    pub(crate) published: bool,
    /// Its points, sorted by x.
    pub(crate) points: Vec<LinePoint>,
    /// A band around it: x, low, high.
    pub(crate) band: Vec<(f64, f64, f64)>,
}

/// One point.
#[derive(Clone, Debug)]
pub(crate) struct LinePoint {
    /// Its x value.
    pub(crate) x: f64,
    /// Its y value.
    pub(crate) y: f64,
    /// The interval.
    pub(crate) bar: Option<(f64, f64)>,
    /// The tooltip, if it is more than the value.
    pub(crate) title: Option<String>,
}

impl LinePoint {
    /// A point of a dense series.
    pub(crate) fn bare(x: f64, y: f64) -> Self {
        Self { x, y, bar: None, title: None }
    }
}

impl Line {
    /// The dash pattern of its stroke.
    pub(crate) fn dashes(&self) -> &'static str {
        let own = DASHES[self.dash % DASHES.len()];
        if self.published && own.is_empty() { "5 4" } else { own }
    }

    /// A short sample with its dash and marker for a legend, 30 pixels wide.
    pub(crate) fn sample(&self, x: f64, y: f64) -> String {
        let dash = match self.dashes() {
            "" => String::new(),
            dashes => format!(" stroke-dasharray=\"{dashes}\""),
        };
        let mark = |m| marker(m, x + 15.0, y, 4.5, &self.colour, self.published);
        format!(
            "<path d=\"M{x:.1} {y:.1}h30\" fill=\"none\" \
             stroke=\"{}\" stroke-width=\"2\"{dash}/>{}",
            self.colour,
            self.marker.map_or_else(String::new, mark)
        )
    }

    /// Only the line, for a small drawing.
    pub(super) fn bare_path(&self, x: Scale, y: Scale, width: f64) -> String {
        let place = |p: &LinePoint| format!("{:.1},{:.1}", x.px(p.x), y.px(p.y));
        let path: Vec<String> = thinned(&self.points).into_iter().map(place).collect();
        let dash = if self.published { " stroke-dasharray=\"4 3\"" } else { "" };
        format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\"\
             {dash} stroke-linejoin=\"round\"/>",
            path.join(" "),
            self.colour
        )
    }

    /// Draws the line, shifted horizontally by `shift_px` so that bars at the same x do not
    /// overlap.
    pub(super) fn draw(&self, svg: &mut String, x: Scale, y: Scale, shift_px: f64) {
        let _ = writeln!(svg, "<g class=\"line\" data-l=\"{}\">", escape(&self.label));
        self.draw_band(svg, x, y);
        let path: Vec<String> = thinned(&self.points)
            .into_iter()
            .map(|p| format!("{:.1},{:.1}", x.px(p.x) + shift_px, y.px(p.y)))
            .collect();
        let width = match (self.published, self.marker) {
            (true, _) => 1.5,
            (false, Some(_)) => 2.0,
            (false, None) => 1.4,
        };
        let dashes = match self.dashes() {
            "" => String::new(),
            dashes => format!(" stroke-dasharray=\"{dashes}\""),
        };
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\"\
             {dashes} stroke-linejoin=\"round\"/>",
            path.join(" "),
            self.colour
        );
        for point in &self.points {
            self.draw_point(svg, point, x.px(point.x) + shift_px, y);
        }
        svg.push_str("</g>\n");
    }

    fn draw_band(&self, svg: &mut String, x: Scale, y: Scale) {
        if self.band.is_empty() {
            return;
        }
        let up = self.band.iter().map(|(t, _, high)| (*t, *high));
        let down = self.band.iter().rev().map(|(t, low, _)| (*t, *low));
        let clip = |v: f64| v.clamp(y.min, y.max);
        let corners: Vec<String> =
            up.chain(down).map(|(t, v)| format!("{:.1},{:.1}", x.px(t), y.px(clip(v)))).collect();
        let _ = writeln!(
            svg,
            "<polygon class=\"band\" points=\"{}\" fill=\"{}\"/>",
            corners.join(" "),
            self.colour
        );
    }

    fn draw_point(&self, svg: &mut String, point: &LinePoint, px: f64, y: Scale) {
        let colour = &self.colour;
        let py = y.px(point.y);
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
        let Some(shape) = self.marker else { return };
        let title = point
            .title
            .as_ref()
            .map_or_else(String::new, |t| format!("<title>{}</title>", escape(t)));
        let mark = marker(shape, px, py, 5.0, colour, self.published);
        let _ = writeln!(svg, "<g class=\"p\" data-x=\"{px:.1}\">{title}{mark}</g>");
    }
}

/// The visible points: of each section with many, the lowest and the highest.
fn thinned(points: &[LinePoint]) -> Vec<&LinePoint> {
    if points.len() <= DENSE {
        return points.iter().collect();
    }
    let mut kept = Vec::with_capacity(DENSE);
    for stretch in points.chunks(points.len().div_ceil(DENSE / 2)) {
        let by = |a: &(usize, &LinePoint), b: &(usize, &LinePoint)| a.1.y.total_cmp(&b.1.y);
        let low = stretch.iter().enumerate().min_by(by);
        let high = stretch.iter().enumerate().max_by(by);
        let Some((low, high)) = low.zip(high) else { continue };
        let (first, second) = if low.0 <= high.0 { (low, high) } else { (high, low) };
        kept.push(first.1);
        if second.0 != first.0 {
            kept.push(second.1);
        }
    }
    kept
}

/// A marker of half-width `r`; hollow ones are filled with the page's background colour.
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

/// The corners of a polygonal marker of half-width 1.
pub(crate) fn corners(shape: Marker) -> &'static [(f64, f64)] {
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
        Marker::Arrow => &[
            (0.0, -1.3),
            (1.1, 0.0),
            (0.4, 0.0),
            (0.4, 1.1),
            (-0.4, 1.1),
            (-0.4, 0.0),
            (-1.1, 0.0),
        ],
        Marker::ArrowDown => &[
            (0.0, 1.3),
            (1.1, 0.0),
            (0.4, 0.0),
            (0.4, -1.1),
            (-0.4, -1.1),
            (-0.4, 0.0),
            (-1.1, 0.0),
        ],
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
        Marker::Slanted => &[(-0.4, -0.8), (1.5, -0.8), (0.4, 0.8), (-1.5, 0.8)],
        Marker::Pillar => &[(-0.5, -1.3), (0.5, -1.3), (0.5, 1.3), (-0.5, 1.3)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_every_peak() {
        let spike = |i: i32| if i == 777 { 9.0 } else { f64::from(i % 3) };
        let points: Vec<LinePoint> =
            (0..3000).map(|i| LinePoint::bare(f64::from(i), spike(i))).collect();
        let kept = thinned(&points);
        assert!(kept.len() <= DENSE && kept.iter().any(|p| p.y == 9.0));
        assert!(kept.is_sorted_by(|a, b| a.x < b.x), "and the order");
    }
}
