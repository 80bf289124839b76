//! Counts what a connection does. Counters that most connections never need are allocated at first
//! use.

use crate::stats::ConnectionCounters;

/// The counters of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    pub(super) packets_sent: u64,
    pub(super) packets_received: u64,
    pub(super) data_packets_sent: u64,
    pub(super) data_packets_received: u64,
    pub(super) data_bytes_sent: u64,
    pub(super) data_bytes_received: u64,
    pub(super) acks_sent: u64,
    pub(super) acks_received: u64,
    pub(super) data_packets_acked: u64,
    pub(super) data_packets_lost: u64,
    // Most connections count these at their beginning or end, a few times.
    pub(super) syncs_sent: u32,
    pub(super) syncs_received: u32,
    pub(super) sync_acks_sent: u32,
    pub(super) sync_acks_received: u32,
    pub(super) resets_sent: u32,
    pub(super) resets_received: u32,
    pub(super) pmtu_probes_sent: u32,
    /// All other counters. Those above are 0 here.
    rare: Option<Box<ConnectionCounters>>,
}

impl Counters {
    /// The counters that are not fields of `Counters`, to be incremented.
    #[cold]
    pub(super) fn rare(&mut self) -> &mut ConnectionCounters {
        self.rare.get_or_insert_default()
    }

    /// All counters.
    pub(super) fn all(&self) -> ConnectionCounters {
        ConnectionCounters {
            packets_sent: self.packets_sent,
            packets_received: self.packets_received,
            data_packets_sent: self.data_packets_sent,
            data_packets_received: self.data_packets_received,
            data_bytes_sent: self.data_bytes_sent,
            data_bytes_received: self.data_bytes_received,
            acks_sent: self.acks_sent,
            acks_received: self.acks_received,
            data_packets_acked: self.data_packets_acked,
            data_packets_lost: self.data_packets_lost,
            syncs_sent: self.syncs_sent.into(),
            syncs_received: self.syncs_received.into(),
            sync_acks_sent: self.sync_acks_sent.into(),
            sync_acks_received: self.sync_acks_received.into(),
            resets_sent: self.resets_sent.into(),
            resets_received: self.resets_received.into(),
            pmtu_probes_sent: self.pmtu_probes_sent.into(),
            ..self.rare.as_deref().copied().unwrap_or_default()
        }
    }
}
