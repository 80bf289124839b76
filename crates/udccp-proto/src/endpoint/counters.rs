//! Counts what an endpoint does outside its connections. Counters that most endpoints never need
//! are allocated at first use.

use crate::stats::EndpointStats;

/// The counters of one endpoint.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    pub(super) datagrams_received: u64,
    pub(super) datagrams_sent: u64,
    pub(super) connects: u64,
    pub(super) accepts: u64,
    /// All other counters. Those above are 0 here.
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
        EndpointStats {
            datagrams_received: self.datagrams_received,
            datagrams_sent: self.datagrams_sent,
            connects: self.connects,
            accepts: self.accepts,
            ..self.rare.as_deref().copied().unwrap_or_default()
        }
    }
}
