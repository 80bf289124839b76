//! Axes, grid, events and lines.

use core::fmt::Write as _;

use super::super::html::escape;
use super::line::Line;
use super::scale::Scale;

/// The size of a figure. Each size is drawn separately, so that text is as large as the page's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// For desktop windows and print.
    Wide,
    /// For a phone.
    Narrow,
    /// One of three panels side by side.
    Panel,
    /// One of two panels side by side.
    Half,
}

/// A figure with two axes.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// A description for readers who cannot see it.
    pub(crate) description: String,
    /// The panel's heading.
    pub(crate) panel: Option<String>,
    /// Name and unit of x.
    pub(crate) x_name: String,
    /// Name and unit of y.
    pub(crate) y_name: String,
    /// Range of x.
    pub(crate) x: Scale,
    /// Ticks of x, if they differ from round numbers.
    pub(crate) x_ticks: Option<Vec<(f64, String)>>,
    /// Range of y.
    pub(crate) y: Scale,
    /// Decimals and unit of y values.
    pub(crate) y_print: (usize, String),
    /// A marked y value: the fair share or the full rate.
    pub(crate) level: Option<f64>,
    /// A shaded range of x, which the caption explains.
    pub(crate) shaded: Option<(f64, f64)>,
    /// Events at x values, with their descriptions.
    pub(crate) events: Vec<(f64, String)>,
    /// The lines.
    pub(crate) lines: Vec<Line>,
    /// Shapes drawn before the lines, in x and y values: bars and ranges.
    pub(crate) shapes: Vec<Shape>,
}

/// A bar.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Its middle.
    pub(crate) x: f64,
    /// Its distance from that x, in pixels.
    pub(crate) shift_px: f64,
    /// Half its width in pixels.
    pub(crate) half_px: f64,
    /// Its lower end.
    pub(crate) low: f64,
    /// Its upper end.
    pub(crate) high: f64,
    /// The interval of the end that represents a value.
    pub(crate) interval: Option<(f64, f64)>,
    /// Its colour.
    pub(crate) colour: String,
    /// Whether only its outline is drawn (published values).
    pub(crate) is_hollow: bool,
    /// The tooltip.
    pub(crate) title: String,
}

struct Frame {
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// Most lines to label at their ends.
const LABELLED: usize = 8;
/// Height of a label.
const LABEL_PX: f64 = 15.0;
/// Height of a panel's name.
const PANEL_NAME_PX: f64 = 20.0;
/// Most events whose descriptions are written.
const WORDED: usize = 8;

impl Size {
    fn frame(self) -> Frame {
        let (width, height) = match self {
            Self::Wide => (1040.0, 400.0),
            Self::Narrow => (360.0, 280.0),
            Self::Panel => (370.0, 250.0),
            Self::Half => (520.0, 290.0),
        };
        let is_panel = matches!(self, Self::Panel | Self::Half);
        let top = if is_panel { 26.0 + PANEL_NAME_PX } else { 26.0 };
        Frame { width, height, left: 50.0, right: width - 12.0, top, bottom: height - 42.0 }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Narrow => "narrow",
            Self::Panel => "panel",
            Self::Half => "half",
        }
    }
}

impl Chart {
    /// Whether the lines of the wide drawing are labelled at their ends.
    pub(crate) fn labels_ends(&self) -> bool {
        let ours = self.lines.iter().filter(|l| !l.published && !l.points.is_empty()).count();
        (2..=LABELLED).contains(&ours)
    }

