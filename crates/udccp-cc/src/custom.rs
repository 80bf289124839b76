//! A window algorithm that is built outside of this crate.

use core::fmt;
use std::sync::Arc;

use crate::control::CongestionControl;

/// Builds a fresh instance with a first window in packets.
type Build = dyn Fn(u32) -> Box<dyn CongestionControl> + Send + Sync;

/// How a window algorithm from elsewhere is built. Two are equal if they are the same one.
#[derive(Clone)]
pub struct CustomAlgorithm {
    name: Arc<str>,
    build: Arc<Build>,
}

impl CustomAlgorithm {
    /// An algorithm of this name; `build` makes an instance with a first window in packets.
    pub fn new(
        name: &str,
        build: impl Fn(u32) -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), build: Arc::new(build) }
    }

    /// A fresh instance with a first window of `initial_cwnd` packets.
    pub(crate) fn instance(&self, initial_cwnd: u32) -> Box<dyn CongestionControl> {
        (self.build)(initial_cwnd)
    }
}

impl fmt::Debug for CustomAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomAlgorithm").field(&self.name).finish()
    }
}

impl PartialEq for CustomAlgorithm {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.build, &other.build)
    }
}
