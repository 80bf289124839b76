//! One direction of a flow: matches packets that left one host with those that reached the other.

use std::collections::VecDeque;

use udccp_base::Instant;
use udccp_link::DropReason;
use udccp_sim::PathRecorder;

use crate::event::PacketEvent;

/// If packets may overtake each other, one that is this late counts as lost.
const GIVEN_UP_NS: u64 = 5_000_000_000;

/// Packets in flight, and the recorder of the direction.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) recorder: PathRecorder,
    travelling: VecDeque<PacketEvent>,
    /// Whether packets arrive in the order in which they left.
    in_order: bool,
    last_sent: Instant,
    lost: DropReason,
}

impl Route {
    pub(super) fn new(recorder: PathRecorder, in_order: bool, lost: DropReason) -> Self {
        let travelling = VecDeque::new();
        Self { recorder, travelling, in_order, last_sent: Instant::ZERO, lost }
    }

    /// Records a packet that left.
    pub(super) fn sent(&mut self, packet: PacketEvent) {
        self.recorder.sent(packet.bytes.into(), packet.has_data);
        self.travelling.push_back(packet);
        self.expire(packet.at_ns);
    }

    /// Records a packet that arrived. Those sent before it are lost, unless packets may overtake
    /// each other.
    pub(super) fn arrived(&mut self, packet: PacketEvent) {
        let same = |other: &PacketEvent| other.key == packet.key && other.bytes == packet.bytes;
        let now = Instant::from_nanos(packet.at_ns);
        let (bytes, has_data) = (packet.bytes.into(), packet.has_data);
        let Some(place) = self.travelling.iter().position(same) else {
            // A copy, sent together with the previous packet.
            self.recorder.duplicated(1);
            self.recorder.delivered(self.last_sent.min(now), now, bytes, has_data);
            return;
        };
        if self.in_order {
            for _ in 0..place {
                self.travelling.pop_front();
                self.recorder.dropped(self.lost);
            }
        }
        let place = if self.in_order { 0 } else { place };
        if let Some(sent) = self.travelling.remove(place) {
            self.last_sent = Instant::from_nanos(sent.at_ns);
            self.recorder.delivered(self.last_sent, now, bytes, has_data);
        }
    }

    fn expire(&mut self, now_ns: u64) {
        while self.travelling.front().is_some_and(|p| p.at_ns + GIVEN_UP_NS < now_ns) {
            self.travelling.pop_front();
            self.recorder.dropped(self.lost);
        }
    }

    /// Number of packets that have not arrived.
    pub(super) fn travelling(&self) -> u64 {
        self.travelling.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(key: u32, at_ms: u64) -> PacketEvent {
        let at_ns = at_ms * 1_000_000;
        PacketEvent { at_ns, key, bytes: 1500, has_data: true, ..PacketEvent::default() }
    }

    fn route(in_order: bool) -> Route {
        Route::new(PathRecorder::with_times(), in_order, DropReason::QueueFull)
    }

    #[test]
    fn overtaken_packets_are_lost_on_an_ordered_link() {
        let mut way = route(true);
        (1..=4).for_each(|key| way.sent(packet(key, u64::from(key))));
        way.arrived(packet(1, 11));
        way.arrived(packet(4, 14));
        let (counts, _, _) = way.recorder.finish(0);
        assert_eq!((counts.sent.packets, counts.delivered.packets), (4, 2));
        assert_eq!(counts.dropped_total(), 2);
    }

    #[test]
    fn overtaken_packets_expire_on_a_reordering_link() {
        let mut way = route(false);
        (1..=3).for_each(|key| way.sent(packet(key, u64::from(key))));
        way.arrived(packet(2, 11));
        way.arrived(packet(1, 12));
        assert_eq!(way.travelling(), 1);
        way.sent(packet(9, 6_000));
        assert_eq!(way.travelling(), 1);
        let (counts, _, _) = way.recorder.finish(1);
        assert_eq!((counts.delivered.packets, counts.dropped_total()), (2, 1));
    }

    #[test]
    fn a_copy_is_counted_as_one() {
        let mut way = route(true);
        way.sent(packet(7, 1));
        way.arrived(packet(7, 11));
        way.arrived(packet(7, 11));
        let (counts, _, _) = way.recorder.finish(0);
        assert_eq!((counts.duplicated, counts.delivered.packets), (1, 2));
    }
}
