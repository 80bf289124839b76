//! Counts what a connection does. Counters of what is rare are narrow: what they cannot hold is
//! kept apart, as are counters that most connections never need.

use udccp_wire::PacketType;

use crate::count::count;
use crate::stats::ConnectionCounters;

/// The counters of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    pub(super) data_packets_sent: u64,
    pub(super) data_packets_received: u64,
    pub(super) data_bytes_sent: u64,
    pub(super) data_bytes_received: u64,
    pub(super) acks_sent: u64,
    pub(super) acks_received: u64,
    pub(super) data_packets_acked: u64,
    pub(super) data_packets_lost: u32,
    /// Only those that neither `data_packets_received` nor `acks_received` counts.
    packets_received: u32,
    // Most connections count these at their beginning or end, or now and then.
    pub(super) syncs_sent: u16,
    pub(super) syncs_received: u16,
    pub(super) sync_acks_sent: u16,
    pub(super) sync_acks_received: u16,
    pub(super) pmtu_probes_sent: u16,
    pub(super) resets_sent: u8,
    pub(super) resets_received: u8,
    /// All other counters, and what those above could not hold. Allocated at first use.
    rare: Option<Box<ConnectionCounters>>,
}

impl Counters {
    /// The counters that are not fields of `Counters`, to be incremented.
    #[cold]
    pub(super) fn rare(&mut self) -> &mut ConnectionCounters {
        self.rare.get_or_insert_default()
    }

    /// A valid packet of this type arrived: no Data, DataAck or Ack.
    #[inline(never)]
    pub(super) fn note_other(&mut self, ty: PacketType) {
        count!(*self, packets_received += 1);
        match ty {
            PacketType::Sync => count!(*self, syncs_received += 1),
            PacketType::SyncAck => count!(*self, sync_acks_received += 1),
            PacketType::Reset => count!(*self, resets_received += 1),
            _ => {}
        }
    }

    /// Data packets counted as lost.
    #[inline]
    pub(super) fn data_packets_lost(&self) -> u64 {
        let apart = self.rare.as_ref().map_or(0, |rare| rare.data_packets_lost);
        apart + u64::from(self.data_packets_lost)
    }

    /// All counters. Our packets have consecutive numbers, and the caller knows their count.
    pub(super) fn all(&self, packets_sent: u64) -> ConnectionCounters {
        let mut all = self.rare.as_deref().copied().unwrap_or_default();
        all.packets_sent = packets_sent;
        all.data_packets_sent = self.data_packets_sent;
        all.data_packets_received = self.data_packets_received;
        all.data_bytes_sent = self.data_bytes_sent;
        all.data_bytes_received = self.data_bytes_received;
        all.acks_sent = self.acks_sent;
        all.acks_received = self.acks_received;
        all.packets_received += u64::from(self.packets_received);
        all.packets_received += all.data_packets_received + all.acks_received;
        all.data_packets_acked = self.data_packets_acked;
        all.data_packets_lost += u64::from(self.data_packets_lost);
        all.syncs_sent += u64::from(self.syncs_sent);
        all.syncs_received += u64::from(self.syncs_received);
        all.sync_acks_sent += u64::from(self.sync_acks_sent);
        all.sync_acks_received += u64::from(self.sync_acks_received);
        all.pmtu_probes_sent += u64::from(self.pmtu_probes_sent);
        all.resets_sent += u64::from(self.resets_sent);
        all.resets_received += u64::from(self.resets_received);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_counters_lose_nothing() {
        let mut counters = Counters::default();
        for _ in 0..3 {
            count!(counters, data_packets_lost += u32::MAX);
        }
        (0..70_000).for_each(|_| count!(counters, syncs_sent += 1));
        (0..600).for_each(|_| count!(counters, resets_sent += 1));
        let all = counters.all(7);
        let lost = 3 * u64::from(u32::MAX);
        assert_eq!((all.data_packets_lost, counters.data_packets_lost()), (lost, lost));
        assert_eq!((all.packets_sent, all.syncs_sent, all.resets_sent), (7, 70_000, 600));
    }

    #[test]
    fn nothing_is_allocated_before_a_counter_is_full() {
        let mut counters = Counters::default();
        count!(counters, data_packets_lost += u32::MAX);
        count!(counters, syncs_received += u16::MAX);
        assert!(counters.rare.is_none());
        count!(counters, data_packets_lost += 1);
        assert_eq!(counters.data_packets_lost(), 1 << 32);
    }
}
