//! A study's claims are counted separately from this project's.

mod common;

use std::fs;
use std::path::Path;

use udccp_lab::analysis::{Analysis, ClaimCount, Results, count_by_origin};
use udccp_lab::schema::{Experiment, Origin};

/// Every experiment of this repository.
fn experiments() -> Vec<Experiment> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("the experiments").map(|e| e.expect("a file").path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    paths.sort();
    let load = |p: &std::path::PathBuf| Experiment::load(p).unwrap_or_else(|f| panic!("{f}"));
    paths.iter().map(load).collect()
}

/// The `origin` of a claim must match its `source`.
#[test]
fn own_claims_are_distinguished_from_published_ones() {
    let (mut own, mut after, mut published) = (0, 0, 0);
    for experiment in experiments() {
        for claim in &experiment.claims {
            let (id, says) = (&experiment.id, &claim.says);
            let is_own = claim.source.starts_with("this project")
                || claim.source.starts_with("expected")
                || claim.source.is_empty();
            assert!(!is_own || claim.origin != Origin::Published, "{id}: {says}");
            let is_after = claim.source.contains("after first runs");
            assert_eq!(is_after, claim.origin == Origin::AfterRuns, "{id}: {says}");
            match claim.origin {
                Origin::Published => published += 1,
                Origin::Project => own += 1,
                Origin::AfterRuns => after += 1,
            }
        }
    }
    assert!(published > 0 && own > 0 && after > 0, "{published}, {own}, {after}");
}

#[test]
fn claims_are_counted_separately_by_origin() {
    let text = common::SMALL
        .replacen("says = \"fairer with", "origin = \"project\"\nsays = \"fairer with", 1)
        .replacen("says = \"less fair", "origin = \"after-runs\"\nsays = \"less fair", 1);
    let experiment = common::read(&text);
    let analysis = Analysis::of(&experiment, Results::default());
    let one = ClaimCount { claims: 1, judged: 0, hold: 0 };
    let expected = [(Origin::Published, one), (Origin::Project, one), (Origin::AfterRuns, one)];
    assert_eq!(count_by_origin(&analysis.claims), expected);
}
