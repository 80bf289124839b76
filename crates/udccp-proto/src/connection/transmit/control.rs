//! Sends packets that congestion control does not hold back.

use bytes::Bytes;
use udccp_base::{Datagram, Payload};
use udccp_wire::HeaderKind;

use super::super::outbox::ResetOut;
use super::super::{Connection, Ctx};
use crate::count::count;
use crate::state::State;

/// Lengths of headers without options.
const RESET_HEADER: usize = 28;
const RESPONSE_HEADER: usize = 28;
const SYNC_HEADER: usize = 24;

impl Connection {
    pub(super) fn transmit_control(
        &mut self,
        ctx: &mut Ctx<'_>,
        out: &mut Option<Datagram>,
    ) -> bool {
        if self.credit.is_limited() {
            self.drop_what_is_too_much();
        }
        if let Some(reset) = self.outbox.reset.take() {
            let (ack, code, data) = (reset.ackno, reset.code, reset.data);
            count!(self.counters, resets_sent += 1);
            self.ending.on_reset_sent(code, data);
            let text = Payload::Bytes(Bytes::from_static(reset.error_text().as_bytes()));
            self.write_packet(ctx, out, HeaderKind::Reset { ack, code, data }, text);
            return true;
        }
        if core::mem::take(&mut self.outbox.handshake) && self.transmit_handshake(ctx, out) {
            return true;
        }
        if let Some(ack) = self.outbox.sync_acks.take() {
            count!(self.counters, sync_acks_sent += 1);
            return self.write_control(ctx, out, HeaderKind::SyncAck { ack });
        }
        if let Some(ack) = self.outbox.sync.take() {
            count!(self.counters, syncs_sent += 1);
            return self.write_control(ctx, out, HeaderKind::Sync { ack });
        }
        let probe = self.outbox.probe.take();
        if probe.is_some_and(|size| self.transmit_probe(ctx, out, size.get())) {
            return true;
        }
        core::mem::take(&mut self.outbox.close) && self.transmit_close(ctx, out)
    }

    /// Drops packets that exceed what may be sent before the peer's address is validated. The peer
    /// may request them again. A SyncAck is never among them: the Sync that it answers has
    /// validated the address.
    fn drop_what_is_too_much(&mut self) {
        let (credit, outbox) = (self.credit, &mut self.outbox);
        let too_long =
            |reset: &&mut Box<ResetOut>| !credit.allows(RESET_HEADER + reset.error_text().len());
        if let Some(reset) = outbox.reset.as_mut().filter(too_long) {
            reset.is_explained = false;
        }
        outbox.reset.take_if(|_| !credit.allows(RESET_HEADER));
        outbox.handshake &= credit.allows(RESPONSE_HEADER);
        outbox.sync = outbox.sync.filter(|_| credit.allows(SYNC_HEADER));
    }

    fn transmit_handshake(&mut self, ctx: &mut Ctx<'_>, out: &mut Option<Datagram>) -> bool {
        let service = self.who.service;
        match self.state {
            State::Request => {
                self.start_request_timer(ctx.now);
                self.ask_for_quick_start();
                //= 4340-8.1.1-2
                let data = self.handshake.request_data();
                self.write_packet(ctx, out, HeaderKind::Request { service }, data);
                self.timing.on_greeting(ctx.now);
                true
            }
            State::Respond => {
                //= 4340-5.3-2
                //= 4340-8.1.3-5
                let ack = self.seq.gsr;
                self.write_control(ctx, out, HeaderKind::Response { ack, service });
                self.timing.on_greeting(ctx.now);
                true
            }
            _ => false,
        }
    }

    /// Sends a Sync padded to `size` bytes with the IP header. It acknowledges what a Sync would,
    /// and is answered at once. It carries no application data, and congestion control ignores its
    /// loss.
    fn transmit_probe(&mut self, ctx: &mut Ctx<'_>, out: &mut Option<Datagram>, size: u16) -> bool {
        if self.state != State::Open {
            return false;
        }
        let payload = Payload::Zeros(self.path.probe_padding(size) as u32);
        count!(self.counters, pmtu_probes_sent += 1);
        self.write_packet(ctx, out, HeaderKind::Sync { ack: self.seq.gsr }, payload);
        let change = self.path.on_probe_sent(ctx.now, self.seq.gss, self.rtt());
        self.follow_path(ctx, change);
        true
    }

    fn transmit_close(&mut self, ctx: &mut Ctx<'_>, out: &mut Option<Datagram>) -> bool {
        let ack = self.ackno();
        let kind = match self.state {
            State::CloseReq => HeaderKind::CloseReq { ack },
            State::Closing => HeaderKind::Close { ack },
            _ => return false,
        };
        self.start_close_timer(ctx.now);
        self.write_control(ctx, out, kind)
    }

    fn write_control(
        &mut self,
        ctx: &mut Ctx<'_>,
        out: &mut Option<Datagram>,
        kind: HeaderKind,
    ) -> bool {
        self.write_packet(ctx, out, kind, Payload::EMPTY);
        true
    }
}
