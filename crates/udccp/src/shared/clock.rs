//! The one clock of a driver.

use udccp_base::Instant;

/// Nanoseconds since the socket was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(std::time::Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "a socket driver owns the clock")]
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    #[expect(clippy::disallowed_methods, reason = "a socket driver owns the clock")]
    pub(crate) fn now(self) -> Instant {
        let since = std::time::Instant::now().saturating_duration_since(self.0);
        Instant::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The same time for the system's wait calls.
    #[cfg(feature = "tokio")]
    pub(crate) fn to_std(self, at: Instant) -> std::time::Instant {
        self.0 + std::time::Duration::from_nanos(at.as_nanos())
    }
}
