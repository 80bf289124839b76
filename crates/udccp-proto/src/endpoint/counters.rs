//! Counts what an endpoint does outside its connections. Counters that most endpoints never need
//! are allocated at first use.

use crate::stats::EndpointStats;

/// The counters of one endpoint.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    pub(super) datagrams_received: u64,
    pub(super) datagrams_sent: u64,
    pub(super) connects: u32,
    pub(super) accepts: u32,
    /// All other counters, and what those above could not hold.
    rare: Option<Box<EndpointStats>>,
}

impl Counters {
    /// The counters that are not fields of `Counters`, to be incremented.
    #[cold]
    pub(super) fn rare(&mut self) -> &mut EndpointStats {
        self.rare.get_or_insert_default()
    }

    /// All counters.
    pub(super) fn all(&self) -> EndpointStats {
        let mut all = self.rare.as_deref().copied().unwrap_or_default();
        all.datagrams_received = self.datagrams_received;
        all.datagrams_sent = self.datagrams_sent;
        all.connects += u64::from(self.connects);
        all.accepts += u64::from(self.accepts);
        all
    }
}
