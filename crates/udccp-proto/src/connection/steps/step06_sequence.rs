//! Step 6: check sequence numbers.

use udccp_wire::PacketType;

use super::super::{Connection, Ctx, Received};
use super::{DROP, Flow, GO_ON};
use crate::state::State;

/// More than the Requests that a client sends in one handshake.
const MOST_REQUESTS: u64 = 32;

impl Connection {
    /// Extends short numbers and checks them against the windows. A packet outside is answered with
    /// a Sync, to check that it comes from the peer.
    pub(super) fn step_6_check_numbers(
        &mut self,
        ctx: &mut Ctx<'_>,
        packet: &mut Received<'_>,
    ) -> Flow {
        if !packet.view.x() {
            //= 4340-7.6.1-1
            if !self.negotiation.agreed().short_in {
                self.counters.rare().drops.sequence_invalid += 1;
                return DROP;
            }
            packet.seq = packet.view.seq_raw().extend(self.seq.gsr);
            packet.ackno = packet.view.ack_raw().map(|raw| raw.extend(self.seq.gss));
        }
        if self.seq.is_valid(packet.ty, packet.seq, packet.ackno) {
            self.seq.on_valid(packet.seq);
            if let Some(ackno) = packet.ackno.filter(|_| packet.ty != PacketType::Sync) {
                self.seq.on_valid_ack(ackno);
            }
            return GO_ON;
        }
        self.counters.rare().drops.sequence_invalid += 1;
        if self.is_overtaken_request(packet) {
            return DROP;
        }
        // The peer's Reset may come from an end that has no sequence numbers. The Sync acknowledges
        // the greatest number that we know, which lets the peer send a valid Reset.
        //= 4340-7.5.4-2
        //= 4340-7.5.4-4
        //= 4340-7.5.4-5
        let is_reset = packet.ty == PacketType::Reset;
        let ackno = if is_reset { self.seq.gsr } else { packet.seq };
        //= 4340-7.5.4-9
        //= 4340-7.5.4-10
        self.challenge(ctx, ackno);
        DROP
    }

    //= 4340-7.5.4-8
    /// Whether a later Request of the same client arrived first. Such a packet gets no Sync, as RFC
    /// 4340 section 7.5.4 allows: the Sync could overtake our Response, and a client in REQUEST
    /// would answer it with a Reset. A client that has started again has any sequence number.
    fn is_overtaken_request(&self, packet: &Received<'_>) -> bool {
        self.state == State::Respond
            && packet.ty == PacketType::Request
            && packet.seq.in_window(self.seq.isr.sub(MOST_REQUESTS), self.seq.isr.prev())
    }

    /// Sends a Sync about a packet that does not fit, unless one was sent just now.
    pub(super) fn challenge(&mut self, ctx: &mut Ctx<'_>, ackno: udccp_wire::Seqno) {
        //= 4340-7.5.4-8
        if self.limits.allow_sync(ctx.now, self.config.sync_interval) {
            self.outbox.sync = Some(ackno);
        } else {
            self.counters.rare().syncs_limited += 1;
        }
    }
}
