//! Hosts whose transports exist only while their flow is active.

use super::Engine;
use crate::error::SimError;
use crate::host::{Host, Lifetime, sender_of_pair};
use crate::transfers::drop_transports;

impl Engine {
    /// Creates the transports of this host's pair, whose flow starts.
    #[cold]
    pub(super) fn create_transports(&mut self, index: usize) {
        let (sender, flow) = (sender_of_pair(index), self.hosts[index].path as usize / 2);
        let (Some(hosts), Some(maker)) =
            (pair(&mut self.hosts, sender), self.makers.get_mut(&flow))
        else {
            return;
        };
        if let Err(what) = maker.make(sender / 2, self.directory.ip, hosts) {
            self.fail(Box::new(SimError::Config { what }));
        }
    }

    /// Frees the transports of this host's pair if its flow is over: all that could still happen is
    /// the end of a TIMEWAIT.
    #[inline(never)]
    pub(super) fn free_if_spent(&mut self, index: usize) {
        let sender = sender_of_pair(index);
        let Some(hosts) = pair(&mut self.hosts, sender) else { return };
        let [a, b] = &*hosts;
        let are_spent =
            hosts.iter().all(|h| h.lifetime == Lifetime::Transfer && h.transport.is_spent());
        if !are_spent {
            return;
        }
        let sent = a.sent.wrapping_add(b.sent);
        let arrived = a.arrived.wrapping_add(b.arrived);
        let under_way = sent.wrapping_sub(arrived) as i32 - self.fabric.net_losses[sender / 2];
        if under_way == 0 {
            drop_transports(hosts);
            hosts.iter().for_each(|host| self.fabric.shrink(host.uplink as usize));
        }
    }
}

/// Both hosts of a pair.
fn pair(hosts: &mut [Host], sender: usize) -> Option<&mut [Host; 2]> {
    hosts.get_mut(sender..)?.first_chunk_mut()
}
