//! Figures as hand-written SVG: they scale, print, and show values in tooltips.

mod chart;
mod line;
mod scale;
mod thumb;

pub(super) use chart::{Chart, Shape, Size};
pub(super) use line::{DASHES, Line, LinePoint, corners, marker};
pub(super) use scale::Scale;
