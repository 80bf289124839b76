//! Settings that many ends share, with what is derived from them.

use core::ops::Deref;
use std::sync::Arc;

use crate::config::TcpConfig;
use crate::send::Limits;

/// Settings of TCP ends. A clone costs nothing, and the ends of many flows can share them.
#[derive(Clone, Debug)]
pub struct SharedTcpConfig(pub(crate) Arc<Shared>);

/// The settings, and what a sending side derives from them.
#[derive(Debug)]
pub(crate) struct Shared {
    config: TcpConfig,
    pub(crate) limits: Limits,
}

impl From<TcpConfig> for SharedTcpConfig {
    fn from(config: TcpConfig) -> Self {
        Self(Arc::new(Shared { limits: Limits::of(&config), config }))
    }
}

impl Deref for SharedTcpConfig {
    type Target = TcpConfig;

    fn deref(&self) -> &TcpConfig {
        &self.0.config
    }
}

impl Deref for Shared {
    type Target = TcpConfig;

    #[inline]
    fn deref(&self) -> &TcpConfig {
        &self.config
    }
}
