//! The path's MTU: who says it, and who is told (RFC 4340 section 14).

use udccp_base::{Datagram, Payload};
use udccp_wire::{HeaderKind, Seqno};

use super::odd_reports::OddReports;
use super::pmtu::Search;
use super::timers::Timer;
use super::{Connection, Ctx};
use crate::event::{DropReason, EventKind};
use crate::state::State;

/// MTUs that links have (RFC 1191 section 7.1).
const PLATEAUS: [u16; 10] = [32_000, 17_914, 8166, 4352, 2002, 1492, 1006, 508, 296, 128];

/// The largest MTU of a usual link below `mtu`.
fn plateau_below(mtu: u16) -> u16 {
    PLATEAUS.into_iter().find(|&plateau| plateau < mtu).unwrap_or(mtu)
}

/// Longest header of a Sync without options.
const SYNC_HEADER: usize = 24;

impl Connection {
    /// Sets the path MTU, dropping queued messages that no longer fit.
    pub(crate) fn set_path_mtu(&mut self, ctx: &mut Ctx<'_>, mtu: u16) {
        self.use_mtu(ctx, mtu);
        if self.pmtu.is_some() {
            self.start_probing(ctx);
        }
    }

    /// A router says that a packet was too big: `quoted` where it is one of ours, else a packet
    /// that we know nothing of. 0 stands for a router that does not say what fits.
    pub(crate) fn on_too_big(&mut self, ctx: &mut Ctx<'_>, mtu: u16, quoted: Option<Seqno>) {
        let named = if mtu == 0 { plateau_below(self.path.mtu()) } else { mtu };
        let mtu = self.path.credible(named);
        if mtu >= self.path.mtu() {
            // A search may have sent a probe that is larger than what is in use.
            if let Some(quoted) = quoted.filter(|_| self.pmtu.is_some()) {
                self.shrink_path_mtu(ctx, mtu, quoted);
            }
        } else if let Some(quoted) = quoted {
            self.shrink_path_mtu(ctx, mtu, quoted);
        } else if self.is_confused_router(ctx, mtu) {
            self.odd_reports = None;
            self.shrink_path_mtu(ctx, mtu, self.seq.gss);
        }
    }

    /// Whether messages that quote nothing of ours are to be believed: by then larger packets are
    /// lost, and none arrives. If somebody guesses, some do.
    //= 4340-14.1-7
    fn is_confused_router(&mut self, ctx: &Ctx<'_>, mtu: u16) -> bool {
        let (now, rtt) = (ctx.now, self.rtt());
        let goes_on = self.odd_reports.as_ref().is_some_and(|odd| odd.goes_with(now, mtu));
        if !goes_on {
            self.odd_reports = Some(Box::new(OddReports::new(now, rtt, mtu, self.seq.gss)));
        }
        let lost = self.counters.data_packets_lost;
        self.odd_reports.as_mut().is_some_and(|odd| odd.add(lost))
    }

    /// An acknowledgement tells what arrived: a packet larger than odd ICMP messages allow shows
    /// that they are false.
    pub(super) fn judge_odd_reports(&mut self, ackno: Seqno, cells: Option<&[u8]>) {
        let lost = self.counters.data_packets_lost;
        let odd = self.odd_reports.as_mut();
        if odd.is_some_and(|odd| !odd.survives(ackno, cells, lost)) {
            self.odd_reports = None;
        }
    }

    fn shrink_path_mtu(&mut self, ctx: &mut Ctx<'_>, mtu: u16, quoted: Seqno) {
        if let Some(search) = &mut self.pmtu {
            search.on_too_big(ctx.now, mtu, quoted);
            self.follow_search(ctx);
        } else if mtu < self.path.mtu() {
            self.use_mtu(ctx, mtu);
        }
    }

    /// The size of packets is another from now on, and the application is told.
    fn use_mtu(&mut self, ctx: &mut Ctx<'_>, mtu: u16) {
        let before = self.path.mps();
        self.path.set_mtu(mtu);
        let mps_bytes = self.path.mps();
        if mps_bytes != before {
            self.emit(ctx, EventKind::MaxPacketSize { mps_bytes });
        }
        if mps_bytes < before {
            self.drop_oversized(ctx);
        }
    }

    fn drop_oversized(&mut self, ctx: &mut Ctx<'_>) {
        let mps = self.path.mps();
        let mut sizes = Vec::new();
        //= 4340-14.2-8
        self.send_queue.remove_larger(mps, &mut |bytes| sizes.push(bytes));
        for bytes in sizes {
            self.counters.drops.send_too_large += 1;
            let reason = DropReason::TooLarge;
            self.emit(ctx, EventKind::MessageDropped { reason, bytes });
        }
    }

    /// The connection is open: begins to look for the path's MTU.
    pub(super) fn start_probing(&mut self, ctx: &mut Ctx<'_>) {
        let Some(config) = self.config.pmtu_probing else { return };
        let search = Search::new(config, self.path.mtu(), self.path.floor(), ctx.now);
        self.pmtu = Some(Box::new(search));
        self.follow_search(ctx);
    }

    /// Takes over what the search says: the size, its timer, its next probe.
    fn follow_search(&mut self, ctx: &mut Ctx<'_>) {
        let Some(search) = &self.pmtu else { return };
        let (mtu, timer, wants) = (search.plpmtu(), search.timer(), search.wants());
        self.outbox.probe = wants;
        self.timers.set_or_stop(Timer::Pmtu, timer);
        if mtu != self.path.mtu() {
            self.use_mtu(ctx, mtu);
        }
    }

    /// A SyncAck answered our packet `seq`.
    pub(super) fn on_probe_answer(&mut self, ctx: &mut Ctx<'_>, seq: Seqno) {
        if let Some(search) = &mut self.pmtu {
            search.on_answer(ctx.now, seq);
            self.follow_search(ctx);
        }
    }

    /// Data was lost: perhaps because it was too large.
    pub(super) fn doubt_mtu(&mut self, ctx: &mut Ctx<'_>) {
        if let Some(search) = &mut self.pmtu {
            search.on_doubt(ctx.now);
            self.follow_search(ctx);
        }
    }

    pub(super) fn on_pmtu_timeout(&mut self, ctx: &mut Ctx<'_>) {
        let heard = self.timing.last_valid;
        let Some(search) = &mut self.pmtu else { return };
        if search.on_timer(ctx.now, heard) {
            self.outbox.sync = Some(self.seq.gsr);
        }
        self.follow_search(ctx);
    }

    /// Sends a Sync padded to `size` bytes with the IP header. It acknowledges what a Sync would,
    /// is answered at once, and is nobody's data: congestion control does not hear of its loss.
    pub(super) fn transmit_probe(
        &mut self,
        ctx: &mut Ctx<'_>,
        out: &mut Option<Datagram>,
        size: u16,
    ) -> bool {
        if self.state != State::Open {
            return false;
        }
        let padding = self.path.transport_len_of(size).saturating_sub(SYNC_HEADER);
        let payload = Payload::Zeros(padding as u32);
        self.counters.pmtu_probes_sent += 1;
        self.write_packet(ctx, out, HeaderKind::Sync { ack: self.seq.gsr }, payload);
        let (now, seq, rtt) = (ctx.now, self.seq.gss, self.rtt());
        if let Some(search) = &mut self.pmtu {
            search.on_sent(now, seq, rtt);
        }
        self.follow_search(ctx);
        true
    }
}
