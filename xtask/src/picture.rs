//! Draws the crates in their layers, with the arrows between them, from the manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;

use crate::Finding;
use crate::layers::{self, LAYERS};

/// Path of the picture.
const FILE: &str = "docs/images/layers.svg";

const WIDTH: usize = 1080;
/// Width of the column with the layers' names.
const MARGIN: usize = 120;
const ROW: usize = 64;
const BOX_HEIGHT: usize = 28;
/// Width of a letter in the picture's font.
const LETTER: usize = 8;

/// Draws the picture.
pub(crate) fn write(root: &Path) -> Result<Vec<Finding>> {
    std::fs::write(root.join(FILE), draw(&arrows(root)?))?;
    Ok(Vec::new())
}

/// Checks that the picture matches the manifests.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>> {
    let found = std::fs::read_to_string(root.join(FILE)).unwrap_or_default();
    let is_right = found == draw(&arrows(root)?);
    let says = "out of date; run cargo xtask picture and commit it";
    Ok(if is_right { Vec::new() } else { vec![Finding::new(FILE, says)] })
}

/// The dependencies between crates, without those that others imply.
fn arrows(root: &Path) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let all = layers::uses(root)?;
    let mut below: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for name in all.keys() {
        let mut found = BTreeSet::new();
        let mut open: Vec<&String> = all[name].iter().collect();
        while let Some(next) = open.pop() {
            if found.insert(next.clone()) {
                open.extend(all.get(next).into_iter().flatten());
            }
        }
        below.insert(name.clone(), found);
    }
    let is_implied = |uses: &BTreeSet<String>, one: &String| {
        uses.iter().any(|other| below.get(other).is_some_and(|b| b.contains(one)))
    };
    let reduced = all.iter().map(|(name, uses)| {
        let kept = uses.iter().filter(|one| !is_implied(uses, one)).cloned().collect();
        (name.clone(), kept)
    });
    Ok(reduced.collect())
}

/// Horizontal centre, vertical centre and width of a box.
type Place = (usize, usize, usize);

/// The box of each crate: the highest layer at the top, crates evenly spaced in their layer.
fn places(crates: &BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, Place> {
    let mut places = BTreeMap::new();
    for (row, (_, names)) in LAYERS.iter().rev().enumerate() {
        let names: Vec<&&str> = names.iter().filter(|name| crates.contains_key(**name)).collect();
        let room = (WIDTH - MARGIN) / names.len().max(1);
        for (column, name) in names.into_iter().enumerate() {
            let x = MARGIN + room * column + room / 2;
            places.insert((*name).to_owned(), (x, ROW * row + ROW / 2, name.len() * LETTER + 20));
        }
    }
    places
}

fn draw(crates: &BTreeMap<String, BTreeSet<String>>) -> String {
    let places = places(crates);
    let height = ROW * LAYERS.len();
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" font-family=\"ui-monospace, monospace\" \
         font-size=\"13\">\n<title>The crates of udccp in their layers; an arrow points to what a \
         crate uses</title>\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (row, (layer, _)) in LAYERS.iter().rev().enumerate() {
        let (y, fill) = (ROW * row, ["#f4f6f8", "#ffffff"][row % 2]);
        let middle = y + ROW / 2 + 4;
        let _ = writeln!(
            out,
            "<rect y=\"{y}\" width=\"{WIDTH}\" height=\"{ROW}\" fill=\"{fill}\"/>\
             <text x=\"12\" y=\"{middle}\" fill=\"#667085\">{layer}</text>"
        );
    }
    for (name, uses) in crates {
        for used in uses {
            let (Some(&(x, y, _)), Some(&(to, below, _))) = (places.get(name), places.get(used))
            else {
                continue;
            };
            let (from, until) = (y + BOX_HEIGHT / 2, below - BOX_HEIGHT / 2);
            let half = from.midpoint(until);
            let _ = writeln!(
                out,
                "<path d=\"M{x} {from}C{x} {half} {to} {half} {to} {until}\" fill=\"none\" \
                 stroke=\"#98a2b3\"/>"
            );
        }
    }
    for (name, (x, y, width)) in &places {
        let (left, top, text) = (x - width / 2, y - BOX_HEIGHT / 2, y + 4);
        let _ = writeln!(
            out,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{BOX_HEIGHT}\" rx=\"5\" \
             fill=\"#e7f0fa\" stroke=\"#2878b5\"/><text x=\"{x}\" y=\"{text}\" \
             text-anchor=\"middle\" fill=\"#101828\">{name}</text>"
        );
    }
    out + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(crates: &[(&str, &[&str])]) -> String {
        let set = |uses: &[&str]| uses.iter().map(|u| (*u).to_owned()).collect();
        draw(&crates.iter().map(|(name, uses)| ((*name).to_owned(), set(uses))).collect())
    }

    #[test]
    fn every_crate_has_a_box_and_every_use_an_arrow() {
        let one = picture(&[("udccp-base", &[]), ("udccp-wire", &[]), ("udccp-cc", &[])]);
        assert!(one.contains(">udccp-base<") && !one.contains("<path"), "{one}");
        let two = picture(&[("udccp-base", &[]), ("udccp-wire", &["udccp-base"])]);
        assert_eq!(two.matches("<path").count(), 1);
        assert_ne!(picture(&[("udccp-base", &[])]), picture(&[("udccp-wire", &[])]));
    }
}
