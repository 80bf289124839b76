//! Handles changes of the path: reports from routers, searches for its MTU, a new path (RFC 4340
//! sections 10.5 and 14).

use core::num::NonZeroU16;

use udccp_base::MaybeDuration;
use udccp_wire::Seqno;

use super::path_mtu::{MtuChange, NextProbe, Situation};
use super::timers::Timer;
use super::{Connection, Ctx};
use crate::event::{EventKind, MessageFate};

impl Connection {
    /// Sets the path MTU, dropping queued messages that no longer fit.
    pub(crate) fn set_path_mtu(&mut self, ctx: &mut Ctx<'_>, mtu: u16) {
        let change = self.path.set(ctx.now, mtu, self.config.pmtu_probing);
        self.follow_path(ctx, change);
    }

    /// Our interface takes packets of at most `mtu` bytes: lowers the path MTU to that.
    pub(crate) fn limit_path_mtu(&mut self, ctx: &mut Ctx<'_>, mtu: u16) {
        if mtu < self.path.mtu() {
            self.set_path_mtu(ctx, mtu);
        }
    }

    /// The connection is open: starts the search for the path's MTU.
    #[inline(never)]
    pub(super) fn start_probing(&mut self, ctx: &mut Ctx<'_>) {
        let change = self.path.start_search(ctx.now, self.config.pmtu_probing);
        self.follow_path(ctx, change);
    }

    /// A router reports that a packet was too big. `quoted` is its number if it is one of ours.
    pub(crate) fn on_too_big(&mut self, ctx: &mut Ctx<'_>, mtu: u16, quoted: Option<Seqno>) {
        let (gss, lost) = (self.seq.gss, self.counters.data_packets_lost());
        let known = Situation { rtt: self.rtt(), gss, lost };
        let change = self.path.on_too_big(ctx.now, mtu, quoted, known);
        self.follow_path(ctx, change);
    }

    /// Data, or acknowledgements of it, were lost.
    pub(super) fn doubt_path(&mut self, ctx: &mut Ctx<'_>) {
        let change = self.path.on_loss(ctx.now);
        self.follow_path(ctx, change);
    }

    pub(super) fn on_pmtu_timeout(&mut self, ctx: &mut Ctx<'_>) {
        let change = self.path.on_timer(ctx.now, self.timing.last_valid);
        self.follow_path(ctx, change);
    }

    /// Applies a change: sends probes, uses the new packet size, and notifies the application of
    /// it.
    pub(super) fn follow_path(&mut self, ctx: &mut Ctx<'_>, change: MtuChange) {
        if change.asks_for_life {
            self.outbox.sync = Some(self.seq.gsr);
        }
        if let Some(NextProbe { size, timer }) = change.search {
            self.outbox.probe = size.and_then(NonZeroU16::new);
            self.timers.set_or_stop(Timer::Pmtu, timer);
        }
        let Some((before, bytes)) = change.max_message_size else { return };
        self.emit(ctx, EventKind::MaxMessageSize { bytes });
        if bytes < before {
            self.drop_oversized(ctx, bytes);
        }
    }

    fn drop_oversized(&mut self, ctx: &mut Ctx<'_>, max: usize) {
        let mut discarded = Vec::new();
        //= 4340-14.2-8
        self.send.queue_mut().remove_larger(max, &mut |d| discarded.push(d));
        self.after_discards(ctx, discarded);
    }

    /// The path has changed, and the state of congestion control no longer applies. Both halves
    /// start again. So does the search for the path's MTU, from the value of the settings or the
    /// interface.
    pub(crate) fn path_changed(&mut self, ctx: &mut Ctx<'_>, mtu: Option<u16>) {
        if !self.state.transfers() {
            if let Some(mtu) = mtu {
                self.limit_path_mtu(ctx, mtu);
            }
            return;
        }
        // No report will come for packets in flight now: count them as lost.
        let c = self.counters();
        let settled = c.data_packets_acked + c.data_packets_lost;
        self.counters.rare().data_packets_lost += c.data_packets_sent.saturating_sub(settled);
        self.settle_all_fates(ctx, MessageFate::Unknown);
        self.timing.handshake_rtt = MaybeDuration::NONE;
        //= 4340-10.5-1
        if let (Some(tx), Some(rx)) = (self.cc.sender_ccid(), self.cc.receiver_ccid()) {
            let newest = self.cc.newest();
            // They were in use before, so they are registered.
            let _ = self.install_sender(ctx, tx);
            let _ = self.install_receiver(ctx, rx);
            self.cc.on_path_changed(&self.config, ctx.now, newest);
        }
        self.set_path_mtu(ctx, mtu.unwrap_or(self.config.path_mtu));
    }

    /// Resets the path's MTU to the interface's and searches again, unless that was done just now.
    /// Returns whether it was done.
    pub(crate) fn rediscover_path_mtu(&mut self, ctx: &mut Ctx<'_>) -> bool {
        let ready = self.path.may_rediscover(ctx.now);
        if ready {
            self.set_path_mtu(ctx, self.config.path_mtu);
        }
        ready
    }
}
