//! A transfer that has an end.

use udccp_base::{AppPort, Instant};

use super::bulk::Bulk;
use super::{Outcome, Source, SourceStats};

/// Offers a number of bytes as fast as the transport accepts them, then closes it.
#[derive(Clone, Debug)]
pub struct Transfer {
    bulk: Bulk,
    is_offered: bool,
}

impl Transfer {
    /// A transfer of `bytes` (at least 1).
    pub fn new(bytes: u64) -> Self {
        Self { bulk: Bulk::new().with_total_bytes(bytes.max(1)), is_offered: false }
    }
}

impl Source for Transfer {
    fn start(&mut self, _now: Instant) {}

    fn feed(&mut self, now: Instant, port: &mut dyn AppPort) -> bool {
        if self.is_offered {
            return false;
        }
        let taken = self.bulk.feed(now, port);
        if self.bulk.bytes_left() == Some(0) {
            self.is_offered = true;
            port.close(now);
        }
        taken
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn stats(&self) -> SourceStats {
        self.bulk.stats()
    }

    fn outcome(&self) -> Outcome {
        Outcome::Transfer { is_offered: self.is_offered }
    }
}
