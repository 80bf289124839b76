//! Derives the preferences of feature negotiation from the settings.

use udccp_wire::FeatureNumber;

use crate::config::ConnectionConfig;
use crate::features::{ChangeError, FeaturePreferences, Location};

/// CCID of a new connection (RFC 4340 section 10).
const DEFAULT_CCID: u8 = 2;

/// What these settings request from the peer and accept from it.
pub(crate) fn preferences(config: &ConnectionConfig) -> Result<FeaturePreferences, ChangeError> {
    let mut prefs = FeaturePreferences::new();
    ccids(&mut prefs, Location::Local, &config.tx_ccids)?;
    ccids(&mut prefs, Location::Remote, &config.rx_ccids)?;
    send_loss_event_rate(&mut prefs, config)?;
    let short: &[u64] = if config.short_seqnos { &[1, 0] } else { &[0] };
    prefs.set(Location::Local, FeatureNumber::ALLOW_SHORT_SEQNOS, short)?;
    prefs.set(Location::Remote, FeatureNumber::ALLOW_SHORT_SEQNOS, short)?;
    let window = config.sequence_window;
    prefs.set(Location::Local, FeatureNumber::SEQUENCE_WINDOW, &[window])?;
    //= 4340-12.1-5
    if !config.ecn {
        let incapable = prefs.set(Location::Local, FeatureNumber::ECN_INCAPABLE, &[1])?;
        incapable.mandatory = true;
    }
    //= 4340-15-9
    if config.ndp_count {
        prefs.set(Location::Remote, FeatureNumber::SEND_NDP_COUNT, &[1, 0])?;
    }
    if config.data_checksum {
        let check = prefs.set(Location::Remote, FeatureNumber::CHECK_DATA_CHECKSUM, &[1])?;
        check.mandatory = true;
    }
    coverage(&mut prefs, config)?;
    Ok(prefs)
}

fn ccids(
    prefs: &mut FeaturePreferences,
    location: Location,
    ccids: &[u8],
) -> Result<(), ChangeError> {
    let values: Vec<u64> = ccids.iter().map(|&c| u64::from(c)).collect();
    let preference = prefs.set(location, FeatureNumber::CCID, &values)?;
    preference.announced = true;
    //= 4340-10-1
    //= 4340-10.3-2
    preference.mandatory = !ccids.contains(&DEFAULT_CCID);
    Ok(())
}

/// Allows Send Loss Event Rate wherever a CCID that has it may be chosen. We accept either value
/// (RFC 4342 section 8.4).
fn send_loss_event_rate(
    prefs: &mut FeaturePreferences,
    config: &ConnectionConfig,
) -> Result<(), ChangeError> {
    // The feature is located at the end that receives the data.
    let places = [(Location::Local, &config.rx_ccids), (Location::Remote, &config.tx_ccids)];
    for (location, ccids) in places {
        if ccids.iter().any(|ccid| matches!(ccid, 3 | 4)) {
            prefs.set(location, FeatureNumber::SEND_LEV_RATE, &[0, 1])?.indifferent = true;
        }
    }
    Ok(())
}

/// Minimum Checksum Coverage m means that coverage 0 and every coverage from m up are accepted.
fn coverage(prefs: &mut FeaturePreferences, config: &ConnectionConfig) -> Result<(), ChangeError> {
    let accepted: Vec<u64> = match u64::from(config.min_cscov) {
        0 => vec![0],
        least => (least..=15).chain([0]).collect(),
    };
    prefs.set(Location::Local, FeatureNumber::MIN_CSCOV, &accepted)?;
    let sent = u64::from(config.send_cscov);
    if sent > 0 {
        let asked: Vec<u64> = (1..=sent).rev().chain([0]).collect();
        prefs.set(Location::Remote, FeatureNumber::MIN_CSCOV, &asked)?;
    }
    Ok(())
}
