//! The shortest path for Data of zeros without options: from its header to the receive queue.

use udccp_base::{Ecn, Instant, Payload};
use udccp_wire::PlainData;

use super::super::{Connection, Pressure};
use crate::ackvec::Arrival;
use crate::ccid::ReceivedInfo;
use crate::event::{EventKind, Events};

impl Connection {
    /// Processes the next packet in order on a connection with nothing unusual to do
    /// (`find_usual`), with `size` bytes of data, if it can be delivered as it is. Returns whether
    /// it did. If not, nothing has changed.
    #[inline(never)]
    pub(crate) fn take_plain_data(
        &mut self,
        now: Instant,
        events: &mut Events,
        data: PlainData,
        size: u32,
        ecn: Ecn,
        outside: Pressure,
    ) -> bool {
        self.recv.set_outside(outside);
        let is_usual = self.usual().is_some() && ecn != Ecn::Ce && !self.recv.is_marking();
        if !is_usual || !self.recv.has_room(size as usize) {
            return false;
        }
        if !self.seq.take_next_in_order(data.seq, None) {
            return false;
        }
        self.timing.on_valid(now, self.seq.gar);
        self.counters.data_packets_received += 1;
        self.counters.data_bytes_received += u64::from(size);
        let arrival = self.acks.on_packet(data.seq, ecn);
        debug_assert!(!matches!(arrival, Arrival::Duplicate | Arrival::Forgotten));
        let PlainData { seq, ccval, .. } = data;
        let (is_data, size_bytes) = (true, size);
        let ndp_count = self.negotiation.agreed().peer_sends_ndp.then_some(0);
        let info = ReceivedInfo { seq, is_data, size_bytes, ccval, ecn, ndp_count };
        self.cc.on_packet(&self.config, now, info);
        if self.recv.push(Payload::Zeros(size), false) {
            self.emit_here(events, EventKind::Readable);
        }
        true
    }
}
