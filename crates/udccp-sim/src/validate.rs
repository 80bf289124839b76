//! What cannot be run is refused before anything runs.

use std::collections::BTreeSet;

use crate::address::PairAddresses;
use crate::config::{PairConfig, RunConfig};
use crate::dumbbell::Dumbbell;
use crate::error::SimError;
use crate::events::EventQueue;

/// Refuses what makes no sense, in words that say what would.
pub(crate) fn validate(net: &Dumbbell, run: &RunConfig<'_>) -> Result<(), SimError> {
    validate_times(run)?;
    for (way, loss) in [("forward", net.config.forward.loss), ("reverse", net.config.reverse.loss)]
    {
        if !(0.0..=1.0).contains(&loss) {
            let what = format!("{way} loss is {loss}; a probability lies between 0 and 1");
            return Err(SimError::config(what));
        }
    }
    let most = PairAddresses::MAX_PAIRS.min(EventQueue::MAX_COMPONENTS / 6 - 1);
    if net.pairs.is_empty() || net.pairs.len() > most {
        let what = format!("{} flows; a run has 1 to {most}", net.pairs.len());
        return Err(SimError::config(what));
    }
    let mut names = BTreeSet::new();
    for pair in &net.pairs {
        validate_pair(pair, run)?;
        if !names.insert(&pair.name) {
            return Err(SimError::config(format!("two flows are called \"{}\"", pair.name)));
        }
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
