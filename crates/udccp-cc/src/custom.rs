//! Window algorithms built outside this crate.

use core::fmt;
use std::sync::Arc;

use crate::control::CongestionControl;

/// Creates an instance with an initial window in packets.
type Build = dyn Fn(u32) -> Box<dyn CongestionControl> + Send + Sync;

/// A window algorithm from outside this crate. Two are equal if they are clones of one.
#[derive(Clone)]
pub struct CustomAlgorithm {
    name: Arc<str>,
    build: Arc<Build>,
}

impl CustomAlgorithm {
    /// An algorithm with this name; `build` creates an instance with an initial window in packets.
    pub fn new(
        name: &str,
        build: impl Fn(u32) -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), build: Arc::new(build) }
    }

    /// Creates an instance with an initial window of `initial_cwnd` packets.
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
