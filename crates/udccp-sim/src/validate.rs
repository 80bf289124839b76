//! Rejects invalid configurations before the run.

use std::collections::BTreeSet;

use crate::address::PairAddresses;
use crate::chain::Chain;
use crate::config::{PairConfig, RunConfig};
use crate::error::SimError;
use crate::events::EventQueue;

/// A packet crosses at most this many hops: its time to live is 64.
const MAX_HOPS: usize = 60;

/// Rejects invalid settings, with an error that names the valid ones.
pub(crate) fn validate(net: &Chain, run: &RunConfig<'_>) -> Result<(), SimError> {
    validate_times(run)?;
    validate_hops(net)?;
    let free = EventQueue::MAX_COMPONENTS.saturating_sub(2 * net.hops.len());
    let most = PairAddresses::MAX_PAIRS.min(free / 6 - 1);
    if net.pairs.is_empty() || net.pairs.len() > most {
        let what = format!("{} flows; a run has 1 to {most}", net.pairs.len());
        return Err(SimError::config(what));
    }
    let mut names = BTreeSet::new();
    for pair in &net.pairs {
        validate_pair(pair, run)?;
        validate_way(net, pair)?;
        if !names.insert(&pair.name) {
            return Err(SimError::config(format!("two flows are called \"{}\"", pair.name)));
        }
    }
    Ok(())
}

fn validate_hops(net: &Chain) -> Result<(), SimError> {
    if net.hops.is_empty() || net.hops.len() > MAX_HOPS {
        let what = format!("{} hops; routers stand in a row of 1 to {MAX_HOPS}", net.hops.len());
        return Err(SimError::config(what));
    }
    for (hop, number) in net.hops.iter().zip(1..) {
        for (way, link) in [("forward", &hop.forward), ("reverse", &hop.reverse)] {
            link.check().map_err(|why| SimError::config(format!("hop {number} {way}: {why}")))?;
        }
    }
    for pair in &net.pairs {
        for (end, link) in [("sender", &pair.sender_access), ("receiver", &pair.receiver_access)] {
            let name = &pair.name;
            link.check().map_err(|why| SimError::config(format!("{name} {end}: {why}")))?;
        }
    }
    Ok(())
}

fn validate_way(net: &Chain, pair: &PairConfig) -> Result<(), SimError> {
    let (enters, leaves) = net.ends_of(pair);
    let last = net.hops.len();
    if enters > last || leaves > last || enters == leaves {
        let what = format!(
            "flow \"{}\" goes from router {enters} to router {leaves}; there are 0 to {last}, and \
             the two differ",
            pair.name
        );
        return Err(SimError::config(what));
    }
    Ok(())
}

fn validate_times(run: &RunConfig<'_>) -> Result<(), SimError> {
    let (from, to) = (run.measure.start, run.measure.end);
    if run.duration.is_zero() {
        return Err(SimError::config("the duration is zero"));
    }
    if run.interval.is_zero() {
        return Err(SimError::config("the interval of the series is zero"));
    }
    if from >= to || to > run.duration {
        let what = format!(
            "measured from {from} to {to}; it must begin before it ends, and end by {}",
            run.duration
        );
        return Err(SimError::config(what));
    }
    Ok(())
}

fn validate_pair(pair: &PairConfig, run: &RunConfig<'_>) -> Result<(), SimError> {
    let latest = pair.start + pair.start_jitter;
    if pair.start >= run.duration || latest > run.duration {
        let what = format!("flow \"{}\" starts as late as {latest}, after the end", pair.name);
        return Err(SimError::config(what));
    }
    if let Some(stop) = pair.stop.filter(|stop| *stop <= latest) {
        let what = format!("flow \"{}\" stops at {stop}, before it starts", pair.name);
        return Err(SimError::config(what));
    }
    Ok(())
}
