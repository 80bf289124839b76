//! Describes changes of links for a figure.

use std::collections::BTreeSet;

use udccp_base::Duration;
use udccp_sim::Change;

use crate::schema::{LinkChange, Scenario};

/// When links change, in seconds, with a description: `bottleneck 5 Mbit/s`, `bottleneck down`.
pub(super) fn events(scenario: &Scenario) -> Vec<(f64, String)> {
    let mut groups: Vec<(Duration, String, BTreeSet<&str>)> = Vec::new();
    for LinkChange { at, link, change } in &scenario.changes {
        let what = describe(change);
        match groups.iter_mut().find(|(time, same, _)| time == at && *same == what) {
            Some((_, _, links)) => {
                links.insert(link);
            }
            None => groups.push((*at, what, BTreeSet::from([link.as_str()]))),
        }
    }
    let event = |(at, what, links): (Duration, String, BTreeSet<&str>)| {
        (at.as_secs_f64(), format!("{} {what}", name(&links)))
    };
    groups.into_iter().map(event).collect()
}

fn describe(change: &Change) -> String {
    match change {
        Change::Rate(rate) => rate.to_string(),
        Change::Delay(delay) => format!("delay {delay}"),
        Change::Loss(_) => "loss changes".to_owned(),
        Change::Down(true) => "down".to_owned(),
        Change::Down(false) => "up".to_owned(),
    }
}

/// A name for links that change alike: a hop's name for both directions, or a count for many.
fn name(links: &BTreeSet<&str>) -> String {
    let whole = |link: &&str| {
        let (hop, way) = link.rsplit_once(' ').unwrap_or((link, ""));
        let other = if way == "forward" { "reverse" } else { "forward" };
        let is_hop = way == "forward" || way == "reverse";
        let both = is_hop && links.contains(format!("{hop} {other}").as_str());
        if both { hop.to_owned() } else { (*link).to_owned() }
    };
    let names: BTreeSet<String> = links.iter().map(whole).collect();
    match names.len() {
        0..=2 => names.into_iter().collect::<Vec<_>>().join(" and "),
        n => format!("{n} links"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_change_alike_are_named_together() {
        let named = |links: &[&str]| name(&links.iter().copied().collect());
        assert_eq!(named(&["bottleneck forward", "bottleneck reverse"]), "bottleneck");
        assert_eq!(named(&["hop 2 reverse"]), "hop 2 reverse");
        assert_eq!(named(&["first receiver", "first sender"]), "first receiver and first sender");
        assert_eq!(named(&["a sender", "b sender", "c sender"]), "3 links");
    }
}
