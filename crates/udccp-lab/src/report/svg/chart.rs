//! Axes, grid and lines.

use core::fmt::Write as _;

use super::super::html::escape;
use super::line::Line;
use super::scale::Scale;

/// How large a figure is: one for a wide page, one for a phone. Each is drawn for its size, so
/// that the text stays as large as the page's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// For windows and paper.
    Wide,
    /// For a phone.
    Narrow,
}

/// A figure with two linear axes.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// What it shows, for those who cannot see it.
    pub(crate) description: String,
    /// Name and unit of x.
    pub(crate) x_name: String,
    /// Name and unit of y.
    pub(crate) y_name: String,
    /// Range of x.
    pub(crate) x: Scale,
    /// Ticks of x, where they are not the round ones.
    pub(crate) x_ticks: Option<Vec<(f64, String)>>,
    /// Range of y.
    pub(crate) y: Scale,
    /// A shaded stretch of x, with its name.
    pub(crate) shaded: Option<(f64, f64, String)>,
    /// The lines.
    pub(crate) lines: Vec<Line>,
}

struct Frame {
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Size {
    fn frame(self) -> Frame {
        let (width, height) = match self {
            Self::Wide => (760.0, 360.0),
            Self::Narrow => (360.0, 280.0),
        };
        Frame { width, height, left: 48.0, right: width - 12.0, top: 26.0, bottom: height - 42.0 }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Narrow => "narrow",
        }
    }
}

impl Chart {
    /// The figure as an `<svg>` element.
    pub(crate) fn draw(&self, size: Size) -> String {
        let frame = size.frame();
        let x = self.x.over(frame.left, frame.right);
        let y = self.y.over(frame.bottom, frame.top);
        let mut svg = String::new();
        let _ = writeln!(
            svg,
            "<svg class=\"chart {}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">",
            size.name(),
            frame.width,
            frame.height,
            escape(&self.description)
        );
        self.draw_shade(&mut svg, &frame, x);
        self.draw_axes(&mut svg, &frame, x, y, size);
        let marked = self.lines.iter().filter(|l| l.marker.is_some()).count();
        for (i, line) in self.lines.iter().enumerate() {
            let middle = (marked.max(1) - 1) as f64 / 2.0;
            let shift = if line.marker.is_some() { (i as f64 - middle) * 4.0 } else { 0.0 };
            line.draw(&mut svg, x, y, shift);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn draw_shade(&self, svg: &mut String, frame: &Frame, x: Scale) {
        let Some((from, to, name)) = &self.shaded else { return };
        let (left, right) = (x.px(*from), x.px(*to));
        let _ = writeln!(
            svg,
            "<rect class=\"shade\" x=\"{left:.1}\" y=\"{}\" width=\"{:.1}\" height=\"{:.1}\"/>\
             <text class=\"note\" x=\"{:.1}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            frame.top,
            right - left,
            frame.bottom - frame.top,
            right - 4.0,
            frame.top + 14.0,
            escape(name)
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
        let wanted = if size == Size::Wide { 8 } else { 4 };
        for (value, label) in self.x_ticks.clone().unwrap_or_else(|| x.ticks(wanted)) {
            let px = x.px(value);
            let _ = writeln!(
                svg,
                "<path class=\"axis\" d=\"M{px:.1} {bottom}v5\"/>\
                 <text x=\"{px:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom + 19.0,
                escape(&label)
            );
        }
        let middle = (left + right) / 2.0;
        let _ = writeln!(
            svg,
            "<path class=\"axis\" d=\"M{left} {bottom}H{right}\"/>\
             <text class=\"name\" x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
             <text class=\"name\" x=\"{}\" y=\"{}\">{}</text>",
            frame.height - 6.0,
            escape(&self.x_name),
            8.0,
            top - 12.0,
            escape(&self.y_name)
        );
    }
}
