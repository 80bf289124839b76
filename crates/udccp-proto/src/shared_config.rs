//! Settings that many connections share.

use core::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::config::ConnectionConfig;
use crate::connection::preferences;
use crate::error::ConfigError;
use crate::features::FeaturePreferences;

/// Settings of connections, from a [`ConnectionConfig`] with `into()`. Clones share one object, so
/// connections with a clone of the same settings need no memory for them, and their feature
/// preferences are computed once. [`Endpoint::connect`](crate::Endpoint::connect), `listen` and
/// `invite` check the settings and report invalid ones.
#[derive(Clone, Debug)]
pub struct SharedConfig(Arc<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    config: ConnectionConfig,
    /// Set when the settings are checked.
    preferences: OnceLock<Result<Arc<FeaturePreferences>, ConfigError>>,
}

impl SharedConfig {
    /// The feature preferences of these settings, or why the settings are invalid.
    pub(crate) fn preferences(&self) -> Result<Arc<FeaturePreferences>, ConfigError> {
        self.0.preferences.get_or_init(|| self.check()).clone()
    }

    fn check(&self) -> Result<Arc<FeaturePreferences>, ConfigError> {
        self.0.config.check()?;
        Ok(preferences(&self.0.config).map_err(|_| ConfigError::CcidList)?.into())
    }

    /// Unshares the settings, for changes to this clone only.
    pub(crate) fn own(&mut self) -> &mut ConnectionConfig {
        let inner = Arc::make_mut(&mut self.0);
        inner.preferences = OnceLock::new();
        &mut inner.config
    }
}

impl From<ConnectionConfig> for SharedConfig {
    fn from(config: ConnectionConfig) -> Self {
        Self(Arc::new(Inner { config, preferences: OnceLock::new() }))
    }
}

impl Deref for SharedConfig {
    type Target = ConnectionConfig;

    fn deref(&self) -> &ConnectionConfig {
        &self.0.config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_are_one_object_until_one_is_changed() {
        let settings = SharedConfig::from(ConnectionConfig::default());
        let mut other = settings.clone();
        let asked = settings.preferences().unwrap();
        assert!(core::ptr::eq(&*settings, &*other));
        assert!(Arc::ptr_eq(&asked, &other.preferences().unwrap()));
        other.own().sequence_window = 0;
        assert!(other.preferences().is_err(), "they are checked anew");
        assert!(Arc::ptr_eq(&asked, &settings.preferences().unwrap()));
    }
}
