//! Figures as SVG, written by hand: they scale, print, and tell their values on hover.

mod chart;
mod line;
mod scale;
mod thumb;

pub(super) use chart::{Chart, Shape, Size};
pub(super) use line::{DASHES, Line, LinePoint, corners, marker};
pub(super) use scale::Scale;