    /// The figure as an `<svg>` element.
    pub(crate) fn draw(&self, size: Size) -> String {
        let mut frame = size.frame();
        if self.panel.is_some() && !matches!(size, Size::Panel | Size::Half) {
            // A single panel is drawn like a figure without panels, below its name.
            frame.top += PANEL_NAME_PX;
        }
        let is_labelled = size == Size::Wide && self.labels_ends();
        if is_labelled {
            frame.right -= self.label_width();
        }
        let rows = self.event_rows(&frame);
        frame.top += LABEL_PX * rows as f64;
        let x = self.x.over(frame.left, frame.right);
        let y = self.y.over(frame.bottom, frame.top);
        let mut svg = String::new();
        let scale = |s: Scale| {
            format!("{} {} {:.1} {:.1} {}", s.min, s.max, s.from_px, s.to_px, u8::from(s.is_log))
        };
        let _ = writeln!(
            svg,
            "<svg class=\"chart {}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" \
             tabindex=\"0\" data-x=\"{}\" data-y=\"{}\" data-d=\"{}\" data-u=\"{}\" \
             data-xn=\"{}\">",
            size.name(),
            frame.width,
            frame.height,
            escape(&self.description),
            scale(x),
            scale(y),
            self.y_print.0,
            escape(&self.y_print.1),
            escape(&self.x_name)
        );
        self.draw_shade(&mut svg, &frame, x);
        self.draw_axes(&mut svg, &frame, x, y, size);
        self.draw_events(&mut svg, &frame, x, rows);
        for shape in &self.shapes {
            shape.draw(&mut svg, x, y);
        }
        let marked = self.lines.iter().filter(|l| l.marker.is_some()).count();
        for (i, line) in self.lines.iter().enumerate() {
            let middle = (marked.max(1) - 1) as f64 / 2.0;
            let shift = if line.marker.is_some() { (i as f64 - middle) * 3.0 } else { 0.0 };
            line.draw(&mut svg, x, y, shift);
        }
        if is_labelled {
            self.draw_labels(&mut svg, &frame, y);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn draw_shade(&self, svg: &mut String, frame: &Frame, x: Scale) {
        let Some((from, to)) = self.shaded else { return };
        let clip = |v: f64| x.px(v.clamp(self.x.min, self.x.max));
        let (left, right) = (clip(from), clip(to));
        let _ = writeln!(
            svg,
            "<rect class=\"shade\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            frame.top,
            right - left,
            frame.bottom - frame.top,
        );
    }

    fn draw_axes(&self, svg: &mut String, frame: &Frame, x: Scale, y: Scale, size: Size) {
        let Frame { left, right, top, bottom, .. } = *frame;
        for (value, label) in y.ticks(6) {
            let py = y.px(value);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{left} {py:.1}H{right}\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                left - 7.0,
                py + 4.0
            );
        }
        if let Some(level) = self.level.filter(|l| (self.y.min..=self.y.max).contains(l)) {
            let py = y.px(level);
            let _ = writeln!(svg, "<path class=\"level\" d=\"M{left} {py:.1}H{right}\"/>");
        }
        let wanted = match size {
            Size::Wide => 10,
            Size::Half => 6,
            Size::Narrow | Size::Panel => 4,
        };
        for (value, label) in self.shown_ticks(x, wanted) {
            let px = x.px(value);
            // A long label at the right end must not be cut off by the edge.
            let half = label.chars().count() as f64 * 3.7;
            let at = px.min(frame.width - half - 1.0);
            let _ = writeln!(
                svg,
                "<path class=\"axis\" d=\"M{px:.1} {bottom}v5\"/>\
                 <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom + 19.0,
                escape(&label)
            );
        }
        let middle = (left + right) / 2.0;
        let head = top - 12.0 - LABEL_PX * self.event_rows(frame) as f64;
        let _ = writeln!(
            svg,
            "<path class=\"axis\" d=\"M{left} {bottom}H{right}\"/>\
             <text class=\"name\" x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
             <text class=\"name\" x=\"8\" y=\"{head:.1}\">{}</text>",
            frame.height - 6.0,
            escape(&self.x_name),
            escape(&self.y_name)
        );
        if let Some(panel) = &self.panel {
            let _ =
                writeln!(svg, "<text class=\"panel\" x=\"8\" y=\"15\">{}</text>", escape(panel));
        }
    }

    /// Ticks whose labels do not overlap.
    fn shown_ticks(&self, x: Scale, wanted: usize) -> Vec<(f64, String)> {
        let ticks = self.x_ticks.clone().unwrap_or_else(|| x.ticks(wanted));
        let mut shown: Vec<(f64, String)> = Vec::new();
        let mut end = f64::NEG_INFINITY;
        for (value, label) in ticks {
            let half = label.chars().count() as f64 * 3.4 + 3.0;
            if x.px(value) - half > end {
                end = x.px(value) + half;
                shown.push((value, label));
            }
        }
        shown
    }

    /// Number of rows needed so that event descriptions do not overlap.
    fn event_rows(&self, frame: &Frame) -> usize {
        let x = self.x.over(frame.left, frame.right);
        self.event_places(x, frame.right).iter().map(|(_, row)| row + 1).max().unwrap_or(0)
    }

    /// The left end and the row of each event's description; empty if there are too many.
    fn event_places(&self, x: Scale, right: f64) -> Vec<(f64, usize)> {
        if self.events.len() > WORDED {
            return Vec::new();
        }
        let mut ends: Vec<f64> = Vec::new();
        let mut places = Vec::new();
        for (at, text) in &self.events {
            let width = text.chars().count() as f64 * 5.9;
            let start = x.px(*at).min(right - width).max(self_left(x)) + 3.0;
            let row = ends.iter().position(|end| *end < start).unwrap_or(ends.len());
            if row == ends.len() {
                ends.push(0.0);
            }
            ends[row] = start + width + 6.0;
            places.push((start, row));
        }
        places
    }

    fn draw_events(&self, svg: &mut String, frame: &Frame, x: Scale, rows: usize) {
        let places = self.event_places(x, frame.right);
        for (i, (at, text)) in self.events.iter().enumerate() {
            let px = x.px(*at);
            let top = places
                .get(i)
                .map_or(frame.top, |(_, row)| frame.top - LABEL_PX * (rows - row) as f64 + 2.0);
            let _ = writeln!(
                svg,
                "<path class=\"event\" d=\"M{px:.1} {top:.1}V{:.1}\"><title>{at} s: {}</title>\
                 </path>",
                frame.bottom,
                escape(text)
            );
            if let Some((start, _)) = places.get(i) {
                let (y, text) = (top + 9.0, escape(text));
                let _ = writeln!(
                    svg,
                    "<text class=\"note\" x=\"{start:.1}\" y=\"{y:.1}\">{text}</text>"
                );
            }
        }
    }

    /// The width of the labels at line ends.
    fn label_width(&self) -> f64 {
        let longest = self.lines.iter().filter(|l| !l.published).map(|l| l.label.chars().count());
        (longest.max().unwrap_or(0) as f64 * 6.6 + 52.0).min(290.0)
    }

    /// Draws a label at the end of each line, shifted vertically so that none overlaps.
    fn draw_labels(&self, svg: &mut String, frame: &Frame, y: Scale) {
        let end = |l: &Line| {
            let last = &l.points[l.points.len() - l.points.len().div_ceil(10)..];
            last.iter().map(|p| p.y).sum::<f64>() / last.len() as f64
        };
        let ours = self.lines.iter().filter(|l| !l.published && !l.points.is_empty());
        let mut places: Vec<(f64, &Line)> = ours.map(|l| (y.px(end(l)), l)).collect();
        // Lines that end at the same height keep their order.
        let row = |py: f64| (py / 3.0).round();
        places.sort_by(|a, b| row(a.0).total_cmp(&row(b.0)));
        for i in 1..places.len() {
            places[i].0 = places[i].0.max(places[i - 1].0 + LABEL_PX);
        }
        let over = places.last().map_or(0.0, |(py, _)| (py - frame.bottom).max(0.0));
        for (py, line) in places {
            let _ = writeln!(
                svg,
                "{}<text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                line.sample(frame.right + 10.0, py - over),
                frame.right + 46.0,
                py - over + 4.0,
                escape(&line.label)
            );
        }
    }
}

fn self_left(x: Scale) -> f64 {
    x.from_px - 3.0
}

impl Shape {
    fn draw(&self, svg: &mut String, x: Scale, y: Scale) {
        let middle = x.px(self.x) + self.shift_px;
        let (top, bottom) = (y.px(self.high), y.px(self.low));
        let fill = if self.is_hollow { "none" } else { &self.colour };
        let dash = if self.is_hollow { " stroke-dasharray=\"3 2\"" } else { "" };
        let _ = writeln!(
            svg,
            "<g class=\"p\" data-x=\"{middle:.1}\"><title>{}</title>\
             <rect x=\"{:.1}\" y=\"{top:.1}\" \
             width=\"{:.1}\" height=\"{:.1}\" fill=\"{fill}\" fill-opacity=\"0.55\" \
             stroke=\"{}\" stroke-width=\"1.4\"{dash}/></g>",
            escape(&self.title),
            middle - self.half_px,
            self.half_px * 2.0,
            (bottom - top).max(0.5),
            self.colour
        );
        if let Some((low, high)) = self.interval {
            let (top, bottom) = (y.px(high.min(y.max)), y.px(low.max(y.min)));
            let _ = writeln!(
                svg,
                "<path d=\"M{middle:.1} {top:.1}V{bottom:.1}\" stroke=\"{}\" \
                 stroke-width=\"1.4\"/>",
                self.colour
            );
        }
    }
}
