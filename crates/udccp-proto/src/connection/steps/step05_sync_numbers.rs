//! Step 5: prepare sequence numbers for Sync.

use udccp_base::{Duration, Instant};
use udccp_wire::PacketType;

use super::super::{Connection, Ctx, Received};
use super::{DROP, Flow, GO_ON};

/// A connection is active while its last valid packet is at most this many round-trip times old
/// (RFC 4340 section 7.5.3).
const ACTIVE_RTTS: u64 = 3;
/// The last valid packet may also not be older than this. A host suspended with a packet in
/// flight measures a round-trip time of hours: for as long, no Sync could close the gap that lost
/// packets left.
const ACTIVE_AT_MOST: Duration = Duration::from_secs(12);

impl Connection {
    /// A Sync or SyncAck that acknowledges a packet in flight may move the window far ahead, but
    /// not while the connection is active, when that is never needed.
    pub(super) fn step_5_prepare_numbers_for_sync(
        &mut self,
        ctx: &mut Ctx<'_>,
        packet: &Received<'_>,
    ) -> Flow {
        if !matches!(packet.ty, PacketType::Sync | PacketType::SyncAck) {
            return GO_ON;
        }
        let acknowledges = packet.ackno.is_some_and(|ackno| self.seq.ack_in_window(ackno));
        let not_old = packet.seq.at_least(self.seq.swl());
        //= 4340-7.5.3-1
        let not_far = packet.seq.at_most(self.seq.swh()) || !self.is_active(ctx.now);
        //= 4340-7.5.4-1
        if !(acknowledges && not_old && not_far) {
            self.counters.rare().drops.sequence_invalid += 1;
            return DROP;
        }
        //= 4340-7.5.4-6
        self.seq.on_valid(packet.seq);
        GO_ON
    }

    fn is_active(&self, now: Instant) -> bool {
        let lasts = (self.rtt() * ACTIVE_RTTS).min(ACTIVE_AT_MOST);
        now.saturating_since(self.timing.last_valid) <= lasts
    }
}
