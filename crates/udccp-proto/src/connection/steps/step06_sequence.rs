//! Step 6: check sequence numbers.

use udccp_wire::PacketType;

use super::super::{Connection, Ctx, Received};
use super::{DROP, Flow, GO_ON};
use crate::state::State;

/// More Requests than a client sends in one handshake.
const MOST_REQUESTS: u64 = 32;

impl Connection {
    /// Extends short numbers and checks them against the windows. A packet outside asks, by a
    /// Sync, whether the peer is really there.
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
        // The peer's Reset may stem from an end that knows no numbers: challenge it with the
        // greatest that we know, so that it can make a proper one.
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
    /// Whether a later Request of the same client came first. A Sync, of which RFC 4340 section
    /// 7.5.4 lets us send fewer, could overtake our Response, and a client in REQUEST resets what
    /// it is about. A client that has begun anew has any number at all.
    fn is_overtaken_request(&self, packet: &Received<'_>) -> bool {
        self.state == State::Respond
            && packet.ty == PacketType::Request
            && packet.seq.in_window(self.seq.isr.sub(MOST_REQUESTS), self.seq.isr.prev())
    }

    /// Sends a Sync about a packet that does not fit, unless one left just now.
    pub(super) fn challenge(&mut self, ctx: &mut Ctx<'_>, ackno: udccp_wire::Seqno) {
        //= 4340-7.5.4-8
        if self.limits.allow_sync(ctx.now, self.config.sync_interval) {
            self.outbox.sync = Some(ackno);
        } else {
            self.counters.rare().syncs_limited += 1;
        }
    }
}
